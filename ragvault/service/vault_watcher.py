"""One vault kept up to date: what changed in it, when to index it, and how.

    check           notice what no event reports: a folder that is gone or back, lost events
    update          make changes searchable: words, and vectors of the tier that answers
    finish          compute communities and full vectors, and compact; can be interrupted
    Listener        hears of everything that happens in a folder: watchdog's Observer
    network_mount   whether a folder is on a network file system, which sends no events

An event names a file, and that file is compared with the index. At the start, after an event of a
folder, and whenever something may have been missed, the whole vault is: then the watcher listens
anew, and walks. Where the system sends no events it compares the whole vault now and then.

watchdog watches every folder, also those that are ignored, and needs one of the system's watches
for each. What it knows of folders can become wrong: on Linux it does not watch a folder that was
moved in, and it does not report that the system lost events. So a new Listener begins when
something happened to a folder, or when more happened than a queue can hold.

The caller decides when, in one thread. Nothing here knows the other vaults or the socket.
"""

from __future__ import annotations

import errno
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unicodedata import normalize

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

from ragvault.config.load import VAULT_FILE
from ragvault.config.settings import Config
from ragvault.errors import ConfigError, IndexLocked, RagvaultError, VaultEmptied
from ragvault.models.load import ModelPool
from ragvault.notes.diff import is_hidden
from ragvault.notes.ignore import ignore_files
from ragvault.notes.walk import Walked, walk
from ragvault.ports import Interrupted, InterruptingProgress, Progress
from ragvault.service.process import describe_unexpected
from ragvault.types import Tier
from ragvault.update.freshness import folder_error, waiting
from ragvault.update.graph import REGROUP
from ragvault.update.notes import Report
from ragvault.vault import Vault

PATIENCE = 5.0  # seconds of steady changes, after which they are indexed
COMPARE_EVERY = 300.0  # seconds between two comparisons of the whole vault, if events are sent
POLL_EVERY = 2.0  # and if none are; less often in a large vault
RETRY_SOON = 1.0  # seconds until the next try after an error that somebody is about to end
RETRY_LATER = 30.0  # and after any other
EMBED_SLICE = 8  # texts: about 0.2 s, the longest that a search or a change waits
# Of an update: the full vectors of many new notes are made by `finish`, which gives way to edits.
EDIT_SECONDS = 2.0
# The system's queue holds 16,384 events: where it lost some, there were more than this.
MANY_EVENTS = 5_000
POLLING_SHARE = 50  # comparing the vault takes at most one part in so many of a processor
SETTINGS_FILES = (VAULT_FILE, ".obsidian/app.json")  # may be in a folder that is ignored
NOTHING = Walked(only=frozenset())


class ChangeBatch:
    """Collects changes, so that many of them become one update. Safe for threads.

    An editor writes a file twice for one save, a sync tool hundreds, a checkout thousands. An
    update is due when nothing has changed for `debounce` seconds, or after PATIENCE seconds of
    steady changes, so that one busy file does not delay the others. The caller passes the time.
    """

    def __init__(self, debounce: float) -> None:
        self.debounce = debounce
        self._paths: set[str] | None = set()  # None: anything may have changed
        self._events = 0
        self._first: float | None = None
        self._last = 0.0
        self._lock = threading.Lock()

    def add(self, now: float, paths: Collection[str] | None) -> None:
        """An event: these paths have changed, if any; None: anything may have."""
        with self._lock:
            self._events += 1
            if self._events > MANY_EVENTS:
                paths = None
            if paths is not None and not paths:
                return
            if paths is None:
                self._paths = None
            elif self._paths is not None:
                self._paths.update(paths)
            self._last = now
            if self._first is None:
                self._first = now

    def due(self, now: float) -> float:
        """Seconds until an update should begin: 0 is now, infinity is never."""
        with self._lock:
            if self._first is None:
                return math.inf
            quiet = self._last + self.debounce
            return max(0.0, min(quiet, self._first + PATIENCE) - now)

    def take(self) -> set[str] | None:
        """What has changed. An update begins: later changes belong to the next batch."""
        with self._lock:
            taken, self._paths = self._paths, set()
            self._first, self._events = None, 0
            return taken

    @property
    def waiting(self) -> bool:
        return self._first is not None


