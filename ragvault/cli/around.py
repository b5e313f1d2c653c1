"""Surroundings: all that a search takes from the process it was typed in, as plain values.

The same search may be answered by another process: what it would ask of its own folder, variables,
clock and terminal is taken here, once, and handed over. Imports next to nothing, because a search
that another process answers should not wait for more.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

WIDTH = 100  # columns of a terminal that does not tell
KEPT = ("RAGVAULT_", "XDG_")  # beginnings of variables that settings and folders depend on
NAMED = ("NO_COLOR", "TERM", "HOME", "TZ")
PATHS = ("RAGVAULT_HOME", "RAGVAULT_CONFIG")

clock = time.time  # under a name of its own, so that a test can stop it


class Surroundings(NamedTuple):
    """Where a search was typed. `terminal` is whether its stdout is one."""

    cwd: str
    environ: Mapping[str, str]
    now: float  # seconds since 1970
    zone: int  # seconds that local time is ahead of UTC, at `now`
    terminal: bool = False
    columns: int = WIDTH

    @property
    def colour(self) -> bool:
        told = self.environ.get("NO_COLOR", "") or self.environ.get("TERM") == "dumb"
        return self.terminal and not told


def surroundings() -> Surroundings:
    """Those of this process, now."""
    now = clock()
    terminal = bool(sys.stdout) and sys.stdout.isatty()
    return Surroundings(
        cwd=_folder(),
        environ=dict(_kept(os.environ)),
        now=now,
        zone=time.localtime(now).tm_gmtoff,
        terminal=terminal,
        columns=_columns() if terminal else WIDTH,
    )


def _folder() -> str:
    """The current folder; the top one where that has been deleted, which is around no vault."""
    # Not pathlib: importing it takes longer than everything else here.
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return os.sep


def _kept(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The variables that matter; a path in one means the same in every folder."""
    return [
        (name, os.path.abspath(os.path.expanduser(value)) if name in PATHS and value else value)  # noqa: PTH100, PTH111
        for name, value in environ.items()
        if name.startswith(KEPT) or name in NAMED
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
