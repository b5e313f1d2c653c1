"""Leaving: work that ends where it is when something more urgent waits."""

from __future__ import annotations

from collections.abc import Callable

from ragvault.models.progress import Reporter, SilentReporter


class Left(Exception):
    """Work was left because something more urgent waits; what was done is kept."""


class Leaving(SilentReporter):
    """Told how far the work is, and ends it there when it is to be left."""

    def __init__(self, talk: Reporter, leave: Callable[[], bool]) -> None:
        self._talk, self._leave = talk, leave

    def info(self, line: str) -> None:
        self._talk.info(line)

    def progress(self, done: int, total: int) -> None:
        self.tell("", done, total)  # a download

    def tell(self, what: str, done: int, total: int) -> None:
        if self._leave():
            raise Left
