"""Walk: which files of a vault are notes.

Lists folders and asks for size and time; opens nothing but ignore files and Obsidian's settings,
and writes nothing. What is not a note for us is named with its reason (the words are in read.py);
what its owner ignores (layers.py) is only counted.

No link is followed. One that stays in the vault leads to something that is indexed where it is,
and one that leaves the vault is nobody's note: so a loop cannot be entered either.

A folder that cannot be listed says nothing about its notes. It is named in `unreadable`, as is a
note whose content is in the cloud, so that nobody takes them for deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from ragvault.config import settings as config
from ragvault.errors import VaultNotFound, VaultUnreadable
from ragvault.notes import read
from ragvault.notes.ignore import Layers, base_layers, ignore_files, with_file
from ragvault.types import File, Skipped

CONFLICT_MARKS = (".sync-conflict-", "conflicted copy")
# More than any file system keeps inside its directory entry, where a file needs no block.
INLINE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk found. `files` are sorted by path, and no two have the same one.

    `unreadable` are paths about which nothing is known now; a folder ends in `/`.
    """

    files: tuple[File, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    ignored: int = 0  # notes, and folders with whatever is in them
    unreadable: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()


class Folder(NamedTuple):
    """A folder still to be listed; `path` and `disk` end in `/` unless it is the vault itself."""

    path: str
    disk: str
    layers: Layers


@dataclass(slots=True)
class Walk:
    """One walk under way."""

    root: str
    extensions: tuple[str, ...]
    max_bytes: int
    ignore_files: frozenset[str]
    files: list[File] = field(default_factory=list)
    blockless: list[tuple[int, File]] = field(default_factory=list)  # with their devices
    devices: set[int] = field(default_factory=set)  # those on which files have blocks
    skipped: list[Skipped] = field(default_factory=list)
    ignored: int = 0
    unreadable: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    links: int = 0
    shared: set[tuple[int, int]] = field(default_factory=set)  # files with more than one name

    def skip(self, path: str, reason: str, detail: str = "") -> None:
        self.skipped.append(Skipped(printable(path), reason, detail))


def walk(root: Path, settings: config.Walk) -> Walked:
    """Every note of the vault, and what was left out. Raises where the vault cannot be listed."""
    state, top = begin(root, settings)
    todo = [top]
    while todo:  # a list and not calls: nesting has no limit
        todo.extend(visit(state, todo.pop()))
    return finish(state)


def begin(root: Path, settings: config.Walk) -> tuple[Walk, Folder]:
    """A walk that has seen nothing yet, and the folder it begins in. Raises as `walk`."""
    try:
        top = os.path.realpath(root, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        raise VaultNotFound(
            f"there is no folder {root}", fix="check the path; a removable disk may not be mounted"
        ) from None
    except OSError as error:
        raise VaultUnreadable(root, error.strerror or str(error)) from error
    if not Path(top).is_dir():
        raise VaultNotFound(f"{root} is not a folder", fix="name the folder that holds the notes")
    extensions = tuple(extension.lower() for extension in settings.extensions)
    state = Walk(top, extensions, settings.max_bytes, ignore_files(settings))
    layers, state.warnings = base_layers(top, settings)
    return state, Folder("", "", layers)


def visit(state: Walk, folder: Folder) -> Iterator[Folder]:
    """List one folder; yields the folders in it. Raises VaultUnreadable for the vault itself."""
    try:
        with os.scandir(f"{state.root}/{folder.disk}") as listing:
            entries = list(listing)
    except OSError as error:
        if not folder.disk:
            raise VaultUnreadable(Path(state.root), error.strerror or str(error)) from error
        lose(state, folder.path, error)
    else:
        yield from sort_out(state, folder, entries)


def sort_out(state: Walk, folder: Folder, entries: list[os.DirEntry[str]]) -> Iterator[Folder]:
    """The entries of one folder; yields the folders in it."""
    layers = folder.layers
    for entry in entries:
        if entry.name in state.ignore_files:
            layers = with_own(state, folder, layers, entry.name)
    for entry in entries:
        disk = entry.name
        name = disk if disk.isascii() else normalize("NFC", disk)
        path = folder.path + name
        try:
            if entry.is_dir(follow_symlinks=False):
                if layers.ignore(path, name, folder=True):
                    state.ignored += 1
                elif has_valid_name(state, path):
                    yield Folder(f"{path}/", f"{folder.disk}{disk}/", layers)
            elif name.lower().endswith(state.extensions):
                if layers.ignore(path, name, folder=False):
                    leave(state, path, name)
                else:
                    note(state, path, folder.disk + disk, entry)
            elif entry.is_symlink():
                if not layers.ignore(path, name, folder=True):
                    link(state, path, entry, is_note=False)
            elif name.endswith(".icloud"):
                stub(state, layers, folder.path, name)
        except OSError as error:
            lose(state, path, error)


def leave(state: Walk, path: str, name: str) -> None:
    """An ignored note. A conflict copy is named: somebody has to merge it."""
    if any(mark in name for mark in CONFLICT_MARKS):
        state.skip(path, read.CONFLICT, "a sync tool kept two versions; merge and delete it")
    else:
        state.ignored += 1


def note(state: Walk, path: str, disk: str, entry: os.DirEntry[str]) -> None:
    """A file, or something else, that has the name of a note."""
    if entry.is_symlink():
        link(state, path, entry, is_note=True)
    elif not has_valid_name(state, path):
        pass
    elif not entry.is_file(follow_symlinks=False):
        state.skip(path, read.SPECIAL, "a pipe, a socket or a device")
    else:
        status = entry.stat(follow_symlinks=False)
        if status.st_nlink > 1:
            state.shared.add((status.st_dev, status.st_ino))
        take(state, read.seen_file(path, disk, status), status)


def take(state: Walk, file: File, status: os.stat_result) -> None:
    """A regular file: a note, unless it is too large or its content is elsewhere."""
    if file.size > state.max_bytes:
        state.skip(file.path, read.LARGE, f"{file.size:,} bytes; walk.max_bytes allows fewer")
    elif read.is_dataless(status):
        elsewhere(state, file.path)
    elif not getattr(status, "st_blocks", 1) and file.size > INLINE_BYTES:
        state.blockless.append((status.st_dev, file))
    else:
        state.files.append(file)
        if getattr(status, "st_blocks", 1):
            state.devices.add(status.st_dev)


def link(state: Walk, path: str, entry: os.DirEntry[str], *, is_note: bool) -> None:
    """A link with the name of a note, or to a folder: never followed, only told apart."""
    state.links += 1
    try:
        target = os.path.realpath(entry.path, strict=True)
    except OSError:
        if is_note:
            state.skip(path, read.BROKEN, "a link to nothing, or to itself")
        return
    if not is_note and not Path(target).is_dir():
        return
    if is_inside(target, state.root):
        inside = printable(os.path.relpath(target, state.root))
        state.skip(path, read.SYMLINK, f"a link to {inside}, which is in the vault itself")
    else:
        state.skip(path, read.OUTSIDE, "a link that leaves the vault")


def is_inside(path: str, top: str) -> bool:
    """Whether a real path is the folder `top` or lies below it."""
    return path == top or path.startswith(top.rstrip(os.sep) + os.sep)


def stub(state: Walk, layers: Layers, folder: str, name: str) -> None:
    """`.Note.md.icloud`: what iCloud leaves of a note that it took away."""
    inner = name.removeprefix(".").removesuffix(".icloud")
    if inner.lower().endswith(state.extensions):
        if layers.ignore(folder + inner, inner, folder=False):
            state.ignored += 1
        else:
            elsewhere(state, folder + inner)


def elsewhere(state: Walk, path: str) -> None:
    state.skip(path, read.CLOUD, "its content is not on this machine; download it to index it")
    state.unreadable.add(path)


def lose(state: Walk, path: str, error: OSError) -> None:
    """An entry that cannot be listed or asked. One that is gone is nothing to report."""
    reason, detail = read.reason_of(error)
    if reason != read.VANISHED:
        state.skip(path, read.UNREADABLE, detail)
        state.unreadable.add(path)


def has_valid_name(state: Walk, path: str) -> bool:
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        state.skip(path, read.NAME, "its name is not valid UTF-8; rename it to index it")
        return False
    return True


def printable(path: str) -> str:
    """A path that can be shown and stored: bytes that are not UTF-8 become \\xNN."""
    if path.isascii():
        return path
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def with_own(state: Walk, folder: Folder, layers: Layers, name: str) -> Layers:
    """The layers of a folder, with one of its own ignore files."""
    try:
        return with_file(layers, Path(state.root, folder.disk, name), folder.path)
    except OSError as error:
        path = printable(folder.path + name)
        state.warnings.append(f"{path} cannot be read, so its rules are unknown: {error.strerror}")
        return layers


def finish(state: Walk) -> Walked:
    """What was found, in an order that does not depend on the file system."""
    # No blocks means no content only where others have some: many network mounts count none at all.
    for device, file in state.blockless:
        if device in state.devices:
            elsewhere(state, file.path)
        else:
            state.files.append(file)
    # Of two names that are one after normalisation, the one spelled like the path is kept.
    state.files.sort(key=lambda file: (file.path, file.disk != file.path, file.disk))
    files: list[File] = []
    for file in state.files:
        if files and files[-1].path == file.path:
            state.skip(file.path, read.DUPLICATE, "two names that differ only in their code points")
        else:
            files.append(file)
    return Walked(
        tuple(files),
        tuple(sorted(state.skipped, key=lambda skipped: (skipped.path, skipped.reason))),
        state.ignored,
        frozenset(state.unreadable),
        tuple(sorted(state.warnings)),
    )
