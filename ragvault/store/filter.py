"""Filter: the tree of a plan becomes SQL, and SQL the passages and notes it keeps.

    passages    what every leg of a search may return: ids, ascending
    notes       what a filter alone lists: ids, newest first

What is asked of notes is answered by a query over notes, so that passages are looked at only
where something is asked of them. A note without a passage (all frontmatter) counts as one whose
only passage is empty. Whatever was typed is bound as a value and never becomes SQL. What a keyword
index must find is asked of the caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from sqlite3 import Connection
from typing import TYPE_CHECKING, Literal

from ragvault.plan import Either, Every, Except, Filter, Has, Holds, Task, Under, Written, of_notes
from ragvault.store.filter_leaves import NOTE_LEAVES, PASSAGE_LEAVES, Sql, joined
from ragvault.store.filter_text import register

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Finds the passages that a keyword or code index holds something in, all of them.
Matching = Callable[[Holds], Iterable[int]]

# Who is asked: a note `n`, a passage `c`, or a note `n` as if it were one empty passage.
Asked = Literal["note", "passage", "empty"]


def passages(
    db: Connection, tree: Filter | None, matching: Matching | None = None
) -> NDArray[np.int64] | None:
    """The ids of the passages a filter keeps, ascending; None for no filter, which keeps all."""
    import numpy as np

    if tree is None:
        return None
    register(db)
    where = _Compiler("passage", matching).expression(tree)
    # As one text: row by row, 108,000 ids took 78 ms to fetch, and this way 12.
    query = f"SELECT group_concat(c.id) FROM chunks AS c WHERE {where.text}"
    (joined,) = db.execute(query, where.values).fetchone()
    return np.sort(np.fromstring(joined or "", dtype=np.int64, sep=","))


def notes(db: Connection, tree: Filter | None, matching: Matching | None = None) -> list[int]:
    """The ids of the notes a filter keeps at least one passage of, newest first."""
    register(db)
    where = _notes_where(tree, matching)
    order = "ORDER BY n.date DESC, n.path"
    found = db.execute(f"SELECT n.id FROM notes AS n WHERE {where.text} {order}", where.values)
    return [note_id for (note_id,) in found]


def _notes_where(tree: Filter | None, matching: Matching | None) -> Sql:
    if tree is None:
        return Sql("1")
    if of_notes(tree):
        return _Compiler("note", matching).expression(tree)
    inside = _Compiler("passage", matching).expression(tree)
    empty = _Compiler("empty", matching).expression(tree)
    return Sql(
        f"n.id IN (SELECT c.note_id FROM chunks AS c WHERE {inside.text})"
        f" OR (n.id NOT IN (SELECT note_id FROM chunks) AND ({empty.text}))",
        inside.values + empty.values,
    )


class _Compiler:
    """Turns trees into expressions about one kind of row."""

    def __init__(self, asked: Asked, matching: Matching | None) -> None:
        self._asked = asked
        self._matching = matching

    def expression(self, tree: Filter) -> Sql:
        if self._asked == "passage" and of_notes(tree):
            inside = _Compiler("note", self._matching).expression(tree)
            return Sql(
                f"c.note_id IN (SELECT n.id FROM notes AS n WHERE {inside.text})", inside.values
            )
        if isinstance(tree, Except):
            part = self.expression(tree.part)
            return Sql(f"NOT ({part.text})", part.values)
        if isinstance(tree, (Every, Either)):
            return self._joined(tree)
        return self._leaf(tree)

    def _joined(self, tree: Every | Either) -> Sql:
        """All that is asked of notes in one query, and the rest beside it."""
        about_notes = tuple(part for part in tree.parts if of_notes(part))
        if self._asked == "passage" and len(about_notes) > 1:
            rest = tuple(part for part in tree.parts if not of_notes(part))
            return self._joined(type(tree)((type(tree)(about_notes), *rest)))
        return joined(
            " AND " if isinstance(tree, Every) else " OR ",
            [self.expression(part) for part in tree.parts],
        )

    def _leaf(self, leaf: Filter) -> Sql:
        if isinstance(leaf, (Under, Written, Has, Task, Holds)):
            return Sql("0") if self._asked == "empty" else self._passage_leaf(leaf)
        return NOTE_LEAVES[type(leaf)](leaf)

    def _passage_leaf(self, leaf: Under | Written | Has | Task | Holds) -> Sql:
        if not isinstance(leaf, Holds):
            return PASSAGE_LEAVES[type(leaf)](leaf)
        if self._matching is None:
            raise ValueError("this filter asks for words, and no index was given to find them")
        ids = json.dumps([int(each) for each in self._matching(leaf)])
        return Sql("c.id IN (SELECT value FROM json_each(?))", (ids,))
