"""Report downloads to the user on stderr: a bar on a terminal, plain lines in a pipe.

`Reporter` is the protocol that sources and installs report to. `SilentReporter` ignores reports,
`LineReporter` writes lines, and `BarReporter` adds a progress bar drawn with Rich.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress


class Reporter(Protocol):
    """Receives messages and progress. Its methods return nothing."""

    def info(self, line: str) -> None:
        """One message for the user, a whole line."""
        ...

    def progress(self, done: int, total: int) -> None:
        """Bytes downloaded so far, of how many. Each download starts again from a small number."""
        ...

    def close(self) -> None:
        """The download has ended; a later one may follow."""
        ...


class SilentReporter:
    """Ignores everything."""

    def info(self, line: str) -> None: ...

    def progress(self, done: int, total: int) -> None: ...

    def close(self) -> None: ...


class LineReporter(SilentReporter):
    """Messages on stderr without a bar, for pipes and logs."""

    def info(self, line: str) -> None:
        sys.stderr.write(f"{line}\n")


class BarReporter(LineReporter):
    """Messages on stderr, and a progress bar that disappears when the download ends."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def info(self, line: str) -> None:
        self.close()
        super().info(line)

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


def stderr_reporter(*, quiet: bool = False) -> Reporter:
    """The reporter for this stderr: a bar on a terminal, lines elsewhere, nothing if quiet."""
    if quiet:
        return SilentReporter()
    return BarReporter() if sys.stderr.isatty() else LineReporter()


def _rich_progress() -> Progress:
    # Imported here: only a download on a terminal needs it.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
