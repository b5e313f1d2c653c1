"""Rewalk: a walk that is remembered, so that only what may be another is listed again.

For whoever hears of changes as they happen. What it was told of, and nothing else, is looked at:

    something in a folder    that folder is listed again
    a folder itself          the one above it, and everything in it anew
    an ignore file           everything: it decides about whatever lies below it
    a link, something that   its folder, each time: what becomes of it may happen elsewhere
    could not be read
    a folder nobody hears    that folder, each time
    a second name of a file  everything, when it is first seen: the first may be anywhere

The outcome is that of `walk` itself, to the letter, as long as every change was told: listing and
sorting out are walk.py's, done folder by folder. What nobody can tell of is a name that a note is
given outside the vault, and what is then written through it. Knows no events, and nothing of what
is indexed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ragvault.config import settings as config
from ragvault.notes.ignore import Layers
from ragvault.notes.walk import Folder, Walk, Walked, begin, finish, visit
from ragvault.types import File, Skipped


class Part(NamedTuple):
    """One folder as it was listed, what is in folders of its own left out."""

    folder: Folder
    inner: frozenset[str]  # `disk` of the folders in it
    files: tuple[File, ...]
    blockless: tuple[tuple[int, File], ...]
    devices: frozenset[int]
    skipped: tuple[Skipped, ...]
    ignored: int
    unreadable: frozenset[str]
    warnings: tuple[str, ...]
    links: int
    shared: frozenset[tuple[int, int]]

    @property
    def is_unsure(self) -> bool:
        """Whether it may be another without anything happening in it."""
        odd = self.links or self.shared or self.unreadable or self.blockless or self.warnings
        return bool(odd)


@dataclass(slots=True)
class Told:
    """What may be another; folders as `disk` of a Folder is, and "" is the vault itself."""

    everything: bool = False
    listed: set[str] = field(default_factory=set)
    anew: set[str] = field(default_factory=set)


class Rewalk:
    """The walk of one vault, again and again. Told and asked by any thread.

    `heard` says of which folders changes are told, as `disk` of a Folder is; None is all of them.
    """

    def __init__(self, root: Path, settings: config.Walk) -> None:
        self._root, self.settings = root, settings
        self._parts: dict[str, Part] = {}
        self._walked: Walked | None = None
        self.heard: Callable[[], frozenset[str]] | None = None
        self._base: tuple[Layers, tuple[str, ...]] | None = None
        self._more_shared = False
        self._rules: frozenset[str] = frozenset()
        self._told = Told(everything=True)
        self._telling, self._walking = threading.Lock(), threading.Lock()

    def tell(self, path: str, folder: bool = False) -> None:
        """Something happened to this path, relative to the vault and as the disk has it.

        "" is the vault itself: nothing is known about it any more.
        """
        above, _, name = path.rpartition("/")
        with self._telling:
            self._told.everything |= not path or name in self._rules
            self._told.listed.add(f"{above}/" if above else "")
            if folder:
                self._told.anew.add(f"{path}/")

    @property
    def folders(self) -> int:
        """How many folders were listed, the vault itself included: all but the ignored ones."""
        return len(self._parts)

    def unheard(self) -> frozenset[str] | None:
        """Folders that can be listed and are not heard; None while it cannot be said.

        The rules of now let them in, and those of the one who listens did not.
        """
        if self.heard is None:
            return frozenset()
        with self._walking:
            heard = self.heard()
            with self._telling:
                if self._told != Told():
                    return None
            return frozenset(
                disk
                for disk in self._parts.keys() - heard
                if self._parts[disk].folder.path not in self._parts[disk].unreadable
            )

    def walk(self) -> Walked:
        """What `walk` finds; the very same object while nothing is another. Raises as it does."""
        with self._walking:
            with self._telling:
                told, self._told = self._told, Told()
            try:
                return self._look(told)
            except BaseException:
                self.tell("")
                raise

    def _look(self, told: Told) -> Walked:
        state, top = begin(self._root, self.settings)
        base = (top.layers, tuple(state.warnings))  # the list itself will have every folder's
        if told.everything or self._walked is None or base != self._base:
            self._base, self._rules = base, state.ignore_files
            self._list_all(top, state)
        else:
            self._more_shared = False
            self._list_each(self._doubtful(told), state)
            if self._more_shared:
                self._list_all(top, state)
        if self._walked is None:
            self._walked = finish(self._joined(state))
        return self._walked

    def _list_all(self, top: Folder, state: Walk) -> None:
        self._parts, self._walked = {}, None
        self._list_each([top], state)

    def _list_each(self, todo: list[Folder], state: Walk) -> None:
        while todo:
            todo.extend(self._list(todo.pop(), state))

    def _doubtful(self, told: Told) -> list[Folder]:
        """The folders to list: those told of, as far as they are known, and those never sure."""
        for folder in told.anew:
            self._forget(folder)
        wanted = {self._nearest(folder) for folder in told.listed}
        wanted.update(disk for disk, part in self._parts.items() if part.is_unsure)
        if self.heard is not None:
            wanted.update(self._parts.keys() - self.heard())
        return [self._parts[disk].folder for disk in sorted(wanted)]

    def _nearest(self, folder: str) -> str:
        """The folder itself, or the one above it that is known: it will show what is in it."""
        while folder and folder not in self._parts:
            folder = folder[: folder.rstrip("/").rfind("/") + 1]
        return folder

    def _list(self, folder: Folder, whole: Walk) -> list[Folder]:
        """List one folder; returns the folders in it that are not known."""
        state = Walk(whole.root, whole.extensions, whole.max_bytes, whole.ignore_files)
        inner = list(visit(state, folder))
        was = self._parts.get(folder.disk)
        now = _part(folder, inner, state)
        if now != was:
            self._walked = None
            self._parts[folder.disk] = now
            for gone in was.inner - now.inner if was else ():
                self._forget(gone)
            self._more_shared |= bool(now.shared - was.shared if was else now.shared)
        for each in inner:  # other rules than it was listed by
            if each.disk in self._parts and self._parts[each.disk].folder != each:
                self._forget(each.disk)
        return [each for each in inner if each.disk not in self._parts]

    def _forget(self, folder: str) -> None:
        """A folder, with what is in it: its listing says nothing any more."""
        todo = [folder]
        while todo:
            part = self._parts.pop(todo.pop(), None)
            if part is not None:
                self._walked = None
                todo.extend(part.inner)

    def _joined(self, state: Walk) -> Walk:
        """Every folder's part in one walk."""
        for part in self._parts.values():
            state.files.extend(part.files)
            state.blockless.extend(part.blockless)
            state.devices.update(part.devices)
            state.skipped.extend(part.skipped)
            state.ignored += part.ignored
            state.unreadable.update(part.unreadable)
            state.warnings.extend(part.warnings)
        return state


def _part(folder: Folder, inner: list[Folder], state: Walk) -> Part:
    return Part(
        folder,
        frozenset(each.disk for each in inner),
        tuple(state.files),
        tuple(state.blockless),
        frozenset(state.devices),
        tuple(state.skipped),
        state.ignored,
        frozenset(state.unreadable),
        tuple(state.warnings),
        state.links,
        frozenset(state.shared),
    )
