"""The terminal: what commands write to it, and text made safe for it.

    out         data, to stdout, in its own lines
    show        text for people, to stdout, in lines that fit the terminal
    result      what a command found, as JSON or as text for people
    report      a line about what is going on, to stderr; silent with --quiet
    detail      the same, only with --verbose
    error       what went wrong and how to fix it, to stderr

Whatever a command writes passes here or, for a search, `results.formatted`, and is made harmless.

Every command imports this file, so what only one of them needs is imported inside its function.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from errno import ENOSPC
from typing import Any

import typer

from ragvault.answer.json_output import encode
from ragvault.cli.start import columns
from ragvault.errors import RagvaultError, UsageError
from ragvault.text.printable import harmless, printable, wrapped

# 0 with --quiet, 2 with --verbose. A thread that answers another process has its own value.
_volume: ContextVar[int] = ContextVar("volume", default=1)


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
        typer.echo(wrapped(harmless(text), columns(sys.stdout)))


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
    typer.echo(wrapped(line, columns(sys.stderr)), err=True)


def confirm(question: str, *, fix: str) -> bool:
    """Ask before something is deleted. Raises UsageError if nobody can answer."""
    if not sys.stdin or not sys.stdin.isatty():
        raise UsageError("refusing to delete without confirmation (not a terminal)", fix=fix)
    return typer.confirm(harmless(question), err=True)


def agree(question: str, *, fix: str) -> bool:
    """Ask before something is changed. Raises UsageError if nobody can answer."""
    if not sys.stdin or not sys.stdin.isatty():
        raise UsageError("cannot ask for confirmation: not a terminal", fix=fix)
    return typer.confirm(harmless(question), err=True)


def error(error: RagvaultError, search: str = "") -> None:
    """Two lines for each problem; with RAGVAULT_DEBUG=1 the traceback above them.

    `search` is the search that may have been meant.
    """
    _traceback()
    for line in error_lines(error, search):
        _complain(line)


def error_lines(error: RagvaultError, search: str = "") -> Iterator[str]:
    """The lines that `error` writes."""
    for each in getattr(error, "problems", (error,)):
        yield from _two_lines(str(each), _or_search(each.fix, search))


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
