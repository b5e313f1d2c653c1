"""Walk: which files of a vault are notes.

A walk lists folders and reads sizes and times. It opens only ignore files and Obsidian's settings,
and writes nothing. A file that looks like a note and cannot be indexed is skipped with a reason
(read.py has the words). What the owner ignores (ignore.py) is `excluded`: notes, and folders as one
row each, which are not entered. What is ignored by default, such as .git, is not even that.

No symbolic link is followed. A link that stays in the vault points to something that is indexed
where it is, and one that leaves the vault is not part of it. So a walk cannot enter a loop.

If a folder cannot be listed, nothing is known about its notes. It is in `unreadable`, as is a note
whose content is in the cloud, so that they are not taken for deleted.

A walk of some paths only (a watcher knows which have changed) lists the folders they are in, and
finds what a whole walk finds of them. What depends on other files as well takes a whole walk.
"""

from __future__ import annotations

import os
import stat
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

from ragvault.config import settings as config
from ragvault.errors import VaultNotFound, VaultUnreadable
from ragvault.notes import read
from ragvault.notes.ignore import (
    Layers,
    base_layers,
    default_rules,
    ignore_files,
    ignored_by,
    with_file,
)
from ragvault.text.printable import printable, valid_unicode
from ragvault.types import File, Skipped

# Documents that are not read unless walk.extensions names them, and those that are not text at all.
TEXT_DOCUMENTS = (
    *(".adoc", ".csv", ".htm", ".html", ".ipynb", ".log", ".mdown", ".mdx", ".mkd", ".org"),
    *(".qmd", ".rmd", ".rst", ".tex", ".textile", ".tsv", ".wiki"),
)
OTHER_DOCUMENTS = (".doc", ".docx", ".epub", ".odt", ".pages", ".pdf", ".pptx", ".rtf", ".xlsx")
DOCUMENTS = (*TEXT_DOCUMENTS, *OTHER_DOCUMENTS)
CONFLICT_MARKS = (".sync-conflict-", "conflicted copy")
# More than any file system keeps inside its directory entry, where a file needs no block.
INLINE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk found. `files` are sorted by path, and no two have the same one.

    `unreadable` are paths about which nothing is known now, `ignored` those that were not looked
    into; a folder ends in `/`. `only` are the paths that were looked at; None: the whole vault.
    """

    files: tuple[File, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    excluded: tuple[Skipped, ...] = ()  # notes, and folders, which end in `/`
    unreadable: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)  # other documents, by suffix
    ignored: frozenset[str] = frozenset()
    only: frozenset[str] | None = None


# A folder still to be listed: its path and its name on the disk, which end in `/` unless it is the
# vault itself, and what decides in it.
Folder = tuple[str, str, Layers]


@dataclass(slots=True)
class WalkState:
    """One walk under way."""

    root: str
    extensions: tuple[str, ...]
    max_bytes: int
    ignore_files: frozenset[str]
    files: list[File] = field(default_factory=list)
    blockless: list[tuple[int, File]] = field(default_factory=list)  # with their devices
    devices: set[int] = field(default_factory=set)  # those on which files have blocks
    skipped: list[Skipped] = field(default_factory=list)
    excluded: list[Skipped] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    ignored: set[str] = field(default_factory=set)
    only: frozenset[str] | None = None
    names: Mapping[str, set[str]] = field(default_factory=dict)  # that lead to `only`, by folder
    is_shared: bool = False  # a file has more than one name

    def skip(self, path: str, reason: str, detail: str = "") -> None:
        self.skipped.append(Skipped(printable(path), reason, detail))


def walk(root: Path, settings: config.Walk, only: Collection[str] | None = None) -> Walked:
    """Every note of the vault, and what was left out. Raises where the vault cannot be listed.

    `only`: of these paths alone. They are as in `File.path`.
    """
    top = real_folder(root)
    extensions = tuple(extension.lower() for extension in settings.extensions)
    state = WalkState(top, extensions, settings.max_bytes, ignore_files(settings))
    if only is not None:
        state.only, state.names = frozenset(only), names_by_folder(only)
    layers, state.warnings = base_layers(top, settings)
    todo: list[Folder] = [("", "", layers)]
    while todo:  # a list and not calls: nesting has no limit
        todo.extend(visit(state, todo.pop()))
    if only is not None and (state.is_shared or state.blockless):
        return walk(root, settings)  # another name has changed too; others show what no blocks mean
    return finish(state)


def real_folder(root: Path) -> str:
    """The folder of a vault without links. Raises VaultNotFound and VaultUnreadable."""
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
    return top


def names_by_folder(paths: Collection[str]) -> Mapping[str, set[str]]:
    """The names that lead to these paths, in each folder on the way."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        while path:
            above, _, name = path.rpartition("/")
            # A note that iCloud takes away leaves a stub of another name.
            names[f"{above}/" if above else ""].update((name, f".{name}.icloud"))
            path = above
    return names


def visit(state: WalkState, folder: Folder) -> Iterator[Folder]:
    """List one folder; yields the folders in it. Raises VaultUnreadable for the vault itself."""
    path, disk, _ = folder
    try:
        with os.scandir(f"{state.root}/{disk}") as listing:
            entries = list(listing)
    except OSError as error:
        if not disk:
            raise VaultUnreadable(Path(state.root), error.strerror or str(error)) from error
        lose(state, path, error)
        return
    if state.only is not None:
        names = state.names.get(path, set()) | state.ignore_files
        entries = [each for each in entries if normalize("NFC", each.name) in names]
    yield from sort_out(state, folder, entries)


