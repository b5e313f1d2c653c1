"""The catalogue: one SQLite file that is the truth about a vault.

    Notes      put, touch, remove: one file's change is one transaction and one revision
    Passages   passages and sections, and the texts they are cut out of
    Links      which links have to be resolved, what the others mean, link statistics
    Filters    the passages and notes that a filter keeps
    Vectors    the embedding of every distinct text; the vocabulary
    Caches     which keyword and vector indexes are current, and where they are

Each is a class in the module of that name and has its own SQL; database.py has what they share.
None knows a model, an engine or Markdown. `Catalogue` is all of them, and adds what is about the
whole index: its history, small facts, counts.

History is how a cache of an earlier revision catches up:

    passages of the cache + passages_since(its revision) - removed_since(its revision)
        = the current passages

A vector cache needs nothing else. A keyword cache also has fields of notes (title, tags, path),
which change without any passage changing: `notes_since` lists those. Removals that every cache has
seen may be dropped; the horizon is the revision up to which they were, and a cache behind it is
rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragvault.store.caches import Caches
from ragvault.store.database import reading, set_meta, writing
from ragvault.store.filters import Filters
from ragvault.store.links import Links
from ragvault.store.notes import Notes
from ragvault.store.passages import Passages, all_ids
from ragvault.store.values import from_sql
from ragvault.store.vectors import Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of everything an index has, at one revision.

    `bytes` has one entry for each file of the index folder and each kind of cache.
    """

    notes: int
    sections: int
    passages: int
    characters: int
    links: Mapping[str, int]  # by status; `waiting` are not looked up yet
    skipped: Mapping[str, int]  # by reason
    warned: int  # notes that have warnings
    vectors: Mapping[str, int]  # by model
    bytes: Mapping[str, int]
    revision: int
    format: int
    last_run: Mapping[str, Any]


class PassageRef(NamedTuple):
    """A passage as caches know it, and the revision it was added in."""

    id: int
    note_id: int
    hash: bytes
    revision: int


