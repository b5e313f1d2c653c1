"""Passages and sections of the catalogue.

Their texts are not stored a second time: they are cut out of the note's text. A passage keeps its
id as long as its text stays the same, even if it moves inside the note: caches contain ids. An id
is never given to another text.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import chain
from time import time
from typing import TYPE_CHECKING, NamedTuple

from ragvault.store.database import Database, Row, reading
from ragvault.store.schema import decompress, from_json, to_json
from ragvault.text.spans import Span, back, cut
from ragvault.types import Kind, Note, Passage, PassageText, Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Body = tuple[str, tuple[Span, ...]]  # a note's text, and the spans of it that are not indexed

# Columns of the tables, in the order of their rows here.
SECTION = "ordinal, headings, start, stop, line_first, line_last"
PASSAGE = (
    "ordinal, section, headings, kind, lang, has, start, stop, line_first, line_last,"
    " overlap, text, subheadings, text_hash"
)


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
    own: str | None  # its text, where that cannot be cut out of the note's
    subheadings: tuple[str, ...]

    def text(self, whole: str, excluded: Sequence[Span]) -> str:
        """The passage's text, given the body of its note."""
        return _text(self.own, whole, *self.span, self.overlap, excluded)


class Passages(Database):
    """Reads passages, sections and the texts they are cut out of."""

    @reading
    def bodies(self, notes: Iterable[int]) -> dict[int, Body]:
        """Text and excluded spans of each note; a note that is gone is absent."""
        query = "SELECT note_id, text, excluded FROM bodies WHERE note_id IN (*)"
        found = self._select_in(query, notes)
        return {note: (decompress(packed), to_spans(spans)) for note, packed, spans in found}

    def text(self, note_id: int) -> str:
        """The whole text of a note. KeyError when there is no such id."""
        return self.bodies([note_id])[note_id][0]

    @reading
    def unit_text(self, note_id: int, section: int | None) -> str:
        """The text of a section, by its place in the note; None is the whole note."""
        text, excluded = self.bodies([note_id])[note_id]
        query = "SELECT start, stop FROM sections WHERE note_id = ? AND ordinal = ?"
        start, stop = self._db.execute(query, (note_id, section)).fetchone() or (0, len(text))
        return cut(text, start, stop, excluded)

    @reading
    def sections_near(self, note: int, ordinal: int) -> dict[int, Section]:
        """A section of a note and its neighbours, by their places; those that exist."""
        query = f"SELECT {SECTION} FROM sections WHERE note_id = ? AND ordinal BETWEEN ? AND ?"
        found = self._db.execute(query, (note, ordinal - 1, ordinal + 1))
        return {row[0]: to_section(row) for row in found}

    @reading
    def places(self, ids: Iterable[int]) -> list[PassagePlace]:
        """Where passages are, without their texts; one that is gone is absent."""
        query = """
            SELECT id, note_id, ordinal, section, headings, kind, line_first, line_last, start,
            stop, overlap, text, subheadings FROM passages WHERE id IN (*) ORDER BY id"""
        return [_to_place(row) for row in self._select_in(query, ids)]

    @reading
    def passage_texts(self, ids: Iterable[int]) -> list[PassageText]:
        """The texts of passages with what indexes are made of; one that is gone is absent."""
        query = """
            SELECT id, note_id, text_hash, headings, lang, has, subheadings, kind, text, start,
            stop, overlap FROM passages WHERE id IN (*)"""
        found = list(self._select_in(query, ids))
        bodies = self.bodies({row[1] for row in found})
        return [_to_text(row, *bodies[row[1]]) for row in found]

    # Ids.

    @reading
    def passage_ids(self) -> NDArray[np.int64]:
        """Every passage, ascending."""
        import numpy as np

        return np.array(self._column("SELECT id FROM passages ORDER BY id"), np.int64)

    def passage_count(self) -> int:
        return int(self._value("SELECT count(*) FROM passages"))

    @reading
    def notes_of_passages(self, passages: Iterable[int]) -> dict[int, int]:
        """The note of each passage."""
        query = "SELECT id, note_id FROM passages WHERE id IN (*)"
        return dict(self._select_in(query, passages))

    def passage_ids_of(self, note: int) -> list[int]:
        """The passages of a note, in order."""
        return [passage for passage, _ in self.passage_ids_by_note([note]).get(note, ())]

    @reading
    def passage_ids_by_note(self, notes: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """The passages of each note, in order, each with the place of its section."""
        query = "SELECT note_id, ordinal, id, section FROM passages WHERE note_id IN (*)"
        found: dict[int, list[tuple[int, int]]] = {}
        for note, _, passage, section in sorted(self._select_in(query, notes)):
            found.setdefault(note, []).append((passage, section))
        return found

    @reading
    def newest(self, count: int, opened: Sequence[int] = ()) -> list[int]:
        """The passages of `count` notes: those `opened` last, then those modified last."""
        modified = self._column("SELECT id FROM notes ORDER BY modified DESC, path LIMIT ?", count)
        notes = list(dict.fromkeys([*opened, *modified]))[:count]
        query = "SELECT id FROM passages WHERE note_id IN (*)"
        return sorted(row[0] for row in self._select_in(query, notes))

    # Writing: parts of `Notes.put` and `Notes.remove`.

    def _put_passages(self, revision: int, note_id: int, wanted: Sequence[Row]) -> None:
        """Store the passages of a note (columns PASSAGE); those that it had before keep their ids.

        A passage is the same when its text hash, kind, languages, contents, headings and
        subheadings are. Of several equal passages the first keeps the first id.
        """
        query = f"SELECT id, {PASSAGE} FROM passages WHERE note_id = ? ORDER BY ordinal"
        before = {row[0]: row[1:] for row in self._db.execute(query, (note_id,))}
        waiting: defaultdict[Row, deque[int]] = defaultdict(deque)
        for passage, row in before.items():
            waiting[_same(row)].append(passage)
        moved, new = [], []
        for row in wanted:
            if ids := waiting[_same(row)]:
                passage = ids.popleft()
                if before[passage] != row:
                    moved.append((*row, passage))
            else:
                new.append((note_id, revision, *row))
        self._db.executemany(f"UPDATE passages SET {assigned(PASSAGE)} WHERE id = ?", moved)
        self._remove_passages(revision, sorted(chain(*waiting.values())))
        self._db.executemany(_INSERT, new)

    def _remove_passages(self, revision: int, ids: Iterable[int]) -> None:
        """Delete passages and record their removal for the caches (catalogue.py)."""
        record = """
            INSERT INTO removed_passages SELECT id, ?, text_hash, ? FROM passages WHERE id = ?"""
        now = time()
        rows = [(revision, now, passage) for passage in ids]
        self._db.executemany(record, rows)
        self._db.executemany("DELETE FROM passages WHERE id = ?", [row[2:] for row in rows])


def assigned(columns: str) -> str:
    """Columns as the right part of an UPDATE."""
    return ", ".join(f"{column.strip()} = ?" for column in columns.split(","))


_MARKS = ", ".join("?" * len(PASSAGE.split(",")))
_INSERT = f"INSERT INTO passages (note_id, revision, {PASSAGE}) VALUES (?, ?, {_MARKS})"


def _same(row: Row) -> Row:
    _, _, headings, kind, lang, has, *_, below, text_hash = row
    return text_hash, kind, lang, has, headings, below


# --- Rows ---


def section_row(section: Section) -> Row:
    """Columns SECTION."""
    headings = to_json(section.headings)
    return (section.ordinal, headings, section.start, section.end, *section.lines)


def to_section(row: Row) -> Section:
    """A section from columns SECTION."""
    ordinal, headings, start, end, first, last = row
    return Section(ordinal, from_json(headings), start, end, (first, last))


def _to_place(row: Row) -> PassagePlace:
    id_, note, ordinal, section, headings, kind, first, last, start, stop, overlap, own, below = row
    place = (from_json(headings), kind, (first, last), (start, stop), overlap, own)
    return PassagePlace(id_, note, ordinal, section, *place, from_json(below))


def _to_text(row: Row, whole: str, excluded: Sequence[Span]) -> PassageText:
    id_, note, key, headings, lang, has, below, kind, own, start, stop, overlap = row
    text = _text(own, whole, start, stop, overlap, excluded)
    lists = (from_json(headings), tuple(lang.split()), from_json(has))
    return PassageText(id_, note, key, *lists, text, from_json(below), kind)


def passage_row(passage: Passage, note: Note, text_hash: bytes) -> Row:
    """Columns PASSAGE. The text is stored only where it cannot be cut out of the note's text."""
    span = passage.start, passage.end, passage.overlap
    own = passage.text == _text(None, note.text, *span, note.excluded)
    return (
        passage.ordinal,
        passage.section,
        to_json(passage.headings),
        passage.kind,
        " ".join(sorted(passage.lang)),
        to_json(tuple(sorted(passage.has))),
        passage.start,
        passage.end,
        *passage.lines,
        passage.overlap,
        None if own else passage.text,
        to_json(passage.subheadings),
        text_hash,
    )


def _text(
    own: str | None, whole: str, start: int, end: int, overlap: int, excluded: Sequence[Span]
) -> str:
    """The text of a passage: its own, or cut out of its note's text."""
    if own is not None:
        return own
    return cut(whole, back(start, overlap, excluded) if overlap else start, end, excluded)


def to_spans(stored: str) -> tuple[Span, ...]:
    """The spans of column `excluded`."""
    return tuple((first, last) for first, last in json.loads(stored)) if stored != "[]" else ()
