"""Freshness: what became of the files since they were indexed.

    Disk.look   one note: the same, gone, unreadable, or changed and then read and cut anew
    waiting     how many files of the vault an `index` would look at; reads none of them

Size and time decide first, content only where they cannot vouch for it, as indexing itself does.
Nothing is written and no index is asked; what is done with a changed note is verify.py's to know.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from ragvault.config.settings import Config
from ragvault.errors import VaultUnreadable
from ragvault.notes.diff import Known, is_doubtful, is_hidden
from ragvault.notes.read import BINARY, VANISHED, digest_of, stable_bytes
from ragvault.notes.walk import Walked, walk
from ragvault.presence import is_gone, trouble
from ragvault.store.catalogue import Catalogue
from ragvault.store.notes import StoredNote
from ragvault.types import File
from ragvault.update.prepare import Prepared, prepare, recipe

State = Literal["same", "gone", "changed", "unreadable"]


@dataclass(frozen=True, slots=True)
class Look:
    """A note as it is now; `now` is there when it has changed."""

    state: State
    now: Prepared | None = None


SAME, GONE, UNREADABLE = Look("same"), Look("gone"), Look("unreadable")


def check(root: Path, catalogue: Catalogue) -> None:
    """Raises VaultUnreadable for a vault whose folder is gone, or as empty as the place where a
    disk is mounted: its notes need not be deleted."""
    if is_gone(root):
        raise VaultUnreadable(root, "there is no such folder now")
    if error := trouble(root):
        raise VaultUnreadable(root, error.strerror or str(error))
    if is_empty(root) and catalogue.note_count():
        raise VaultUnreadable(root, "the folder is empty now; is it mounted?")


def is_empty(root: Path) -> bool:
    """Whether nothing at all is in a folder; False where that cannot be seen."""
    try:
        with os.scandir(root) as entries:
            return next(entries, None) is None
    except OSError:
        return False


class Disk:
    """The files of a vault, each looked at once."""

    def __init__(self, root: Path, catalogue: Catalogue, config: Config) -> None:
        check(root, catalogue)
        self._root, self._catalogue, self._config = root, catalogue, config
        self._seen: dict[str, Look] = {}

    def look(self, path: str) -> Look:
        """What became of a note since it was indexed."""
        if path not in self._seen:
            self._seen[path] = self._look(path)
        return self._seen[path]

    def _look(self, path: str) -> Look:
        try:
            stored = self._catalogue.stored(path)
        except KeyError:  # a writer has removed it since the search began
            return GONE
        try:
            status = os.lstat(self._root / stored.file.disk)
        except (FileNotFoundError, NotADirectoryError):
            return GONE
        except OSError:
            return UNREADABLE
        if not stat.S_ISREG(status.st_mode):
            return GONE
        file = File(path, stored.file.disk, status.st_size, status.st_mtime_ns)
        known = Known(stored.file.size, stored.file.mtime_ns, stored.digest, stored.indexed_ns)
        return self._read(stored, file) if is_doubtful(known, file) else SAME

    def _read(self, stored: StoredNote, file: File) -> Look:
        got = stable_bytes(self._root, file, self._config.walk.max_bytes)
        if isinstance(got, tuple) and digest_of(got[1]) == stored.digest:
            return SAME
        now = prepare(self._root, file, self._config)
        if isinstance(now, Prepared):
            return Look("changed", now)
        return GONE if now.reason in (VANISHED, BINARY) else UNREADABLE


class Waiting(NamedTuple):
    """How many files an `index` would look at, and why; `recut` were cut by other settings."""

    new: int = 0
    changed: int = 0
    gone: int = 0
    recut: int = 0


def waiting(
    root: Path, catalogue: Catalogue, config: Config, walked: Walked | None = None
) -> Waiting:
    """The files that are not as they were indexed, by size and time alone.

    Whoever has walked the vault hands in what was found. Raises VaultNotFound or VaultUnreadable
    where the vault cannot be listed.
    """
    walked = walked or walk(root, config.walk)
    found = {file.path: file for file in walked.files}
    seen, wanted = catalogue.files(), recipe(config)
    # A file that could not be read is told as skipped; the next run would leave it out again.
    # A note that cannot be seen now stays as it is.
    unread = {skip.path for skip in catalogue.skipped()}
    both, lost = seen.keys() & found.keys(), seen.keys() - found.keys()
    changed = {
        path
        for path in both
        if (seen[path].size, seen[path].mtime_ns) != (found[path].size, found[path].mtime_ns)
    }
    return Waiting(
        new=len(found.keys() - seen.keys() - unread),
        changed=len(changed),
        gone=len([path for path in lost if not is_hidden(path, walked.unreadable)]),
        recut=sum(seen[path].recipe != wanted for path in both - changed),
    )
