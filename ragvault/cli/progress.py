"""Progress bars on a terminal; nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ragvault.cli.render import console

ReportProgress = Callable[[str, int, int], None]


@contextmanager
def progress() -> Iterator[ReportProgress]:
    """A function that shows progress: the step, how many are done, of how many (0: unknown)."""
    if console.is_quiet() or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if not what:
                return  # only a chance to cancel, between steps
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None, rate="")
            task = tasks[what]
            speed = bars.tasks[bars.task_ids.index(task)].speed
            bars.update(
                task, completed=done, total=total or None, rate=f"{speed:,.0f}/s" if speed else ""
            )

        yield report
