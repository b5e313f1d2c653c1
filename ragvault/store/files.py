"""Private files, and the writer's lock.

An index repeats what the notes say, so it is protected like them: folders are 0700 and files 0600,
whatever the umask. A file is whole or absent. Nothing here knows what the files contain.

One process writes an index; the others get its name in an error:

    writer.lock    locked by the operating system, which releases it when its owner dies
    writer.json    who holds it: pid, host, process start, command, since when

Only the lock decides. The record is for the message: one that a dead owner left, or whose pid now
belongs to another process, blocks nobody. Readers need no lock. The library of locks imports
asyncio, so it is imported where a lock is taken: every search imports this file.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragvault.errors import IndexLocked, refusals

if TYPE_CHECKING:
    from filelock import FileLock

LOCK = "writer.lock"
OWNER = "writer.json"
BRIEF = "ragvault search"  # the command of an owner that has the lock for a moment only
BRIEF_SECONDS = 10.0  # that others wait for it: many times what it takes


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, 0700; take away the rights of others on it.

    A parent that exists already is left as it is: it is not ours.
    """
    with refusals(folder):
        missing = [above for above in (folder, *folder.parents) if not above.exists()]
        for above in reversed(missing):
            above.mkdir(mode=0o700, exist_ok=True)
        _close_to_others(folder)


def make_file(path: Path) -> None:
    """Create an empty file, 0600; an existing one keeps its contents and loses other readers.

    An existing file is not opened: closing it would drop every lock that SQLite has on it in this
    process, and then another process could delete the journal under us.
    """
    with refusals(path.parent):
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _close_to_others(path)


def close_files(folder: Path) -> None:
    """Take the files of a folder from others: an engine makes them with the umask's rights."""
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mode & 0o177:
                path.chmod(0o600)


def replace_file(path: Path, contents: bytes) -> None:
    """Replace a file in one step: a reader sees the old contents or the new."""
    with refusals(path.parent):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)  # there only if it could not be written


def discard(path: Path) -> None:
    """Delete a file or a folder as far as possible; never raises."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def file_size(path: Path) -> int:
    """Bytes; 0 for a file that is gone: SQLite deletes a journal when its last user closes."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _close_to_others(path: Path) -> None:
    """Take rights from others; give none to the owner, who may have made it read-only."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        path.chmod(mode & 0o700)


# --- The writer's lock ---


class Owner(msgspec.Struct, frozen=True):
    """The process that holds a lock, as it described itself."""

    pid: int
    host: str
    started: int | None  # of the process, in clock ticks since boot; None if unknown
    command: str
    since: float  # seconds since 1970

    def is_alive(self) -> bool:
        """Whether this very process still runs; True where that cannot be known."""
        if self.host != platform.node() or self.started is None:
            return True
        return process_start(self.pid) == self.started

    def words(self, now: float) -> str:
        """`pid 4711 (ragvault watch) since 10:32`; names another host or day."""
        where = "" if self.host == platform.node() else f" on {self.host}"
        since, today = time.localtime(self.since), time.localtime(now)
        clock = "%H:%M" if since[:3] == today[:3] else "%Y-%m-%d %H:%M"
        return f"pid {self.pid}{where} ({self.command}) since {time.strftime(clock, since)}"


class WriterLock:
    """The right to write one index, held from `acquire` (or `with`) to `release`.

    Another writer is not waited for, unless it is a search that takes in a few changed files: that
    has the lock for a moment only. Raises IndexLocked or IndexUnusable.
    """

    def __init__(self, folder: Path, command: str) -> None:
        self.folder = folder
        self.command = command
        self._lock = file_lock(folder / LOCK)

    def acquire(self) -> None:
        """Take the lock and record the owner."""
        make_folder(self.folder)
        with refusals(self.folder):
            if not self._gets_it(0):
                self._wait_for_search()
        pid = os.getpid()
        me = Owner(pid, platform.node(), process_start(pid), self.command, time.time())
        try:
            replace_file(self.folder / OWNER, msgspec.json.encode(me))
        except BaseException:
            self._lock.release()
            raise

    def _gets_it(self, seconds: float) -> bool:
        from filelock import Timeout

        with suppress(Timeout):
            self._lock.acquire(timeout=seconds)
        return self._lock.is_locked

    def _wait_for_search(self) -> None:
        owner = lock_owner(self.folder)
        is_brief = owner is not None and owner.command == BRIEF != self.command
        if not is_brief or not self._gets_it(BRIEF_SECONDS):
            words = owner.words(time.time()) if owner else "another process"
            raise IndexLocked(self.folder, owner=words)

    def release(self) -> None:
        """Release. The record goes first: once the lock is free it would name the wrong process."""
        with suppress(OSError):  # a stale record is harmless
            (self.folder / OWNER).unlink(missing_ok=True)
        self._lock.release()

    def __enter__(self) -> WriterLock:
        self.acquire()
        return self

    def __exit__(self, *failure: object) -> None:
        self.release()


def file_lock(path: Path) -> FileLock:
    """A lock on a private file, which may be released by another thread than took it."""
    from filelock import FileLock

    return FileLock(path, mode=0o600, thread_local=False)


def lock_owner(folder: Path) -> Owner | None:
    """The running process that writes this index; None if there is none or it is not known.

    For messages: it may be gone the next moment. Only taking the lock is certain.
    """
    try:
        found = msgspec.json.decode((folder / OWNER).read_bytes(), type=Owner)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.is_alive() else None


def process_start(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None without /proc or the process.

    A pid alone proves nothing: another process may get it later.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        # The name, in parentheses, may contain spaces and parentheses: count after the last one.
        fields = stat.rpartition(b")")[2].split()
        return None if fields[0] == b"Z" else int(fields[19])  # a zombie has ended
    except (OSError, ValueError, IndexError):
        return None
