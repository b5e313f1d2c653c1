"""Passages and sections of the catalogue.

Their texts are not stored a second time: they are cut out of the note's text. A passage keeps its
id as long as its text stays the same, even if it moves inside the note: caches contain ids. An id
is never given to another text.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sqlite3 import Connection
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ragvault.store.database import VARIABLES, Database, reading, select_in
from ragvault.store.values import (
    decompress,
    from_json,
    from_spaced,
    from_sql,
    to_json,
    to_spaced,
    to_sql,
)
from ragvault.text.spans import Span, back, cut
from ragvault.types import Kind, Note, Passage, PassageText, Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Body = tuple[str, tuple[Span, ...]]  # a note's text, and the spans of it that are not indexed
Row = tuple[Any, ...]

# Columns of the tables, in the order of their rows here.
SECTION = "ordinal, headings, start, stop, line_first, line_last"
PASSAGE = (  # `lang`: the languages, with spaces between them
    "ordinal, section, headings, kind, lang, has, start, stop, line_first, line_last,"
    " column_first, column_last, overlap, text, subheadings, text_hash"
)


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage with its id, its note and the hash of its embedding text."""

    id: int
    note_id: int
    path: str
    hash: bytes
    passage: Passage


class PassagePlace(NamedTuple):
    """Where a passage is in its note, without its text."""

    id: int
    note_id: int
    ordinal: int
    section: int
    headings: tuple[str, ...]
    kind: Kind
    lines: tuple[int, int]
    span: Span
    overlap: int
    own: str | bytes | None  # its text, where that cannot be cut out of the note's
    subheadings: tuple[str, ...]

    def text(self, whole: str, excluded: Sequence[Span]) -> str:
        """The passage's text, given the body of its note."""
        if self.own is not None:
            return from_sql(self.own)
        return cut_passage(whole, *self.span, self.overlap, excluded)


