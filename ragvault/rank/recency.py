"""How old a note is and what its age is worth, for the recency boost and two fuse methods."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ragvault.candidate import NoteFacts
from ragvault.config.ranking import Recency

DAY = 86_400.0


class Age(NamedTuple):
    """Days since a note's date, and where that date comes from."""

    days: float
    source: str


def note_age(note: NoteFacts, which: Literal["note", "modified"], now: float) -> Age | None:
    """None for a note without that date. A date in the future counts as today."""
    if which == "modified":
        at, source = note.modified, "modified"
    else:
        at, source = (note.date.at, note.date.source) if note.date else (None, "")
    return None if at is None else Age(max(0.0, (now - at) / DAY), source)


def half_life_decay(days: float, half_life: float) -> float:
    """1 today, 0.5 after one half-life, 0.25 after two."""
    return float(0.5 ** (days / half_life))


def tier_factor(days: float, settings: Recency) -> float:
    """The factor of the first tier that includes this age, before the bias."""
    for most, factor in settings.tiers:
        if days < most or (settings.inclusive and days == most):
            return factor
    return settings.older
