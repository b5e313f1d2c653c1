"""Freshness: how the files of a vault differ from its index.

    folder_error, is_gone, check_vault   whether the vault's folder can be read at all
    compare_note   one note: same, gone, unreadable, or changed (then it is read and chunked again)
    recipe         how notes are read and chunked: another recipe makes every file wait
    unusable       files that were binary or failed, and are not tried again until they change
    waiting        how many files of the vault `index` would process; reads few of them
    PendingFiles   the files that a search takes in before it answers, if they are few
    patience       stops a run that takes far longer than a search may wait

Files are compared by size, times and inode; content is read only if those are not conclusive, as in
indexing. Writes nothing: a search takes files in through the ordinary write path (Vault.index),
with vectors of the tier that answers. Every search imports this file, so what reads notes is
imported where it is used.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from errno import ENOTDIR
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import json

from ragvault.errors import VaultUnreadable
from ragvault.ports import InterruptingProgress, Progress
from ragvault.store.access import path_digest

if TYPE_CHECKING:
    from ragvault.config.settings import Config
    from ragvault.notes.walk import Walked
    from ragvault.store.catalogue import Catalogue
    from ragvault.types import File, IndexedFile, Skipped
    from ragvault.update.prepare import Prepared

Unusable = Callable[[str, "File | IndexedFile"], "Skipped | None"]
FEW_DOUBTFUL = 20  # files that `waiting` reads, because size and time cannot tell
LINK = "it has become a link"  # a vault's folder: why it is not read
READER = 7  # grows when the same text and settings give other notes, sections or passages


def recipe(config: Config) -> str:
    """A fingerprint of how notes are read and chunked: all that matters but the file itself."""
    how = json.encode((READER, config.parse.comments, config.links, config.chunk))
    return blake2b(how, digest_size=8).hexdigest()


def unusable(catalogue: Catalogue, recipe: str) -> Unusable:
    """Which files of this status are not tried again: a function that has the reason.

    Such a file was binary, or failed, when it was last tried with this recipe.
    """
    from ragvault.notes.diff import status_of

    facts = catalogue.facts
    known = facts.unusable if facts.unusable_recipe == recipe else {}
    skipped = {skip.path: skip for skip in catalogue.skipped()} if known else {}

    def skip_of(path: str, file: File | IndexedFile) -> Skipped | None:
        return skipped.get(path) if known.get(path) == status_of(file) else None

    return skip_of


def folder_error(root: Path) -> OSError | None:
    """Why a vault's folder cannot be listed; None if it can.

    A vault is known by its real folder. Where a link is now, its target is another one.
    """
    try:
        if root.is_symlink():
            return NotADirectoryError(ENOTDIR, LINK)
        with os.scandir(root):
            return None
    except OSError as error:
        return error


def is_gone(root: Path) -> bool:
    """Whether there is no such folder; False if that cannot be known (a mount that hangs)."""
    return isinstance(folder_error(root), FileNotFoundError | NotADirectoryError)


def check_vault(root: Path, catalogue: Catalogue) -> None:
    """Raises VaultUnreadable if the vault's folder is gone or empty.

    Its disk may not be mounted; that must not look like deleted notes.
    """
    error = folder_error(root)
    if isinstance(error, FileNotFoundError):
        raise VaultUnreadable(root, "the folder does not exist")
    if error:
        raise VaultUnreadable(root, error.strerror or str(error))
    with os.scandir(root) as entries:
        is_empty = next(entries, None) is None
    if is_empty and catalogue.note_count():
        raise VaultUnreadable(root, "the folder is empty; is its disk mounted?")


READ_BYTES = 200_000  # of a changed file that a search reads again; it would wait for more


def compare_note(
    root: Path, catalogue: Catalogue, config: Config, path: str
) -> Literal["same", "gone", "unreadable"] | Prepared:
    """How the file of one note has changed since it was indexed; its new content if it has."""
    from ragvault.notes.diff import is_doubtful
    from ragvault.notes.read import BINARY, VANISHED, digest, seen_file

    try:
        disk = catalogue.stored(path).file.disk
        status = os.lstat(root / disk)
    except (KeyError, FileNotFoundError, NotADirectoryError):
        return "gone"  # without a row: a writer has removed it since the search began
    except OSError:
        return "unreadable"
    if not stat.S_ISREG(status.st_mode):
        return "gone"
    file, known = seen_file(path, disk, status), catalogue.files([path])[path]
    if not is_doubtful(known, file):
        return "same"
    if unusable(catalogue, recipe(config))(path, file):
        return "unreadable"
    if digest(root, file, config.walk.max_bytes) == known.digest:
        return "same"
    if file.size > READ_BYTES:
        return "unreadable"
    from ragvault.update.prepare import Prepared, prepare_for_search

    now = prepare_for_search(root, file, config)
    if isinstance(now, Prepared):
        return now
    return "gone" if now.reason in (VANISHED, BINARY) else "unreadable"


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
    from ragvault.notes.diff import has_other_status, is_hidden
    from ragvault.notes.walk import walk

    walked = walked or walk(root, config.walk)
    found = {file.path: file for file in walked.files}
    seen, wanted = catalogue.files(), recipe(config)
    # Not counted: files that were skipped (the next run would skip them again), and notes in
    # folders that cannot be read now (they stay as they are).
    unread = {skip.path for skip in catalogue.skipped()}
    failed = unusable(catalogue, wanted)
    both = {path for path in seen.keys() & found.keys() if not failed(path, found[path])}
    lost = seen.keys() - found.keys()
    changed = {
        path
        for path in both
        if (seen[path].size, seen[path].mtime_ns) != (found[path].size, found[path].mtime_ns)
    }
    doubtful = [path for path in both - changed if has_other_status(seen[path], found[path])]
    if 0 < len(doubtful) <= FEW_DOUBTFUL:
        from ragvault.notes.read import digest

        most = config.walk.max_bytes
        changed.update(p for p in doubtful if digest(root, found[p], most) != seen[p].digest)
    return Waiting(
        new=len(found.keys() - seen.keys() - unread),
        changed=len(changed),
        gone=len([path for path in lost if not is_hidden(path, walked.unreadable)]),
        recut=sum(seen[path].recipe != wanted for path in both - changed),
    )


# --- What a search takes in ---

MAX_FILES = 20
# Of changed files, for each second of `search.update`. Whether it fits must be known before it
# begins: a run that is stopped in the middle leaves the keyword index behind the catalogue.
BYTES_PER_SECOND = 100_000
PATIENCE = 4.0  # times `search.update`, after which a run that has begun is stopped


def patience(seconds: float) -> Progress:
    """Ends a run that takes far longer than the seconds of `search.update`, from now on."""
    until = time.monotonic() + PATIENCE * seconds
    return InterruptingProgress(lambda: time.monotonic() > until)


class PendingFiles:
    """The files of a vault that differ from its index, by one walk.

    A file that is not in the index is new only if it came after the last run and was not forgotten.
    Any other was left out before: `index` may bring it back, and a search must not.
    """

    def __init__(self, root: Path, catalogue: Catalogue, config: Config) -> None:
        from ragvault.notes.walk import walk

        self._root, self._catalogue, self._config = root, catalogue, config
        self._walked = walk(root, config.walk)
        self.waiting = self.count()

    def count(self) -> int:
        """How many files `index` would process now."""
        return self._count(self._walked)

    def are_few(self, seconds: float) -> bool:
        """Whether a search can take them in within so much time."""
        if not self.waiting or not seconds or not self._catalogue.facts.last_run:
            return False
        wanted = recipe(self._config)
        if any(file.recipe != wanted for file in self._seen.values()):
            return False  # every note is to be chunked again
        small = self._changed_bytes() <= seconds * BYTES_PER_SECOND
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
