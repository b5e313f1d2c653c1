"""Pending: how many files wait to be indexed, by what the watcher heard instead of by a walk.

The same number as a walk gives, at the same moment: events on their way are waited for, what they
name is looked at, and the comparison with the catalogue is kept for as long as neither has changed.
A vault that is not watched, or where events may be missed in silence, is walked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ragvault.answer.freshness import waiting
from ragvault.notes.walk import Walked
from ragvault.opened import Opened
from ragvault.service.kept import Kept
from ragvault.vault import Vault
from ragvault.write.prepare import recipe


class _Counted(NamedTuple):
    walked: Walked
    standing: tuple[object, ...]
    files: int


class Pending:
    """Counts for any thread. Use as a function of a vault and its open index."""

    def __init__(self, vaults: Sequence[Kept]) -> None:
        self._kept = {each.root: each for each in vaults}
        self._counted: dict[Path, _Counted] = {}

    def __call__(self, vault: Vault, index: Opened) -> int:
        kept = self._kept.get(vault.root)
        # Before the walk: a run that ends meanwhile makes this count one of the past.
        runs = kept.runs if kept else 0
        walked = kept.seen(index.config.walk) if kept else None
        if walked is None:
            return sum(waiting(vault.root, index.catalogue, index.config))
        catalogue = index.catalogue
        standing = (runs, catalogue.identity, catalogue.revision, recipe(index.config))
        last = self._counted.get(vault.root)
        if last is None or last.walked is not walked or last.standing != standing:
            files = sum(waiting(vault.root, catalogue, index.config, walked))
            last = self._counted[vault.root] = _Counted(walked, standing, files)
        return last.files
