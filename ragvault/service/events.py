"""How the watcher hears of changes in a folder: watchdog's Observer, where the system sends events.

    Listener        hears of everything that happens in a folder and below it
    network_mount   whether a folder is on a network file system, which sends no events

watchdog watches every folder, also those that are ignored, and needs one of the system's watches
for each. What it knows of folders can become wrong: on Linux it does not watch a folder that was
moved in, and it does not report that the system lost events. So whoever listens begins again with a
new Listener when something happened to a folder, or when more happened than a queue can hold.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

# Not what happens to a folder when something in it does, and not that a file was read.
CHANGES: list[type[FileSystemEvent]] = [
    *(FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent),
    *(DirCreatedEvent, DirDeletedEvent, DirMovedEvent),
]
LIMITS = {
    errno.ENOSPC: "the limit of inotify watches is reached "
    "(raise it: sysctl fs.inotify.max_user_watches=524288)",
    errno.EMFILE: "the limit of inotify instances is reached "
    "(raise it: sysctl fs.inotify.max_user_instances=512)",
}
DESCRIPTORS = Path("/proc/self/fd")
MOUNT_TABLE = Path("/proc/self/mountinfo")
NETWORK_FILE_SYSTEMS = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre"),
        *("ncpfs", "davfs", "vboxsf", "vmhgfs", "drvfs", "virtiofs", "fuse.sshfs", "fuse.rclone"),
        *("fuse.s3fs", "fuse.gvfsd-fuse", "fuse.glusterfs", "fuse.vmhgfs-fuse", "fuse.davfs2"),
    )
)


class NoEvents(Exception):
    """The system sends no events; the message is the reason, for the user."""


class Listener(FileSystemEventHandler):
    """Hears of changes in a folder from now on, until `close`. Raises NoEvents.

    Calls `heard`, in a thread of its own, with each path that changed and whether it is a folder.
    The path is relative to the folder, with `/`, and "" for the folder itself.
    """

    def __init__(self, root: Path, heard: Callable[[str, bool], None]) -> None:
        self._root, self._heard = str(root), heard
        if mount := network_mount(root):
            raise NoEvents(
                f"the vault is on, or contains, a network file system ({mount}), "
                "which sends no events"
            )
        before, descriptors = set(threading.enumerate()), _inotify_descriptors()
        self._observer = Observer()
        self._observer.schedule(self, self._root, recursive=True, event_filter=CHANGES)
        try:
            self._observer.start()
        except OSError as error:
            for left_open in _inotify_descriptors() - descriptors:
                os.close(left_open)  # or its watches stay in use, and other programs get none
            refused = f"the system refuses to send events ({error})"
            raise NoEvents(LIMITS.get(error.errno or 0, refused)) from error
        self._threads = set(threading.enumerate()) - before

    @property
    def is_alive(self) -> bool:
        """Whether all threads still run: one ends when the folder is deleted, or by an error."""
        return all(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        self._observer.stop()
        self._observer.join(timeout=5)

    def on_any_event(self, event: FileSystemEvent) -> None:
        # Windows does not report whether what was deleted was a folder.
        unknown = sys.platform == "win32" and event.event_type == "deleted"
        for path in (event.src_path, event.dest_path):
            if not path:
                continue
            inside = os.path.relpath(os.fsdecode(path), self._root).replace(os.sep, "/")
            self._heard("" if inside == "." else inside, event.is_directory or unknown)


def _inotify_descriptors() -> set[int]:
    """The open inotify descriptors of this process; none on other systems than Linux."""
    links = DESCRIPTORS.iterdir() if sys.platform == "linux" else ()
    return {int(each.name) for each in links if each.resolve().name == "anon_inode:inotify"}


# --- network mounts ---


def network_mount(folder: Path, table: Path = MOUNT_TABLE) -> str:
    """The type of network file system that a folder is on or contains; empty if none is known."""
    if str(folder).startswith("\\\\"):
        return "a Windows share"
    try:
        lines = table.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    mounts, folder = _mounts(lines), folder.resolve()
    above = [point for point in mounts if folder.is_relative_to(point)]
    nearest = sorted(above, key=lambda point: len(point.parts))[-1:]
    below = [point for point in mounts if point != folder and point.is_relative_to(folder)]
    types = [mounts[point] for point in (*nearest, *below)]
    return next((each for each in types if each in NETWORK_FILE_SYSTEMS), "")


def _mounts(lines: list[str]) -> dict[Path, str]:
    """The type of file system at each mount point; the last one mounted there counts."""
    mounts: dict[Path, str] = {}
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, types = left.split(), right.split()
        if len(fields) >= 5 and types:
            mounts[Path(_unescaped(fields[4]))] = types[0]
    return mounts


def _unescaped(field: str) -> str:
    """The mount table writes spaces and the like as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
