"""Take in: before a search, index the few files that have changed since the last run.

    PendingFiles  what differs from the index, and whether it is little enough for a search
    UpdateTime    the time a search may spend on it; a run that takes far longer is stopped

A search never writes more than this. The write path itself is the ordinary one (Vault.index), up to
the static tier: full vectors are left to `index` and to a watcher.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ragvault.config.schema import duration_seconds
from ragvault.notes.walk import Walked, walk
from ragvault.ports import NoProgress
from ragvault.store.access import path_digest
from ragvault.update.freshness import recipe, waiting

if TYPE_CHECKING:
    from ragvault.config.settings import Config
    from ragvault.store.catalogue import Catalogue
    from ragvault.types import IndexedFile

MAX_FILES = 20
# Of changed files, for each second of `search.update`. Whether it fits must be known before it
# begins: a run that is stopped in the middle leaves the keyword index behind the catalogue.
BYTES_PER_SECOND = 100_000
PATIENCE = 4.0  # times `search.update`, after which a run that has begun is stopped


class OutOfTime(Exception):
    """The update takes far longer than a search may wait; what was finished is kept."""


class UpdateTime(NoProgress):
    """The seconds of `search.update`, from now on; ends a run that goes on for much longer."""

    def __init__(self, duration: str) -> None:
        self.seconds = duration_seconds(duration) or 0.0
        self._began = time.monotonic()

    @property
    def left(self) -> float:
        return self._began + self.seconds - time.monotonic()

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        self.checkpoint()

    def checkpoint(self) -> None:
        if time.monotonic() > self._began + PATIENCE * self.seconds:
            raise OutOfTime


class PendingFiles:
    """The files of a vault that differ from its index, by one walk.

    A file that is not in the index is new only if it came after the last run and was not forgotten.
    Any other was left out before: `index` may bring it back, and a search must not.
    """

    def __init__(self, root: Path, catalogue: Catalogue, config: Config) -> None:
        self._root, self._catalogue, self._config = root, catalogue, config
        self._walked = walk(root, config.walk)
        self.waiting = self.count()

    def count(self) -> int:
        """How many files `index` would process now."""
        return self._count(self._walked)

    def are_few(self, time_left: UpdateTime) -> bool:
        """Whether a search can take them in within its time."""
        if not self.waiting or time_left.left <= 0 or not self._catalogue.facts.last_run:
            return False
        wanted = recipe(self._config)
        if any(file.recipe != wanted for file in self._seen.values()):
            return False  # every note is to be chunked again
        small = self._changed_bytes() <= time_left.left * BYTES_PER_SECOND
        return small and 0 < self._count(self.walked) <= MAX_FILES

    @cached_property
    def walked(self) -> Walked:
        """The vault without the files that a search must not bring back."""
        facts = self._catalogue.facts
        began_ns = (facts.last_run["ended"] - facts.last_run["seconds"]) * 1e9
        files = self._walked.files
        kept = [
            file
            for file in files
            if file.path in self._seen
            or (file.ctime_ns > began_ns and path_digest(file.path).hex() not in facts.forgotten)
        ]
        return replace(self._walked, files=tuple(kept))

    @property
    def tier(self) -> Literal["keyword", "static"]:
        """How far this vault is indexed, up to static."""
        return "static" if self._catalogue.facts.models else "keyword"

    @cached_property
    def _seen(self) -> Mapping[str, IndexedFile]:
        return self._catalogue.files()

    def _count(self, walked: Walked) -> int:
        return sum(waiting(self._root, self._catalogue, self._config, walked))

    def _changed_bytes(self) -> int:
        return sum(
            file.size
            for file in self.walked.files
            if (was := self._seen.get(file.path)) is None
            or (was.size, was.mtime_ns) != (file.size, file.mtime_ns)
        )
