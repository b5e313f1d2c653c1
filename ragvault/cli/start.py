"""The console entry point, and what a search hands to the process that answers it.

    run        the whole program
    Caller     where a search was typed: folder, environment, clock, terminal
    Reply      what it writes to stdout and stderr, and its exit code

`ragvault search` asks the watcher, or a resident process, which it starts if there is none. This
process then never imports Typer: a search takes a tenth of a second instead of one or two.
Everything the search would read from its own process is in the Caller, so both ways write the same
bytes. Every other command, and every search that is not answered, goes on to main.py.
`--no-resident`, RAGVAULT_ALONE=1 and RAGVAULT_DEBUG=1 ask nobody.

This module imports almost nothing, because every search waits for it.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

HELP = ("-h", "--help")  # answered by the process in which they were typed
ALONE = "--no-resident"
LEG_THREADS = "leg"  # prefix of the names of a search's threads
GRACE = 0.2  # seconds a late leg gets to end
# Python looks for reference cycles after 700 new containers, and now and then at everything. A
# search makes thousands that need no collector; it was held up by 1.8 ms, once in forty by 35 ms.
GC_THRESHOLD = 50_000  # containers
WIDTH = 100  # columns if the terminal does not report its own
VARIABLES = ("RAGVAULT_", "XDG_")  # prefixes of variables that settings and folders depend on
MORE_VARIABLES = ("NO_COLOR", "TERM", "HOME", "TZ")
PATHS = ("RAGVAULT_HOME", "RAGVAULT_CONFIG")
LOCALTIME = "/etc/localtime"
MAX_ZONE = 1_000_000  # bytes of a file with a time zone; they have some thousand

clock = time.time  # a name of its own, so that a test can stop it


def run() -> None:
    """The whole program."""
    _open_closed_streams()
    try:
        code = _exit_code(sys.argv[1:])
    except OSError:  # what is wrong cannot be said: stderr is full or gone
        sys.stderr, code = None, 4
    if _has_late_legs():
        # Everything is written. Python would wait for the thread, perhaps for ever.
        os._exit(code)
    sys.exit(code)


def _exit_code(args: Sequence[str]) -> int:
    code = answered_by_watcher(args)
    if code is not None:
        return code
    collect_garbage_less_often()  # before the imports: they create most objects
    if {"search", "watch"} & set(args):
        use_one_blas_thread()
    from ragvault.cli.main import main

    return main(args)


def _open_closed_streams() -> None:
    """A stream that was closed (`2>&-`) leads nowhere, instead of to the next file we open."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115


def collect_garbage_less_often() -> None:
    """Make Python's cycle collector run less often; for processes that are ours alone."""
    gc.set_threshold(GC_THRESHOLD, 20, 20)


def use_one_blas_thread() -> None:
    """Let NumPy multiply in one thread, unless the user decides; before it is imported.

    A search multiplies small matrices. The library's threads wait for each other in a busy loop:
    on two busy cores a search took 130 ms with two of them, and 80 ms with one.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _has_late_legs() -> bool:
    """Whether a leg that timed out is still running."""
    threading = sys.modules.get("threading")
    threads = threading.enumerate() if threading else ()
    legs = [thread for thread in threads if thread.name.startswith(LEG_THREADS)]
    for leg in legs:
        leg.join(GRACE)
    return any(leg.is_alive() for leg in legs)


def answered_by_watcher(args: Sequence[str]) -> int | None:
    """Let the watcher answer a search and return its exit code; None if it must be done here."""
    typed, args = args, _search_first(args)
    alone = os.environ.get("RAGVAULT_ALONE") or os.environ.get("RAGVAULT_DEBUG")
    if not args or alone or {ALONE, *HELP} & set(args):
        return None
    from ragvault.cli.commands import meant_command
    from ragvault.service.protocol import WatcherUnavailable, ask_or_start

    try:
        caller = this_caller()._asdict()
        with report_if_slow("searching", quiet=bool({"-q", "--quiet"} & set(args))):
            answer = ask_or_start({"op": "search", "args": args, "around": caller})
        reply = checked_reply(answer)
        if reply is None:
            raise WatcherUnavailable("it sent something that is no answer to a search")
        hint = "" if {"-q", "--quiet"} & set(args) else meant_command(typed, reply.code)
        return _write(reply._replace(err=(*reply.err, hint)) if hint else reply)
    except WatcherUnavailable as unavailable:
        if unavailable.reason and {"-v", "--verbose"} & set(args):
            from ragvault.text.printable import printable

            why = printable(str(unavailable.reason))
            sys.stderr.write(f"no answer from the resident process: {why}\n")
        return None
    except KeyboardInterrupt:
        return 130


def checked_reply(answer: Mapping[str, Any]) -> Reply | None:
    """The answer as a Reply; None if it is not one."""
    out, err, code = answer.get("out"), answer.get("err"), answer.get("code")
    lines = err if isinstance(err, list) and all(isinstance(line, str) for line in err) else None
    if not isinstance(out, str) or lines is None or type(code) is not int or not 0 <= code < 256:
        return None
    return Reply(out, tuple(lines), code)


def _search_first(args: Sequence[str]) -> list[str]:
    """The arguments with `search` first; empty for any other command and for a mistyped one."""
    from ragvault.cli.commands import check_command, volume_first, with_command
    from ragvault.errors import UsageError

    try:
        check_command(args)
    except UsageError:
        return []
    volume, rest = volume_first(with_command(args))
    return ["search", *volume, *rest[1:]] if rest[:1] == ["search"] else []


def _write(reply: Reply) -> int:
    """Write what `ragvault search` would have written, and return its exit code."""
    try:
        write_reply(reply)
    except OSError as error:  # a full disk, or a reader that left
        from ragvault.cli.main import failed

        return failed(error)
    return reply.code


# --- where a search was typed, and what it writes ---


class Caller(NamedTuple):
    """Where a search was typed. `terminal`: whether its stdout is one; `session`: see there."""

    cwd: str
    environ: Mapping[str, str]
    now: float  # seconds since 1970
    zone: int  # seconds that local time is ahead of UTC, at `now`
    terminal: bool = False
    columns: int = WIDTH
    lines: int = 0  # of the terminal; 0 if it does not report them
    session: int = 0

    @property
    def colour(self) -> bool:
        off = self.environ.get("NO_COLOR", "") or self.environ.get("TERM") == "dumb"
        return self.terminal and not off

    def local_time(self) -> datetime:
        """When the search was typed, in the caller's time zone."""
        from datetime import datetime

        return datetime.fromtimestamp(self.now, self.time_zone())

    def time_zone(self) -> tzinfo:
        """The caller's time zone, from TZ or /etc/localtime.

        The offset of this moment alone would be wrong for the other half of the year where clocks
        change. It is used only if the zone cannot be read, or disagrees with the caller's clock.
        """
        from datetime import datetime, timedelta, timezone

        offset = timedelta(seconds=self.zone)
        zone = _read_zone(self.environ.get("TZ"))
        if zone is not None and datetime.fromtimestamp(self.now, zone).utcoffset() == offset:
            return zone
        return timezone(offset)


