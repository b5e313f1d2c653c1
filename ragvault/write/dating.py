"""Dating: when the notes of one vault are from, asked once a run.

Brings together what a date may come from: the name (by the vault's own daily format), the
frontmatter, git's log and the file's time. The rules are in notes/dates.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from ragvault.config.settings import Config
from ragvault.notes import obsidian
from ragvault.notes.dates import Daily, created_of, date_of, modified_of
from ragvault.notes.git_dates import GitDates, git_dates, head
from ragvault.types import Date, File


class Dates(TypedDict):
    """The dates of a note, as the catalogue takes them."""

    date: Date
    created: float
    modified: float


@dataclass(frozen=True, slots=True)
class Dating:
    """The sources of dates in one vault; `git_head` names the commit that git's were read at."""

    daily: Daily = field(default_factory=Daily)
    git: GitDates = field(default_factory=GitDates)
    git_head: str = ""
    warnings: tuple[str, ...] = ()

    def of(self, file: File, properties: Mapping[str, Any]) -> Dates:
        """The dates of one note."""
        last, first = self.git.last.get(file.path), self.git.first.get(file.path)
        return Dates(
            date=date_of(file.path, properties, mtime_ns=file.mtime_ns, git=last, daily=self.daily),
            created=created_of(
                file.path, properties, mtime_ns=file.mtime_ns, git=first, daily=self.daily
            ),
            modified=modified_of(properties, mtime_ns=file.mtime_ns, git=last),
        )


def dating(root: Path, config: Config, *, last_head: str, anything_new: bool) -> Dating:
    """Gather the sources; git is run only where a note needs it or a commit was made since."""
    daily, warnings = obsidian.daily(root)
    now = head(root) if config.parse.git_dates else ""
    ask_git = bool(now) and (anything_new or now != last_head)
    git = git_dates(root) if ask_git else GitDates()
    return Dating(daily, git, now if ask_git else last_head, tuple(warnings))
