"""What notes and queries share about dates: month names, ordinals, time zones, and the calendar.

Each expression is a part to build larger ones from, to be matched without regard to case.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ORDINAL = "(?:st|nd|rd|th)?"
# A month's name or at least its first three letters: sept, september. Longer ones come first.
MONTH_NAME = "|".join(month[:length] for month in MONTHS for length in range(len(month), 2, -1))
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d\d)?")
# The calendar of the standard library, which every date is written with: the years 1 to 9999, UTC.
EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_799.0


def in_calendar(at: float | None) -> float | None:
    """The moment itself, or None where no calendar has it: such a date is no date."""
    return at if at is not None and EARLIEST <= at <= LATEST else None


def iso_utc(at: float | None) -> str | None:
    """A moment as 2024-03-01T09:30:00Z; None for no date and outside the calendar."""
    if (at := in_calendar(at)) is None:
        return None
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds")[:19] + "Z"


def month_number(name: str) -> int:
    """1 to 12 for a month's name or its first three letters or more; 0 if it is none."""
    small = name.lower()
    named = (number for number, month in enumerate(MONTHS, 1) if month.startswith(small))
    return next(named, 0) if len(small) > 2 else 0


def utc_offset(written: str) -> timezone:
    """The zone that `+02:00`, `-0530` or `+2` names; UTC for `Z` and all else.

    Raises ValueError for an offset of a day or more.
    """
    offset = _OFFSET.fullmatch(written)
    if offset is None:
        return timezone.utc
    sign, hours, minutes = offset.groups()
    away = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-away if sign == "-" else away)
