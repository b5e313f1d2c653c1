"""An open catalogue: connections, transactions and errors.

Each of notes.py, links.py, vectors.py has a class derived from `Database` with the SQL of its
tables; `Catalogue` (catalogue.py) is all of them. Their methods are marked with how they run:

    @reading    in a snapshot: all that the method reads is of one moment
    @writing    in a transaction: all of what the method writes is stored, or nothing

In WAL mode a reader sees the last finished transaction while the writer works, and neither waits
for the other. A reader's connection cannot write, even by mistake. A connection belongs to the
thread that opened it: another thread opens its own, which takes less than a millisecond. Whoever
writes takes the writer's lock (files.py) for as long as it writes; SQLite refuses a second writer
all the same.
"""

from __future__ import annotations

import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from json import JSONDecodeError
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from ragvault.errors import IndexMissing, IndexTooNew, IndexUnusable, disk_full
from ragvault.store.files import file_size, make_file, make_folder
from ragvault.store.layout import CATALOGUE, vault_of
from ragvault.store.schema import APPLICATION, FORMAT, create_tables

WASTEFUL = 0.2  # vacuum when more than this part of the file is unused
VARIABLES = 900  # SQLite before 3.32 takes at most 999 in one statement
BUSY_MS = 5000  # far longer than one note's transaction, far shorter than a user's patience
CACHE_KIB = 64 * 1024  # holds the SQLite indexes of a large vault
# A search reads hundreds of rows from all over the file: reading 150 of 107,880 vectors took 2.0 ms
# through SQLite's cache and 0.75 ms through a memory map.
MAPPED = 1 << 30  # bytes

Row = tuple[Any, ...]
_NARROWED = re.compile(r" WHERE \w+ IN \(\*\)")

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D", bound="Database")


