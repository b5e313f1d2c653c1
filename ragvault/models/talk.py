"""What a pull says while it works: on stderr, a bar on a terminal and plain lines in a pipe.

`Talk` is the promise, kept here by three: `Quiet` says nothing, `Lines` writes lines, `Bar` draws
with Rich. Whoever waits chooses; the sources only report.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress


class Talk(Protocol):
    """Told what is going on; answers nothing and never raises."""

    def say(self, line: str) -> None:
        """One finished sentence."""
        ...

    def progress(self, done: int, total: int) -> None:
        """So many bytes of so many; `done` starts again at a small number for each download."""
        ...

    def close(self) -> None:
        """Nothing more will be said for now."""
        ...


class Quiet:
    """For callers that do not want to hear."""

    def say(self, line: str) -> None: ...

    def progress(self, done: int, total: int) -> None: ...

    def close(self) -> None: ...


class Lines(Quiet):
    """Sentences on stderr, and no bar: for pipes and logs."""

    def say(self, line: str) -> None:
        sys.stderr.write(f"{line}\n")


class Bar(Lines):
    """Sentences, and below them one bar that is gone when the download is."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def say(self, line: str) -> None:
        self.close()
        super().say(line)

    def progress(self, done: int, total: int) -> None:
        if self._progress is None:
            self._progress = _rich_progress()
            self._progress.start()
            self._progress.add_task("", total=total)
        task = self._progress.task_ids[0]
        self._progress.update(task, completed=done, total=total or None)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def on_stderr(*, quiet: bool = False) -> Talk:
    """What fits where stderr goes."""
    if quiet:
        return Quiet()
    return Bar() if sys.stderr.isatty() else Lines()


def _rich_progress() -> Progress:
    # Imported here: only a download on a terminal needs it.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
