"""Migrations: an index of any earlier format becomes one of this format, or stays what it was.

MIGRATIONS[n] turns format n into format n + 1, and format 0 is an empty file: making a new
catalogue is the first migration. Each step is one transaction, so that an interrupted upgrade
leaves a catalogue of some format, never half of one. SQLite's `user_version` holds the format,
`application_id` says that the file is ours.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection

from ragvault.errors import IndexTooNew, IndexUnusable
from ragvault.store.schema import FORMAT_1, FORMAT_2

APPLICATION = 0x52475654  # "RGVT"

Migration = Callable[[Connection], None]


def create(db: Connection) -> None:
    """Format 1: all tables, empty.

    The identity tells a catalogue from one made again in its place, whose revisions and chunk ids
    begin anew: a cache stamped by the other must not take them for its own.
    """
    for statement in FORMAT_1:
        db.execute(statement)
    facts = [("identity", secrets.token_hex(8)), ("revision", 0), ("horizon", 0)]
    db.executemany("INSERT INTO meta VALUES (?, ?)", facts)
    db.execute(f"PRAGMA application_id = {APPLICATION}")


def number_caches(db: Connection) -> None:
    """Format 2: caches are rows of the catalogue, and vectors are counted."""
    for statement in FORMAT_2:
        db.execute(statement)


MIGRATIONS: tuple[Migration, ...] = (create, number_caches)


def format_of(db: Connection, folder: Path, wanted: int | None = None) -> int:
    """The format of an open catalogue, 0 when it is empty; refuses what cannot be read."""
    wanted = len(MIGRATIONS) if wanted is None else wanted
    built = int(db.execute("PRAGMA user_version").fetchone()[0])
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    if not ours and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise IndexUnusable(
            folder,
            "its catalogue.sqlite was made by another program",
            fix="move that file away, then run: ragvault index",
        )
    if built > wanted:
        raise IndexTooNew(folder, built=built, wanted=wanted)
    return built


def upgrade(db: Connection, folder: Path, steps: tuple[Migration, ...] | None = None) -> int:
    """Bring a catalogue to the newest format; returns the one it had. Writer's connection only."""
    steps = MIGRATIONS if steps is None else steps
    before = format_of(db, folder, len(steps))
    for built in range(before, len(steps)):
        _one_step(db, folder, steps, built)
    return before


def _one_step(db: Connection, folder: Path, steps: tuple[Migration, ...], built: int) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        # Two processes may have found the old format at once; the second has nothing to do.
        if format_of(db, folder, len(steps)) == built:
            steps[built](db)
            db.execute(f"PRAGMA user_version = {built + 1}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
