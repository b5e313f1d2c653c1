"""Reading: what was stored, as the nouns it was given in.

Texts are not stored a second time for sections and passages: they are cut out of the note's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sqlite3 import Connection
from typing import Any, NamedTuple

from ragvault.spans import Span, cut
from ragvault.store import rows
from ragvault.store.keys import stem
from ragvault.store.values import sql, text, unpack, unwords
from ragvault.types import Chunk, Date, File, Heading, Kind, Note, Section, Skipped

# A note's text and what of it is not indexed, by id: `whole`, or what somebody keeps of it.
Body = Callable[[int], tuple[str, tuple[Span, ...]]]

VARIABLES = 900  # SQLite before 3.32 takes at most 999 in one statement


class Seen(NamedTuple):
    """What is known of a file without reading it again."""

    size: int
    mtime_ns: int
    indexed_ns: int
    digest: bytes
    recipe: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A note's row: the file it was and its dates."""

    id: int
    file: File
    digest: bytes
    recipe: str
    date: Date
    created: float
    modified: float
    indexed_ns: int
    title: str
    length: int  # characters
    revision: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with the names it has outside its note."""

    id: int
    note_id: int
    path: str
    hash: bytes
    chunk: Chunk


class Place(NamedTuple):
    """Where a chunk stands, and how what it says is cut out of its note."""

    id: int
    note_id: int
    ordinal: int
    section: int
    headings: tuple[str, ...]
    kind: Kind
    lines: tuple[int, int]
    span: Span
    overlap: int
    own: str | bytes | None  # what it says, where that cannot be cut out
    subheadings: tuple[str, ...]

    def said(self, whole: str, excluded: Sequence[Span]) -> str:
        """What it says, of the whole text of its note."""
        if self.own is not None:
            return text(self.own)
        return rows.cut_chunk(whole, *self.span, self.overlap, excluded)


def files(db: Connection) -> dict[str, Seen]:
    """Every indexed file, in one query: what a walk is compared with."""
    query = "SELECT path, size, mtime_ns, indexed_ns, digest, recipe FROM notes"
    return {text(path): Seen(*rest) for path, *rest in db.execute(query)}


def names(db: Connection) -> list[tuple[str, str, tuple[str, ...]]]:
    """(path, stem, aliases) of every note, by path: all that is needed to look links up."""
    found = ((text(path), unwords(aliases)) for path, aliases in db.execute(_NAMES))
    return [(path, stem(path), aliases) for path, aliases in found]


_NAMES = "SELECT path, aliases FROM notes ORDER BY path"


def stored(db: Connection, path: str | None = None) -> list[Stored]:
    """The row of one note, or of all by path. KeyError for a note that is not there."""
    where, values = ("WHERE path = ?", [sql(path)]) if path is not None else ("", [])
    query = f"SELECT {_STORED} FROM notes {where} ORDER BY path"
    found = [_to_stored(row) for row in db.execute(query, values)]
    if path is not None and not found:
        raise KeyError(path)
    return found


_STORED = (
    "id, path, disk, size, mtime_ns, digest, recipe, date, date_source, created, modified,"
    " indexed_ns, title, length, revision"
)


def _to_stored(row: Sequence[Any]) -> Stored:
    note_id, path, disk, size, mtime_ns, digest, recipe, at, source, *dates = row
    created, modified, indexed_ns, title, length, revision = dates
    file, date = File(text(path), text(disk), size, mtime_ns), Date(at, source)
    times = (created, modified, indexed_ns)
    return Stored(note_id, file, digest, recipe, date, *times, text(title), length, revision)


def note(db: Connection, path: str) -> Note:
    """A note as it was put. KeyError when it is not there."""
    columns = f"{rows.NOTE}, bodies.{rows.BODY}"
    query = f"SELECT id, {columns} FROM notes JOIN bodies ON note_id = id WHERE path = ?"
    found = db.execute(query, (sql(path),)).fetchone()
    if found is None:
        raise KeyError(path)
    query = f"SELECT {rows.LINK} FROM links WHERE note_id = ? ORDER BY ordinal"
    links = tuple(rows.to_link(row) for row in db.execute(query, (found[0],)))
    return rows.to_note(path, found[1:13], found[13:], links)


def note_id(db: Connection, path: str) -> int:
    """The id of a note, which outlives its path. KeyError when it is not there."""
    found = db.execute("SELECT id FROM notes WHERE path = ?", (sql(path),)).fetchone()
    if found is None:
        raise KeyError(path)
    return int(found[0])


def is_stored(db: Connection, path: str) -> bool:
    """Whether a note has this path."""
    query = "SELECT 1 FROM notes WHERE path = ?"
    return db.execute(query, (sql(path),)).fetchone() is not None


def whole(db: Connection, wanted: int) -> tuple[str, tuple[Span, ...]]:
    """A note's text and what of it is not indexed. KeyError when there is no such id."""
    return wholes(db, [wanted])[wanted]


