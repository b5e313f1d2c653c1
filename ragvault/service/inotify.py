"""Inotify: a watchdog emitter that watches the folders it is told to, and no others.

watchdog's own emitter watches every folder below the vault, so that a node_modules or a .git can
take thousands of the watches a user has; it does not watch a folder that is moved in from outside,
and passes over the kernel's word that events were lost. This one asks `enters` about each folder
before it watches it, and says so to `forget` when one came or went: its rules may be others.
Everything above it (threads, queue, handlers) is watchdog's.

    a folder appears      it is watched, with what is in it; so is one with other permissions
    a folder is renamed   what was watched below it is watched anew under its name
    events were lost      the vault itself is reported, so that it is looked through
    the vault is gone     it ends: a folder made there again has no watch, and may look the same
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileSystemEvent,
)
from watchdog.observers.api import EventEmitter, EventQueue, ObservedWatch
from watchdog.observers.inotify_c import (
    InotifyConstants as In,
)
from watchdog.observers.inotify_c import (
    inotify_add_watch,
    inotify_init,
    inotify_rm_watch,
)

APPEARED = In.IN_CREATE | In.IN_MOVED_TO
GONE = In.IN_DELETE | In.IN_MOVED_FROM
CHANGED = In.IN_MODIFY | In.IN_CLOSE_WRITE | In.IN_ATTRIB
MASK = APPEARED | GONE | CHANGED | In.IN_ONLYDIR | In.IN_DONT_FOLLOW | In.IN_EXCL_UNLINK
HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name
BUFFER = 1 << 18  # bytes: some thousand events at once


class Told(NamedTuple):
    """One event as the kernel tells it."""

    watch: int
    mask: int
    name: bytes


class PrunedEmitter(EventEmitter):
    """Reports what happens in the folders that `enters` lets in. Raises OSError on starting."""

    def __init__(
        self,
        event_queue: EventQueue,
        watch: ObservedWatch,
        *,
        timeout: float = 1.0,
        event_filter: list[type[FileSystemEvent]] | None = None,
        enters: Callable[[str], bool],
        forget: Callable[[str], None],
    ) -> None:
        super().__init__(event_queue, watch, timeout=timeout, event_filter=event_filter)
        self._enters, self._forget = enters, forget
        self._root = os.fsencode(watch.path)
        self._fd = self._hangup = self._line = -1
        self._paths: dict[int, bytes] = {}
        self._turn = 0  # counts up whenever they are others
        self._heard: tuple[int, frozenset[str]] = (-1, frozenset())
        self._passing = False  # read from the kernel, and not yet handed on
        self.failed: OSError | None = None  # why it ended by itself

    @property
    def folders(self) -> int:
        """How many folders are watched."""
        return len(self._paths)

    @property
    def heard(self) -> frozenset[str]:
        """The folders that are watched, relative to the vault and with a `/`; "" is the vault."""
        turn = self._turn  # first: what our thread changes meanwhile makes this one of the past
        if self._heard[0] != turn:
            inside = (self._relative(path) for path in self._paths.copy().values())
            self._heard = turn, frozenset(f"{path}/" if path else "" for path in inside)
        return self._heard[1]

    @property
    def has_told_all(self) -> bool:
        """Whether everything that has happened by now was handed on, and dealt with.

        The kernel knows of a change before whoever made it goes on. Asked in the order in which a
        change travels, so that none can slip past.
        """
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        unread = poller.poll(0)
        return not unread and not self._passing and not self._event_queue.unfinished_tasks

    def on_thread_start(self) -> None:
        self._fd = inotify_init()
        if self._fd == -1:
            raise _refused(b"")
        os.set_inheritable(self._fd, False)
        self._hangup, self._line = os.pipe()
        try:
            for _ in self._add_all(self._root):
                pass
        except OSError:
            self._close()
            raise

    def on_thread_stop(self) -> None:
        """Wake the thread: the other end of the pipe is closed."""
        line, self._line = self._line, -1
        if line >= 0:
            os.close(line)

    def run(self) -> None:
        """Until it is stopped, or the kernel refuses."""
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        poller.register(self._hangup, select.POLLIN)
        try:
            while self.should_keep_running():
                if any(ready == self._fd for ready, _ in poller.poll()):
                    self._passing = True  # before it is read
                    for event in self._events():
                        self.queue_event(event)
                    self._passing = False
        except OSError as error:
            self.failed = error
        finally:
            self._close()

    def _close(self) -> None:
        os.close(self._fd)  # and with it every watch
        os.close(self._hangup)

    def _events(self) -> Iterator[FileSystemEvent]:
        for told in _parsed(os.read(self._fd, BUFFER)):
            if told.mask & In.IN_Q_OVERFLOW:
                yield FileModifiedEvent(os.fsdecode(self._root))
            elif told.mask & In.IN_IGNORED:
                gone = self._paths.pop(told.watch, b"")
                self._turn += 1
                if gone == self._root:
                    raise FileNotFoundError(errno.ENOENT, "the vault's folder was taken away")
            elif told.watch in self._paths and told.name:
                yield from self._event(told, self._paths[told.watch] + b"/" + told.name)

    def _event(self, told: Told, path: bytes) -> Iterator[FileSystemEvent]:
        name: Any = os.fsdecode(path)
        if told.mask & In.IN_ISDIR:
            self._forget(self._relative(path))
        if not told.mask & In.IN_ISDIR:
            made, gone = told.mask & APPEARED, told.mask & GONE
            yield (FileCreatedEvent if made else FileDeletedEvent if gone else FileModifiedEvent)(
                name
            )
        elif told.mask & (APPEARED | In.IN_ATTRIB):  # also one that may be entered only now
            yield DirCreatedEvent(name)
            yield from self._add_all(path)
        elif told.mask & GONE:
            self._drop_all(path)
            yield DirDeletedEvent(name)

    def _add_all(self, top: bytes) -> Iterator[FileSystemEvent]:
        """Watch a folder and those in it; yields what is in them: it may have come before us."""
        todo = [top]
        while todo:
            folder = todo.pop()
            if not self._enters(self._relative(folder)) or not self._add(folder):
                continue
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
                        else:
                            yield FileCreatedEvent(os.fsdecode(entry.path))
            except OSError:
                continue  # gone, or closed to us: the walk says so

    def _add(self, folder: bytes) -> bool:
        watch = inotify_add_watch(self._fd, folder, MASK)
        if watch >= 0:
            self._paths[watch] = folder
            self._turn += 1
            return True
        error = _refused(folder)
        if error.errno in (errno.ENOSPC, errno.ENOMEM) or folder == self._root:
            raise error
        return False  # it is gone again, or may not be read

    def _drop_all(self, top: bytes) -> None:
        """A folder that was moved away takes its watches with it: they would tell old names."""
        below = top + b"/"
        for watch, path in list(self._paths.items()):
            if path == top or path.startswith(below):
                del self._paths[watch]
                self._turn += 1
                inotify_rm_watch(self._fd, watch)

    def _relative(self, folder: bytes) -> str:
        return os.fsdecode(folder[len(self._root) :].lstrip(b"/"))


def _parsed(read: bytes) -> Iterator[Told]:
    at = 0
    while at < len(read):
        watch, mask, _, length = HEAD.unpack_from(read, at)
        at += HEAD.size
        yield Told(watch, mask, read[at : at + length].rstrip(b"\0"))
        at += length


def _refused(folder: bytes) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), os.fsdecode(folder))
