"""The watcher as a process: is one running, start it, stop it, pause it, run it at every login.

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
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from ragvault import __version__
from ragvault.config import folders
from ragvault.config.folders import runtime_folder
from ragvault.errors import RagvaultError
from ragvault.service import LOCK_FILE, PROTOCOL, RECORD_FILE, START_FILE
from ragvault.service.protocol import CODE, WatcherUnavailable, ask_watcher, watcher_connection
from ragvault.store.files import make_folder, replace_file
from ragvault.store.lock import file_lock, process_start

if TYPE_CHECKING:
    import subprocess

    from filelock import FileLock

START_SECONDS = 30.0  # a cold disk first reads a few hundred megabytes of libraries
STOP_SECONDS = 15.0  # the watcher first stores what it is embedding
LOCK_SECONDS = 5.0  # for a process that holds the lock and has no record: it starts, or ends
POLL_SECONDS = 0.01  # between two looks at whether a process is ready
LAUNCHD_LABEL = "ragvault.watch"
FOLDER_VARIABLES = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


class WatcherRunning(RagvaultError):
    """A second watcher would only compete with the first for the same indexes."""

    def __init__(self, watcher: WatcherRecord | None) -> None:
        who = watcher.describe() if watcher else "another process, which is just starting"
        super().__init__(
            f"a watcher is already running: {who}",
            fix="ragvault watch --stop, then name all vaults in one ragvault watch",
        )


class WatcherNotStarted(RagvaultError):
    """The watcher ended before it watched anything."""


class WatcherStuck(RagvaultError):
    """The watcher did not stop."""

    def __init__(self, watcher: WatcherRecord) -> None:
        super().__init__(
            f"the watcher (pid {watcher.pid}) has not ended after {STOP_SECONDS:.0f} seconds",
            fix=f"kill -9 {watcher.pid} (nothing is lost)",
        )


class WatcherUnidentified(RagvaultError):
    """A watcher does not answer, and its record does not prove which process it is."""

    def __init__(self, watcher: WatcherRecord) -> None:
        super().__init__(
            f"a watcher runs and does not answer; its record names pid {watcher.pid}, which may be "
            "another program",
            fix=f"if pid {watcher.pid} is `ragvault watch`, end it: kill {watcher.pid}",
        )


class RuntimeFolderUnsafe(RagvaultError):
    """The runtime folder belongs to another user, or other users can enter it."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(
            f"the runtime folder {folder} {why}, so nothing in it can be trusted",
            fix="set RAGVAULT_HOME, or XDG_RUNTIME_DIR, to a folder of your own",
        )


# --- is one running? ---


@dataclass(frozen=True, slots=True)
class WatcherRecord:
    """A watcher, as it described itself."""

    pid: int
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

    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        if self.started is not None or process_start(os.getpid()) is not None:
            return self.is_proven()
        if os.name == "nt":
            return _is_lock_held(folders.runtime_dir())  # signal 0 would be Ctrl-C there
        try:
            os.kill(self.pid, 0)  # without /proc the pid is all we have
        except ProcessLookupError:
            return False
        except OSError:
            pass
        return True

    def is_proven(self) -> bool:
        """Whether the process of this pid started when the watcher did."""
        return self.started is not None and process_start(self.pid) == self.started


def running_watcher(environ: Mapping[str, str] | None = None) -> WatcherRecord | None:
    """The watcher of this runtime folder; None if none runs, even if files were left behind."""
    watcher = _read_record(folders.runtime_dir(environ))
    return watcher if watcher and watcher.is_alive() else None


def watcher_of(root: Path, environ: Mapping[str, str] | None = None) -> WatcherRecord | None:
    """The running watcher, if it watches this vault."""
    watcher = running_watcher(environ)
    return watcher if watcher and watcher.watches(root) else None


def _read_record(folder: Path) -> WatcherRecord | None:
    try:
        record = json.loads((folder / RECORD_FILE).read_bytes())
        # Only the fields we know: another release may write more.
        known = {f.name: record[f.name] for f in fields(WatcherRecord) if f.name in record}
        watcher = WatcherRecord(**{**known, "vaults": tuple(record["vaults"])})
        return watcher if _is_sound(watcher) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _is_sound(watcher: WatcherRecord) -> bool:
    """Whether every field has its type, and the pid is that of one process: -1 means all."""
    text = (watcher.version, watcher.address, watcher.token, watcher.code, *watcher.vaults)
    started = watcher.started
    return (
        all(isinstance(each, str) for each in text)
        and type(watcher.pid) is int
        and watcher.pid > 0
        and (started is None or type(started) is int)
        and isinstance(watcher.since, (int, float))
        and isinstance(watcher.resident, bool)
    )


# --- being the one watcher ---


