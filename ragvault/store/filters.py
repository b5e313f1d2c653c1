"""Filters: the filter tree of a plan becomes SQL, which selects passages and notes.

Conditions on notes become one query over notes, so that passages are read only where there is a
condition on them. What the user typed is bound as a value and never becomes SQL. Each expression is
true or false and never NULL, so that its negation is what people expect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ragvault.plan import (
    And,
    Dated,
    Filter,
    HasPart,
    HasTask,
    InLanguage,
    LinkedBy,
    LinksTo,
    MatchesWords,
    NameContains,
    Not,
    Or,
    PassageLeaf,
    Property,
    Tagged,
    UnderHeading,
    Value,
    of_notes,
)
from ragvault.store.database import Database, reading
from ragvault.store.links import EXTENSIONS, link_key
from ragvault.store.passages import to_spans
from ragvault.store.values import INT64, Text, decompress, from_json, from_sql, to_sql
from ragvault.text.dates import EARLIEST
from ragvault.text.fold import fold_case
from ragvault.text.spans import cut

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Finds all passages that contain words or code, in a keyword index.
Matching = Callable[[MatchesWords], Iterable[int]]

# What an expression is about: a note `n`, or a passage `c`.
Subject = Literal["note", "passage"]


class Filters(Database):
    """Selects what a filter keeps."""

    @reading
    def filtered_passages(
        self, tree: Filter | None, matching: Matching | None = None
    ) -> NDArray[np.int64] | None:
        """The ids of the passages that a filter keeps, ascending; None for no filter."""
        import numpy as np

        if tree is None:
            return None
        register_functions(self._db)
        where = _Compiler("passage", matching).expression(tree)
        # As one text: fetching 108,000 ids row by row took 78 ms, this way 12.
        query = f"SELECT group_concat(c.id) FROM passages AS c WHERE {where.text}"
        (joined,) = self._db.execute(query, where.values).fetchone()
        return np.sort(np.fromstring(joined or "", dtype=np.int64, sep=","))

    @reading
    def filtered_notes(self, tree: Filter | None, matching: Matching | None = None) -> list[int]:
        """The ids of the notes that a filter keeps a passage of, newest first."""
        register_functions(self._db)
        where = _notes_where(tree, matching)
        query = f"SELECT n.id FROM notes AS n WHERE {where.text} ORDER BY n.date DESC, n.path"
        return [note_id for (note_id,) in self._db.execute(query, where.values)]

    @reading
    def notes_by_date(
        self, tree: Filter | None, matching: Matching, templates: Sequence[str]
    ) -> list[tuple[int, bool]]:
        """The notes that a filter keeps a passage of, and whether each says nothing.

        Templates, which are in folders of these names or have a blank in their title, and notes
        without text come last; otherwise the newest note is first.
        """
        register_functions(self._db)
        where = _notes_where(tree, matching)
        # A note without text has one passage; the first of any other has another kind.
        query = f"""
            SELECT n.id, n.title GLOB '*{{{{*}}}}*' OR n.title GLOB '*<%*%>*'
                OR EXISTS (SELECT 1 FROM json_each(?) AS folder
                    WHERE instr(lower('/' || n.path), '/' || lower(folder.value) || '/'))
                OR 'properties' = (SELECT kind FROM passages WHERE note_id = n.id LIMIT 1)
                AS says_nothing
            FROM notes AS n WHERE {where.text} ORDER BY says_nothing, n.date DESC, n.path"""
        values = (json.dumps(list(templates)), *where.values)
        return [(note, bool(nothing)) for note, nothing in self._db.execute(query, values)]


class Sql(NamedTuple):
    """An expression and the values bound in it, in order."""

    text: str
    values: tuple[Any, ...] = ()


def _join(joint: str, parts: Sequence[Sql]) -> Sql:
    """In halves: SQLite refuses expressions that nest too deep, and a chain nests."""
    if len(parts) > 2:
        middle = len(parts) // 2
        parts = [_join(joint, parts[:middle]), _join(joint, parts[middle:])]
    values = tuple(value for part in parts for value in part.values)
    return Sql(joint.join(f"({part.text})" for part in parts) or "1", values)


def _notes_where(tree: Filter | None, matching: Matching | None) -> Sql:
    if tree is None:
        return Sql("1")
    if of_notes(tree):
        return _Compiler("note", matching).expression(tree)
    inside = _Compiler("passage", matching).expression(tree)
    return Sql(f"n.id IN (SELECT c.note_id FROM passages AS c WHERE {inside.text})", inside.values)


class _Compiler:
    """Turns filter trees into expressions about one subject."""

    def __init__(self, subject: Subject, matching: Matching | None) -> None:
        self._subject = subject
        self._matching = matching

    def expression(self, tree: Filter) -> Sql:
        if self._subject == "passage" and of_notes(tree):
            inside = _Compiler("note", self._matching).expression(tree)
            return Sql(
                f"c.note_id IN (SELECT n.id FROM notes AS n WHERE {inside.text})", inside.values
            )
        if isinstance(tree, Not):
            part = self.expression(tree.part)
            return Sql(f"NOT ({part.text})", part.values)
        if isinstance(tree, (And, Or)):
            return self._joined(tree)
        return self._leaf(tree)

    def _joined(self, tree: And[Filter] | Or[Filter]) -> Sql:
        """All conditions on notes in one query, and the rest beside it."""
        about_notes = tuple(part for part in tree.parts if of_notes(part))
        if self._subject == "passage" and len(about_notes) > 1:
            rest = tuple(part for part in tree.parts if not of_notes(part))
            return self._joined(type(tree)((type(tree)(about_notes), *rest)))
        return _join(
            " AND " if isinstance(tree, And) else " OR ",
            [self.expression(part) for part in tree.parts],
        )

    def _leaf(self, leaf: Filter) -> Sql:
        if isinstance(leaf, (UnderHeading, InLanguage, HasPart, HasTask, MatchesWords)):
            return self._passage_leaf(leaf)
        return NOTE_LEAVES[type(leaf)](leaf)

    def _passage_leaf(self, leaf: PassageLeaf) -> Sql:
        if not isinstance(leaf, MatchesWords):
            return PASSAGE_LEAVES[type(leaf)](leaf)
        if self._matching is None:
            raise ValueError("this filter needs words, and no index was given to find them")
        ids = json.dumps([int(each) for each in self._matching(leaf)])
        return Sql("c.id IN (SELECT value FROM json_each(?))", (ids,))


# A property's date with a zone; one without is local time.
_ZONED = "(text GLOB '*[+-][0-9][0-9]:[0-9][0-9]')"


# --- Conditions on a note `n` ---


def _tagged(leaf: Tagged) -> Sql:
    key = fold_case(leaf.tag.strip("#/ "))
    if "*" in key:
        return Sql("n.id IN (SELECT note_id FROM tags WHERE tag_is(key, ?))", (to_sql(key),))
    # "0" is the character after "/": between the two lies all that is below the tag.
    values = (to_sql(key), to_sql(f"{key}/"), to_sql(f"{key}0"))
    return Sql("n.id IN (SELECT note_id FROM tags WHERE key = ? OR (key >= ? AND key < ?))", values)


_NAMED = {
    "path": "path_holds(n.path, ?)",
    "file": "file_holds(n.path, ?)",
    "title": "text_holds(n.title, ?)",
    "alias": "n.aliases != '[]' AND alias_holds(n.aliases, ?)",
}


def _links_to(leaf: LinksTo) -> Sql:
    """By links that were looked up, and by broken links with this name."""
    there = " AND anchor_is(anchor, ?)" if leaf.anchor else ""
    place = (to_sql("#".join(leaf.anchor)),) if leaf.anchor else ()
    values = (to_sql(leaf.note), *place, to_sql(link_key(leaf.note)), to_sql(leaf.note), *place)
    return Sql(
        "n.id IN (SELECT note_id FROM links WHERE note_id != target_note_id AND target_note_id IN"
        f" (SELECT id FROM notes WHERE is_named(path, title, aliases, ?)){there}"
        " UNION SELECT note_id FROM links WHERE target_key = ? AND status = 'unresolved'"
        f" AND target_is(target, ?){there})",
        values,
    )


def _linked_by(leaf: LinkedBy) -> Sql:
    return Sql(
        "n.id IN (SELECT target_note_id FROM links WHERE note_id != target_note_id AND note_id IN"
        " (SELECT id FROM notes WHERE is_named(path, title, aliases, ?)))",
        (to_sql(leaf.note),),
    )


def _property(leaf: Property) -> Sql:
    test = _test(leaf)
    query = "n.id IN (SELECT note_id FROM fields WHERE key = ?"
    return Sql(f"{query} AND ({test.text}))", (to_sql(fold_case(leaf.name)), *test.values))


def _test(leaf: Property) -> Sql:
    if leaf.value is None:
        return Sql("text IS NULL" if leaf.test == "empty" else "1")
    if leaf.test == "=":
        return _equal(leaf.value)
    if leaf.test == "..":
        last = leaf.last or leaf.value
        return _join(
            " OR ",
            [
                _both(_number(">=", leaf.value), _number("<=", last)),
                _both(_day(">=", leaf.value), _day("<=", last)),
            ],
        )
    return _join(" OR ", [_number(leaf.test, leaf.value), _day(leaf.test, leaf.value)])


def _equal(value: Value) -> Sql:
    """As text, also as the only link of a property; as a number; as a date within a range."""
    same = fold_case(value.text)
    texts = Sql("text IN (?, ?)", (to_sql(same), to_sql(f"[[{same}]]")))
    if "*" in same:
        texts = Sql("text_is(text, ?)", (to_sql(same),))
    return _join(" OR ", [texts, _number("=", value), _both(_day(">=", value), _day("<=", value))])


def _number(sign: str, value: Value) -> Sql:
    if value.number is None:
        return Sql("0")
    # True is stored as 1, and is not a number.
    number = Sql(f"number {sign} ? AND text NOT IN ('true', 'false')", (value.number,))
    if sign == "=":
        return number
    # A number in quotes is a text; `> 3` means it too.
    text = Sql(f"number IS NULL AND number_in(text) {sign} ?", (value.number,))
    return _join(" OR ", [number, text])


def _day(sign: str, value: Value) -> Sql:
    """Before a range is before its first moment; after it, from its last moment on."""
    if value.since is None or value.until is None:
        return Sql("0")
    bound = value.since if sign in ("<", ">=") else value.until
    test = f"date {'<' if sign in ('<', '<=') else '>='} ?"
    return Sql(
        f"CASE WHEN {_ZONED} THEN {test} ELSE {test} END",
        (bound.instant, bound.day),
    )


def _both(left: Sql, right: Sql) -> Sql:
    return _join(" AND ", [left, right])


def _dated(leaf: Dated) -> Sql:
    """By local time or by the instant; see Moment.

    A date without a time is stored as midnight UTC. Whether a time had a zone is known from the
    property it came from, which is read only where the two comparisons disagree.
    """
    column = f"n.{leaf.date}"
    midnight = f"{column} = CAST({column} AS INTEGER) AND CAST({column} AS INTEGER) % 86400 = 0"
    local = f"{column} IN (SELECT date FROM fields WHERE note_id = n.id AND NOT {_ZONED})"
    walls = instants = Sql(f"{column} >= {EARLIEST}")  # a note without a date is before it
    for sign, bound in ((">=", leaf.since), ("<", leaf.until)):
        if bound is not None:
            walls = _both(walls, Sql(f"{column} {sign} ?", (bound.day,)))
            instants = _both(instants, Sql(f"{column} {sign} ?", (bound.instant,)))
    text = (
        f"CASE WHEN ({walls.text}) = ({instants.text}) THEN {walls.text}"
        f" WHEN ({midnight}) OR {local} THEN {walls.text} ELSE {instants.text} END"
    )
    once = walls.values + instants.values
    return Sql(text, once + walls.values + once)


NOTE_LEAVES: dict[type, Callable[[Any], Sql]] = {
    Tagged: _tagged,
    NameContains: lambda leaf: Sql(_NAMED[leaf.where], (to_sql(leaf.text),)),
    LinksTo: _links_to,
    LinkedBy: _linked_by,
    Property: _property,
    Dated: _dated,
}


# --- Conditions on a passage `c` ---


def _under(leaf: UnderHeading) -> Sql:
    return Sql(
        # Headings with non-ASCII letters are escaped in JSON, and compared one by one.
        "c.id IN (SELECT p.id FROM bodies AS b CROSS JOIN json_each(heading_ranges(b.headings, ?))"
        " AS r CROSS JOIN passages AS p ON p.note_id = b.note_id"
        " WHERE (instr(lower(b.headings), ?) OR instr(b.headings, '\\u'))"
        " AND p.start < json_extract(r.value, '$[1]') AND p.stop > json_extract(r.value, '$[0]'))",
        (to_sql(leaf.heading), heading_needle(leaf.heading)),
    )


def _task(leaf: HasTask) -> Sql:
    return Sql(
        "c.id IN (SELECT p.id FROM passages AS p JOIN bodies AS b ON b.note_id = p.note_id"
        " WHERE instr(p.has, '\"task\"')"
        " AND has_task(p.text, b.text, b.excluded, p.start, p.stop, ?, ?))",
        (leaf.state, to_sql(leaf.text)),
    )


def _written(leaf: InLanguage) -> Sql:
    """The spaces around a name keep r from matching rust."""
    names = [
        Sql("instr(' ' || c.lang || ' ', ?) > 0", (to_sql(f" {name} "),)) for name in leaf.languages
    ]
    return _both(Sql("c.lang != ''"), _join(" OR ", names))


PASSAGE_LEAVES: dict[type, Callable[[Any], Sql]] = {
    UnderHeading: _under,
    InLanguage: _written,
    HasPart: lambda leaf: Sql("instr(c.has, ?) > 0", (f'"{leaf.part}"',)),
    HasTask: _task,
}


# --- SQL functions ---
#
# SQLite folds ASCII only, and cannot look into our JSON or into a compressed text. Each function is
# pure, takes values as the tables store them and never raises. In a pattern, `*` means
# anything.

# A task as the parser reads it; the character in the brackets is its state.
_TASK = re.compile(r"^[ \t>]*(?:[-*+]|\d+[.)])[ \t]+\[([^\]\n])\](?=[ \t])(.*)$", re.M)

_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*", re.ASCII)

_Pieces = tuple[str, ...]
_Head = tuple[str, int, int, int, Any]  # text, level, line, start, path: as the table holds it
_DECODER = msgspec.json.Decoder(list[_Head])


def register_functions(db: Connection) -> None:
    """Make the functions known to a connection; harmless when repeated."""
    for name, count, function in (
        ("text_holds", 2, text_holds),
        ("text_is", 2, text_is),
        ("path_holds", 2, path_holds),
        ("file_holds", 2, file_holds),
        ("alias_holds", 2, alias_holds),
        ("tag_is", 2, tag_is),
        ("is_named", 4, is_named),
        ("target_is", 2, target_is),
        ("anchor_is", 2, anchor_is),
        ("number_in", 1, number_in),
        ("heading_ranges", 2, heading_ranges),
        ("has_task", 7, has_task),
    ):
        db.create_function(name, count, function, deterministic=True)


@lru_cache(maxsize=256)
def _pieces(pattern: Text) -> _Pieces:
    """A pattern, folded, split at its stars."""
    return tuple(re.split(r"\*+", fold_case(from_sql(pattern))))


def _contains(whole: str, wanted: _Pieces) -> bool:
    """Whether the text contains the pieces, in their order."""
    if len(wanted) == 1:  # nearly always; called for every note
        return wanted[0] in whole
    at = 0
    for piece in wanted:
        at = whole.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def _matches(whole: str, wanted: _Pieces) -> bool:
    """Whether the pieces match this text from its first to its last character."""
    if len(wanted) == 1:
        return whole == wanted[0]
    first, *middle, last = wanted
    ends = whole.startswith(first) and whole.endswith(last)
    inside = whole[len(first) : len(whole) - len(last)]
    return ends and len(first) + len(last) <= len(whole) and _contains(inside, tuple(middle))


def text_holds(value: Text, pattern: Text) -> bool:
    return _contains(fold_case(from_sql(value)), _pieces(pattern))


def text_is(value: Text | None, pattern: Text) -> bool:
    return value is not None and _matches(fold_case(from_sql(value)), _pieces(pattern))


def path_holds(path: Text, pattern: Text) -> bool:
    """The path begins with a slash here, so that /journal means the folder at the root."""
    return _contains("/" + fold_case(from_sql(path)), _pieces(pattern))


def file_holds(path: Text, pattern: Text) -> bool:
    return _contains(fold_case(from_sql(path)).rpartition("/")[2], _pieces(pattern))


def alias_holds(aliases: str, pattern: Text) -> bool:
    return any(_contains(fold_case(alias), _pieces(pattern)) for alias in from_json(aliases))


def tag_is(key: Text, pattern: Text) -> bool:
    """Whether a tag or one of its parents matches the pattern."""
    parts = from_sql(key).split("/")
    above = ("/".join(parts[: i + 1]) for i in range(len(parts)))
    return any(_matches(each, _pieces(pattern)) for each in above)


def is_named(path: Text, title: Text, aliases: str, wanted: Text) -> bool:
    """Whether a note has this path, end of path, title or alias."""
    name = fold_case(from_sql(wanted)).strip("/")
    if _ends_in(fold_case(from_sql(path)), name) or fold_case(from_sql(title)) == name:
        return True
    return aliases != "[]" and any(fold_case(alias) == name for alias in from_json(aliases))


def target_is(target: Text, wanted: Text) -> bool:
    """Whether the target of a broken link is this name."""
    return _ends_in(fold_case(from_sql(target)), fold_case(from_sql(wanted)).strip("/"))


def anchor_is(anchor: str, wanted: Text) -> bool:
    """Whether a link leads to this heading; signs and spaces are ignored, as in slugs."""
    parts = [_bare(part) for part in from_sql(wanted).split("#")]
    return [_bare(part) for part in from_json(anchor)][-len(parts) :] == parts


def _bare(heading: str) -> str:
    folded = fold_case(heading)
    return folded if folded.startswith("^") else re.sub(r"[\W_]+", "", folded) or folded


def number_in(value: Text | None) -> float | None:
    """The value of a text that is a number; None for any other text."""
    return (
        float(from_sql(value)) if value is not None and _NUMBER.fullmatch(from_sql(value)) else None
    )


def _ends_in(path: str, name: str) -> bool:
    if not path.endswith((name, *(name + extension for extension in EXTENSIONS))):
        return False
    spellings = (path, *(path.removesuffix(each) for each in EXTENSIONS))
    return any(f"/{each}".endswith(f"/{name}") for each in spellings)


def heading_needle(pattern: str) -> str:
    """What the lower-cased JSON of ASCII headings must contain if one of them has the pattern."""
    longest = max(_pieces(pattern), key=len)
    return json.dumps(longest)[1:-1] if longest.isascii() else ""


def heading_ranges(headings: str, pattern: Text) -> str:
    """The ranges of the headings that contain the pattern: JSON of [first, last] offsets.

    A range ends at the next heading that is not below it.
    """
    wanted, found = _pieces(pattern), _heads(headings)
    ranges = []
    for i in [i for i, head in enumerate(found) if _contains(fold_case(head[0]), wanted)]:
        level, start = found[i][1], found[i][3]
        later = (head[3] for head in found[i + 1 :] if head[1] <= level)
        ranges.append(f"[{start},{next(later, INT64)}]")
    return f"[{','.join(ranges)}]"


def _heads(headings: str) -> list[_Head]:
    try:
        return _DECODER.decode(headings)
    except (
        msgspec.MsgspecError,
        ValueError,
    ):  # half a surrogate pair, which only Python's json reads
        return [tuple(head) for head in json.loads(headings)]


def has_task(
    own: Text | None, blob: bytes, excluded: str, start: int, stop: int, state: str, pattern: Text
) -> bool:
    """Whether a passage has a task in this state whose line contains the pattern.

    `own` is the passage's text where it is stored; otherwise it is cut out of the note's text.
    """
    text = from_sql(own) if own is not None else cut(_unpacked(blob), start, stop, _spans(excluded))
    for mark, line in _TASK.findall(text):
        fits = state == "any" or (mark == " ") == (state == "todo")
        if fits and _contains(fold_case(line), _pieces(pattern)):
            return True
    return False


_unpacked = lru_cache(maxsize=4)(decompress)
_spans = lru_cache(maxsize=4)(to_spans)
