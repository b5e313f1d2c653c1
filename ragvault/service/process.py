"""The watcher as a process: is one running, start it, stop it, pause it.

    run/watch.lock    locked by the operating system for as long as the watcher lives
    run/watch.json    the watcher's record: process, vaults, address
    run/start.lock    locked by the client that starts a resident process; the others wait

A resident process is a watcher without vaults, which a search starts and which ends by itself.
The lock decides that there is only one of either; the record says which. A record that a killed
watcher left behind is recognised by its process, which is gone or started at another time. A
watcher is asked to stop over its socket. A signal is sent only to a process that is proven to be
the watcher, because the pid in an old or damaged record may belong to another program by now. One
watcher serves one runtime folder, so all commands with the same RAGVAULT_HOME see the same watcher.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from ragvault import __version__
from ragvault.config import folders
from ragvault.config.folders import runtime_folder
from ragvault.errors import ERRORS, RagvaultError
from ragvault.service import LOCK_FILE, PROTOCOL, RECORD_FILE, START_FILE
from ragvault.service.protocol import CODE, WatcherUnavailable, ask_watcher, watcher_connection
from ragvault.store.files import file_lock, make_folder, process_start, replace_file

if TYPE_CHECKING:
    import subprocess

    from filelock import FileLock

START_SECONDS = 30.0  # a cold disk first reads a few hundred megabytes of libraries
STOP_SECONDS = 15.0  # the watcher first stores what it is embedding
LOCK_SECONDS = 5.0  # for a process that holds the lock and has no record: it starts, or ends
POLL_SECONDS = 0.01  # between two looks at whether a process is ready


class WatcherError(RagvaultError):
    """A watcher runs already, or cannot be started, found or stopped; the message says which."""


def describe_unexpected(error: BaseException) -> str:
    """The type and place of an error. Not its message, which may quote a note."""
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in last)
    return f"unexpected {type(error).__name__}{place}; please report this"


# --- is one running? ---


@dataclass(frozen=True, slots=True)
class WatcherRecord:
    """A watcher, as it described itself. Another release may write more."""

    pid: Annotated[int, msgspec.Meta(gt=0)]  # -1 would mean every process
    started: int | None  # of the process, in clock ticks since boot; None without /proc
    since: float  # seconds since 1970
    version: str
    vaults: tuple[str, ...]  # their roots
    address: str  # "unix" or "HOST:PORT"
    token: str = ""
    protocol: int = PROTOCOL
    code: str = CODE  # the folder of the package
    resident: bool = False  # started by a search

    @property
    def is_ours(self) -> bool:
        """Whether it is the same release of the same installation."""
        return (self.protocol, self.version, self.code) == (PROTOCOL, __version__, CODE)

    def watches(self, root: Path) -> bool:
        """Whether it keeps the index of this vault up to date."""
        return str(root.resolve()) in self.vaults

    def describe(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.since))
        if self.resident:
            return f"pid {self.pid} since {since}, started by a search"
        from ragvault.vault import known  # two vaults may have folders of one name

        name_of = {str(vault.root): vault.name for vault in known()}
        names = ", ".join(name_of.get(root, Path(root).name) for root in self.vaults)
        return f"pid {self.pid} since {since}, watching {names or 'nothing yet'}"

    def is_alive(self, environ: Mapping[str, str] | None = None) -> bool:
        """Whether this very process still runs; without /proc the lock tells."""
        if self.started is not None or process_start(os.getpid()) is not None:
            return self.is_proven()
        return _is_lock_held(folders.runtime_dir(environ))

    def is_proven(self) -> bool:
        """Whether the process of this pid started when the watcher did."""
        return self.started is not None and process_start(self.pid) == self.started


def running_watcher(environ: Mapping[str, str] | None = None) -> WatcherRecord | None:
    """The watcher of this runtime folder; None if none runs, even if files were left behind."""
    watcher = _read_record(folders.runtime_dir(environ))
    return watcher if watcher and watcher.is_alive(environ) else None


def watcher_of(root: Path, environ: Mapping[str, str] | None = None) -> WatcherRecord | None:
    """The running watcher, if it watches this vault."""
    watcher = running_watcher(environ)
    return watcher if watcher and watcher.watches(root) else None


def _read_record(folder: Path) -> WatcherRecord | None:
    try:  # not decoded by msgspec: a vault's path need not be Unicode
        return msgspec.convert(json.loads((folder / RECORD_FILE).read_bytes()), WatcherRecord)
    except (OSError, ValueError, RecursionError, msgspec.ValidationError):
        return None


# --- being the one watcher ---


class WatcherLock:
    """The right to be the one watcher or resident process, held inside `with`.

    A watcher stops a resident process and takes its place. Raises WatcherError.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, *, resident: bool = False) -> None:
        self.folder = folders.runtime_dir(environ)
        self._environ, self._resident = environ, resident
        self._since = time.time()
        self._lock = file_lock(self.folder / LOCK_FILE)

    def __enter__(self) -> WatcherLock:
        make_folder(self.folder)
        check_runtime_folder(self.folder)
        end = time.monotonic() + LOCK_SECONDS
        while not _take(self._lock):
            other = running_watcher(self._environ)
            if other is not None and other.resident and not self._resident:
                stop_watcher(other, self._environ)
            elif other is not None or time.monotonic() > end:
                raise _running(other)
            time.sleep(POLL_SECONDS)
        (self.folder / RECORD_FILE).unlink(missing_ok=True)  # left by a killed watcher
        return self

    def write_record(self, vaults: Sequence[Path], address: str, token: str = "") -> None:
        """From now on other processes can find this watcher."""
        pid, roots = os.getpid(), tuple(str(root.resolve()) for root in vaults)
        me = WatcherRecord(
            pid,
            process_start(pid),
            self._since,
            __version__,
            roots,
            address,
            token,
            resident=self._resident,
        )
        replace_file(self.folder / RECORD_FILE, json.dumps(asdict(me)).encode())

    def is_lost(self) -> bool:
        """Whether the record of this process is gone, with the folder it was in."""
        record = _read_record(self.folder)
        return record is None or record.pid != os.getpid()

    def __exit__(self, *failure: object) -> None:
        if not self.is_lost():  # another process may have made it since
            (self.folder / RECORD_FILE).unlink()
        self._lock.release()


