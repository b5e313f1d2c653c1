"""The door of the catalogue: its lifetime, its transactions, and errors in the user's words.

A catalogue belongs to the thread that opened it. The writer's lock is not taken here but by
whoever writes, for as long as it writes (lock.py); SQLite refuses a second writer all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Concatenate, ParamSpec, TypeVar

from ragvault.errors import IndexUnusable
from ragvault.store import connect, history
from ragvault.store.failures import told
from ragvault.store.layout import CATALOGUE
from ragvault.store.private import unusable

MUCH = 0.2  # of the file unused: then all of it is written again
P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D", bound="Door")


class Door:
    """An open catalogue, before one knows what can be asked of it."""

    def __init__(self, folder: Path, db: Connection) -> None:
        self.folder = folder
        self._db = db

    @classmethod
    def open(cls: type[D], folder: Path, write: bool = False, *, shared: bool = False) -> D:
        """Open the catalogue of an index folder; a writer makes or upgrades it where needed.

        A reader may be `shared` by threads that take turns. Raises IndexMissing, IndexTooNew or
        IndexUnusable.
        """
        db = connect.writer(folder) if write else connect.reader(folder, shared=shared)
        return cls(folder, db)

    def close(self) -> None:
        self._db.close()

    def __enter__(self: D) -> D:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is of one moment, whatever a writer does meanwhile."""
        with told(self.folder), connect.snapshot(self._db):
            yield

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Commit several changes at once, each still whole or absent.

        For a first index: a commit writes every page it touched, and most are shared. What was
        finished is kept also when the batch ends early, unless the process dies in it.
        """
        with told(self.folder), connect.batch(self._db):
            yield

    @property
    def data_version(self) -> int:
        """Another number after every change that somebody else committed to this file."""
        return self._read(lambda db: int(db.execute("PRAGMA data_version").fetchone()[0]))

    def _read(self, ask: Callable[Concatenate[Connection, P], R], *a: P.args, **k: P.kwargs) -> R:
        with told(self.folder), connect.snapshot(self._db):
            return ask(self._db, *a, **k)

    def _write(self, do: Callable[Concatenate[Connection, P], R], *a: P.args, **k: P.kwargs) -> R:
        with told(self.folder), connect.transaction(self._db):
            return do(self._db, *a, **k)

    def _change(
        self, do: Callable[Concatenate[Connection, int, P], R], *a: P.args, **k: P.kwargs
    ) -> R:
        with told(self.folder), connect.transaction(self._db):
            return do(self._db, history.next_revision(self._db), *a, **k)

    def compact(self) -> None:
        """Write the file anew, so that no byte of what was deleted is left in it or its journal.

        Raises IndexUnusable while somebody still reads the state before; nothing is lost then.
        """
        with told(self.folder):
            self._db.execute("VACUUM")
            busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise IndexUnusable(
                self.folder,
                "a search that began earlier still reads deleted text",
                fix="when it has ended, run: ragvault index",
            )

    def check(self) -> str:
        """What is wrong with the file, in SQLite's words; empty when nothing is."""
        with told(self.folder):
            found = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        return "" if found == "ok" else str(found)

    def is_wasteful(self) -> bool:
        """Whether much of the file holds nothing, as when a whole tier of vectors was outdone."""
        with told(self.folder):
            free, pages = (
                int(self._db.execute(f"PRAGMA {count}").fetchone()[0])
                for count in ("freelist_count", "page_count")
            )
        return free > MUCH * pages


def discard(folder: Path) -> None:
    """Delete a catalogue, damaged or not, so that it is made again. For the holder of the lock."""
    try:
        # The main file last: without it, what is left of a journal means nothing to anybody.
        for suffix in ("-shm", "-wal", "-journal", ""):
            (folder / f"{CATALOGUE}{suffix}").unlink(missing_ok=True)
    except OSError as error:
        raise unusable(folder, error) from error
