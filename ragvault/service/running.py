"""Running: whether a watcher runs for this user, what it watches, and how it is stopped.

    run/watch.lock    locked by the operating system for as long as the watcher lives
    run/watch.json    which process that is, what it watches, where it answers

The lock decides that there is one; the record says which. A record that a killed watcher left
behind is recognised by its process, which is gone or has another start. One watcher serves one
runtime folder, so every command that sees the same RAGVAULT_HOME sees the same watcher.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from filelock import FileLock, Timeout

from ragvault import __version__
from ragvault.config import folders
from ragvault.errors import RagvaultError
from ragvault.service.record import LOCK, PROTOCOL, RECORD, own_folder
from ragvault.store.lock import started
from ragvault.store.private import make_folder, write_file

STOPPING = 15.0  # seconds: what is being embedded is stored first


class WatcherRunning(RagvaultError):
    """There is a watcher already; two would take turns at the same indexes for nothing."""

    def __init__(self, found: Running | None) -> None:
        who = found.words() if found else "another process that is just starting"
        super().__init__(
            f"a watcher runs already: {who}",
            fix="ragvault watch --stop ends it; then name all vaults in one ragvault watch",
        )


class WatcherStuck(RagvaultError):
    """A watcher that does not end when it is asked to."""

    def __init__(self, found: Running) -> None:
        super().__init__(
            f"the watcher (pid {found.pid}) has not ended after {STOPPING:.0f} seconds",
            fix=f"kill -9 {found.pid}; nothing is lost by it",
        )


@dataclass(frozen=True, slots=True)
class Running:
    """A watcher, as it described itself. `since` is in seconds since 1970."""

    pid: int
    started: int | None
    since: float
    version: str
    vaults: tuple[str, ...]  # their roots
    address: str  # "unix" or "HOST:PORT"
    token: str = ""
    protocol: int = PROTOCOL

    def watches(self, root: Path) -> bool:
        """Whether it keeps the index of this vault."""
        return str(root.resolve()) in self.vaults

    def words(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.since))
        names = ", ".join(Path(root).name for root in self.vaults)
        return f"pid {self.pid} since {since}, watching {names or 'nothing yet'}"


def running(environ: Mapping[str, str] | None = None) -> Running | None:
    """The watcher of this runtime folder; None when there is none, whatever was left behind."""
    found = _recorded(folders.runtime_dir(environ))
    if found is None or not _is_alive(found):
        return None
    return found


def watching(root: Path, environ: Mapping[str, str] | None = None) -> Running | None:
    """The watcher that keeps the index of this vault; None when there is none."""
    found = running(environ)
    return found if found and found.watches(root) else None


def stop(found: Running, seconds: float = STOPPING) -> None:
    """End a watcher and wait until it is gone. Raises WatcherStuck when it stays."""
    end = time.monotonic() + seconds
    try:
        os.kill(found.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    while _is_alive(found):
        if time.monotonic() > end:
            raise WatcherStuck(found)
        time.sleep(0.02)


class Place:
    """The one place a watcher can have, taken with `with`. Raises WatcherRunning."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.folder = folders.runtime_dir(environ)
        self._since = time.time()
        self._lock = FileLock(self.folder / LOCK, mode=0o600, thread_local=False)

    def __enter__(self) -> Place:
        make_folder(self.folder)
        own_folder(self.folder)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise WatcherRunning(_recorded(self.folder)) from None
        (self.folder / RECORD).unlink(missing_ok=True)  # of one that was killed
        return self

    def tell(self, vaults: Sequence[Path], address: str, token: str = "") -> None:
        """Write down who we are, for everyone who looks for a watcher."""
        pid, roots = os.getpid(), tuple(str(root.resolve()) for root in vaults)
        me = Running(pid, started(pid), self._since, __version__, roots, address, token)
        write_file(self.folder / RECORD, json.dumps(asdict(me)).encode())

    def __exit__(self, *failure: object) -> None:
        (self.folder / RECORD).unlink(missing_ok=True)
        self._lock.release()


def _is_alive(found: Running) -> bool:
    if found.started is not None:
        return started(found.pid) == found.started
    if os.name == "nt":
        return _is_locked(folders.runtime_dir())  # there a signal of 0 would be Ctrl-C
    try:
        os.kill(found.pid, 0)  # without /proc a pid has to do
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _is_locked(folder: Path) -> bool:
    """Whether somebody holds the place of the watcher."""
    try:
        with FileLock(folder / LOCK, timeout=0, mode=0o600, thread_local=False):
            return False
    except Timeout:
        return True


def _recorded(folder: Path) -> Running | None:
    try:
        card = json.loads((folder / RECORD).read_bytes())
        known = {each.name: card[each.name] for each in fields(Running) if each.name in card}
        return Running(**{**known, "vaults": tuple(card["vaults"])})  # another release tells more
    except (OSError, ValueError, KeyError, TypeError):
        return None
