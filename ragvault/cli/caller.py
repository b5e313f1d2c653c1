"""What passes between a search and the process that answers it.

    Caller   where the search was typed: folder, environment, clock, terminal
    Reply    what it writes to stdout and stderr, and its exit code

A watcher may answer a search that was typed in another process. Everything the search would read
from its own process is collected here once and handed over, so the answer is the same. Imports
almost nothing, because every search that a watcher answers waits for this file.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

WIDTH = 100  # columns if the terminal does not report its own
VARIABLES = ("RAGVAULT_", "XDG_")  # prefixes of variables that settings and folders depend on
MORE_VARIABLES = ("NO_COLOR", "TERM", "HOME", "TZ")
PATHS = ("RAGVAULT_HOME", "RAGVAULT_CONFIG")
LOCALTIME = "/etc/localtime"

clock = time.time  # a name of its own, so that a test can stop it


class Caller(NamedTuple):
    """Where a search was typed. `terminal`: whether its stdout is one."""

    cwd: str
    environ: Mapping[str, str]
    now: float  # seconds since 1970
    zone: int  # seconds that local time is ahead of UTC, at `now`
    terminal: bool = False
    columns: int = WIDTH

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
        columns=_columns() if terminal else WIDTH,
    )


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


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or WIDTH
    except ValueError:
        pass
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


def _read_zone(name: str | None) -> tzinfo | None:
    """The zone that TZ names, by name or by file; without TZ the machine's; None if unreadable."""
    from datetime import timezone
    from zoneinfo import ZoneInfo

    place = LOCALTIME if name is None else name.removeprefix(":")
    try:
        if not place.startswith("/"):
            return ZoneInfo(place) if place else timezone.utc
        with open(place, "rb") as file:  # noqa: PTH123
            return ZoneInfo.from_file(file)
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
        sys.stderr.write("".join(f"{line}\n" for line in reply.err))


def encoded(text: str, encoding: Any) -> bytes:
    """Names that are not Unicode become their bytes; what the encoding lacks is escaped."""
    try:
        return text.encode(encoding or "utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(encoding or "utf-8", "backslashreplace")
