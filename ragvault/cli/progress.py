"""Progress of long commands on stderr: bars on a terminal, a line now and then in a pipe or log.

    with progress() as shown:
        vault.index(progress=shown)

Each of the three keeps the promises of ports.Progress; with --quiet nothing is shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragvault.cli.render import console
from ragvault.ports import NoProgress, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

LINE_EVERY = 30.0  # seconds between two lines about a step, in a log
DOWNLOAD = "downloading"


@contextmanager
def progress() -> Iterator[Progress]:
    """What shows progress on this stderr; bars disappear at the end."""
    if console.is_quiet():
        yield NoProgress()
    elif not sys.stderr.isatty():
        yield LineProgress()
    else:
        with BarProgress() as bars:
            yield bars


class LineProgress(NoProgress):
    """Messages on stderr, and a line about the current step every half minute."""

    def __init__(self) -> None:
        self._next = time.monotonic() + LINE_EVERY

    def info(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        if total and time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_EVERY
            self.info(f"{name}: {done:,} of {total:,}")


class BarProgress(NoProgress):
    """Messages on stderr above one bar for each step."""

    def __init__(self) -> None:
        self._bars: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> BarProgress:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def info(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")  # above the bars: Rich redirects stderr while they are shown

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        amount = f"{done:,}/{total:,}" if total else ""
        self._show(name, done, total, amount, lambda speed: f"{speed:,.0f}/s")

    def download(self, done: int, total: int) -> None:
        amount = f"{done / 1e6:.1f}/{total / 1e6:.1f} MB" if total else f"{done / 1e6:.1f} MB"
        self._show(DOWNLOAD, done, total, amount, lambda speed: f"{speed / 1e6:.1f} MB/s")

    def download_ended(self) -> None:
        self._hide(DOWNLOAD)

    def _show(
        self, name: str, done: int, total: int, amount: str, rate: Callable[[float], str]
    ) -> None:
        bars = self._shown()
        if name not in self._tasks:
            for other in [each for each in self._tasks if self._is_endless(each)]:
                self._hide(other)
            self._tasks[name] = bars.add_task(name, total=total or None, amount="", rate="")
        task = self._tasks[name]
        speed = bars.tasks[bars.task_ids.index(task)].speed
        rate_text = rate(speed) if speed else ""
        bars.update(task, completed=done, total=total or None, amount=amount, rate=rate_text)

    def _is_endless(self, name: str) -> bool:
        """Whether a step has no total: its bar says nothing once the next step begins."""
        bars = self._shown()
        return bars.tasks[bars.task_ids.index(self._tasks[name])].total is None

    def _hide(self, name: str) -> None:
        if self._bars is not None and name in self._tasks:
            self._bars.remove_task(self._tasks.pop(name))

    def _shown(self) -> RichProgress:
        if self._bars is None:
            self._bars = _rich_progress()
            self._bars.start()
        return self._bars


def _rich_progress() -> RichProgress:
    # Imported here: only work on a terminal needs it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)
