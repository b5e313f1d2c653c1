"""Progress of long commands on stderr: bars on a terminal, a line now and then in a pipe or log.

    with progress("finished work is kept") as shown:
        vault.index(progress=shown)

A step whose end is known has a bar with its speed and the time left; any other a spinner, which
vanishes when the next step begins. Ctrl-C says what was kept. Each class keeps the promises of
ports.Progress; with --quiet nothing is shown. waiting.py is for one step that is usually quick.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ragvault.cli.render import console
from ragvault.ports import NoProgress, Progress
from ragvault.text.printable import harmless

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

LINE_EVERY = 30.0  # seconds between two lines about a step, in a log
BAR_WIDTH = 24  # columns, fewer in a narrow terminal
STEP_WIDTH = 22  # columns of a step's name, so that bars stay in line
DOWNLOAD = "downloading"


@contextmanager
def progress(kept: str = "") -> Iterator[Progress]:
    """What shows progress on this stderr; bars disappear at the end.

    `kept` is what Ctrl-C leaves behind, for the line that says so.
    """
    try:
        if console.is_quiet():
            yield NoProgress()
        elif not sys.stderr.isatty():
            yield LineProgress()
        else:
            with BarProgress() as bars:
                yield bars
    except KeyboardInterrupt:
        console.report(f"stopped; {kept}" if kept else "stopped")
        raise


class Pace:
    """How fast a step goes, over all of it: a step that is resumed begins with some items done."""

    def __init__(self, done: int) -> None:
        self.last = self._first = done
        self._began = time.monotonic()

    def rate(self, done: int) -> float:
        """Items a second; 0 before anything was done."""
        seconds = time.monotonic() - self._began
        return (done - self._first) / seconds if seconds > 0 and done > self._first else 0.0

    def left(self, done: int, total: int) -> str:
        """The time that is left, in words; empty if that cannot be known yet."""
        rate = self.rate(done)
        return f"{duration((total - done) / rate)} left" if rate and total > done else ""


def _pace(paces: dict[str, Pace], name: str, done: int) -> Pace:
    """The pace of a step; it starts again when the step does."""
    if name not in paces or done < paces[name].last:
        paces[name] = Pace(done)
    paces[name].last = done
    return paces[name]


def duration(seconds: float) -> str:
    """About how long: 40 s, 12 min, 2 h 5 min."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return f"{minutes} min" if not hours else f"{hours} h" + (f" {rest} min" if rest else "")


def _speed(rate: float) -> str:
    return f"{rate:,.1f}/s" if rate < 10 else f"{rate:,.0f}/s"


class LineProgress(NoProgress):
    """Messages on stderr, and a line about the current step every half minute."""

    def __init__(self) -> None:
        self._next = time.monotonic() + LINE_EVERY
        self._paces: dict[str, Pace] = {}

    def info(self, text: str) -> None:
        sys.stderr.write(f"{harmless(text)}\n")

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        pace = _pace(self._paces, name, done)
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_EVERY
        if not total:
            self.info(f"{name} …")
            return
        rate, left = pace.rate(done), pace.left(done, total)
        more = ", ".join(filter(None, (_speed(rate) if rate else "", left)))
        self.info(f"{name}: {done:,} of {total:,}" + (f" ({more})" if more else ""))


class BarProgress(NoProgress):
    """Messages on stderr above one bar or spinner for each step."""

    def __init__(self) -> None:
        self._bars: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._paces: dict[str, Pace] = {}

    def __enter__(self) -> BarProgress:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def info(self, text: str) -> None:
        # Above the bars: Rich redirects stderr while they are shown.
        sys.stderr.write(f"{harmless(text)}\n")

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        amount = f"{done:,}/{total:,}" if total else ""
        self._show(name, done, total, amount, _speed)

    def download(self, done: int, total: int) -> None:
        amount = f"{done / 1e6:.1f}/{total / 1e6:.1f} MB" if total else f"{done / 1e6:.1f} MB"
        self._show(DOWNLOAD, done, total, amount, lambda rate: f"{rate / 1e6:.1f} MB/s")

    def download_ended(self) -> None:
        self._hide(DOWNLOAD)

    def _show(
        self, name: str, done: int, total: int, amount: str, speed: Callable[[float], str]
    ) -> None:
        pace = _pace(self._paces, name, done)
        bars = self._shown()
        if name not in self._tasks:
            for other in [each for each in self._tasks if self._is_endless(each)]:
                self._hide(other)
            label = name.ljust(STEP_WIDTH)
            self._tasks[name] = bars.add_task(label, total=total or None, amount="", pace="")
        rate, left = pace.rate(done), pace.left(done, total)
        words = "  ".join(filter(None, (speed(rate) if rate else "", left)))
        task = self._tasks[name]
        bars.update(task, completed=done, total=total or None, amount=amount, pace=words)

    def _is_endless(self, name: str) -> bool:
        """Whether a step has no total: its spinner says nothing once the next step begins."""
        bars = self._shown()
        return bars.tasks[bars.task_ids.index(self._tasks[name])].total is None

    def _hide(self, name: str) -> None:
        self._paces.pop(name, None)
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
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn

    terminal = Console(stderr=True)
    width = max(5, min(BAR_WIDTH, terminal.width - 60))

    class BarOrSpinner(ProgressColumn):
        """A bar where the end is known."""

        def __init__(self) -> None:
            super().__init__()
            self._bar, self._spinner = BarColumn(bar_width=width), SpinnerColumn()

        def render(self, task: Any) -> Any:
            return (self._spinner if task.total is None else self._bar).render(task)

    columns = (
        TextColumn("{task.description}"),
        BarOrSpinner(),
        TextColumn("{task.fields[amount]}"),
        TextColumn("{task.fields[pace]}"),
    )
    return Progress(*columns, console=terminal, transient=True)
