"""An open catalogue: connections, transactions, errors, and the facts in `meta`.

Each of notes.py, passages.py, links.py, … has a class derived from `Database` with the SQL of its
tables; `Catalogue` (catalogue.py) is all of them. Their methods are marked with how they run:

    @reading    in a snapshot: all that the method reads is of one moment
    @writing    in a transaction: all of what the method writes is stored, or nothing

In WAL mode a reader sees the last finished transaction while the writer works, and neither waits
for the other. A reader's connection cannot write, even by mistake. A connection belongs to the
thread that opened it: another thread opens its own, which takes less than a millisecond. Whoever
writes takes the writer's lock (lock.py) for as long as it writes; SQLite refuses a second writer
all the same.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from json import JSONDecodeError
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Concatenate, ParamSpec, TypeVar

from ragvault.errors import IndexMissing, IndexUnusable, disk_full
from ragvault.store.files import make_file, make_folder
from ragvault.store.layout import CATALOGUE, vault_of
from ragvault.store.schema import MIGRATIONS, format_of, upgrade

WASTEFUL = 0.2  # vacuum when more than this part of the file is unused
VARIABLES = 900  # SQLite before 3.32 takes at most 999 in one statement
BUSY_MS = 5000  # far longer than one note's transaction, far shorter than a user's patience
CACHE_KIB = 64 * 1024  # holds the SQLite indexes of a large vault
# A search reads hundreds of rows from all over the file: reading 150 of 107,880 vectors took 2.0 ms
# through SQLite's cache and 0.75 ms through a memory map.
MAPPED = 1 << 30  # bytes

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D", bound="Database")


def reading(method: Callable[Concatenate[D, P], R]) -> Callable[Concatenate[D, P], R]:
    """Run a method in a snapshot, or in the one that is open."""

    @wraps(method)
    def run(self: D, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with translated_errors(self.folder), snapshot(self._db):
            return method(self, *args, **kwargs)

    return run


def writing(method: Callable[Concatenate[D, P], R]) -> Callable[Concatenate[D, P], R]:
    """Run a method in a transaction of its own; inside a batch, in a savepoint."""

    @wraps(method)
    def run(self: D, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with translated_errors(self.folder), transaction(self._db):
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
            return cls(folder, connect_writer(folder))
        return cls(folder, connect_reader(folder, shared=shared))

    def close(self) -> None:
        self._db.close()

    def __enter__(self: D) -> D:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is of one moment, whatever a writer does meanwhile."""
        with translated_errors(self.folder), snapshot(self._db):
            yield

    @property
    def in_snapshot(self) -> bool:
        """Whether what is read now is of a moment that has passed."""
        return self._db.in_transaction

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Commit several changes at once, each still whole or absent.

        For a first index: a commit writes every page it touched, and most are shared. Finished
        changes are kept even when the batch ends early, unless the process dies in it.
        """
        with translated_errors(self.folder), batch(self._db):
            yield

    @property
    def identity(self) -> str:
        """Distinguishes this catalogue from one rebuilt in its place."""
        return str(self._meta("identity"))

    @property
    def revision(self) -> int:
        """The number of changes since this catalogue was created."""
        return int(self._meta("revision"))

    @reading
    def _meta(self, key: str) -> Any:
        return meta(self._db, key)

    @property
    def data_version(self) -> int:
        """A number that changes with every commit of another connection."""
        return self._pragma("data_version")

    @reading
    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    def vacuum(self) -> None:
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

    def file_bytes(self) -> int:
        """The size of the file, without its journal."""
        return self._pragma("page_count") * self._pragma("page_size")

    def is_wasteful(self) -> bool:
        """Whether much of the file is unused, as after deleting all vectors of a model."""
        return self._pragma("freelist_count") > WASTEFUL * self._pragma("page_count")


# --- The table `meta`: small facts about the whole catalogue ---


def meta(db: Connection, key: str) -> Any:
    """One value of `meta`; None when it was never set."""
    found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def set_meta(db: Connection, key: str, value: str | int) -> None:
    """Replace one value of `meta`; an equal value is not written."""
    if meta(db, key) != value:
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def next_revision(db: Connection) -> int:
    """Count one change, in the transaction that makes it."""
    db.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
    return int(meta(db, "revision"))


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


# --- Connections ---


def connect_writer(folder: Path) -> Connection:
    """Open for writing; creates a missing catalogue and upgrades an older one."""
    make_folder(folder)
    make_file(folder / CATALOGUE)  # SQLite gives -wal and -shm the rights of this file
    with translated_errors(folder):
        db = _connect(folder, "rw")
        with _closed_on_failure(db):
            format_of(db, folder)  # first: the file may not be ours to change
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA secure_delete = ON")  # deleted content is overwritten
            db.execute("PRAGMA temp_store = MEMORY")  # no note text in temporary files
            db.execute(f"PRAGMA cache_size = {-CACHE_KIB}")
            upgrade(db, folder)
    return db


def connect_reader(folder: Path, *, shared: bool = False) -> Connection:
    """Open for reading; threads that share the connection must take turns.

    Raises IndexMissing when nothing has been indexed.
    """
    if not (folder / CATALOGUE).exists():
        raise _missing(folder)
    with translated_errors(folder):
        db = _readable(folder, shared)
        with _closed_on_failure(db):
            built = format_of(db, folder)
            db.execute("PRAGMA temp_store = MEMORY")
            db.execute(f"PRAGMA mmap_size = {MAPPED}")
    if built == len(MIGRATIONS):
        return db
    db.close()
    raise _outdated(folder, built) if built else _missing(folder)


def _readable(folder: Path, shared: bool) -> Connection:
    """A read-only connection, also where the folder allows no -wal and -shm beside the file."""
    db = _connect(folder, "ro", shared)
    try:
        db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        db.close()
        if has_wal(folder):  # without it the file may be outdated or torn
            raise
        db = _connect(folder, "ro&immutable=1", shared)
    except BaseException:
        db.close()
        raise
    return db


def _connect(folder: Path, mode: str, shared: bool = False) -> Connection:
    uri = f"{(folder / CATALOGUE).absolute().as_uri()}?mode={mode}"
    # Autocommit: transactions begin and end where the code says so, and nowhere else.
    return sqlite3.connect(
        uri,
        uri=True,
        isolation_level=None,
        timeout=BUSY_MS / 1000,
        check_same_thread=not shared,
    )


def has_wal(folder: Path) -> bool:
    """Whether the journal has changes that may not be in the file itself."""
    try:
        return (folder / f"{CATALOGUE}-wal").stat().st_size > 0
    except OSError:
        return False


@contextmanager
def _closed_on_failure(db: Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        db.close()
        raise


def _missing(folder: Path) -> IndexMissing:
    vault = vault_of(folder)
    return IndexMissing(vault.root if vault else folder)


def _outdated(folder: Path, built: int) -> IndexUnusable:
    return IndexUnusable(
        folder,
        f"an older release made it (format {built}, now {len(MIGRATIONS)})",
        fix="update it: ragvault index",
    )


# --- Transactions ---


@contextmanager
def snapshot(db: Connection) -> Iterator[None]:
    """Everything read inside is of one moment; a nested snapshot is part of the outer one."""
    if db.in_transaction:
        yield
        return
    try:
        db.execute("BEGIN")
        yield
        _commit(db)
    except BaseException:
        _commit_finished(db)
        raise


@contextmanager
def batch(db: Connection) -> Iterator[None]:
    """Several changes in one commit, also when an exception ends it: each is whole or absent."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        _commit(db)
    except BaseException:
        _commit_finished(db)
        raise


