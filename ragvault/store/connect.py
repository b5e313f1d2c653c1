"""Connections to the catalogue: one that writes, any number that read.

In WAL mode a reader sees the last finished transaction while the writer is at work, and neither
waits for the other. A reader's connection cannot write, even by mistake. A connection belongs to
the thread that opened it: another thread opens its own, which takes less than a millisecond.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection

from ragvault.errors import IndexMissing, IndexUnusable
from ragvault.store.failures import told
from ragvault.store.layout import CATALOGUE, read
from ragvault.store.migrations import MIGRATIONS, format_of, upgrade
from ragvault.store.private import make_file, make_folder

BUSY_MS = 5000  # far longer than one note's transaction, far shorter than a user's patience
CACHE_KIB = 64 * 1024  # holds the indexes of a large vault, so that they are not read back
# A search reads hundreds of rows from all over the file: 150 vectors of 107,880 took 2.0 ms through
# SQLite's own cache and 0.75 ms through a map of the file.
MAPPED = 1 << 30


def writer(folder: Path) -> Connection:
    """Open for writing; makes the catalogue when there is none and upgrades an older one."""
    make_folder(folder)
    make_file(folder / CATALOGUE)  # SQLite gives -wal and -shm the rights this file has
    with told(folder):
        db = _connect(folder, "rw")
        with _closed_on_failure(db):
            format_of(db, folder)  # before anything is changed in a file that may not be ours
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
            db.execute("PRAGMA temp_store = MEMORY")  # no note text in temporary files
            db.execute(f"PRAGMA cache_size = {-CACHE_KIB}")
            upgrade(db, folder)
    return db


def reader(folder: Path, *, shared: bool = False) -> Connection:
    """Open for reading; `shared` by threads that take turns, which is for them to see to.

    Raises IndexMissing when nothing has been indexed.
    """
    if not (folder / CATALOGUE).exists():
        raise _missing(folder)
    with told(folder):
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
        if has_wal(folder):  # without it the file may be older than what was finished, or torn
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
    """Whether something was committed that may not be in the file itself."""
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
    vault = read(folder)
    return IndexMissing(vault.root if vault else folder)


def _outdated(folder: Path, built: int) -> IndexUnusable:
    return IndexUnusable(
        folder,
        f"it was made by an older release (format {built}, now {len(MIGRATIONS)})",
        fix="bring it up to date with: ragvault index",
    )


@contextmanager
def snapshot(db: Connection) -> Iterator[None]:
    """Everything read inside is of one moment; inside another snapshot it is of that one's."""
    if db.in_transaction:
        yield
        return
    try:
        db.execute("BEGIN")
        yield
        _commit(db)
    except BaseException:
        _keep(db)
        raise


@contextmanager
def batch(db: Connection) -> Iterator[None]:
    """Several changes in one commit, also when an exception ends it: each is whole or absent."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        _commit(db)
    except BaseException:
        _keep(db)
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
        _undo(db)
        raise


@contextmanager
def _savepoint(db: Connection) -> Iterator[None]:
    db.execute("SAVEPOINT change")
    try:
        yield
    except BaseException:
        _undo_savepoint(db)
        raise
    # Not inside: the change is whole, and whoever is interrupted here has nothing to undo. One
    # that was not released ends with its batch.
    db.execute("RELEASE change")


def _commit(db: Connection) -> None:
    # After a full disk SQLite may have undone everything by itself, and after an interrupt the
    # last statement may have been the one that ended it.
    if db.in_transaction:
        db.execute("COMMIT")


# What went wrong before one of these is what is to be told, whatever becomes of it here.


def _keep(db: Connection) -> None:
    try:
        _commit(db)
    except sqlite3.Error:
        _undo(db)


def _undo(db: Connection) -> None:
    with suppress(sqlite3.Error):
        if db.in_transaction:
            db.execute("ROLLBACK")


def _undo_savepoint(db: Connection) -> None:
    try:
        db.execute("ROLLBACK TO change")
        db.execute("RELEASE change")
    except sqlite3.Error:
        _undo(db)  # rather the whole batch than half a change