def _running(watcher: WatcherRecord | None) -> WatcherError:
    who = watcher.describe() if watcher else "another process, which is just starting"
    return WatcherError(
        f"a watcher is already running: {who}",
        fix="ragvault watch --stop, then name all vaults in one ragvault watch",
    )


def _is_lock_held(folder: Path) -> bool:
    """Whether some process holds the lock in this runtime folder."""
    lock = file_lock(folder / LOCK_FILE)
    if not _take(lock):
        return True
    lock.release()
    return False


def _take(lock: FileLock) -> bool:
    """Take a lock if it is free."""
    from filelock import Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def check_runtime_folder(folder: Path) -> None:
    """Raises WatcherError unless the folder is ours and closed to others."""
    if not hasattr(os, "getuid"):
        return  # Windows: the folder is in the user's profile, which others cannot enter
    status, why = folder.stat(), ""
    if status.st_uid != os.getuid():
        why = "belongs to another user"
    elif status.st_mode & 0o077:
        why = "can be entered by others"
    if why:
        raise WatcherError(
            f"the runtime folder {folder} {why}, so nothing in it can be trusted",
            fix="set RAGVAULT_HOME, or XDG_RUNTIME_DIR, to a folder of your own",
        )


# --- stop, pause, start ---


def stop_watcher(watcher: WatcherRecord, environ: Mapping[str, str] | None = None) -> None:
    """Stop a watcher and wait until it is gone. Raises WatcherError."""
    end = time.monotonic() + STOP_SECONDS
    try:
        ask_watcher(runtime_folder(environ), {"op": "stop", "pid": watcher.pid})
    except WatcherUnavailable:  # it hangs, or is another release
        # Who holds the lock is a watcher; without one, the record is old.
        if not watcher.is_alive(environ) or not _is_lock_held(folders.runtime_dir(environ)):
            return
        if not watcher.is_proven():
            raise WatcherError(
                f"a watcher runs and does not answer; its record names pid {watcher.pid}, which "
                "may be another program",
                fix=f"if pid {watcher.pid} is `ragvault watch`, end it: kill {watcher.pid}",
            ) from None
        with suppress(ProcessLookupError):
            os.kill(watcher.pid, signal.SIGTERM)
    while watcher.is_alive(environ):
        if time.monotonic() > end:
            raise WatcherError(
                f"the watcher (pid {watcher.pid}) has not ended after {STOP_SECONDS:.0f} seconds",
                fix=f"kill -9 {watcher.pid} (nothing is lost)",
            )
        time.sleep(0.02)


