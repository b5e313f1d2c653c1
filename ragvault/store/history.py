"""History: how a cache that reflects an earlier revision catches up.

    the chunks it holds  +  chunks_since(its revision)  -  removed_since(its revision)
        =  the chunks there are

A vector cache needs nothing else. A keyword cache also holds fields of the note (title, tags,
path), which change without any chunk changing: notes_since names those. Tombstones that every
cache has seen may be forgotten; the horizon remembers up to where, and a cache behind it is made
again. Nothing here knows what a cache is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from sqlite3 import Connection
from typing import Any, NamedTuple

from ragvault.store.values import text


class ChunkRef(NamedTuple):
    """A chunk by the names a cache needs, and the revision it came with."""

    id: int
    note_id: int
    hash: bytes
    revision: int


def fact(db: Connection, key: str) -> Any:
    """One value of `meta`; None when it was never set."""
    found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else None


def set_fact(db: Connection, key: str, value: str | int) -> None:
    """Replace one value of `meta`; nothing is written where it is the same."""
    if fact(db, key) != value:
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def revision(db: Connection) -> int:
    """The number of changes since this catalogue was made."""
    return int(fact(db, "revision"))


def next_revision(db: Connection) -> int:
    """Count one change, in the transaction that makes it."""
    db.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
    return revision(db)


def can_catch_up(db: Connection, identity: str, since: int) -> bool:
    """Whether a cache with this stamp can be brought up to date instead of made again."""
    if identity != fact(db, "identity"):
        return False
    return int(fact(db, "horizon")) <= since <= revision(db)


def chunks_since(db: Connection, since: int) -> list[ChunkRef]:
    """Chunks added after a revision and still there, in the order of their ids."""
    query = "SELECT id, note_id, text_hash, revision FROM chunks WHERE revision > ? ORDER BY id"
    return [ChunkRef(*row) for row in db.execute(query, (since,))]


def removed_since(db: Connection, since: int) -> list[int]:
    """Ids of chunks removed after a revision; ValueError where that has been forgotten."""
    if since < int(fact(db, "horizon")):
        raise ValueError(f"removals since revision {since} have been forgotten")
    query = "SELECT chunk_id FROM removed_chunks WHERE revision > ? ORDER BY chunk_id"
    return [chunk_id for (chunk_id,) in db.execute(query, (since,))]


def removed_notes_since(db: Connection, since: int) -> list[int]:
    """Ids of notes removed after a revision, in order."""
    query = "SELECT note_id FROM removed_notes WHERE revision > ? ORDER BY note_id"
    return [note_id for (note_id,) in db.execute(query, (since,))]


def tombstones(db: Connection, since: int = 0) -> int:
    """How many passages and notes were removed after a revision, as far as that is remembered."""
    query = """SELECT (SELECT count(*) FROM removed_chunks WHERE revision > :since)
        + (SELECT count(*) FROM removed_notes WHERE revision > :since)"""
    return int(db.execute(query, {"since": since}).fetchone()[0])


def notes_since(db: Connection, since: int) -> list[tuple[int, str]]:
    """(id, path) of notes put or moved after a revision and still there, in the order of ids."""
    query = "SELECT id, path FROM notes WHERE revision > ? ORDER BY id"
    return [(note_id, text(path)) for note_id, path in db.execute(query, (since,))]


def forget_tombstones(db: Connection, upto: int) -> None:
    """Drop the removals up to a revision that every cache has reached."""
    upto = min(upto, revision(db))
    if upto <= int(fact(db, "horizon")):
        return
    db.execute("DELETE FROM removed_chunks WHERE revision <= ?", (upto,))
    db.execute("DELETE FROM removed_notes WHERE revision <= ?", (upto,))
    db.execute("UPDATE meta SET value = max(value, ?) WHERE key = 'horizon'", (upto,))


def removed_before(db: Connection, when: float) -> int:
    """The revision up to which everything was removed before a moment."""
    query = "SELECT min(revision) - 1 FROM removed_chunks WHERE removed_at >= ?"
    found = db.execute(query, (when,)).fetchone()[0]
    return revision(db) if found is None else int(found)


def set_last_run(db: Connection, run: Mapping[str, Any]) -> None:
    """Keep what an indexing run has to say about itself, for `status`."""
    set_fact(db, "last_run", json.dumps(run))


def last_run(db: Connection) -> dict[str, Any]:
    """What `set_last_run` was given last; empty before the first run has ended."""
    said: dict[str, Any] = json.loads(fact(db, "last_run") or "{}")
    return said
