"""A watchdog emitter for inotify that watches only the folders that are not ignored.

watchdog's own emitter watches every folder below the vault, so a node_modules or a .git can use up
thousands of the user's watches. It does not watch a folder that is moved in from outside, and
ignores the kernel's report that events were lost. This one asks `includes_folder` before it watches
a folder, and calls `forget_rules` when a folder appeared or disappeared, because its rules may
differ. Threads, queue and handlers are watchdog's.

    a folder appears      it is watched with its subfolders; also one whose permissions changed
    a folder is renamed   its subfolders are watched again under the new name
    events were lost      the vault itself is reported as changed, so that all of it is walked
    the vault is gone     the emitter ends: a new folder there may have the same inode, but no watch
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
EVENT_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name
BUFFER = 1 << 18  # bytes: some thousand events at once


class RawEvent(NamedTuple):
    """One event as the kernel reports it."""

    watch: int
    mask: int
    name: bytes


class PrunedEmitter(EventEmitter):
    """Reports changes in folders for which `includes_folder` is true. Starting raises OSError."""

    def __init__(
        self,
        event_queue: EventQueue,
        watch: ObservedWatch,
        *,
        timeout: float = 1.0,
        event_filter: list[type[FileSystemEvent]] | None = None,
        includes_folder: Callable[[str], bool],
        forget_rules: Callable[[str], None],
    ) -> None:
        super().__init__(event_queue, watch, timeout=timeout, event_filter=event_filter)
        self._includes_folder, self._forget_rules = includes_folder, forget_rules
        self._root = os.fsencode(watch.path)
        self._fd = self._stop_reader = self._stop_writer = -1
        self._paths: dict[int, bytes] = {}
        self._paths_version = 0  # incremented whenever _paths changes
        self._folders: tuple[int, frozenset[str]] = (-1, frozenset())  # of that version
        self._is_queueing = False  # events were read from the kernel and are not queued yet
        self.failed: OSError | None = None  # why it ended by itself

    @property
    def watched_folders(self) -> frozenset[str]:
        """The watched folders, relative to the vault and ending in `/`; "" is the vault."""
        version = self._paths_version  # read first: our thread may change the paths meanwhile
        if self._folders[0] != version:
            inside = (self._relative(path) for path in self._paths.copy().values())
            self._folders = version, frozenset(f"{path}/" if path else "" for path in inside)
        return self._folders[1]

    @property
    def is_drained(self) -> bool:
        """Whether all changes so far have been reported and handled.

        The kernel queues an event before the change returns to whoever made it. The stages are
        checked in the order in which an event passes them, so that none is missed.
        """
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        unread = poller.poll(0)
        return not unread and not self._is_queueing and not self._event_queue.unfinished_tasks

    def on_thread_start(self) -> None:
        self._fd = inotify_init()
        if self._fd == -1:
            raise _last_error(b"")
        os.set_inheritable(self._fd, False)
        self._stop_reader, self._stop_writer = os.pipe()
        try:
            for _ in self._add_all(self._root):
                pass
        except OSError:
            self._close()
            raise

    def on_thread_stop(self) -> None:
        """Wake the thread by closing its pipe."""
        writer, self._stop_writer = self._stop_writer, -1
        if writer >= 0:
            os.close(writer)

    def run(self) -> None:
        """Report events until it is stopped or the kernel refuses."""
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        poller.register(self._stop_reader, select.POLLIN)
        try:
            while self.should_keep_running():
                if any(ready == self._fd for ready, _ in poller.poll()):
                    self._is_queueing = True  # before they are read
                    for event in self._events():
                        self.queue_event(event)
                    self._is_queueing = False
        except OSError as error:
            self.failed = error
        finally:
            self._close()

    def _close(self) -> None:
        os.close(self._fd)  # this ends every watch
        os.close(self._stop_reader)

    def _events(self) -> Iterator[FileSystemEvent]:
        for raw in _parsed(os.read(self._fd, BUFFER)):
            if raw.mask & In.IN_Q_OVERFLOW:
                yield FileModifiedEvent(os.fsdecode(self._root))
            elif raw.mask & In.IN_IGNORED:
                gone = self._paths.pop(raw.watch, b"")
                self._paths_version += 1
                if gone == self._root:
                    raise FileNotFoundError(errno.ENOENT, "the vault's folder was removed")
            elif raw.watch in self._paths and raw.name:
                yield from self._event(raw, self._paths[raw.watch] + b"/" + raw.name)

    def _event(self, raw: RawEvent, path: bytes) -> Iterator[FileSystemEvent]:
        name: Any = os.fsdecode(path)
        if not raw.mask & In.IN_ISDIR:
            if raw.mask & APPEARED:
                yield FileCreatedEvent(name)
            elif raw.mask & GONE:
                yield FileDeletedEvent(name)
            else:
                yield FileModifiedEvent(name)
            return
        self._forget_rules(self._relative(path))
        if raw.mask & (APPEARED | In.IN_ATTRIB):  # IN_ATTRIB: it may have become readable
            yield DirCreatedEvent(name)
            yield from self._add_all(path)
        elif raw.mask & GONE:
            self._drop_all(path)
            yield DirDeletedEvent(name)

    def _add_all(self, top: bytes) -> Iterator[FileSystemEvent]:
        """Watch a folder and its subfolders; yields their files: they may predate the watch."""
        todo = [top]
        while todo:
            folder = todo.pop()
            if not self._includes_folder(self._relative(folder)) or not self._add(folder):
                continue
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
                        else:
                            yield FileCreatedEvent(os.fsdecode(entry.path))
            except OSError:
                continue  # gone or unreadable: the walk reports it

    def _add(self, folder: bytes) -> bool:
        watch = inotify_add_watch(self._fd, folder, MASK)
        if watch >= 0:
            self._paths[watch] = folder
            self._paths_version += 1
            return True
        error = _last_error(folder)
        if error.errno in (errno.ENOSPC, errno.ENOMEM) or folder == self._root:
            raise error
        return False  # gone again, or unreadable

    def _drop_all(self, top: bytes) -> None:
        """Stop watching a folder that was moved away: its watches would report old names."""
        below = top + b"/"
        for watch, path in list(self._paths.items()):
            if path == top or path.startswith(below):
                del self._paths[watch]
                self._paths_version += 1
                inotify_rm_watch(self._fd, watch)

    def _relative(self, folder: bytes) -> str:
        return os.fsdecode(folder[len(self._root) :].lstrip(b"/"))


def _parsed(read: bytes) -> Iterator[RawEvent]:
    at = 0
    while at < len(read):
        watch, mask, _, length = EVENT_HEAD.unpack_from(read, at)
        at += EVENT_HEAD.size
        yield RawEvent(watch, mask, read[at : at + length].rstrip(b"\0"))
        at += length


def _last_error(folder: bytes) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), os.fsdecode(folder))