class Passages(Database):
    """Reads passages, sections and the texts they are cut out of."""

    @reading
    def bodies(self, notes: Sequence[int]) -> dict[int, Body]:
        """Text and excluded spans of each note; a note that is gone is absent."""
        return note_bodies(self._db, notes)

    @reading
    def text(self, note_id: int) -> str:
        """The whole text of a note. KeyError when there is no such id."""
        return note_bodies(self._db, [note_id])[note_id][0]

    @reading
    def unit_text(self, note_id: int, section: int | None) -> str:
        """The text of a section, by its place in the note; None is the whole note."""
        text, excluded = note_bodies(self._db, [note_id])[note_id]
        query = "SELECT start, stop FROM sections WHERE note_id = ? AND ordinal = ?"
        start, stop = self._db.execute(query, (note_id, section)).fetchone() or (0, len(text))
        return cut(text, start, stop, excluded)

    @reading
    def sections(self, path: str) -> list[Section]:
        """The sections of a note, in order. KeyError for an unknown path."""
        query = f"SELECT {SECTION} FROM sections WHERE note_id = ? ORDER BY ordinal"
        return [to_section(row) for row in self._db.execute(query, (id_of(self._db, path),))]

    @reading
    def sections_near(self, note: int, ordinal: int) -> dict[int, Section]:
        """A section of a note and its neighbours, by their places; those that exist."""
        query = f"SELECT {SECTION} FROM sections WHERE note_id = ? AND ordinal BETWEEN ? AND ?"
        found = self._db.execute(query, (note, ordinal - 1, ordinal + 1))
        return {row[0]: to_section(row) for row in found}

    @reading
    def passages_of(self, path: str) -> list[StoredPassage]:
        """The passages of a note, in order."""
        found = self._db.execute(f"{_STORED} WHERE notes.path = ?", (to_sql(path),)).fetchall()
        return sorted(self._stored(found), key=lambda passage: passage.passage.ordinal)

    @reading
    def passages(self, ids: Iterable[int]) -> dict[int, StoredPassage]:
        """Passages by id; one that is gone is absent."""
        found = list(select_in(self._db, f"{_STORED} WHERE passages.id IN (*)", ids))
        return {passage.id: passage for passage in self._stored(found)}

    def _stored(self, found: Iterable[Row]) -> Iterator[StoredPassage]:
        @lru_cache(maxsize=64)  # passages of one note often come together
        def body(note: int) -> Body:
            return note_bodies(self._db, [note])[note]

        for id_, note, path, *row in found:
            passage = to_passage(row, *body(note))
            yield StoredPassage(id_, note, from_sql(path), row[-1], passage)

    @reading
    def places(self, ids: Sequence[int]) -> list[PassagePlace]:
        """Where passages are, without their texts; one that is gone is absent."""
        query = """
            SELECT id, note_id, ordinal, section, headings, kind, line_first, line_last,
            start, stop, overlap, text, subheadings FROM passages WHERE id IN (*) ORDER BY id"""
        found = []
        for id_, note, ordinal, section, headings, kind, *rest in select_in(self._db, query, ids):
            first_line, last_line, start, stop, overlap, own, below = rest
            found.append(
                PassagePlace(
                    id_,
                    note,
                    ordinal,
                    section,
                    from_json(headings),
                    kind,
                    (first_line, last_line),
                    (start, stop),
                    overlap,
                    own,
                    from_json(below),
                )
            )
        return found

    @reading
    def passage_texts(self, ids: Sequence[int]) -> list[PassageText]:
        """The texts of passages with what indexes are made of; one that is gone is absent.

        Reading whole passages, with their places, takes twice as long.
        """
        found: list[PassageText] = []
        for first in range(0, len(ids), VARIABLES):  # so that few texts are held at a time
            found.extend(self._passage_texts(ids[first : first + VARIABLES]))
        return found

    def _passage_texts(self, ids: Sequence[int]) -> Iterator[PassageText]:
        query = """
            SELECT id, note_id, text_hash, headings, subheadings, lang, has, start, stop, overlap,
            text, kind FROM passages WHERE id IN (*)"""
        found = list(select_in(self._db, query, ids))
        bodies = note_bodies(self._db, {row[1] for row in found})
        for id_, note, key, headings, below, lang, has, start, stop, overlap, own, kind in found:
            whole, excluded = bodies[note]
            if own is None:
                text = cut_passage(whole, start, stop, overlap, excluded)
            else:
                text = from_sql(own)
            yield PassageText(
                id_,
                note,
                key,
                from_json(headings),
                from_spaced(lang),
                from_json(has),
                text,
                from_json(below),
                kind,
            )

    # Ids.

    @reading
    def passage_ids(self) -> NDArray[np.int64]:
        """Every passage, ascending."""
        return all_ids(self._db)

    @reading
    def passage_count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM passages").fetchone()[0])

    @reading
    def notes_of_passages(self, passages: Sequence[int]) -> dict[int, int]:
        """The note of each passage."""
        return dict(
            select_in(self._db, "SELECT id, note_id FROM passages WHERE id IN (*)", passages)
        )

    def passage_ids_of(self, note: int) -> list[int]:
        """The passages of a note, in order."""
        return [passage for passage, _ in self.passage_ids_by_note([note]).get(note, ())]

    @reading
    def passage_ids_by_note(self, notes: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """The passages of each note, in order, each with the place of its section."""
        query = "SELECT note_id, ordinal, id, section FROM passages WHERE note_id IN (*)"
        found: dict[int, list[tuple[int, int]]] = {}
        for note, _, passage, section in sorted(select_in(self._db, query, notes)):
            found.setdefault(note, []).append((passage, section))
        return found

    @reading
    def newest(self, count: int, opened: Sequence[int] = ()) -> list[int]:
        """The passages of `count` notes: those `opened` last, then those modified last."""
        there = {row[0] for row in select_in(self._db, _NOTES_THERE, opened)}
        query = "SELECT id FROM notes ORDER BY modified DESC, path LIMIT ?"
        modified = [note for (note,) in self._db.execute(query, (count,))]
        order = dict.fromkeys([*(note for note in opened if note in there), *modified])
        query = "SELECT id FROM passages WHERE note_id IN (*)"
        return sorted(row[0] for row in select_in(self._db, query, list(order)[:count]))


_NOTES_THERE = "SELECT id FROM notes WHERE id IN (*)"
_COLUMNS = ", ".join(f"passages.{column.strip()}" for column in PASSAGE.split(","))
_STORED = (
    f"SELECT passages.id, note_id, path, {_COLUMNS} FROM passages JOIN notes ON notes.id = note_id"
)


def id_of(db: Connection, path: str) -> int:
    """The id of a note. KeyError for an unknown path."""
    found = db.execute("SELECT id FROM notes WHERE path = ?", (to_sql(path),)).fetchone()
    if found is None:
        raise KeyError(path)
    return int(found[0])


def note_bodies(db: Connection, notes: Iterable[int]) -> dict[int, Body]:
    """Text and excluded spans of each note; a note that is gone is absent."""
    query = "SELECT note_id, text, excluded FROM bodies WHERE note_id IN (*)"
    return {
        note: (decompress(packed), to_spans(excluded))
        for note, packed, excluded in select_in(db, query, notes)
    }


def all_ids(db: Connection) -> NDArray[np.int64]:
    """The ids of all passages, ascending."""
    import numpy as np

    found = db.execute("SELECT id FROM passages ORDER BY id").fetchall()
    return np.array(found, np.int64).reshape(-1)


# --- Rows ---


def section_row(section: Section) -> tuple[Any, ...]:
    """Columns SECTION."""
    headings = to_json(section.headings)
    return (section.ordinal, headings, section.start, section.end, *section.lines)


def to_section(row: Sequence[Any]) -> Section:
    """A section from columns SECTION."""
    ordinal, headings, start, end, first, last = row
    return Section(ordinal, from_json(headings), start, end, (first, last))


def passage_row(passage: Passage, note: Note, text_hash: bytes) -> tuple[Any, ...]:
    """Columns PASSAGE. The text is stored only where it cannot be cut out of the note's text."""
    own = passage.text == cut_passage(
        note.text, passage.start, passage.end, passage.overlap, note.excluded
    )
    return (
        passage.ordinal,
        passage.section,
        to_json(passage.headings),
        passage.kind,
        to_spaced(passage.lang),
        to_json(tuple(sorted(passage.has))),
        passage.start,
        passage.end,
        *passage.lines,
        *passage.columns,
        passage.overlap,
        None if own else to_sql(passage.text),
        to_json(passage.subheadings),
        text_hash,
    )


def to_passage(row: Sequence[Any], whole: str, excluded: Sequence[Span]) -> Passage:
    """A passage from columns PASSAGE and its note's text."""
    ordinal, section, headings, kind, lang, has, start, end, *places, overlap, own, below, _ = row
    text = from_sql(own) if own is not None else cut_passage(whole, start, end, overlap, excluded)
    return Passage(
        ordinal,
        section,
        from_json(headings),
        kind,
        frozenset(from_spaced(lang)),
        frozenset(from_json(has)),
        start,
        end,
        (places[0], places[1]),
        (places[2], places[3]),
        text,
        overlap,
        from_json(below),
    )


def cut_passage(whole: str, start: int, end: int, overlap: int, excluded: Sequence[Span]) -> str:
    """The text of a passage, cut out of its note's text."""
    return cut(whole, back(start, overlap, excluded) if overlap else start, end, excluded)


def to_spans(stored: str) -> tuple[Span, ...]:
    """The spans of column `excluded`."""
    return tuple((first, last) for first, last in json.loads(stored)) if stored != "[]" else ()


# --- Writing: part of `Notes.put` and `Notes.remove` ---


def put_passages(
    db: Connection,
    revision: int,
    note_id: int,
    wanted: Sequence[Row],
    *,
    new: bool,
) -> None:
    """Store the passages of a note (columns PASSAGE); those that it had before keep their ids."""
    before = {} if new else _rows_of(db, note_id)
    changes = match_passages(before.items(), wanted)
    moved = [(*row, passage_id) for row, passage_id in changes.keep if before[passage_id] != row]
    db.executemany(f"UPDATE passages SET {_ASSIGNED} WHERE id = ?", moved)
    remove_passages(db, revision, changes.drop)
    db.executemany(_INSERT, [(note_id, revision, *row) for row in changes.add])


_ASSIGNED = ", ".join(f"{column.strip()} = ?" for column in PASSAGE.split(","))
_MARKS = ", ".join("?" * len(PASSAGE.split(",")))
_INSERT = f"INSERT INTO passages (note_id, revision, {PASSAGE}) VALUES (?, ?, {_MARKS})"


def _rows_of(db: Connection, note_id: int) -> dict[int, Row]:
    query = f"SELECT id, {PASSAGE} FROM passages WHERE note_id = ? ORDER BY ordinal"
    return {row[0]: row[1:] for row in db.execute(query, (note_id,)).fetchall()}


def remove_passages(db: Connection, revision: int, ids: Sequence[int]) -> None:
    """Delete passages and record their removal for the caches (catalogue.py)."""
    record = "INSERT INTO removed_passages SELECT id, ?, text_hash, ? FROM passages WHERE id = ?"
    now = time()
    db.executemany(record, [(revision, now, passage_id) for passage_id in ids])
    db.executemany("DELETE FROM passages WHERE id = ?", [(passage_id,) for passage_id in ids])


@dataclass(frozen=True, slots=True)
class PassageChanges:
    """What to do with the rows of a note's passages."""

    keep: list[tuple[Row, int]]  # the new row, and the id that it keeps
    add: list[Row]
    drop: list[int]


def match_passages(old: Iterable[tuple[int, Row]], new: Sequence[Row]) -> PassageChanges:
    """Pair new rows (columns PASSAGE) with old ones.

    A passage is the same when its text hash, kind, languages, contents, headings and subheadings
    are. Of several equal passages the first keeps the first id, the second the second.
    """
    waiting: defaultdict[Row, deque[int]] = defaultdict(deque)
    for passage_id, row in old:
        waiting[_same(row)].append(passage_id)
    keep, add = [], []
    for row in new:
        ids = waiting.get(_same(row))
        if ids:
            keep.append((row, ids.popleft()))
        else:
            add.append(row)
    return PassageChanges(keep, add, sorted(left for ids in waiting.values() for left in ids))


def _same(row: Row) -> Row:
    _, _, headings, kind, lang, has, *_, below, text_hash = row
    return text_hash, kind, lang, has, headings, below
