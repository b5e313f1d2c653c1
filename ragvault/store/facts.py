"""Facts: what ranking wants to know of notes, by id, in few queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ragvault.store import rows
from ragvault.store.keys import key_of
from ragvault.store.read import VARIABLES
from ragvault.store.values import text, unwords
from ragvault.types import Date, Section


class Fact(NamedTuple):
    """A note as ranking sees it."""

    id: int
    path: str
    title: str
    date: Date
    modified: float
    importance: str
    aliases: tuple[str, ...]


def facts(db: Connection, notes: Sequence[int]) -> list[Fact]:
    """What is known of these notes; one that is gone is left out."""
    query = "SELECT id, path, title, date, date_source, modified, importance, aliases FROM notes"
    return [
        Fact(
            id_,
            text(path),
            text(title),
            Date(date, source),
            modified,
            text(importance),
            unwords(aliases),
        )
        for id_, path, title, date, source, modified, importance, aliases in some(
            db, query, "id", notes
        )
    ]


def successors(db: Connection) -> dict[int, set[int]]:
    """Old note -> the notes whose `supersedes` property links to it, which say they replace it."""
    found: dict[int, set[int]] = {}
    rows_ = db.execute("SELECT id, supersedes FROM notes WHERE supersedes != '[]'").fetchall()
    for id_, stored in rows_:
        keys = {key_of(name.strip().strip("[]").split("|")[0]) for name in unwords(stored)}
        links = db.execute(
            "SELECT target_key, target_note_id FROM links"
            " WHERE note_id = ? AND kind = 'property' AND target_note_id IS NOT NULL",
            (id_,),
        )
        for key, target in links.fetchall():
            if text(key) in keys and target != id_:
                found.setdefault(target, set()).add(id_)
    return found


class Called(NamedTuple):
    """A note and what it is called."""

    id: int
    path: str
    title: str
    aliases: tuple[str, ...]


def maybe_called(db: Connection, name: str) -> list[Called]:
    """Notes that may have this title, alias or file name, and some others, by path.

    SQLite compares ASCII letters and digits, and lets anything stand for the rest of the name.
    """
    like = _ODD.sub("%", name)
    query = (
        "SELECT id, path, title, aliases FROM notes"
        " WHERE title LIKE ? OR path LIKE ? OR aliases LIKE ? ORDER BY path"
    )
    found = db.execute(query, (like, f"%{like}.%", f'%"{like}"%'))
    return [Called(id_, text(path), text(title), unwords(rest)) for id_, path, title, rest in found]


_ODD = re.compile(r"[^A-Za-z0-9]+")


def blank_notes(db: Connection) -> list[int]:
    """Notes without a passage, by path."""
    there = "SELECT 1 FROM chunks WHERE note_id = notes.id"
    found = db.execute(f"SELECT id FROM notes WHERE NOT EXISTS ({there}) ORDER BY path")
    return [id_ for (id_,) in found]


def notes_of_chunks(db: Connection, chunks: Sequence[int]) -> dict[int, int]:
    """The note of each chunk."""
    return dict(some(db, "SELECT id, note_id FROM chunks", "id", chunks))


def chunk_ids_of(db: Connection, note: int) -> list[int]:
    """The chunks of a note, in order."""
    return [chunk for chunk, _ in chunk_ids_by_note(db, [note]).get(note, ())]


def chunk_ids_by_note(db: Connection, notes: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
    """The chunks of each note, in order, each with the place of its section."""
    query = "SELECT note_id, ordinal, id, section FROM chunks"
    found: dict[int, list[tuple[int, int]]] = {}
    for note, _, chunk, section in sorted(some(db, query, "note_id", notes)):
        found.setdefault(note, []).append((chunk, section))
    return found


def sections_near(db: Connection, note: int, ordinal: int) -> dict[int, Section]:
    """A section of a note and those beside it, by their places."""
    query = f"SELECT {rows.SECTION} FROM sections WHERE note_id = ? AND ordinal BETWEEN ? AND ?"
    found = map(rows.to_section, db.execute(query, (note, ordinal - 1, ordinal + 1)))
    return {section.ordinal: section for section in found}


def newest(db: Connection, count: int, opened: Sequence[int] = ()) -> list[int]:
    """Ids of the chunks of so many notes: those opened last, then those that changed last."""
    there = dict(some(db, "SELECT id, id FROM notes", "id", opened))
    changed = db.execute("SELECT id FROM notes ORDER BY modified DESC, path LIMIT ?", (count,))
    order = [*(note for note in opened if note in there), *(note for (note,) in changed)]
    window = list(dict.fromkeys(order))[:count]
    return sorted(chunk for (chunk,) in some(db, "SELECT id FROM chunks", "note_id", window))


def note_count(db: Connection) -> int:
    return int(db.execute("SELECT count(*) FROM notes").fetchone()[0])


def median_length(db: Connection) -> float:
    """Of the notes' texts, in characters; 0 when there is none."""
    query = "SELECT length FROM notes ORDER BY length LIMIT 1 OFFSET ?"
    found = db.execute(query, (note_count(db) // 2,)).fetchone()
    return float(found[0]) if found else 0.0


def some(
    db: Connection, query: str, column: str, ids: Iterable[int], word: str = "WHERE"
) -> Iterator[tuple[Any, ...]]:
    """The rows of a query whose column is one of these, however many they are."""
    wanted = list(ids)
    for first in range(0, len(wanted), VARIABLES):
        part = wanted[first : first + VARIABLES]
        marks = ", ".join("?" * len(part))
        yield from db.execute(f"{query} {word} {column} IN ({marks})", part)
