"""Access: how often each note was opened, in a file of its own.

    access.sqlite    opened: note -> how often, and when last
                     about: the catalogue of these notes, and a revision of its own

A search writes nothing. An access is recorded only with `access.record = true`, when a result is
opened or handed over as context. Notes are known here only by their ids, which are never reused; no
path, no text and no query is stored. For a rebuilt catalogue, counting starts at 0.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection
from typing import NamedTuple

from ragvault.errors import IndexUnusable
from ragvault.store.files import make_file

FILE = "access.sqlite"
BUSY_S = 5.0  # two processes that record at once wait for each other

_TABLES = (
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS opened"
    " (note INTEGER PRIMARY KEY, times INTEGER NOT NULL, last REAL NOT NULL)",
)


class Times(NamedTuple):
    """How often a note was opened, and when last, in seconds since 1970."""

    often: int
    last: float


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of a catalogue's notes; `revision` changes with every recording."""

    revision: int = 0
    notes: Mapping[int, Times] = field(default_factory=dict)

    def count(self, note: int) -> int:
        times = self.notes.get(note)
        return times.often if times else 0

    def lately(self) -> list[int]:
        """The notes that were opened, the last one first."""
        return sorted(self.notes, key=lambda note: (-self.notes[note].last, note))


def read_accesses(folder: Path, identity: str) -> Accesses:
    """What was recorded for the catalogue with this identity. Creates no file."""
    if not (folder / FILE).exists():
        return Accesses()
    with _opened(folder) as db:
        about = dict(db.execute("SELECT key, value FROM about"))
        if about.get("identity") != identity:
            return Accesses()
        rows = db.execute("SELECT note, times, last FROM opened")
        return Accesses(about["revision"], {note: Times(*times) for note, *times in rows})


def record_accesses(folder: Path, identity: str, notes: Iterable[int], now: float) -> None:
    """Count each of these notes once more, in one transaction."""
    make_file(folder / FILE)
    with _opened(folder) as db, db:
        for table in _TABLES:
            db.execute(table)
        db.execute("BEGIN IMMEDIATE")
        about = dict(db.execute("SELECT key, value FROM about"))
        if about.get("identity") != identity:
            db.execute("DELETE FROM opened")
        db.executemany(
            "INSERT INTO opened VALUES (?, 1, ?) ON CONFLICT (note)"
            " DO UPDATE SET times = times + 1, last = max(last, excluded.last)",
            [(note, now) for note in sorted(set(notes))],
        )
        values = [("identity", identity), ("revision", about.get("revision", 0) + 1)]
        db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", values)


def forget_accesses(folder: Path, notes: Iterable[int]) -> None:
    """Delete what was recorded for these notes; its bytes are overwritten."""
    if not (folder / FILE).exists():
        return
    with _opened(folder) as db, db:
        db.executemany("DELETE FROM opened WHERE note = ?", [(note,) for note in notes])
        db.execute("UPDATE about SET value = value + 1 WHERE key = 'revision'")


@contextmanager
def _opened(folder: Path) -> Iterator[Connection]:
    path = folder / FILE
    try:
        # `rw` also to read: SQLite may have to roll back what a killed process left half written.
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_S)
        try:
            db.execute("PRAGMA secure_delete = ON")  # deleted content is overwritten
            yield db
        finally:
            db.close()
    except sqlite3.Error as error:
        raise IndexUnusable(
            folder, f"{FILE}: {error}", fix=f"delete {path}; it only counts what was opened"
        ) from error