class Catalogue(Notes, Passages, Links, Filters, Vectors, Caches):
    """An open catalogue: `with Catalogue.open(folder) as catalogue`."""

    @reading
    def counts(self) -> Counts:
        """How much of everything there is, for `status`; loads no model and no cache."""
        query = "SELECT count(*), coalesce(sum(length), 0) FROM notes"
        notes, characters = self._db.execute(query).fetchone()
        return Counts(
            notes=notes,
            sections=self._count("sections"),
            passages=self._count("passages"),
            characters=characters,
            links=self._by("SELECT coalesce(status, 'waiting'), count(*) FROM links GROUP BY 1"),
            skipped=self._by("SELECT reason, count(*) FROM skipped GROUP BY 1"),
            warned=self._count("notes WHERE warnings != '[]'"),
            vectors=self._by(
                "SELECT name, count(*) FROM vectors JOIN models ON models.id = model GROUP BY 1"
            ),
            bytes=file_sizes(self.folder),
            revision=self.revision,
            format=self._pragma("user_version"),
            last_run=self.last_run(),
        )

    def _count(self, what: str) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM {what}").fetchone()[0])

    def _by(self, query: str) -> dict[str, int]:
        return {from_sql(word): number for word, number in self._db.execute(query)}

    # History.

    @reading
    def can_catch_up(self, identity: str, since: int) -> bool:
        """Whether a cache of that catalogue and revision can be updated instead of rebuilt."""
        return identity == self.identity and self._meta("horizon") <= since <= self.revision

    @reading
    def passages_since(self, since: int) -> list[PassageRef]:
        """Passages added after a revision and still there, by id."""
        query = (
            "SELECT id, note_id, text_hash, revision FROM passages WHERE revision > ? ORDER BY id"
        )
        return [PassageRef(*row) for row in self._db.execute(query, (since,))]

    @reading
    def removed_since(self, since: int) -> list[int]:
        """Passages removed after a revision, by id; ValueError where that is no longer known."""
        if since < self._meta("horizon"):
            raise ValueError(f"removals since revision {since} are no longer known")
        query = "SELECT passage_id FROM removed_passages WHERE revision > ? ORDER BY passage_id"
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
    def removal_count(self, since: int = 0) -> int:
        """How many passages and notes were removed after a revision, as far as that is known."""
        query = """SELECT (SELECT count(*) FROM removed_passages WHERE revision > :since)
            + (SELECT count(*) FROM removed_notes WHERE revision > :since)"""
        return int(self._db.execute(query, {"since": since}).fetchone()[0])

    @reading
    def removed_before(self, when: float) -> int:
        """The last revision of which all removals were before a moment."""
        query = "SELECT min(revision) - 1 FROM removed_passages WHERE removed_at >= ?"
        found = self._db.execute(query, (when,)).fetchone()[0]
        return self.revision if found is None else int(found)

    @writing
    def drop_removals(self, upto: int) -> None:
        """Drop the removals up to a revision that every cache has reached."""
        upto = min(upto, self.revision)
        if upto <= self._meta("horizon"):
            return
        self._db.execute("DELETE FROM removed_passages WHERE revision <= ?", (upto,))
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

    # Facts that steps of the write path store; empty, zero or False before they are set.

    def tier_model(self, tier: str) -> str:
        """The model whose vectors are searched in a tier (full or static)."""
        return str(self._meta(f"model {tier}") or "")

    @writing
    def set_tier_model(self, tier: str, model: str) -> None:
        set_meta(self._db, f"model {tier}", model)

    def unrelated_cosine(self, model: str) -> float | None:
        """The cosine that unrelated texts stay below, by this model; None if not measured yet."""
        known = self._meta(f"unrelated {model}")
        return float(known) if known else None

    @writing
    def set_unrelated_cosine(self, model: str, cosine: float) -> None:
        set_meta(self._db, f"unrelated {model}", str(cosine))

    def was_forgotten(self, path: str) -> bool:
        """Whether a note of this path was forgotten since the last ordinary run."""
        return _name_digest(path) in self._forgotten()

    @writing
    def mark_forgotten(self, paths: Iterable[str]) -> None:
        """Remember that these notes are not to come back by themselves.

        Only digests of the paths are stored: nothing of a forgotten note is left in the index.
        """
        marks = sorted(self._forgotten() | {_name_digest(path) for path in paths})
        set_meta(self._db, "forgotten", " ".join(marks))

    @writing
    def clear_forgotten(self) -> None:
        set_meta(self._db, "forgotten", "")

    def _forgotten(self) -> frozenset[str]:
        return frozenset((self._meta("forgotten") or "").split())

    def replaced_at(self, model: str) -> float:
        """When another model took the place of this one in its tier, in seconds since 1970."""
        return float(self._meta(f"replaced {model}") or 0)

    @writing
    def set_replaced_at(self, model: str, when: float) -> None:
        """0: the model is in use again."""
        set_meta(self._db, f"replaced {model}", str(when) if when else "")

    @property
    def compacted_revision(self) -> int:
        """The revision up to which removed passages are gone from the caches."""
        return int(self._meta("compacted") or 0)

    @writing
    def set_compacted_revision(self, revision: int) -> None:
        set_meta(self._db, "compacted", str(revision))

    @property
    def vacuum_due(self) -> bool:
        """Whether bytes of removed content may still be in the catalogue's files."""
        return bool(self._meta("vacuum due"))

    @writing
    def set_vacuum_due(self, due: bool) -> None:
        set_meta(self._db, "vacuum due", "due" if due else "")

    @property
    def git_head(self) -> str:
        """The commit that the dates of notes were last read at."""
        return str(self._meta("git head") or "")

    @writing
    def set_git_head(self, commit: str) -> None:
        set_meta(self._db, "git head", commit)

    @reading
    def unusable_files(self) -> Mapping[str, Any]:
        """The status of files that are binary or that failed (update/notes.py)."""
        found: dict[str, Any] = json.loads(self._meta("binary files") or "{}")
        return found

    @writing
    def set_unusable_files(self, files: Mapping[str, Any]) -> None:
        set_meta(self._db, "binary files", json.dumps(files) if files else "")

    @property
    def communities_stamp(self) -> str:
        """A fingerprint of the links and settings that communities were computed from."""
        return str(self._meta("communities") or "")

    @writing
    def set_communities_stamp(self, stamp: str) -> None:
        set_meta(self._db, "communities", stamp)


_KINDS = {"keyword": "keyword", "vector": "vectors"}


def file_sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file of an index folder; its caches by kind: `keyword` and `vectors`."""
    found: dict[str, int] = {}
    for entry in sorted(folder.iterdir()):
        for path in entry.rglob("*") if entry.is_dir() else [entry]:
            inside = path.relative_to(folder).parts
            name = _KINDS.get(inside[1].partition("-")[0], "caches") if inside[1:] else entry.name
            found[name] = found.get(name, 0) + _size(path)
    return dict(sorted(found.items()))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0  # SQLite deletes the -wal file when the last reader closes


def _name_digest(path: str) -> str:
    return blake2b(path.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
