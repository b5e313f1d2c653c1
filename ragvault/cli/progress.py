"""Progress on long work: bars for a person at a terminal, silence everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ragvault.cli import render

Tell = Callable[[str, int, int], None]


@contextmanager
def progress() -> Iterator[Tell]:
    """A function to tell progress to: what is being done, how many are done, of how many (or 0)."""
    if render.is_quiet() or not sys.stderr.isatty():
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

        def tell(what: str, done: int, total: int) -> None:
            if not what:
                return  # for those who may want to stop
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total or None, rate="")
            task = tasks[what]
            speed = bars.tasks[bars.task_ids.index(task)].speed
            bars.update(
                task, completed=done, total=total or None, rate=f"{speed:,.0f}/s" if speed else ""
            )

        yield tell