@contextmanager
def pause_watcher(
    root: Path, environ: Mapping[str, str] | None = None
) -> Iterator[WatcherRecord | None]:
    """Keep the watcher from writing this vault's index inside the block; yields that watcher.

    It resumes when the block ends or this process dies. Yields None if no watcher answers: then
    the lock of the index decides who writes.
    """
    with ExitStack() as stack:
        watcher = watcher_of(root, environ)
        if watcher is not None:
            request = {"op": "pause", "root": str(root.resolve())}
            try:
                stack.enter_context(watcher_connection(runtime_folder(environ), request))
            except WatcherUnavailable:
                watcher = None
        yield watcher


def start_watcher(vaults: Sequence[Path]) -> WatcherRecord:
    """Start `ragvault watch` so that it outlives the terminal, and wait until it is ready.

    Raises WatcherError.
    """
    return _start(_watch_command(vaults))


def start_resident(environ: Mapping[str, str] | None = None) -> None:
    """Have a resident process started, by this or another client, and wait until it is ready.

    One of another release or installation is replaced. Raises WatcherError, and RagvaultError
    if a watcher of another release runs, or does not stop.
    """
    folder = folders.runtime_dir(environ)
    make_folder(folder)
    check_runtime_folder(folder)
    lock = file_lock(folder / START_FILE)
    end = time.monotonic() + START_SECONDS
    waited = False
    while not _take(lock):  # another client is starting it
        waited = True
        found = running_watcher(environ)
        if found is not None and found.is_ours:
            return
        if time.monotonic() > end:
            raise WatcherError("it did not start in time", fix=_SHOWS_WHY)
        time.sleep(POLL_SECONDS)
    try:
        found = running_watcher(environ)
        if found is not None and found.is_ours:
            return
        if waited:  # what another client could not start, this one could not either
            raise WatcherError("it ended while it started", fix=_SHOWS_WHY)
        if found is not None and not found.resident:
            raise _running(found)
        if found is not None:
            stop_watcher(found, environ)
        _start(_watch_command((), "--resident"), environ)
    finally:
        lock.release()


_SHOWS_WHY = "ragvault watch shows why"


def _watch_command(vaults: Sequence[Path], *options: str) -> list[str]:
    return [sys.executable, "-m", "ragvault", "watch", "--quiet", *options, *map(str, vaults)]


def _start(command: Sequence[str], environ: Mapping[str, str] | None = None) -> WatcherRecord:
    import subprocess
    import tempfile

    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
            env={**folders.settled(environ), ERRORS: "json"},
            cwd=Path.home() if Path.home().is_dir() else Path("/"),
        )
        watcher = _wait_until_ready(process, environ)
        if watcher is None:
            stderr.seek(0)
            raise _not_started(stderr.read(), process)
    # It outlives us. If we live longer, somebody must take note of its end.
    threading.Thread(target=process.wait, name="reap", daemon=True).start()
    return watcher


def _wait_until_ready(
    process: subprocess.Popen[bytes], environ: Mapping[str, str] | None
) -> WatcherRecord | None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        watcher = running_watcher(environ)
        if watcher is not None and watcher.pid == process.pid:
            return watcher
        time.sleep(POLL_SECONDS)
    return None


def _not_started(stderr: bytes, process: subprocess.Popen[bytes]) -> WatcherError:
    """An error with the message, fix and exit code of the process that failed."""
    if process.poll() is None:
        process.terminate()
        process.wait()
        return WatcherError("the watcher did not start in time", fix=_SHOWS_WHY)
    found: dict[str, Any] = {"error": f"the watcher ended with code {process.returncode}"}
    with suppress(ValueError):  # it was killed, or ended otherwise without a word
        found = json.loads((stderr.splitlines() or [b""])[-1])
    error = WatcherError(found["error"], fix=found.get("fix") or _SHOWS_WHY)
    error.exit_code = found.get("code", 4)
    return error