def sort_out(state: WalkState, folder: Folder, entries: list[os.DirEntry[str]]) -> Iterator[Folder]:
    """The entries of one folder; yields the folders in it."""
    above, disk_above, layers = folder
    for entry in entries:
        if entry.name in state.ignore_files:
            layers = with_own(state, (above, disk_above, layers), entry.name)
    for entry in entries:
        disk = entry.name
        name = disk if disk.isascii() else normalize("NFC", disk)
        path = above + name
        try:
            if entry.is_dir(follow_symlinks=False):
                if source := ignored_by(layers, path, name, folder=True):
                    state.ignored.add(f"{path}/")
                    exclude(state, path, name, source, folder=True)
                elif has_valid_name(state, path):
                    yield f"{path}/", f"{disk_above}{disk}/", layers
            elif name.lower().endswith(state.extensions):
                if source := ignored_by(layers, path, name, folder=False):
                    leave(state, path, name, source)
                else:
                    note(state, path, disk_above + disk, entry)
            elif entry.is_symlink():
                if not ignored_by(layers, path, name, folder=True):
                    link(state, path, entry, is_note=False)
            elif name.endswith(".icloud"):
                stub(state, layers, above, name)
            elif name.lower().endswith(DOCUMENTS) and not ignored_by(
                layers, path, name, folder=False
            ):
                state.unread["." + name.rpartition(".")[2].lower()] += 1
        except OSError as error:
            lose(state, path, error)


def leave(state: WalkState, path: str, name: str, source: str) -> None:
    """An ignored note. A conflict copy is named: somebody has to merge it."""
    if any(mark in name for mark in CONFLICT_MARKS):
        state.skip(path, read.CONFLICT, "a sync tool kept two versions; merge and delete it")
    else:
        exclude(state, path, name, source, folder=False)


def exclude(state: WalkState, path: str, name: str, source: str, *, folder: bool) -> None:
    """What the owner ignores, and where that is written; not what is ignored by default."""
    if not default_rules().decide(path, name, folder):
        path = printable(path) + "/" * folder
        state.excluded.append(Skipped(path, read.EXCLUDED, f"by {source}"))


def note(state: WalkState, path: str, disk: str, entry: os.DirEntry[str]) -> None:
    """A file, or something else, that has the name of a note."""
    if entry.is_symlink():
        link(state, path, entry, is_note=True)
    elif not has_valid_name(state, path):
        pass
    elif not entry.is_file(follow_symlinks=False):
        state.skip(path, read.SPECIAL, "a pipe, a socket or a device")
    else:
        status = entry.stat(follow_symlinks=False)
        if not is_readable(entry.path, status):
            state.skip(path, read.UNREADABLE, "Permission denied")
            state.unreadable.add(path)
            return
        state.is_shared |= status.st_nlink > 1
        take(state, read.seen_file(path, disk, status), status)


def is_readable(full: str, status: os.stat_result) -> bool:
    """Whether its permissions let us read a file; asks the system only in unusual cases."""
    ours = getattr(os, "geteuid", lambda: status.st_uid)() == status.st_uid
    return bool(ours and status.st_mode & stat.S_IRUSR) or os.access(full, os.R_OK)


def take(state: WalkState, file: File, status: os.stat_result) -> None:
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


def link(state: WalkState, path: str, entry: os.DirEntry[str], *, is_note: bool) -> None:
    """A link with the name of a note, or to a folder: never followed, only recognised."""
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


def stub(state: WalkState, layers: Layers, folder: str, name: str) -> None:
    """`.Note.md.icloud`: what iCloud leaves of a note that it took away."""
    inner = name.removeprefix(".").removesuffix(".icloud")
    if inner.lower().endswith(state.extensions):
        if source := ignored_by(layers, folder + inner, inner, folder=False):
            exclude(state, folder + inner, inner, source, folder=False)
        else:
            elsewhere(state, folder + inner)


def elsewhere(state: WalkState, path: str) -> None:
    state.skip(path, read.CLOUD, "its content is not on this machine; download it to index it")
    state.unreadable.add(path)


def lose(state: WalkState, path: str, error: OSError) -> None:
    """Report an entry that cannot be listed or examined, unless it is gone."""
    reason, detail = read.reason_of(error)
    if reason != read.VANISHED:
        state.skip(path, read.UNREADABLE, detail)
        state.unreadable.add(path)


def has_valid_name(state: WalkState, path: str) -> bool:
    if path.isascii() or valid_unicode(path) == path:
        return True
    state.skip(path, read.NAME, "its name is not valid UTF-8; rename it to index it")
    return False


def with_own(state: WalkState, folder: Folder, name: str) -> Layers:
    """The layers of a folder, with one of its own ignore files."""
    path, disk, layers = folder
    try:
        return with_file(layers, Path(state.root, disk, name), path)
    except OSError as error:
        shown = printable(path + name)
        state.warnings.append(f"{shown} cannot be read, so its rules are unknown: {error.strerror}")
        return layers


def finish(state: WalkState) -> Walked:
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
        tuple(sorted(state.excluded, key=lambda skipped: skipped.path)),
        frozenset(state.unreadable),
        tuple(sorted(state.warnings)),
        dict(sorted(state.unread.items())),
        frozenset(state.ignored),
        state.only,
    )


def notes_in(root: Path, excluded: Skipped, settings: config.Walk) -> Iterator[str]:
    """The paths of the notes in an excluded folder; the path itself if it is that of a note."""
    if not excluded.path.endswith("/"):
        yield excluded.path
        return
    extensions = tuple(extension.lower() for extension in settings.extensions)
    for folder, folders, files in os.walk(root / excluded.path):
        folders[:] = [name for name in folders if not default_rules().decide(name, name, True)]
        inside = normalize("NFC", Path(folder).relative_to(root).as_posix())
        for name in files:
            if name.lower().endswith(extensions):
                yield printable(f"{inside}/{normalize('NFC', name)}")
