"""Watch: several vaults kept true by one loop, in one thread.

    1  what changed is taken in, vault by vault, when its batch is due
    2  otherwise a vault whose best tier waits is worked on, until something changes
    3  otherwise it sleeps, and looks around once a second

Only this thread writes. It is stopped by `stop`, and lets another process write with `aside`; both
take effect within a slab of work, and what was done is kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragvault.service.kept import Kept
from ragvault.service.leaving import Left

TICK = 1.0  # seconds between two looks at what no event tells
GIVING_WAY = 0.5  # seconds that embedding waits for a search, at most, before each slab


class Watch:
    """The loop. `busy` says whether somebody waits for an answer: embedding gives way."""

    def __init__(self, vaults: Sequence[Kept], busy: Callable[[], bool] = lambda: False) -> None:
        self.vaults = vaults
        self._busy = busy
        self._condition = threading.Condition()
        self._stopping = False
        self._writing: Kept | None = None

    def run(self) -> None:
        """Until `stop` is called."""
        for kept in self.vaults:
            kept.listen()
        try:
            while not self._stopping:
                self._step()
        finally:
            for kept in self.vaults:
                kept.deafen()

    def stop(self) -> None:
        """End soon. May be called by a signal handler: the lock is one that its thread may have."""
        self._stopping = True
        self.wake()

    @property
    def writing(self) -> bool:
        """Whether an index is being written."""
        return self._writing is not None

    def is_writing(self, kept: Kept) -> bool:
        """Whether it is the index of this vault."""
        return self._writing is kept

    def wake(self) -> None:
        """There may be work."""
        with self._condition:
            self._condition.notify_all()

    @contextmanager
    def aside(self, root: Path) -> Iterator[None]:
        """Let somebody else write the index of this vault: entered when nothing is being written.

        Called from another thread than the loop's.
        """
        kept = next((each for each in self.vaults if each.root == root), None)
        if kept is None:
            yield
            return
        with self._condition:
            kept.paused += 1
            while self._writing is kept:
                self._condition.wait(0.1)
        try:
            yield
        finally:
            with self._condition:
                kept.paused -= 1
            kept.changed(at_once=True)

    def _step(self) -> None:
        for kept in self.vaults:
            kept.tend()
        now = time.monotonic()
        due = [kept for kept in self.vaults if kept.due(now) <= 0]
        try:
            if due:
                for kept in due:
                    self._write(kept, kept.catch_up, self._must_leave)
                return
            for kept in self.vaults:
                if kept.may_finish:
                    self._write(kept, kept.finish, self._should_leave)
                    return
        except Left:
            return
        self._sleep()

    def _write(
        self,
        kept: Kept,
        work: Callable[[Callable[[], bool]], None],
        leave: Callable[[Kept], bool],
    ) -> None:
        with self._condition:
            if kept.paused:
                return
            self._writing = kept
        try:
            work(lambda: leave(kept))
        finally:
            with self._condition:
                self._writing = None
                self._condition.notify_all()

    def _must_leave(self, kept: Kept) -> bool:
        return self._stopping or bool(kept.paused)

    def _should_leave(self, kept: Kept) -> bool:
        """Embedding is left for work that is due, in any vault; it waits for a search.

        Not for what only waits: a vault that is away, or is tried again later, may do so for days.
        """
        end = time.monotonic() + GIVING_WAY
        while self._busy() and time.monotonic() < end and not self._stopping:
            time.sleep(0.005)
        now = time.monotonic()
        return self._must_leave(kept) or any(each.due(now) <= 0 for each in self.vaults)

    def _sleep(self) -> None:
        with self._condition:
            now = time.monotonic()
            soonest = min((kept.due(now) for kept in self.vaults), default=TICK)
            if soonest > 0 and not self._stopping:
                self._condition.wait(min(soonest, TICK))
