"""Batch: many changes become one piece of work.

An editor writes a file twice for one save, a sync tool hundreds, a checkout thousands. Work begins
when nothing has happened for `debounce` seconds, or when changes have been coming for `patience`
seconds, so that a file which is written all the time keeps nobody waiting. Knows no file and no
clock: the time is an argument.
"""

from __future__ import annotations

import math
import threading


class Batch:
    """What waits to be looked at; told of changes by any thread."""

    def __init__(self, debounce: float, patience: float) -> None:
        self.debounce, self.patience = debounce, patience
        self._first: float | None = None
        self._last = 0.0
        self._lock = threading.Lock()

    def add(self, now: float, *, at_once: bool = False) -> None:
        """Something has changed; `at_once` when there is no need to wait for more."""
        with self._lock:
            self._last = now - self.debounce if at_once else now
            if self._first is None:
                self._first = now

    def due(self, now: float) -> float:
        """Seconds until work should begin: 0 is now, infinity is never."""
        with self._lock:
            if self._first is None:
                return math.inf
            quiet = self._last + self.debounce
            return max(0.0, min(quiet, self._first + self.patience) - now)

    def take(self) -> None:
        """Begin: what is added from now on is another batch."""
        with self._lock:
            self._first = None

    @property
    def waiting(self) -> bool:
        return self._first is not None
