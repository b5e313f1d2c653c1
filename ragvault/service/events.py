"""How the watcher learns that a vault may have changed.

    PathFilter     which paths can affect the index
    NativeEvents   watchdog: inotify (inotify.py), FSEvents, ReadDirectoryChangesW
    Poller         compares sizes and times now and then, where events are missing or got lost
    network_mount  whether a folder is on a network file system, which sends no events

An event only says where the vault may have changed. What has changed is found by the walk at the
start of every update, so the number and the order of events do not matter. Where the system either
delivers every event or reports that some were lost, only the named places need be walked.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from ragvault.config.load import VAULT_FILE
from ragvault.config.settings import Walk
from ragvault.errors import RagvaultError
from ragvault.notes.ignore import Layers, base_layers, ignore_files, with_file
from ragvault.notes.walk import walk

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

LIMITS = {
    errno.ENOSPC: "the limit of inotify watches is reached "
    "(raise it: sysctl fs.inotify.max_user_watches=524288)",
    errno.EMFILE: "the limit of inotify instances is reached "
    "(raise it: sysctl fs.inotify.max_user_instances=512)",
}
CHANGES = ("created", "deleted", "modified", "moved", "closed")
POLLING_SHARE = 100  # polling takes at most one part in so many of the time
MOUNT_TABLE = Path("/proc/self/mountinfo")
NETWORK_FILE_SYSTEMS = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre"),
        *("ncpfs", "davfs", "vboxsf", "vmhgfs", "drvfs", "virtiofs", "fuse.sshfs", "fuse.rclone"),
        *("fuse.s3fs", "fuse.gvfsd-fuse", "fuse.glusterfs", "fuse.vmhgfs-fuse", "fuse.davfs2"),
    )
)


# --- which paths matter ---


class PathFilter:
    """Says which paths of a vault can affect its index, by the same rules as the walk.

    Ignored folders are not even listened to. The rules of a folder are read once, and again after
    `forget_rules`. Paths are relative to the vault and spelled as on disk. Safe for threads.
    """

    def __init__(self, root: Path, settings: Walk) -> None:
        self._root, self._settings = str(root), settings
        self._extensions = tuple(extension.lower() for extension in settings.extensions)
        self._rule_files = ignore_files(settings)
        self._layers_of: dict[str, Layers | None] = {}
        self._lock = threading.Lock()

    def includes_folder(self, folder: str) -> bool:
        """Whether notes in this folder are indexed; "" is the vault itself."""
        with self._lock:
            return self._layers(folder) is not None

    def is_relevant(self, path: str, *, is_folder: bool) -> bool:
        """Whether a change at this path can change the index."""
        parent, _, disk_name = path.rpartition("/")
        with self._lock:
            layers = self._layers(parent)
            if layers is None:
                return False
            if disk_name in self._rule_files or path == VAULT_FILE:
                return True
            name = _without_icloud_stub(normalize("NFC", disk_name))
            if not is_folder and not name.lower().endswith(self._extensions):
                return False
            path = _joined(normalize("NFC", parent), name)
            return not layers.ignore(path, name, folder=is_folder)

    def is_rule_file(self, path: str) -> bool:
        """Whether this file decides which paths are relevant."""
        return path.rpartition("/")[2] in self._rule_files or path == VAULT_FILE

    def forget_rules(self, folder: str = "") -> None:
        """Read the rules of this folder and those below again; "" is the vault itself."""
        with self._lock:
            for each in list(self._layers_of):
                if not folder or each == folder or each.startswith(f"{folder}/"):
                    del self._layers_of[each]

    def _layers(self, folder: str) -> Layers | None:
        """The rules inside a folder; None for an ignored folder."""
        if folder not in self._layers_of:
            self._layers_of[folder] = self._read_layers(folder)
        return self._layers_of[folder]

    def _read_layers(self, folder: str) -> Layers | None:
        if not folder:
            return self._with_rule_files(base_layers(self._root, self._settings)[0], "")
        parent, _, disk_name = folder.rpartition("/")
        layers, name = self._layers(parent), normalize("NFC", disk_name)
        if layers is None:
            return None
        if layers.ignore(_joined(normalize("NFC", parent), name), name, folder=True):
            return None
        return self._with_rule_files(layers, folder)

    def _with_rule_files(self, layers: Layers, folder: str) -> Layers:
        inside = f"{normalize('NFC', folder)}/" if folder else ""
        for name in sorted(self._rule_files):
            file = Path(self._root, folder, name)
            if os.path.lexists(file):
                try:
                    layers = with_file(layers, file, inside)
                except OSError:
                    continue  # the walk reports it
        return layers


def _without_icloud_stub(name: str) -> str:
    """`.Note.md.icloud`, which iCloud leaves of a note that it moved to the cloud: `Note.md`."""
    is_stub = name.startswith(".") and name.endswith(".icloud")
    return name[1 : -len(".icloud")] if is_stub else name


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


# --- native events ---


class NoNativeEvents(Exception):
    """Native events are not available; the message is the reason, for the user."""


class NativeEvents:
    """Listens to one vault until `close`; raises NoNativeEvents if that is not possible.

    Calls `on_change` when a relevant path has changed. Before that, and for irrelevant paths too,
    it calls `on_path` with the path inside the vault ("" is all of it) and whether it is a folder.
    Both are called in a thread of its own.
    """

    def __init__(
        self,
        root: Path,
        path_filter: PathFilter,
        on_change: Callable[[], None],
        on_path: Callable[[str, bool], None] = lambda *_: None,
    ) -> None:
        self._root, self._filter = str(root), path_filter
        self._on_change, self._on_path = on_change, on_path
        self.rules_changed = False  # other folders may have to be listened to
        mount = network_mount(root)
        if mount:
            raise NoNativeEvents(
                f"the vault is on, or contains, a network file system ({mount}), "
                "which sends no events"
            )
        try:
            self._observer = _observer(path_filter)
            self._emitter = self._start()
        except (OSError, ImportError) as error:
            raise NoNativeEvents(_reason(error)) from error

    def _start(self) -> Any:
        from watchdog.events import FileSystemEventHandler

        handler = FileSystemEventHandler()
        handler.on_any_event = self._handle  # type: ignore[method-assign]
        self._observer.schedule(handler, self._root, recursive=True)
        self._observer.start()
        return next(iter(self._observer.emitters))

    @property
    def failure(self) -> str:
        """Why it stopped listening by itself; empty while it listens."""
        if self._emitter.is_alive():
            return ""
        failed = getattr(self._emitter, "failed", None)
        return _reason(failed) if failed else "the system stopped sending events"

    @property
    def is_lossless(self) -> bool:
        """Whether every change is delivered or its loss reported: only our own emitter does so."""
        return hasattr(self._emitter, "is_drained")

    def is_drained(self, seconds: float) -> bool:
        """Whether all events so far were handled, or are within so many seconds."""
        end = time.monotonic() + seconds
        while self.is_lossless and not self.failure:
            if self._emitter.is_drained:
                return True
            if time.monotonic() > end:
                break
            time.sleep(0.001)
        return False

    @property
    def watched_folders(self) -> Callable[[], frozenset[str]] | None:
        """Returns the folders it listens to; None if it listens to all of them."""
        return (lambda: self._emitter.watched_folders) if self.is_lossless else None

    def close(self) -> None:
        self._observer.stop()
        self._observer.join(timeout=5)

    def _handle(self, event: Any) -> None:
        if event.event_type not in CHANGES:
            return
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        relevant = [self._handle_path(path, event) for path in paths]  # a list: handle every path
        if any(relevant):
            self._on_change()

    def _handle_path(self, path: str, event: Any) -> bool:
        """Report the path; returns whether it is relevant."""
        inside = os.path.relpath(path, self._root).replace(os.sep, "/")
        self._on_path("" if inside == "." else inside, event.is_directory)
        if inside == ".":
            # Our emitter reports lost events as a change of the vault itself, as if it were a
            # file. Other emitters report the vault as a folder when something in it changed.
            return not event.is_directory or event.event_type != "modified"
        if event.is_directory and event.event_type == "modified":
            return False  # what changed in it has an event of its own
        if self._filter.is_rule_file(inside):
            self._filter.forget_rules()
            self.rules_changed = True
        # Windows does not report whether what was deleted was a folder.
        deleted = sys.platform == "win32" and event.event_type == "deleted"
        return self._filter.is_relevant(inside, is_folder=event.is_directory or deleted)


def _observer(path_filter: PathFilter) -> BaseObserver:
    if sys.platform.startswith("linux"):
        from watchdog.observers.api import BaseObserver as Base

        from ragvault.service.inotify import PrunedEmitter

        emitter = partial(
            PrunedEmitter,
            includes_folder=path_filter.includes_folder,
            forget_rules=path_filter.forget_rules,
        )
        return Base(emitter)  # type: ignore[arg-type]
    from watchdog.observers import Observer

    observer: BaseObserver = Observer()
    return observer


def _reason(error: Exception) -> str:
    code = getattr(error, "errno", None)
    return LIMITS.get(code or 0) or f"the system refuses to send events ({error})"


# --- polling ---


class Poller:
    """Says whether the notes of a vault have changed since it last looked.

    It walks the vault and remembers paths, sizes and times as one hash.
    """

    def __init__(self, root: Path, settings: Walk) -> None:
        self._root, self._settings = root, settings
        self._digest = b""
        self._took = 0.0  # seconds

    def has_changed(self) -> bool:
        """True the first time. False for a vault that is unavailable."""
        began = time.perf_counter()
        try:
            digest = self._compute_digest()
        except RagvaultError:
            return False
        self._took = time.perf_counter() - began
        before, self._digest = self._digest, digest
        return digest != before

    def pause(self, least: float) -> float:
        """Seconds until the next look: `least`, or more where looking takes long."""
        return max(least, self._took * POLLING_SHARE)

    def _compute_digest(self) -> bytes:
        digest = blake2b(digest_size=16)
        walked = walk(self._root, self._settings)
        for file in walked.files:
            digest.update(f"{file.disk}\0{file.size}\0{file.mtime_ns}\n".encode(errors="replace"))
        for path in sorted(walked.unreadable):
            digest.update(f"{path}\0".encode(errors="replace"))
        return digest.digest()


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
