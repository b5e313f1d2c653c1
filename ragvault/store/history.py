"""History: how a cache that reflects an earlier revision catches up; and the table `meta`.

    the passages a cache holds  +  chunks_since(its revision)  -  removed_since(its revision)
        =  the current passages

A vector cache needs nothing else. A keyword cache also holds fields of notes (title, tags, path),
which change without any passage changing: notes_since lists those. Removals that every cache has
seen may be dropped; the horizon is the revision up to which they were, and a cache behind it is
rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, NamedTuple

from ragvault.store.database import Database, reading, writing
from ragvault.store.passages import all_ids
from ragvault.store.rows import from_sql

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ChunkRef(NamedTuple):
    """A passage as caches know it, and the revision it was added in."""

    id: int
    note_id: int
    hash: bytes
    revision: int


class History(Database):
    """Revisions, what changed since one, and small facts about the whole catalogue."""

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

    @reading
    def can_catch_up(self, identity: str, since: int) -> bool:
        """Whether a cache of that catalogue and revision can be updated instead of rebuilt."""
        return identity == self.identity and self._meta("horizon") <= since <= self.revision

    @reading
    def passages_since(self, since: int) -> list[ChunkRef]:
        """Passages added after a revision and still there, by id."""
        query = "SELECT id, note_id, text_hash, revision FROM chunks WHERE revision > ? ORDER BY id"
        return [ChunkRef(*row) for row in self._db.execute(query, (since,))]

    @reading
    def removed_since(self, since: int) -> list[int]:
        """Passages removed after a revision, by id; ValueError where that is no longer known."""
        if since < self._meta("horizon"):
            raise ValueError(f"removals since revision {since} are no longer known")
        query = "SELECT chunk_id FROM removed_chunks WHERE revision > ? ORDER BY chunk_id"
        return [passage_id for (passage_id,) in self._db.execute(query, (since,))]

    @reading
    def gone(self, ids: NDArray[np.int64], revision: int) -> NDArray[np.bool_]:
        """Which of these passages, ascending and all there at a revision, were removed since."""
        import numpy as np

        try:
            return np.isin(ids, self.removed_since(revision), assume_unique=True)
        except ValueError:  # those removals are no longer known
            return np.isin(ids, all_ids(self._db), assume_unique=True, invert=True)

    @reading
    def removed_notes_since(self, since: int) -> list[int]:
        """Notes removed after a revision, by id."""
        query = "SELECT note_id FROM removed_notes WHERE revision > ? ORDER BY note_id"
        return [note_id for (note_id,) in self._db.execute(query, (since,))]

    @reading
    def notes_since(self, since: int) -> list[tuple[int, str]]:
        """(id, path) of notes put after a revision and still there, by id."""
        query = "SELECT id, path FROM notes WHERE revision > ? ORDER BY id"
        return [(id_, from_sql(path)) for id_, path in self._db.execute(query, (since,))]

    @reading
    def tombstones(self, since: int = 0) -> int:
        """How many passages and notes were removed after a revision, as far as that is known."""
        query = """SELECT (SELECT count(*) FROM removed_chunks WHERE revision > :since)
            + (SELECT count(*) FROM removed_notes WHERE revision > :since)"""
        return int(self._db.execute(query, {"since": since}).fetchone()[0])

    @reading
    def removed_before(self, when: float) -> int:
        """The last revision of which all removals were before a moment."""
        query = "SELECT min(revision) - 1 FROM removed_chunks WHERE removed_at >= ?"
        found = self._db.execute(query, (when,)).fetchone()[0]
        return self.revision if found is None else int(found)

    @writing
    def forget_tombstones(self, upto: int) -> None:
        """Drop the removals up to a revision that every cache has reached."""
        upto = min(upto, self.revision)
        if upto <= self._meta("horizon"):
            return
        self._db.execute("DELETE FROM removed_chunks WHERE revision <= ?", (upto,))
        self._db.execute("DELETE FROM removed_notes WHERE revision <= ?", (upto,))
        set_meta(self._db, "horizon", upto)

    @reading
    def last_run(self) -> Mapping[str, Any]:
        """The report of the last indexing run that ended; empty before the first."""
        report: dict[str, Any] = json.loads(self._meta("last_run") or "{}")
        return report

    @writing
    def set_last_run(self, report: Mapping[str, Any]) -> None:
        set_meta(self._db, "last_run", json.dumps(report))

    # What steps of the write path remember; empty, zero or False before it is set.

    def tier_model(self, tier: str) -> str:
        """The model whose vectors are searched in a tier (full or static)."""
        return str(self._meta(f"fact {tier}") or "")

    @writing
    def set_tier_model(self, tier: str, model: str) -> None:
        set_meta(self._db, f"fact {tier}", model)

    def replaced_at(self, model: str) -> float:
        """When another model took the place of this one in its tier, in seconds since 1970."""
        return float(self._meta(f"fact replaced {model}") or 0)

    @writing
    def set_replaced_at(self, model: str, when: float) -> None:
        """0: the model is in use again."""
        set_meta(self._db, f"fact replaced {model}", str(when) if when else "")

    @property
    def compacted_revision(self) -> int:
        """The revision up to which removed passages are gone from the caches."""
        return int(self._meta("fact compacted") or 0)

    @writing
    def set_compacted_revision(self, revision: int) -> None:
        set_meta(self._db, "fact compacted", str(revision))

    @property
    def scrub_due(self) -> bool:
        """Whether bytes of removed content may still be in the catalogue's files."""
        return bool(self._meta("fact scrub"))

    @writing
    def set_scrub_due(self, due: bool) -> None:
        set_meta(self._db, "fact scrub", "due" if due else "")

    @property
    def git_head(self) -> str:
        """The commit that the dates of notes were last read at."""
        return str(self._meta("fact git_head") or "")

    @writing
    def set_git_head(self, commit: str) -> None:
        set_meta(self._db, "fact git_head", commit)

    @reading
    def binary_files(self) -> Mapping[str, Any]:
        """What the walk remembers of files without text (update/notes.py)."""
        found: dict[str, Any] = json.loads(self._meta("fact binaries") or "{}")
        return found

    @writing
    def set_binary_files(self, files: Mapping[str, Any]) -> None:
        set_meta(self._db, "fact binaries", json.dumps(files) if files else "")

    @property
    def communities_stamp(self) -> str:
        """A fingerprint of the links and settings that communities were computed from."""
        return str(self._meta("fact communities") or "")

    @writing
    def set_communities_stamp(self, stamp: str) -> None:
        set_meta(self._db, "fact communities", stamp)


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
