"""Events: a vault's own folder tells when something in it changes, or why it cannot.

    native     watchdog: inotify (inotify.py), FSEvents, ReadDirectoryChangesW
    polling    nothing tells: the vault is looked through now and then (polled.py)

An event only says where the vault may be another; what has changed is found by the walk that every
indexing begins with. So two events are as good as two thousand, and none of their order matters.
Where every event is known to arrive, or to be missed aloud, only those places need be walked.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragvault.service.mounts import network
from ragvault.service.sieve import Sieve

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

LIMITS = {
    errno.ENOSPC: "the limit of inotify watches is reached "
    "(raise it: sysctl fs.inotify.max_user_watches=524288)",
    errno.EMFILE: "the limit of inotify instances is reached "
    "(raise it: sysctl fs.inotify.max_user_instances=512)",
}
CHANGES = ("created", "deleted", "modified", "moved", "closed")


class Unheard(Exception):
    """No native events are to be had; the reason is for the reader."""


class Native:
    """Listens to one vault and calls `changed` from a thread of its own, until `close`.

    `tell` is called before it, also for what does not matter by itself: a path inside the vault
    ("" is all of it), and whether it is a folder. Raises Unheard where it cannot listen. `lost`
    says why it stopped listening by itself.
    """

    def __init__(
        self,
        root: Path,
        sieve: Sieve,
        changed: Callable[[], None],
        tell: Callable[[str, bool], None] = lambda *_: None,
    ) -> None:
        self._root, self._sieve, self._changed, self._tell = str(root), sieve, changed, tell
        self.outdated = False  # rules have changed: other folders may have to be listened to
        kind = network(root)
        if kind:
            raise Unheard(
                f"it is on a network file system ({kind}) or has one below it, "
                "which tells no changes"
            )
        try:
            self._observer = _observer(sieve)
            self._emitter = self._start()
        except (OSError, ImportError) as error:
            raise Unheard(_reason(error)) from error

    def _start(self) -> Any:
        from watchdog.events import FileSystemEventHandler

        handler = FileSystemEventHandler()
        handler.on_any_event = self._heard  # type: ignore[method-assign]
        self._observer.schedule(handler, self._root, recursive=True)
        self._observer.start()
        return next(iter(self._observer.emitters))

    @property
    def lost(self) -> str:
        """Empty while it listens."""
        if self._emitter.is_alive():
            return ""
        failed = getattr(self._emitter, "failed", None)
        return _reason(failed) if failed else "the system stopped telling"

    @property
    def misses_nothing(self) -> bool:
        """Whether each change is told, or else that some were not: only our own emitter says so."""
        return hasattr(self._emitter, "has_told_all")

    def has_told_all(self, seconds: float) -> bool:
        """Whether all that has happened by now was told, or is within so many seconds."""
        end = time.monotonic() + seconds
        while self.misses_nothing and not self.lost:
            if self._emitter.has_told_all:
                return True
            if time.monotonic() > end:
                break
            time.sleep(0.001)
        return False

    @property
    def heard(self) -> Callable[[], frozenset[str]] | None:
        """Says which folders are listened to; None where it is all of them."""
        return (lambda: self._emitter.heard) if self.misses_nothing else None

    def close(self) -> None:
        self._observer.stop()
        self._observer.join(timeout=5)

    def _heard(self, event: Any) -> None:
        if event.event_type not in CHANGES:
            return
        paths = [os.fsdecode(path) for path in (event.src_path, event.dest_path) if path]
        matters = [self._matters(path, event) for path in paths]  # each of them is told
        if any(matters):
            self._changed()

    def _matters(self, path: str, event: Any) -> bool:
        inside = os.path.relpath(path, self._root).replace(os.sep, "/")
        self._tell("" if inside == "." else inside, event.is_directory)
        if inside == ".":
            # The vault itself: events were lost. Elsewhere it only says that something is in it.
            return not event.is_directory or event.event_type != "modified"
        if event.is_directory and event.event_type == "modified":
            return False  # what is in it has an event of its own
        if self._sieve.is_rule(inside):
            self._sieve.forget()
            self.outdated = True
        # Windows cannot tell whether what is gone was a folder.
        folder = event.is_directory or (sys.platform == "win32" and event.event_type == "deleted")
        return self._sieve.matters(inside, folder=folder)


def _observer(sieve: Sieve) -> BaseObserver:
    if sys.platform.startswith("linux"):
        from watchdog.observers.api import BaseObserver as Base

        from ragvault.service.inotify import PrunedEmitter

        pruned = partial(PrunedEmitter, enters=sieve.enters, forget=sieve.forget)
        return Base(pruned)  # type: ignore[arg-type]
    from watchdog.observers import Observer

    observer: BaseObserver = Observer()
    return observer


def _reason(error: Exception) -> str:
    code = getattr(error, "errno", None)
    return LIMITS.get(code or 0) or f"the system refuses to tell changes ({error})"
