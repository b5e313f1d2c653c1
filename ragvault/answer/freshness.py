"""Freshness: how files have changed since they were indexed.

    Disk.look   one note: same, gone, unreadable, or changed (then it is read and chunked again)
    waiting     how many files of the vault `index` would process; reads few of them

Files are compared by size, times and inode; content is read only if those are not conclusive, as in
indexing. Writes nothing. verify.py decides what happens to a result whose note has changed.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from ragvault.config.settings import Config
from ragvault.errors import VaultUnreadable
from ragvault.notes.diff import Known, has_other_status, is_doubtful, is_hidden
from ragvault.notes.read import BINARY, VANISHED, digest, digest_of, seen_file, stable_bytes
from ragvault.notes.walk import Walked, walk
from ragvault.presence import is_gone, trouble
from ragvault.store.catalogue import Catalogue
from ragvault.store.notes import StoredNote
from ragvault.types import File
from ragvault.update.prepare import Prepared, prepare, recipe

FEW_DOUBTFUL = 20  # files that `waiting` reads, because size and time cannot tell
State = Literal["same", "gone", "changed", "unreadable"]


@dataclass(frozen=True, slots=True)
class Look:
    """A note on disk; `now` is its new content if it has changed."""

    state: State
    now: Prepared | None = None


SAME, GONE, UNREADABLE = Look("same"), Look("gone"), Look("unreadable")


def check_vault(root: Path, catalogue: Catalogue) -> None:
    """Raises VaultUnreadable if the vault's folder is gone or empty.

    Its disk may not be mounted; that must not look like deleted notes.
    """
    if is_gone(root):
        raise VaultUnreadable(root, "the folder does not exist")
    if error := trouble(root):
        raise VaultUnreadable(root, error.strerror or str(error))
    if is_empty(root) and catalogue.note_count():
        raise VaultUnreadable(root, "the folder is empty; is its disk mounted?")


def is_empty(root: Path) -> bool:
    """Whether a folder has no entries; False if it cannot be listed."""
    try:
        with os.scandir(root) as entries:
            return next(entries, None) is None
    except OSError:
        return False


class Disk:
    """The files of a vault; each is looked at once."""

    def __init__(self, root: Path, catalogue: Catalogue, config: Config) -> None:
        check_vault(root, catalogue)
        self._root, self._catalogue, self._config = root, catalogue, config
        self._seen: dict[str, Look] = {}

    def look(self, path: str) -> Look:
        """How a note has changed since it was indexed."""
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
        file = seen_file(path, stored.file.disk, status)
        was = stored.file
        known = Known(
            was.size, was.mtime_ns, stored.digest, stored.indexed_ns, was.ctime_ns, was.inode
        )
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
    """How many files `index` would process. `recut`: chunked with other settings."""

    new: int = 0
    changed: int = 0
    gone: int = 0
    recut: int = 0


def waiting(
    root: Path, catalogue: Catalogue, config: Config, walked: Walked | None = None
) -> Waiting:
    """Count the files that differ from the index, by size and time.

    A file of which only the change time or the inode differs is counted if its content differs. If
    there are many of them, as after a backup or a copy of the vault, none is read or counted.

    Pass `walked` if the vault was walked already. Raises VaultNotFound or VaultUnreadable if the
    vault cannot be listed.
    """
    walked = walked or walk(root, config.walk)
    found = {file.path: file for file in walked.files}
    seen, wanted = catalogue.files(), recipe(config)
    # Not counted: files that were skipped (the next run would skip them again), and notes in
    # folders that cannot be read now (they stay as they are).
    unread = {skip.path for skip in catalogue.skipped()}
    both, lost = seen.keys() & found.keys(), seen.keys() - found.keys()
    changed = {
        path
        for path in both
        if (seen[path].size, seen[path].mtime_ns) != (found[path].size, found[path].mtime_ns)
    }
    doubtful = [p for p in both - changed if has_other_status(seen[p], found[p])]
    if len(doubtful) <= FEW_DOUBTFUL:
        most = config.walk.max_bytes
        changed.update(p for p in doubtful if digest(root, found[p], most) != seen[p].digest)
    return Waiting(
        new=len(found.keys() - seen.keys() - unread),
        changed=len(changed),
        gone=len([path for path in lost if not is_hidden(path, walked.unreadable)]),
        recut=sum(seen[path].recipe != wanted for path in both - changed),
    )
