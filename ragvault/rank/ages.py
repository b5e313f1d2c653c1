"""How old a note is, how old is old, and which date says so."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ragvault.candidate import NoteFacts

DAY = 86_400.0


class Age(NamedTuple):
    """Days since a note's date, and where that date is from."""

    days: float
    source: str


def age(note: NoteFacts, which: Literal["note", "modified"], now: float) -> Age | None:
    """None for a note without that date. A date to come is today: it makes nothing fresher."""
    if which == "modified":
        at, source = note.modified, "modified"
    else:
        at, source = (note.date.at, note.date.source) if note.date else (None, "")
    return None if at is None else Age(max(0.0, (now - at) / DAY), source)


def halved(days: float, half_life: float) -> float:
    """1 today, a half after one half-life, a quarter after two."""
    return float(0.5 ** (days / half_life))