def this_caller() -> Caller:
    """The caller that is this process, now."""
    now = clock()
    terminal = bool(sys.stdout) and sys.stdout.isatty()
    return Caller(
        cwd=_current_folder(),
        environ=dict(_relevant(os.environ)),
        now=now,
        zone=time.localtime(now).tm_gmtoff,
        terminal=terminal,
        columns=terminal_columns(sys.stdout) if terminal else WIDTH,
        lines=terminal_lines(sys.stdout) if terminal else 0,
        session=session(),
    )


def session() -> int:
    """A number that all commands of one terminal share: those of another terminal, of an editor or
    an agent have another one."""
    return os.getsid(0) if hasattr(os, "getsid") else os.getppid()


def _current_folder() -> str:
    """The current folder; the root folder if it was deleted, which is inside no vault."""
    # Not pathlib: importing it takes longer than everything else here.
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return os.sep


def _relevant(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The variables that matter; paths become absolute, so they mean the same in every folder."""
    return [
        (name, os.path.abspath(os.path.expanduser(value)) if name in PATHS and value else value)  # noqa: PTH100, PTH111
        for name, value in environ.items()
        if name.startswith(VARIABLES) or name in MORE_VARIABLES
    ]


def terminal_columns(stream: Any) -> int:
    """How wide the terminal of a stream is; 0 for a stream that is none."""
    return _screen(stream, "COLUMNS", 0) or WIDTH if stream and stream.isatty() else 0


def terminal_lines(stream: Any) -> int:
    """How many lines the terminal of a stream has; 0 if it does not say."""
    return _screen(stream, "LINES", 1)


def _screen(stream: Any, variable: str, at: int) -> int:
    """A variable of the environment, else what the terminal says: its columns and its lines."""
    given = os.environ.get(variable, "")
    if given.isdecimal():
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno())[at]
    except (OSError, ValueError):
        return 0


def _read_zone(name: str | None) -> tzinfo | None:
    """The zone that TZ names, by name or by file; without TZ the machine's; None if unreadable."""
    from datetime import timezone
    from io import BytesIO
    from zoneinfo import ZoneInfo

    from ragvault.notes.read import read_once  # a pipe would block the process that answers

    place = LOCALTIME if name is None else name.removeprefix(":")
    try:
        if not place.startswith("/"):
            return ZoneInfo(place) if place else timezone.utc
        found = read_once(os.path.realpath(place), MAX_ZONE)
        return None if isinstance(found, str) else ZoneInfo.from_file(BytesIO(found[1]))
    except (KeyError, OSError, ValueError):  # no such name or file, or not a zone file
        return None


class Reply(NamedTuple):
    """What a search writes. `out` is complete, `err` is lines; paths are as os.fsdecode gives."""

    out: str
    err: tuple[str, ...] = ()
    code: int = 0


def write_reply(reply: Reply) -> None:
    """Write results to stdout, then notices to stderr."""
    if reply.out and sys.stdout:  # None if it was closed: `>&-`
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            sys.stdout.write(reply.out)
        else:
            sys.stdout.flush()
            buffer.write(encoded(reply.out, sys.stdout.encoding))
            buffer.flush()
    if reply.err and sys.stderr:
        text, width = "\n".join(reply.err), terminal_columns(sys.stderr)
        if width:
            from ragvault.text.printable import wrapped

            text = wrapped(text, width)
        sys.stderr.write(f"{text}\n")


def encoded(text: str, encoding: Any) -> bytes:
    """Names that are not Unicode become their bytes; what the encoding lacks is escaped."""
    try:
        return text.encode(encoding or "utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding or "utf-8", "backslashreplace")


# --- waiting ---


PATIENCE = 1.0  # seconds


@contextmanager
def report_if_slow(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Show what is being waited for, from the first second until it ends."""
    if quiet or not sys.stderr or not sys.stderr.isatty():
        yield
        return
    from threading import Timer

    shown = []

    def show() -> None:
        shown.append(sys.stderr.write(f"{text} …"))
        sys.stderr.flush()

    timer = Timer(PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown:
            sys.stderr.write("\r\x1b[2K")  # the line is wiped
            sys.stderr.flush()
