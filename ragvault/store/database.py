"""An open catalogue: its lifetime, its transactions and its file.

The tables are in notes.py, passages.py, links.py, …: each has a class derived from `Database`, and
`Catalogue` (catalogue.py) is all of them. Their methods hold the SQL and are marked with how they
run:

    @reading    in a snapshot: all that the method reads is of one moment
    @writing    in a transaction: all of what the method writes is stored, or nothing

A catalogue belongs to the thread that opened it. Whoever writes takes the writer's lock (lock.py)
for as long as it writes; SQLite refuses a second writer all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Concatenate, ParamSpec, TypeVar

from ragvault.errors import IndexUnusable
from ragvault.store import connection
from ragvault.store.connection import translated_errors

WASTEFUL = 0.2  # compact when more than this part of the file is unused
VARIABLES = 900  # SQLite before 3.32 takes at most 999 in one statement

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D", bound="Database")


def reading(method: Callable[Concatenate[D, P], R]) -> Callable[Concatenate[D, P], R]:
    """Run a method in a snapshot, or in the one that is open."""

    @wraps(method)
    def run(self: D, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with translated_errors(self.folder), connection.snapshot(self._db):
            return method(self, *args, **kwargs)

    return run


def writing(method: Callable[Concatenate[D, P], R]) -> Callable[Concatenate[D, P], R]:
    """Run a method in a transaction of its own; inside a batch, in a savepoint."""

    @wraps(method)
    def run(self: D, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with translated_errors(self.folder), connection.transaction(self._db):
            return method(self, *args, **kwargs)

    return run


class Database:
    """An open SQLite file, without any knowledge of its tables."""

    def __init__(self, folder: Path, db: Connection) -> None:
        self.folder = folder
        self._db = db

    @classmethod
    def open(cls: type[D], folder: Path, write: bool = False, *, shared: bool = False) -> D:
        """Open the catalogue of an index folder; a writer creates or upgrades it if needed.

        Threads may share a reader if they take turns (`shared`). Raises IndexMissing, IndexTooNew
        or IndexUnusable.
        """
        if write:
            return cls(folder, connection.connect_writer(folder))
        return cls(folder, connection.connect_reader(folder, shared=shared))

    def close(self) -> None:
        self._db.close()

    def __enter__(self: D) -> D:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is of one moment, whatever a writer does meanwhile."""
        with translated_errors(self.folder), connection.snapshot(self._db):
            yield

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Commit several changes at once, each still whole or absent.

        For a first index: a commit writes every page it touched, and most are shared. Finished
        changes are kept even when the batch ends early, unless the process dies in it.
        """
        with translated_errors(self.folder), connection.batch(self._db):
            yield

    @property
    def data_version(self) -> int:
        """A number that changes with every commit of another connection."""
        return self._pragma("data_version")

    @reading
    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    def compact(self) -> None:
        """Rewrite the file, so that no byte of deleted content is left in it or its journal.

        Raises IndexUnusable while somebody still reads the state before; nothing is lost then.
        """
        with translated_errors(self.folder):
            self._db.execute("VACUUM")
            busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise IndexUnusable(
                self.folder,
                "a search that began earlier still reads deleted text",
                fix="when it has ended, run: ragvault index",
            )

    def check(self) -> str:
        """What is wrong with the file, in SQLite's words; empty for a sound file."""
        with translated_errors(self.folder):
            found = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        return "" if found == "ok" else str(found)

    def is_wasteful(self) -> bool:
        """Whether much of the file is unused, as after deleting all vectors of a model."""
        return self._pragma("freelist_count") > WASTEFUL * self._pragma("page_count")


def select_in(
    db: Connection, query: str, ids: Iterable[Any], *before: Any
) -> Iterator[tuple[Any, ...]]:
    """The rows of a query with `IN (*)` for these ids, however many there are.

    `before` are the values that the query binds before the ids.
    """
    wanted = list(ids)
    for first in range(0, len(wanted), VARIABLES):
        part = wanted[first : first + VARIABLES]
        marks = ", ".join("?" * len(part))
        yield from db.execute(query.replace("IN (*)", f"IN ({marks})"), (*before, *part))