class VaultWatcher:
    """One watched vault. Calls `wake`, from any thread, when there may be work."""

    def __init__(
        self,
        vault: Vault,
        progress: Progress,
        kit: ModelPool,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.vault, self._progress, self._kit, self._wake = vault, progress, kit, wake
        self.batch = ChangeBatch(self.config.watch.debounce)
        self.batch.add(time.monotonic(), None)
        self.unfinished = False  # communities or full vectors are missing, or compaction is due
        self.unavailable = ""  # why the vault cannot be read now
        self.polling_reason = ""  # why there are no native events
        self.last_change = 0.0  # when the last change was indexed, in seconds since 1970
        self.paused = 0  # how many other processes want to write this index now
        self._listener: Listener | None = None
        # Of the last whole walk: folders that are ignored, or cannot be read, and the settings.
        self._ignored: frozenset[str] = frozenset()
        self._closed: frozenset[str] = frozenset()
        self._compared_with: Config | None = None
        self._folder_id: object = None  # of the folder that was listened to
        self._retry_at = 0.0
        self._compare_at = math.inf
        self._reported: set[str] = set()
        self._last_error = ""

    @property
    def root(self) -> Path:
        return self.vault.root

    @property
    def config(self) -> Config:
        return self.vault.settings.config

    # --- what changed ---

    def add_everything(self) -> None:
        """Anything in the vault may have changed."""
        self._retry_at = 0.0  # what failed before may work now
        self.batch.add(time.monotonic(), None)
        self._wake()

    def heard(self, path: str, is_folder: bool) -> None:
        """An event, as a Listener calls it."""
        changed = self._changed_by(normalize("NFC", path), is_folder)
        self.batch.add(time.monotonic(), changed)
        if changed != ():
            self._wake()

    def _changed_by(self, path: str, is_folder: bool) -> Collection[str] | None:
        """The notes that an event at this path may have changed; None: all of them."""
        name = path.rpartition("/")[2]
        if path in SETTINGS_FILES:
            return None
        if is_hidden(f"{path}/" if is_folder else path, self._ignored):
            return ()
        if is_folder or name in ignore_files(self.config.walk):
            return None
        if name.startswith(".") and name.endswith(".icloud"):
            name = name[1 : -len(".icloud")]
            path = path[: path.rfind("/") + 1] + name
        extensions = tuple(extension.lower() for extension in self.config.walk.extensions)
        return (path,) if name.lower().endswith(extensions) else ()

    def check(self) -> None:
        """Called about once a second, and cheap."""
        before, (folder_id, self.unavailable) = self.unavailable, _look_at(self.root)
        if self.unavailable:
            if not before:
                self._report(f"{self.unavailable}; the index stays as it is")
                self.stop_listening()
        elif before:
            self._report("the vault is back")
            self._begin_again()
        elif self.batch.waiting:
            return
        elif folder_id != self._folder_id or (self._listener and not self._listener.is_alive):
            self._begin_again()  # a disk was mounted, a copy restored, or watchdog has failed
        elif any(folder_error(self.root / folder) is None for folder in self._closed):
            self.add_everything()
        elif time.monotonic() >= self._compare_at:
            with self._trying_again(None):
                if self._differs():
                    self.add_everything()

    def _begin_again(self) -> None:
        self.polling_reason = ""  # there may be events now
        self.add_everything()

    def _listen(self) -> None:
        """Listen from now on."""
        self.stop_listening()
        self._folder_id, _ = _look_at(self.root)
        reason = "watch.events is polling" if self.config.watch.events == "polling" else ""
        try:
            self._listener = None if reason else Listener(self.root, self.heard)
        except NoEvents as error:
            reason = str(error)
        if reason:
            self._report_once(f"polling for changes: {reason}")
        self.polling_reason = reason
        self._compare_later()

    def stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _differs(self) -> bool:
        """Whether any file differs from the index."""
        began = time.thread_time()
        with self.vault.catalogue() as catalogue:
            found = any(waiting(self.root, catalogue, self.config))
        self._compare_later(time.thread_time() - began)
        return found

    def _compare_later(self, took: float = 0.0) -> None:
        pause = POLL_EVERY if self.polling_reason else COMPARE_EVERY
        self._compare_at = time.monotonic() + max(pause, took * POLLING_SHARE)

    # --- indexing ---

    def due(self, now: float) -> float:
        """Seconds until `update` should be called; infinity if there is nothing to do."""
        if self.unavailable or self.paused:
            return math.inf
        return max(self.batch.due(now), self._retry_at - now)

    @property
    def can_finish(self) -> bool:
        blocked = self.unavailable or self.paused or time.monotonic() < self._retry_at
        return self.unfinished and not blocked

    def update(self, interrupt: Callable[[], bool]) -> None:
        """Index what changed. Raises Interrupted when `interrupt` returns True."""
        changed = self.batch.take()
        with self._trying_again(changed):
            self.vault = Vault.open(self.root)
            self.batch.debounce = self.config.watch.debounce
            if self.config != self._compared_with:
                changed, self.polling_reason = None, ""
            if changed is None:
                self._ignored = frozenset()  # what happens from now on may be in any folder
                if not self.polling_reason:
                    self._listen()
            walked = walk(self.root, self.config.walk, changed)
            report = self._index("static", walked, interrupt, regroup=math.inf)
            lacks_vectors = self.vault.tier == "full" and (
                report.tier != "full" or self._switches_models()
            )
            self.unfinished = lacks_vectors or report.communities_due or report.compact_due
            if walked.only is None:
                self._ignored, self._compared_with = walked.ignored, self.config
                closed = (path for path in walked.unreadable if path.endswith("/"))
                self._closed = frozenset(closed)
            if report.anything:
                self.last_change = time.time()
                self._report(f"{_counts(report)}, {report.seconds:.1f} s")

    def finish(self, interrupt: Callable[[], bool]) -> None:
        """Make communities and full vectors, then compact. Raises Interrupted as `update` does."""
        with self._trying_again(()):
            report = self._index("full", NOTHING, interrupt, regroup=REGROUP)
            self.unfinished = False
            if report.tier == "full" and report.embedded:
                self._report("all passages are embedded")
            for warning in report.warnings:  # once, not after every edit: a library stays missing
                self._report_once(warning)

    def _switches_models(self) -> bool:
        """Whether another model than the one that answers was chosen for full vectors."""
        with self.vault.catalogue() as catalogue:
            chosen = self.vault.engines().full_model(catalogue)
            return chosen != catalogue.tier_model("full")

    def _index(
        self, at_most: Tier, walked: Walked, interrupt: Callable[[], bool], regroup: float
    ) -> Report:
        progress = InterruptingProgress(interrupt, self._progress.info)
        report = self.vault.index(
            at_most=at_most,
            engines=self.vault.engines(progress=progress, kit=self._kit, slab=EMBED_SLICE),
            walked=walked,
            regroup=regroup,
            postpone_compact=at_most != "full",
            time_limit=math.inf if at_most == "full" else EDIT_SECONDS,
        )
        self._last_error = ""
        return report

    @contextmanager
    def _trying_again(self, changed: Collection[str] | None) -> Iterator[None]:
        """After an error, whatever it is, these changes wait for another try."""
        try:
            yield
        except Exception as error:
            if changed != ():
                self.batch.add(time.monotonic(), changed)
            if isinstance(error, Interrupted):
                raise
            soon = isinstance(error, IndexLocked | ConfigError | VaultEmptied)
            self._retry_at = time.monotonic() + (RETRY_SOON if soon else RETRY_LATER)
            self._report_error(error)

    def _report_error(self, error: Exception) -> None:
        """The same error once, until an update succeeds."""
        line = describe_unexpected(error)
        if isinstance(error, RagvaultError):
            line = f"{error} (fix: {error.fix})"
        if line != self._last_error:
            self._last_error = line
            self._report(line)

    def _report_once(self, line: str) -> None:
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)

    def _report(self, line: str) -> None:
        self._progress.info(f"{self.vault.name}: {line}")


def _counts(report: Report) -> str:
    kinds = ("added", "changed", "moved", "removed", "recut")
    return ", ".join(f"{count} {kind}" for kind in kinds if (count := getattr(report, kind)))


def _look_at(root: Path) -> tuple[object, str]:
    """Which folder it is, and why it cannot be read now, if it cannot.

    It is another one where a disk was mounted, or a copy restored.
    """
    try:
        with os.scandir(root):
            status = root.stat()
        real = root.resolve()
    except (FileNotFoundError, NotADirectoryError):
        return None, "the vault's folder is gone"
    except OSError as error:
        return None, f"the vault cannot be read ({error.strerror})"
    if real != root:
        return None, f"the vault's folder is now a link to {real}, which can be watched instead"
    return (status.st_dev, status.st_ino), ""


# --- events of the system ---


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
    lines: list[str] = []
    with suppress(OSError):  # other systems than Linux have none
        lines = table.read_text("utf-8", "surrogateescape").splitlines()
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
