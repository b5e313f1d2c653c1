"""The catalogue: one SQLite file that is the truth about a vault.

    Notes      put, touch, remove: one file's change is one transaction and one revision
    Passages   passages and sections, and the texts they are cut out of
    Links      which links have to be looked up, what the others mean, link statistics
    Filters    the passages and notes that a filter keeps
    Vectors    the embedding of every distinct text; the vocabulary
    History    what changed since a revision, so that caches can catch up
    Caches     which keyword and vector indexes are current, and where they are

Each is a class in the module of that name and holds its own SQL; database.py has what they share.
None knows a model, an engine or Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragvault.store.caches import Caches
from ragvault.store.database import reading
from ragvault.store.filters import Filters
from ragvault.store.history import History
from ragvault.store.links import Links
from ragvault.store.notes import Notes
from ragvault.store.passages import Passages
from ragvault.store.rows import from_sql
from ragvault.store.vectors import Vectors


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


class Catalogue(Notes, Passages, Links, Filters, Vectors, History, Caches):
    """An open catalogue: `with Catalogue.open(folder) as catalogue`."""

    @reading
    def counts(self) -> Counts:
        """How much of everything there is, for `status`; loads no model and no cache."""
        query = "SELECT count(*), coalesce(sum(length), 0) FROM notes"
        notes, characters = self._db.execute(query).fetchone()
        return Counts(
            notes=notes,
            sections=self._count("sections"),
            passages=self._count("chunks"),
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