class WatcherLock:
    """The right to be the one watcher or resident process, held inside `with`.

    A watcher stops a resident process and takes its place. Raises WatcherRunning, WatcherStuck,
    WatcherUnidentified and RuntimeFolderUnsafe.
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
                raise WatcherRunning(other)
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

    def is_recorded(self) -> bool:
        """Whether others can still find this process: its folder may have been deleted."""
        record = _read_record(self.folder)
        return record is not None and record.pid == os.getpid()

    def __exit__(self, *failure: object) -> None:
        if self.is_recorded():
            (self.folder / RECORD_FILE).unlink(missing_ok=True)
        self._lock.release()


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
    """Raises RuntimeFolderUnsafe unless the folder is ours and closed to others."""
    if not hasattr(os, "getuid"):
        return  # Windows: the folder is in the user's profile, which others cannot enter
    status = folder.stat()
    if status.st_uid != os.getuid():
        raise RuntimeFolderUnsafe(folder, "belongs to another user")
    if status.st_mode & 0o077:
        raise RuntimeFolderUnsafe(folder, "can be entered by others")


# --- stop, pause, start ---


def stop_watcher(watcher: WatcherRecord, environ: Mapping[str, str] | None = None) -> None:
    """Stop a watcher and wait until it is gone. Raises WatcherStuck and WatcherUnidentified."""
    end = time.monotonic() + STOP_SECONDS
    try:
        ask_watcher(runtime_folder(environ), {"op": "stop", "pid": watcher.pid})
    except WatcherUnavailable:  # it hangs, or is another release
        # Who holds the lock is a watcher; without one, the record is old.
        if not watcher.is_alive() or not _is_lock_held(folders.runtime_dir(environ)):
            return
        if not watcher.is_proven():
            raise WatcherUnidentified(watcher) from None
        with suppress(ProcessLookupError):
            os.kill(watcher.pid, signal.SIGTERM)
    while watcher.is_alive():
        if time.monotonic() > end:
            raise WatcherStuck(watcher)
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

    Raises WatcherNotStarted.
    """
    return _start(_watch_command(vaults))


def start_resident(environ: Mapping[str, str] | None = None) -> None:
    """Have a resident process started, by this or another client, and wait until it is ready.

    One of another release or installation is replaced. Raises WatcherNotStarted, and RagvaultError
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
            raise WatcherNotStarted("it did not start in time", fix=_SHOWS_WHY)
        time.sleep(POLL_SECONDS)
    try:
        found = running_watcher(environ)
        if found is not None and found.is_ours:
            return
        if waited:  # what another client could not start, this one could not either
            raise WatcherNotStarted("it ended while it started", fix=_SHOWS_WHY)
        if found is not None and not found.resident:
            raise WatcherRunning(found)
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
            env=folders.settled(environ),
            cwd=Path.home() if Path.home().is_dir() else Path("/"),
        )
        watcher = _wait_until_ready(process, environ)
        if watcher is None:
            stderr.seek(0)
            raise _not_started(stderr.read().decode(errors="replace"), process)
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


def _not_started(stderr: str, process: subprocess.Popen[bytes]) -> WatcherNotStarted:
    """An error with the message, fix and exit code of the process that failed."""
    if process.poll() is None:
        process.terminate()
        process.wait()
        return WatcherNotStarted("the watcher did not start in time", fix=_SHOWS_WHY)
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    message = next((line for line in lines if line.startswith("ragvault:")), "")
    fix = next((line for line in lines if line.startswith("fix:")), "")
    error = WatcherNotStarted(
        message.removeprefix("ragvault: ") or f"the watcher ended with code {process.returncode}",
        fix=fix.removeprefix("fix: ") or _SHOWS_WHY,
    )
    error.exit_code = process.returncode if process.returncode in (2, 3, 4) else 4
    return error


# --- at every login: printed, never installed ---


def systemd_unit(vaults: Sequence[Path]) -> str:
    """A systemd user unit. systemd expands % everywhere and $ in commands, so both are doubled."""
    command = " ".join(_unit_quoted(part.replace("$", "$$")) for part in _watch_command(vaults))
    environ = _unit_environ().items()
    lines = [
        "# systemd user unit: save it as ~/.config/systemd/user/ragvault.service, then",
        "#     systemctl --user enable --now ragvault",
        "[Unit]",
        "Description=ragvault keeps the indexes of notes up to date",
        "",
        "[Service]",
        f"ExecStart={command}",
        *(f"Environment={_unit_quoted(f'{name}={value}')}" for name, value in environ),
        "Restart=on-failure",
        "RestartSec=10",
        "Nice=10",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines)


def launchd_plist(vaults: Sequence[Path]) -> str:
    """A property list for a launchd agent."""
    import plistlib

    agent = {
        "Label": LAUNCHD_LABEL,
        "ProgramArguments": _watch_command(vaults),
        "EnvironmentVariables": _unit_environ(),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
    }
    declaration, _, rest = plistlib.dumps(agent, sort_keys=False).decode().partition("\n")
    path = f"~/Library/LaunchAgents/{LAUNCHD_LABEL}.plist"
    comment = f"<!-- save it as {path}, then\n     launchctl load {path} -->"
    return f"{declaration}\n{comment}\n{rest.rstrip()}"


LOGIN_UNITS = {"systemd": systemd_unit, "launchd": launchd_plist}


def _unit_environ() -> dict[str, str]:
    """The variables that folders and settings depend on. The login itself sets XDG_RUNTIME_DIR."""
    return {
        name: value
        for name, value in sorted(folders.settled().items())
        if name in FOLDER_VARIABLES or (name.startswith("RAGVAULT_") and name != "RAGVAULT_DEBUG")
    }


def _unit_quoted(part: str) -> str:
    plain = part.replace("%", "%%").replace("\\", "\\\\")
    return plain if shlex.quote(part) == part else '"' + plain.replace('"', '\\"') + '"'
