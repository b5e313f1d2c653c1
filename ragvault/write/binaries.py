"""Binaries: files that are called notes and hold no text are read once, and not in every run.

Each is known by its size and time while the catalogue's list of skipped files has it. One that is
as young as the clock's tick may change without showing it, and is read again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from ragvault.notes.diff import TICK_NS
from ragvault.notes.read import BINARY
from ragvault.notes.walk import Walked
from ragvault.store.catalogue import Catalogue
from ragvault.types import File, Skipped


def without_binaries(
    catalogue: Catalogue, walked: Walked, notes: Container[str], recipe: str
) -> Walked:
    """The walk, with the files that are known to hold no text among the skipped ones.

    A path that is a note in the catalogue stays, whatever the file is now.
    """
    known = catalogue.binary_files()
    if known.get("recipe") != recipe:
        return walked
    stats = known["files"]
    told = {skip.path: skip for skip in catalogue.skipped() if skip.reason == BINARY}
    found = {
        file.path
        for file in walked.files
        if file.path in told
        and file.path not in notes
        and stats.get(file.path) == [file.size, file.mtime_ns]
    }
    if not found:
        return walked
    files = tuple(file for file in walked.files if file.path not in found)
    return replace(
        walked, files=files, skipped=(*walked.skipped, *(told[path] for path in sorted(found)))
    )


def remember_binaries(
    catalogue: Catalogue,
    files: Iterable[File],
    skipped: Iterable[Skipped],
    recipe: str,
    now_ns: int,
) -> None:
    """Keep what was read in vain; `now_ns` is the clock before anything was."""
    binary = {skip.path for skip in skipped if skip.reason == BINARY}
    stats = {
        file.path: [file.size, file.mtime_ns]
        for file in files
        if file.path in binary and file.mtime_ns < now_ns - TICK_NS
    }
    catalogue.set_binary_files({"recipe": recipe, "files": stats} if stats else {})
