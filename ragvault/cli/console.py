"""The terminal: what commands write to it, and text made safe for it.

    out         data, to stdout, in its own lines
    show        text for people, to stdout, in lines that fit the terminal
    result      what a command found, as JSON or as text for people
    report      a line about what is going on, to stderr; silent with --quiet
    detail      the same, only with --verbose
    error       what went wrong and how to fix it, to stderr
    progress    bars, or a line now and then, while a long command works

Whatever a command writes passes here or, for a search, `results.formatted`, and is made harmless.

Every command imports this file, so what only one of them needs is imported inside its function.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from errno import ENOSPC
from typing import TYPE_CHECKING, Any

import typer

from ragvault.cli.start import terminal_columns
from ragvault.errors import ERRORS, RagvaultError, UsageError
from ragvault.ports import Progress
from ragvault.text.printable import encode, harmless, printable, wrapped

NOT_DELETED = "refusing to delete without confirmation (not a terminal)"
# 0 with --quiet, 2 with --verbose. A thread that answers another process has its own value.
_volume: ContextVar[int] = ContextVar("volume", default=1)

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


def reset() -> None:
    """Normal volume; stdout escapes characters that its encoding lacks."""
    _volume.set(1)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")


def be_quiet() -> None:
    _volume.set(0)


def be_verbose() -> None:
    _volume.set(2)


def is_quiet() -> bool:
    return _volume.get() < 1


def is_verbose() -> bool:
    return _volume.get() > 1


def out(text: str) -> None:
    if text:
        typer.echo(harmless(text))


def show(text: str) -> None:
    if text:
        typer.echo(wrapped(harmless(text), terminal_columns(sys.stdout)))


def result(value: Any, text: str, *, json: bool) -> None:
    """What a command found: the value as one line of JSON, or the text for people."""
    out(encode(value)) if json else show(text)


def report(text: str) -> None:
    if _volume.get() >= 1:
        _complain(printable(text))


def detail(text: str) -> None:
    if _volume.get() >= 2:
        _complain(printable(text))


def _complain(line: str) -> None:
    typer.echo(wrapped(line, terminal_columns(sys.stderr)), err=True)


def confirm(question: str, *, fix: str, refusal: str = NOT_DELETED) -> bool:
    """Ask before something is deleted or changed. Raises UsageError if nobody can answer."""
    if not sys.stdin or not sys.stdin.isatty():
        raise UsageError(refusal, fix=fix)
    return typer.confirm(harmless(question), err=True)


def error(error: RagvaultError, search: str = "") -> None:
    """Two lines for each problem; with RAGVAULT_DEBUG=1 the traceback above them.

    `search` is the search that may have been meant.
    """
    _traceback()
    if os.environ.get(ERRORS) == "json":
        found = {"error": str(error), "fix": error.fix, "code": error.exit_code}
        typer.echo(encode(found), err=True)
        return
    for line in error_lines(error, search):
        _complain(line)


def error_lines(error: RagvaultError, search: str = "") -> Iterator[str]:
    """The lines that `error` writes."""
    yield from _two_lines(str(error), _or_search(error.fix, search))


def _or_search(fix: str, search: str) -> str:
    if not search or "ragvault search" in fix:
        return fix
    so = f"{fix} To" if fix.endswith("?") else f"{fix}; to" if fix else "to"
    return f"{so} search for these words: {search}"


def misuse(error: Any, search: str = "", vault: str = "") -> None:
    """A command line that Typer refused, and the vault or the search that may have been meant."""
    words = " ".join(error.format_message().split()).rstrip(".")
    path = error.ctx.command_path if error.ctx else "ragvault"
    fix = f"{path} --help; to search for these words: {search}" if search else f"{path} --help"
    fix = f"{path} --vault {shlex.quote(vault)}" if vault else fix
    for line in _two_lines(words[:1].lower() + words[1:], fix):
        _complain(line)


def unexpected(error: Exception) -> None:
    """A bug in ragvault: asks the user to report it. A full disk, also behind stdout, is none."""
    _traceback()
    if isinstance(error, OSError) and error.errno == ENOSPC:
        for line in _two_lines("there is no space left to write to", "free some, and try again"):
            _complain(line)
        return
    message = " ".join(str(error).split())
    fix = "please report this, with the output of RAGVAULT_DEBUG=1; your vault was not changed"
    for line in _two_lines(f"unexpected {type(error).__name__}: {message}", fix):
        _complain(line)


def _two_lines(message: str, fix: str) -> Iterator[str]:
    yield f"ragvault: {printable(message)}"
    if fix:
        yield f"     fix: {printable(fix)}"


def _traceback() -> None:
    if os.environ.get("RAGVAULT_DEBUG") == "1":
        import traceback

        sys.stderr.write(harmless(traceback.format_exc()))


# --- numbers in words ---


def counted(number: int, what: str) -> str:
    """1 file, 2 files."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """A number of bytes, with its unit."""
    for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= of:
            return f"{number / of:.1f} {unit}"
    return f"{number} bytes"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns: the first aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]
    return "\n".join(lines)


# --- progress ---


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
        if is_quiet():
            yield Progress()
        elif not sys.stderr.isatty():
            yield LineProgress()
        else:
            with BarProgress() as bars:
                yield bars
    except KeyboardInterrupt:
        report(f"stopped; {kept}" if kept else "stopped")
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


class LineProgress(Progress):
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


class BarProgress(Progress):
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
