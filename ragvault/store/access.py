"""Access: how often each note was opened, in a file of its own.

    access.sqlite    opened: digest of the note's path -> how often, and when last

A search writes nothing. An access is recorded only with `access.record = true`, when a result is
opened or handed over as context. Notes are known here only by a digest of their path: no path, no
text and no query is stored, and a rebuilt catalogue finds its notes again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from sqlite3 import Connection

from ragvault.errors import IndexUnusable
from ragvault.store.files import make_file

FILE = "access.sqlite"
BUSY_S = 5.0  # two processes that record at once wait for each other
_TABLE = """
    CREATE TABLE IF NOT EXISTS opened_notes
    (path BLOB PRIMARY KEY, times INTEGER NOT NULL, last REAL NOT NULL) WITHOUT ROWID"""

# By the digest of a note's path: how often it was opened, and when last (seconds since 1970).
Accesses = dict[bytes, tuple[int, float]]


def path_digest(path: str) -> bytes:
    """What stands for the path of a note where its name must not be stored."""
    return blake2b(path.encode(), digest_size=16).digest()


def read_accesses(folder: Path) -> Accesses:
    """What was recorded. Creates no file."""
    if not (folder / FILE).exists():
        return {}
    with _opened(folder) as db:
        rows = db.execute("SELECT path, times, last FROM opened_notes")
        return {path: (times, last) for path, times, last in rows}


def record_accesses(folder: Path, paths: Iterable[str], now: float) -> None:
    """Count each of these notes once more, in one transaction."""
    make_file(folder / FILE)
    with _opened(folder) as db:
        db.executemany(
            "INSERT INTO opened_notes VALUES (?, 1, ?) ON CONFLICT (path)"
            " DO UPDATE SET times = times + 1, last = max(last, excluded.last)",
            [(path_digest(path), now) for path in sorted(set(paths))],
        )


def move_access(folder: Path, old: str, new: str) -> None:
    """A note has another path; its count goes with it."""
    if (folder / FILE).exists():
        with _opened(folder) as db:
            move = "UPDATE OR REPLACE opened_notes SET path = ? WHERE path = ?"
            db.execute(move, (path_digest(new), path_digest(old)))


def forget_accesses(folder: Path, paths: Iterable[str]) -> None:
    """Delete what was recorded for these notes; its bytes are overwritten."""
    if (folder / FILE).exists():
        with _opened(folder) as db:
            gone = [(path_digest(path),) for path in paths]
            db.executemany("DELETE FROM opened_notes WHERE path = ?", gone)


@contextmanager
def _opened(folder: Path) -> Iterator[Connection]:
    path = folder / FILE
    try:
        # `rw` also to read: SQLite may have to roll back what a killed process left half written.
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S)) as db:
            db.execute("PRAGMA secure_delete = ON")  # deleted content is overwritten
            with db:
                db.execute(_TABLE)
                yield db
    except sqlite3.Error as error:
        raise IndexUnusable(
            folder, f"{FILE}: {error}", fix=f"delete {path}; it only counts what was opened"
        ) from error