@contextmanager
def transaction(db: Connection) -> Iterator[None]:
    """All of it or none of it; inside a batch, a savepoint that keeps the same promise."""
    with _savepoint(db) if db.in_transaction else _alone(db):
        yield


@contextmanager
def _alone(db: Connection) -> Iterator[None]:
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException:
        _roll_back(db)
        raise


@contextmanager
def _savepoint(db: Connection) -> Iterator[None]:
    db.execute("SAVEPOINT change")
    try:
        yield
    except BaseException:
        _roll_back_savepoint(db)
        raise
    # Outside the try: the change is complete, so an interrupt here has nothing to undo. A savepoint
    # that was not released ends with its batch.
    db.execute("RELEASE change")


def _commit(db: Connection) -> None:
    # After a full disk SQLite may have rolled back by itself, and after an interrupt the last
    # statement may have been the COMMIT.
    if db.in_transaction:
        db.execute("COMMIT")


# These three run after a failure. They raise nothing, so that the first error is the one reported.


def _commit_finished(db: Connection) -> None:
    try:
        _commit(db)
    except sqlite3.Error:
        _roll_back(db)


def _roll_back(db: Connection) -> None:
    with suppress(sqlite3.Error):
        if db.in_transaction:
            db.execute("ROLLBACK")


def _roll_back_savepoint(db: Connection) -> None:
    try:
        db.execute("ROLLBACK TO change")
        db.execute("RELEASE change")
    except sqlite3.Error:
        _roll_back(db)  # better to lose the whole batch than to keep half a change


# --- Errors ---
#
# Python 3.10 gives no error codes, so the message decides; SQLite has kept these for many years. A
# failed write has changed nothing: its transaction is rolled back, and the state before it is still
# readable. Our own mistakes (a wrong statement, a broken constraint) are not translated.

OWN_MISTAKES = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.InterfaceError)
REBUILD = "rebuild it: ragvault index --rebuild"

# (part of SQLite's message, what is wrong, how to fix it)
_EXPLAINED = (
    (
        "readonly",
        "it is read-only",
        "make {folder} and the files in it writable for you, then run: ragvault index",
    ),
    (
        "is locked",
        "another program holds catalogue.sqlite",
        "close programs that have {folder}/catalogue.sqlite open, then try again",
    ),
    (
        "unable to open",
        "catalogue.sqlite cannot be opened",
        "check the permissions of {folder} and the files in it",
    ),
    (
        "I/O error",
        "the disk reports an error",
        "check the disk that holds {folder}; then " + REBUILD,
    ),
)


class CatalogueDamaged(IndexUnusable):
    """The catalogue's file is damaged: only a new one helps."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(folder, why, fix=REBUILD)


@contextmanager
def translated_errors(folder: Path) -> Iterator[None]:
    """Raise IndexUnusable in place of SQLite's errors; CatalogueDamaged where only that helps."""
    try:
        yield
    except OWN_MISTAKES:
        raise
    except sqlite3.Error as error:
        raise _translated(folder, error) from error
    except (zlib.error, JSONDecodeError) as error:
        raise CatalogueDamaged(folder, f"catalogue.sqlite is damaged ({error})") from error


def _translated(folder: Path, error: sqlite3.Error) -> IndexUnusable:
    message = str(error)
    if "disk is full" in message:
        return disk_full(folder)
    for part, why, fix in _EXPLAINED:
        if part in message:
            return IndexUnusable(folder, why, fix=fix.format(folder=folder))
    if "is not a database" in message:
        return CatalogueDamaged(folder, "catalogue.sqlite is not a database")
    if "malformed" in message:
        return CatalogueDamaged(folder, "catalogue.sqlite is damaged")
    return CatalogueDamaged(folder, message)  # an error we do not know keeps its own words
