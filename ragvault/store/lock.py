"""The writer's lock: one process writes an index, and the others are told who it is.

    writer.lock    locked by the operating system, which lets go when its owner dies, however
    writer.json    who holds it: pid, host, process start, command, since when

The first decides; the second only gives the refusal its words, so a record that a dead owner left
behind, or one whose pid now belongs to another process, blocks nobody. Readers never come here.
"""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ragvault.errors import IndexLocked
from ragvault.store.private import make_folder, unusable, write_file

LOCK = "writer.lock"
OWNER = "writer.json"


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a lock, as it described itself."""

    pid: int
    host: str
    started: int | None  # of the process, in the kernel's own unit; None where it is not told
    command: str
    since: float  # seconds since 1970

    def is_alive(self) -> bool:
        """Whether this very process still runs; True where that cannot be known from here."""
        if self.host != platform.node() or self.started is None:
            return True
        return started(self.pid) == self.started

    def words(self, now: float) -> str:
        """`pid 4711 (ragvault watch) since 10:32`, with host and day where they are not ours."""
        where = "" if self.host == platform.node() else f" on {self.host}"
        since, today = time.localtime(self.since), time.localtime(now)
        clock = "%H:%M" if since[:3] == today[:3] else "%Y-%m-%d %H:%M"
        return f"pid {self.pid}{where} ({self.command}) since {time.strftime(clock, since)}"


class WriterLock:
    """The right to write one index, held from `acquire` (or `with`) to `release`.

    `timeout` is how many seconds to wait for another writer; 0 asks once. Raises IndexLocked,
    naming the owner, when it is not to be had, and IndexUnusable when the folder allows no lock.
    """

    def __init__(self, folder: Path, command: str, timeout: float = 0.0) -> None:
        self.folder = folder
        self.command = command
        self.timeout = timeout
        self._lock = FileLock(folder / LOCK, mode=0o600, thread_local=False)

    def acquire(self) -> None:
        """Take the lock and say who has it."""
        make_folder(self.folder)
        try:
            self._lock.acquire(timeout=max(self.timeout, 0.0))
        except Timeout:
            raise IndexLocked(self.folder, owner=_holder(self.folder)) from None
        except OSError as error:
            raise unusable(self.folder, error) from error
        try:
            write_file(self.folder / OWNER, json.dumps(asdict(_me(self.command))).encode())
        except BaseException:
            self._lock.release()
            raise

    def release(self) -> None:
        """Let go. The record goes first: once the lock is free it would name the wrong process."""
        try:
            (self.folder / OWNER).unlink(missing_ok=True)
        except OSError:
            pass  # a record left behind is recognised as such; the lock must be let go
        finally:
            self._lock.release()

    def __enter__(self) -> WriterLock:
        self.acquire()
        return self

    def __exit__(self, *failure: object) -> None:
        self.release()


def owner(folder: Path) -> Owner | None:
    """The process that says it writes this index and still runs; None when there is none.

    For `status`. It may be gone the next moment: only taking the lock is certain.
    """
    found = _recorded(folder)
    return found if found and found.is_alive() else None


def _holder(folder: Path) -> str:
    """The owner in words, without naming a process that cannot be the one."""
    found = owner(folder)
    return found.words(time.time()) if found else "another process"


def _recorded(folder: Path) -> Owner | None:
    try:
        card = json.loads((folder / OWNER).read_bytes())
        started = card["started"]
        return Owner(
            int(card["pid"]),
            str(card["host"]),
            None if started is None else int(started),
            str(card["command"]),
            float(card["since"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _me(command: str) -> Owner:
    pid = os.getpid()
    return Owner(pid, platform.node(), started(pid), command, time.time())


def started(pid: int) -> int | None:
    """When a process began, in clock ticks since boot; None without /proc or without the process.

    A pid alone proves nothing: it is given to another process later.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        # The name, in parentheses, may itself hold spaces and parentheses: count after the last.
        fields = stat.rpartition(b")")[2].split()
        return None if fields[0] == b"Z" else int(fields[19])  # a zombie has ended
    except (OSError, ValueError, IndexError):
        return None