def wholes(db: Connection, wanted: Sequence[int]) -> dict[int, tuple[str, tuple[Span, ...]]]:
    """The same of several notes; one that is gone is absent."""
    found = {}
    for first in range(0, len(wanted), VARIABLES):
        part = wanted[first : first + VARIABLES]
        marks = ", ".join("?" * len(part))
        query = f"SELECT note_id, text, excluded FROM bodies WHERE note_id IN ({marks})"
        for note_id_, packed, excluded in db.execute(query, part):
            found[note_id_] = unpack(packed), rows.to_spans(excluded)
    return found


def anchors(db: Connection, path: str) -> tuple[tuple[Heading, ...], dict[str, int]]:
    """The places in a note a link can name: its headings, and its blocks with their offsets."""
    query = "SELECT headings, blocks FROM bodies WHERE note_id = ?"
    headings, blocks = db.execute(query, (note_id(db, path),)).fetchone()
    return rows.to_headings(headings), json.loads(blocks)


def sections(db: Connection, path: str) -> list[Section]:
    """The parents of a note, in order."""
    query = f"SELECT {rows.SECTION} FROM sections WHERE note_id = ? ORDER BY ordinal"
    return [rows.to_section(row) for row in db.execute(query, (note_id(db, path),))]


def section_text(db: Connection, wanted: int, section: Section) -> str:
    """What a section of a note says, without what is not indexed."""
    text_, excluded = whole(db, wanted)
    return cut(text_, section.start, section.end, excluded)


def unit_text(db: Connection, wanted: int, ordinal: int | None) -> str:
    """What a section of a note says, by its ordinal; None is the whole note."""
    text_, excluded = whole(db, wanted)
    query = "SELECT start, stop FROM sections WHERE note_id = ? AND ordinal = ?"
    start, stop = db.execute(query, (wanted, ordinal)).fetchone() or (0, len(text_))
    return cut(text_, start, stop, excluded)


def chunks(db: Connection, path: str) -> list[Passage]:
    """The passages of a note, in order."""
    return sorted(_passages(db, "notes.path = ?", [sql(path)]), key=lambda p: p.chunk.ordinal)


def passages(db: Connection, ids: Iterable[int], body: Body | None = None) -> dict[int, Passage]:
    """Passages by id; an id that is gone is absent. `body` gives what `whole` would read."""
    wanted, found = list(ids), {}
    for first in range(0, len(wanted), VARIABLES):
        part = wanted[first : first + VARIABLES]
        marks = ", ".join("?" * len(part))
        found.update({p.id: p for p in _passages(db, f"chunks.id IN ({marks})", part, body)})
    return found


def places(db: Connection, ids: Sequence[int]) -> list[Place]:
    """Where these passages stand, by id; one that is gone is absent."""
    found: list[Place] = []
    columns = (
        "id, note_id, ordinal, section, headings, kind, line_first, line_last,"
        " start, stop, overlap, text, subheadings"
    )
    for first in range(0, len(ids), VARIABLES):
        part = ids[first : first + VARIABLES]
        marks = ", ".join("?" * len(part))
        query = f"SELECT {columns} FROM chunks WHERE id IN ({marks}) ORDER BY id"
        for id_, note, ordinal, section, headings, kind, *rest in db.execute(query, part):
            first_line, last_line, start, stop, overlap, own, below = rest
            found.append(
                Place(
                    id_,
                    note,
                    ordinal,
                    section,
                    unwords(headings),
                    kind,
                    (first_line, last_line),
                    (start, stop),
                    overlap,
                    own,
                    unwords(below),
                )
            )
    return found


def _passages(
    db: Connection, where: str, values: Sequence[Any], body: Body | None = None
) -> Iterator[Passage]:
    columns = ", ".join(f"chunks.{column.strip()}" for column in rows.CHUNK.split(","))
    query = (
        f"SELECT chunks.id, note_id, path, {columns} FROM chunks"
        f" JOIN notes ON notes.id = note_id WHERE {where}"
    )
    # Passages of one note often come together: it is unpacked once, and not many are held.
    body = body or lru_cache(maxsize=64)(lambda wanted: whole(db, wanted))
    for chunk_id, owner, path, *row in db.execute(query, values).fetchall():
        yield Passage(chunk_id, owner, text(path), row[-1], rows.to_chunk(row, *body(owner)))


def warnings(db: Connection) -> list[tuple[str, tuple[str, ...]]]:
    """Notes with something to say about, by path."""
    query = "SELECT path, warnings FROM notes WHERE warnings != '[]' ORDER BY path"
    return [(text(path), unwords(said)) for path, said in db.execute(query)]


def skipped(db: Connection) -> list[Skipped]:
    """Files that were not indexed, in the order they were met."""
    query = "SELECT path, reason, detail FROM skipped ORDER BY ordinal"
    return [Skipped(*map(text, row)) for row in db.execute(query)]


def set_skipped(db: Connection, found: Iterable[Skipped]) -> None:
    """Replace the whole list."""
    values = [(sql(s.path), sql(s.reason), sql(s.detail)) for s in found]
    db.execute("DELETE FROM skipped")
    db.executemany("INSERT INTO skipped (path, reason, detail) VALUES (?, ?, ?)", values)
