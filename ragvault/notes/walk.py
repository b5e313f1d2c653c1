"""Walk: which files of a vault are notes.

    walk              the whole vault
    IncrementalWalk   the same, listing again only the folders that may have changed

A walk lists folders and reads sizes and times. It opens only ignore files and Obsidian's settings,
and writes nothing. A file that looks like a note and cannot be indexed is skipped with a reason
(read.py has the words). What the owner ignores (ignore.py) is `excluded`: notes, and folders as one
row each, which are not entered. What is ignored by default, such as .git, is not even that.

No symbolic link is followed. A link that stays in the vault points to something that is indexed
where it is, and one that leaves the vault is not part of it. So a walk cannot enter a loop.

If a folder cannot be listed, nothing is known about its notes. It is in `unreadable`, as is a note
whose content is in the cloud, so that they are not taken for deleted.
"""

from __future__ import annotations

import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from ragvault.config import settings as config
from ragvault.errors import VaultNotFound, VaultUnreadable
from ragvault.notes import read
from ragvault.notes.ignore import (
    Layers,
    base_layers,
    default_rules,
    ignore_files,
    with_file,
)
from ragvault.text.printable import printable
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

    `unreadable` are paths about which nothing is known now; a folder ends in `/`.
    """

    files: tuple[File, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    excluded: tuple[Skipped, ...] = ()  # notes, and folders, which end in `/`
    unreadable: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)  # other documents, by suffix


class Folder(NamedTuple):
    """A folder still to be listed; `path` and `disk` end in `/` unless it is the vault itself."""

    path: str
    disk: str
    layers: Layers


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
    links: int = 0
    shared: set[tuple[int, int]] = field(default_factory=set)  # files with more than one name

    def skip(self, path: str, reason: str, detail: str = "") -> None:
        self.skipped.append(Skipped(printable(path), reason, detail))


def walk(root: Path, settings: config.Walk) -> Walked:
    """Every note of the vault, and what was left out. Raises where the vault cannot be listed."""
    state, top = begin_walk(root, settings)
    todo = [top]
    while todo:  # a list and not calls: nesting has no limit
        todo.extend(visit(state, todo.pop()))
    return finish(state)


def begin_walk(root: Path, settings: config.Walk) -> tuple[WalkState, Folder]:
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
    state = WalkState(top, extensions, settings.max_bytes, ignore_files(settings))
    layers, state.warnings = base_layers(top, settings)
    return state, Folder("", "", layers)


def visit(state: WalkState, folder: Folder) -> Iterator[Folder]:
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


def sort_out(state: WalkState, folder: Folder, entries: list[os.DirEntry[str]]) -> Iterator[Folder]:
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
                if source := layers.ignored_by(path, name, folder=True):
                    exclude(state, path, name, source, folder=True)
                elif has_valid_name(state, path):
                    yield Folder(f"{path}/", f"{folder.disk}{disk}/", layers)
            elif name.lower().endswith(state.extensions):
                if source := layers.ignored_by(path, name, folder=False):
                    leave(state, path, name, source)
                else:
                    note(state, path, folder.disk + disk, entry)
            elif entry.is_symlink():
                if not layers.ignore(path, name, folder=True):
                    link(state, path, entry, is_note=False)
            elif name.endswith(".icloud"):
                stub(state, layers, folder.path, name)
            elif name.lower().endswith(DOCUMENTS) and not layers.ignore(path, name, folder=False):
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
        if status.st_nlink > 1:
            state.shared.add((status.st_dev, status.st_ino))
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


def stub(state: WalkState, layers: Layers, folder: str, name: str) -> None:
    """`.Note.md.icloud`: what iCloud leaves of a note that it took away."""
    inner = name.removeprefix(".").removesuffix(".icloud")
    if inner.lower().endswith(state.extensions):
        if source := layers.ignored_by(folder + inner, inner, folder=False):
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
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        state.skip(path, read.NAME, "its name is not valid UTF-8; rename it to index it")
        return False
    return True


def with_own(state: WalkState, folder: Folder, layers: Layers, name: str) -> Layers:
    """The layers of a folder, with one of its own ignore files."""
    try:
        return with_file(layers, Path(state.root, folder.disk, name), folder.path)
    except OSError as error:
        path = printable(folder.path + name)
        state.warnings.append(f"{path} cannot be read, so its rules are unknown: {error.strerror}")
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


# --- Walking again ---


class Listing(NamedTuple):
    """One folder as it was listed, without what is in the folders inside it."""

    folder: Folder
    inner: frozenset[str]  # `disk` of the folders in it
    files: tuple[File, ...]
    blockless: tuple[tuple[int, File], ...]
    devices: frozenset[int]
    skipped: tuple[Skipped, ...]
    excluded: tuple[Skipped, ...]
    unreadable: frozenset[str]
    warnings: tuple[str, ...]
    unread: Mapping[str, int]
    links: int
    shared: frozenset[tuple[int, int]]

    @property
    def is_uncertain(self) -> bool:
        """Whether it may change without an event in this folder."""
        odd = self.links or self.shared or self.unreadable or self.blockless or self.warnings
        return bool(odd)


@dataclass(slots=True)
class Changed:
    """What may have changed. Folders are named as in `Folder.disk`; "" is the vault itself."""

    everything: bool = False
    listed: set[str] = field(default_factory=set)
    relisted: set[str] = field(default_factory=set)


class IncrementalWalk:
    """A walk that is repeated. Any thread may report changes and walk.

    The result equals that of `walk` as long as every change was reported with `mark_changed`:

        a change in a folder      that folder is listed again
        a folder itself           the folder above it, and everything in it
        an ignore file            everything, because its rules reach all folders below it
        a link, or something      its folder, every time, because its target may change elsewhere
        unreadable
        a folder without events   that folder, every time
        a second hard link        everything, the first time: the other name may be anywhere

    Nobody can report that a note got a second name outside the vault and was changed through it.
    `watched` gives the folders for which changes are reported, as in `Folder.disk`; None means all.
    """

    def __init__(self, root: Path, settings: config.Walk) -> None:
        self._root, self.settings = root, settings
        self._listings: dict[str, Listing] = {}
        self._walked: Walked | None = None
        self.watched: Callable[[], frozenset[str]] | None = None
        self._base: tuple[Layers, tuple[str, ...]] | None = None
        self._more_shared = False
        self._rules: frozenset[str] = frozenset()
        self._changed = Changed(everything=True)
        self._marking, self._walking = threading.Lock(), threading.Lock()

    def mark_changed(self, path: str, folder: bool = False) -> None:
        """Something happened to this path, relative to the vault and as the disk has it.

        "" is the vault itself: nothing is known about it any more.
        """
        above, _, name = path.rpartition("/")
        with self._marking:
            self._changed.everything |= not path or name in self._rules
            self._changed.listed.add(f"{above}/" if above else "")
            if folder:
                self._changed.relisted.add(f"{path}/")

    @property
    def folders(self) -> int:
        """How many folders were listed, the vault itself included: all but the ignored ones."""
        return len(self._listings)

    def unwatched(self) -> frozenset[str] | None:
        """Folders that are listed but not watched; None while that is unknown.

        They are ignored by the rules with which watching began, and no longer by the current ones.
        """
        if self.watched is None:
            return frozenset()
        with self._walking:
            watched = self.watched()
            with self._marking:
                if self._changed != Changed():
                    return None
            return frozenset(
                disk
                for disk in self._listings.keys() - watched
                if self._listings[disk].folder.path not in self._listings[disk].unreadable
            )

    def walk(self) -> Walked:
        """What `walk` finds; the very same object while nothing is another. Raises as it does."""
        with self._walking:
            with self._marking:
                changed, self._changed = self._changed, Changed()
            try:
                return self._look(changed)
            except BaseException:
                self.mark_changed("")
                raise

    def _look(self, changed: Changed) -> Walked:
        state, top = begin_walk(self._root, self.settings)
        base = (top.layers, tuple(state.warnings))  # the list itself will have every folder's
        if changed.everything or self._walked is None or base != self._base:
            self._base, self._rules = base, state.ignore_files
            self._list_all(top, state)
        else:
            self._more_shared = False
            self._list_each(self._uncertain_folders(changed), state)
            if self._more_shared:
                self._list_all(top, state)
        if self._walked is None:
            self._walked = finish(self._joined(state))
        return self._walked

    def _list_all(self, top: Folder, state: WalkState) -> None:
        self._listings, self._walked = {}, None
        self._list_each([top], state)

    def _list_each(self, todo: list[Folder], state: WalkState) -> None:
        while todo:
            todo.extend(self._list(todo.pop(), state))

    def _uncertain_folders(self, changed: Changed) -> list[Folder]:
        """The folders to list: those that events name, if known, and the uncertain ones."""
        for folder in changed.relisted:
            self._forget(folder)
        wanted = {self._nearest(folder) for folder in changed.listed}
        wanted.update(disk for disk, listing in self._listings.items() if listing.is_uncertain)
        if self.watched is not None:
            wanted.update(self._listings.keys() - self.watched())
        return [self._listings[disk].folder for disk in sorted(wanted)]

    def _nearest(self, folder: str) -> str:
        """The folder itself, or the one above it that is known: it will show what is in it."""
        while folder and folder not in self._listings:
            folder = folder[: folder.rstrip("/").rfind("/") + 1]
        return folder

    def _list(self, folder: Folder, whole: WalkState) -> list[Folder]:
        """List one folder; returns the folders in it that are not known."""
        state = WalkState(whole.root, whole.extensions, whole.max_bytes, whole.ignore_files)
        inner = list(visit(state, folder))
        was = self._listings.get(folder.disk)
        now = _listing(folder, inner, state)
        if now != was:
            self._walked = None
            self._listings[folder.disk] = now
            for gone in was.inner - now.inner if was else ():
                self._forget(gone)
            self._more_shared |= bool(now.shared - was.shared if was else now.shared)
        for each in inner:  # other rules than it was listed by
            if each.disk in self._listings and self._listings[each.disk].folder != each:
                self._forget(each.disk)
        return [each for each in inner if each.disk not in self._listings]

    def _forget(self, folder: str) -> None:
        """A folder, with what is in it: its listing says nothing any more."""
        todo = [folder]
        while todo:
            listing = self._listings.pop(todo.pop(), None)
            if listing is not None:
                self._walked = None
                todo.extend(listing.inner)

    def _joined(self, state: WalkState) -> WalkState:
        """Every folder's part in one walk."""
        for listing in self._listings.values():
            state.files.extend(listing.files)
            state.blockless.extend(listing.blockless)
            state.devices.update(listing.devices)
            state.skipped.extend(listing.skipped)
            state.excluded.extend(listing.excluded)
            state.unreadable.update(listing.unreadable)
            state.warnings.extend(listing.warnings)
            state.unread.update(listing.unread)
        return state


def _listing(folder: Folder, inner: list[Folder], state: WalkState) -> Listing:
    return Listing(
        folder,
        frozenset(each.disk for each in inner),
        tuple(state.files),
        tuple(state.blockless),
        frozenset(state.devices),
        tuple(state.skipped),
        tuple(state.excluded),
        frozenset(state.unreadable),
        tuple(state.warnings),
        dict(state.unread),
        state.links,
        frozenset(state.shared),
    )