def reading(method: Callable[Concatenate[D, P], R]) -> Callable[Concatenate[D, P], R]:
    """Run a method in a snapshot, or in the one that is open."""

    @wraps(method)
    def run(self: D, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.snapshot():
            return method(self, *args, **kwargs)

    return run


def writing(method: Callable[Concatenate[D, P], R]) -> Callable[Concatenate[D, P], R]:
    """Run a method in a transaction of its own; inside a batch, in a savepoint."""

    @wraps(method)
    def run(self: D, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with translated_errors(self.folder), transaction(self._db):
            return method(self, *args, **kwargs)

    return run


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Small facts about the whole index, which steps of the write path store."""

    # By tier (full, static) the model in use; a full one only once every passage has its vector.
    models: dict[str, str] = {}
    embedding: str = ""  # the model of the first full vectors, until every passage has one
    unrelated: dict[str, float] = {}  # by model: the cosine that unrelated texts stay below
    replaced: dict[str, float] = {}  # by model: when another took its place, seconds since 1970
    vocabulary_model: str = ""  # of the terms, as are the revision and the number of passages then
    vocabulary_revision: int = 0
    vocabulary_passages: int = 0
    communities: str = ""  # fingerprint of the links and settings that they were computed from
    compacted: int = 0  # the revision up to which removed passages are gone from the caches
    vacuum_due: bool = False  # bytes of removed content may still be in the catalogue's files
    taken_over: bool = False  # vectors of texts that no note has any more may be here
    git_head: str = ""  # the commit that the dates of notes were last read at
    # Digests of the paths of notes that were forgotten since the last ordinary run: they are not to
    # come back by themselves, and nothing else of them is left here.
    forgotten: frozenset[str] = frozenset()
    # Files that are binary or that failed, by path: their status then, and the recipe.
    unusable: dict[str, tuple[int, ...]] = {}
    unusable_recipe: str = ""
    last_run: dict[str, Any] = {}  # the report of the last run that ended


class Database:
    """An open SQLite file, without any knowledge of its tables but `meta`."""

    def __init__(self, folder: Path, db: Connection) -> None:
        self.folder = folder
        self._db = db

    @classmethod
    def open(cls: type[D], folder: Path, write: bool = False, *, shared: bool = False) -> D:
        """Open the catalogue of an index folder; a writer creates a missing one.

        Threads may share a reader if they take turns (`shared`). Raises IndexMissing, IndexTooNew,
        and IndexUnusable or RebuildNeeded.
        """
        if write:
            make_folder(folder)
            make_file(folder / CATALOGUE)  # SQLite gives -wal and -shm the rights of this file
        elif not (folder / CATALOGUE).exists():
            raise _missing(folder)
        uri = f"{(folder / CATALOGUE).absolute().as_uri()}?mode={_mode(folder, write)}"
        with translated_errors(folder):
            # Autocommit: transactions begin and end where the code says so, and nowhere else.
            wait, alone = BUSY_MS / 1000, not shared
            db = sqlite3.connect(
                uri, uri=True, isolation_level=None, timeout=wait, check_same_thread=alone
            )
            try:
                _set_up(db, folder, write)
            except BaseException:
                db.close()
                raise
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
        with translated_errors(self.folder):
            if self._db.in_transaction:  # a nested snapshot is part of the outer one
                yield
                return
            with self._db:
                self._db.execute("BEGIN")
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
        return str(self._value("SELECT identity FROM meta"))

    @property
    def revision(self) -> int:
        """The number of changes since this catalogue was created."""
        return int(self._value("SELECT revision FROM meta"))

    @property
    def facts(self) -> Facts:
        with translated_errors(self.folder):
            return msgspec.json.decode(self._value("SELECT facts FROM meta"), type=Facts)

    @writing
    def set_facts(self, /, **changes: Any) -> None:
        """Change some of the facts."""
        before = self.facts
        if (facts := msgspec.structs.replace(before, **changes)) != before:
            self._db.execute("UPDATE meta SET facts = ?", (msgspec.json.encode(facts).decode(),))

    @property
    def data_version(self) -> int:
        """A number that changes with every commit of another connection."""
        return int(self._value("PRAGMA data_version"))

    @property
    def is_wasteful(self) -> bool:
        """Whether much of the file is unused, as after deleting all vectors of a model."""
        unused = int(self._value("PRAGMA freelist_count"))
        return unused > WASTEFUL * int(self._value("PRAGMA page_count"))

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
        found = str(self._value("PRAGMA quick_check(1)"))
        return "" if found == "ok" else found

    # What the tables' own classes use.

    @reading
    def _value(self, query: str, *values: Any) -> Any:
        """The first value that a query finds; None where it finds nothing."""
        found = self._db.execute(query, values).fetchone()
        return found[0] if found else None

    @reading
    def _column(self, query: str, *values: Any) -> list[Any]:
        """The first value of every row."""
        return [row[0] for row in self._db.execute(query, values)]

    def _select_in(self, query: str, ids: Iterable[Any] | None, *before: Any) -> Iterator[Any]:
        """The rows of a query with `WHERE id IN (*)` for these ids, however many; None for all.

        `before` are the values that the query binds before the ids.
        """
        if ids is None:
            yield from self._db.execute(_NARROWED.sub("", query), before)
            return
        wanted = list(ids)
        for first in range(0, len(wanted), VARIABLES):
            part = wanted[first : first + VARIABLES]
            marks = ", ".join("?" * len(part))
            yield from self._db.execute(query.replace("IN (*)", f"IN ({marks})"), (*before, *part))

    def _next_revision(self) -> int:
        """Count one change, in the transaction that makes it."""
        self._db.execute("UPDATE meta SET revision = revision + 1")
        return self.revision


# --- Connections ---


def _mode(folder: Path, write: bool) -> str:
    """How to open the file: as it is, where the folder allows no -wal and -shm beside it."""
    able = os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
    journal = file_size(folder / f"{CATALOGUE}-wal")  # what it has may not be in the file itself
    if write or able or journal or (folder / f"{CATALOGUE}-shm").exists():
        return "rw" if write else "ro"
    return "ro&immutable=1"


def _set_up(db: Connection, folder: Path, write: bool) -> None:
    """Prepare a connection to a catalogue of this format; a writer creates its tables."""
    built = _format_of(db, folder)  # first: the file may not be ours to change
    if 0 < built < FORMAT:
        was = f"an older release made it (format {built}, now {FORMAT})"
        raise RebuildNeeded(folder, was, fix="update it: ragvault index")
    db.execute("PRAGMA temp_store = MEMORY")  # no note text in temporary files
    if not write:
        if not built:
            raise _missing(folder)
        db.execute(f"PRAGMA mmap_size = {MAPPED}")
        return
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA secure_delete = ON")  # deleted content is overwritten
    db.execute(f"PRAGMA cache_size = {-CACHE_KIB}")
    if not built:
        with transaction(db):
            create_tables(db)


def _format_of(db: Connection, folder: Path) -> int:
    """The format of a catalogue, 0 for an empty one.

    Raises IndexTooNew, or IndexUnusable for a file of another program.
    """
    built = int(db.execute("PRAGMA user_version").fetchone()[0])
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    if not ours and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise IndexUnusable(
            folder,
            "another program made its catalogue.sqlite",
            fix="move that file away, then run: ragvault index",
        )
    if built > FORMAT:
        raise IndexTooNew(folder, built=built, wanted=FORMAT)
    return built


def _missing(folder: Path) -> IndexMissing:
    vault = vault_of(folder)
    return IndexMissing(vault.root if vault else folder)


# --- Transactions ---
#
# A connection as a context manager commits what was begun in it, and rolls it back after an
# exception, also after that of its own commit.


_savepoints = count()


@contextmanager
def batch(db: Connection) -> Iterator[None]:
    """Several changes in one commit, also when an exception ends it: each is whole or absent."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
    finally:
        with db:
            pass


@contextmanager
def transaction(db: Connection) -> Iterator[None]:
    """All of it or none of it; inside a batch, a savepoint that keeps the same promise."""
    if not db.in_transaction:
        with db:
            db.execute("BEGIN IMMEDIATE")
            yield
        return
    name = f"change{next(_savepoints)}"  # one of its own: an interrupt may leave one behind
    db.execute(f"SAVEPOINT {name}")
    try:
        yield
    except BaseException:
        try:
            db.execute(f"ROLLBACK TO {name}")
        except sqlite3.Error:
            db.rollback()  # better to lose the whole batch than to keep half a change
        raise
    # Outside the try: the change is complete, so an interrupt here has nothing to undo.
    db.execute(f"RELEASE {name}")


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


class RebuildNeeded(IndexUnusable):
    """The catalogue is damaged, or of an older format: only a new one helps."""

    def __init__(self, folder: Path, why: str, *, fix: str = REBUILD) -> None:
        super().__init__(folder, why, fix=fix)
        self.why = why


@contextmanager
def translated_errors(folder: Path) -> Iterator[None]:
    """Raise IndexUnusable in place of SQLite's errors; RebuildNeeded where only that helps."""
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(error, OWN_MISTAKES):
            raise
        raise _translated(folder, str(error)) from error
    except (zlib.error, JSONDecodeError, msgspec.DecodeError) as error:
        raise RebuildNeeded(folder, f"catalogue.sqlite is damaged ({error})") from error


def _translated(folder: Path, message: str) -> IndexUnusable:
    if "disk is full" in message:
        return disk_full(folder)
    for part, why, fix in _EXPLAINED:
        if part in message:
            return IndexUnusable(folder, why, fix=fix.format(folder=folder))
    if "is not a database" in message:
        return RebuildNeeded(folder, "catalogue.sqlite is not a database")
    if "malformed" in message:
        return RebuildNeeded(folder, "catalogue.sqlite is damaged")
    return RebuildNeeded(folder, message)  # an error we do not know keeps its own words
