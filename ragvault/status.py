"""Status: what an index knows of its vault, and what waits to be done.

Walks the vault without reading a note, so that "3 notes changed since" can be said at once. Loads
no model and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragvault.config import Config
from ragvault.errors import RagvaultError
from ragvault.notes.walk import walk
from ragvault.store.catalogue import Catalogue
from ragvault.store.counts import Counts
from ragvault.store.links import Dangling
from ragvault.store.lock import owner
from ragvault.types import Skipped
from ragvault.write.prepare import recipe


@dataclass(frozen=True, slots=True)
class Status:
    """An index at one moment. `pending` is None where the vault cannot be read now."""

    name: str
    root: str
    folder: str
    counts: Counts
    pending: int | None
    unreadable: str
    writer: str
    skipped: Sequence[Skipped]
    warnings: Mapping[str, Sequence[str]]
    dangling: Sequence[Dangling]


def status(name: str, root: Path, catalogue: Catalogue, config: Config) -> Status:
    """Everything `ragvault status` tells."""
    writing = owner(catalogue.folder)
    pending, why = _pending(root, catalogue, config)
    return Status(
        name=name,
        root=str(root),
        folder=str(catalogue.folder),
        counts=catalogue.counts(),
        pending=pending,
        unreadable=why,
        writer=str(writing) if writing else "",
        skipped=catalogue.skipped(),
        warnings=dict(catalogue.warnings()),
        dangling=catalogue.dangling(),
    )


def _pending(root: Path, catalogue: Catalogue, config: Config) -> tuple[int | None, str]:
    """How many files an `index` would look at, by size and time alone."""
    try:
        walked = walk(root, config.walk)
    except RagvaultError as error:
        return None, str(error)
    seen, wanted = catalogue.files(), recipe(config)
    found = {file.path: file for file in walked.files}
    either = len(seen.keys() ^ found.keys())
    other = sum(
        (seen[path].size, seen[path].mtime_ns, seen[path].recipe)
        != (found[path].size, found[path].mtime_ns, wanted)
        for path in seen.keys() & found.keys()
    )
    return either + other, ""
