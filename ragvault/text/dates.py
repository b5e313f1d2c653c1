"""The grammar of dates that notes and queries share: month names, ordinals, time zones.

Each expression is a part to build larger ones from, to be matched without regard to case.
"""

from __future__ import annotations

import re
from datetime import timedelta, timezone

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ORDINAL = "(?:st|nd|rd|th)?"
# A month's name or at least its first three letters: sept, september. Longer ones come first.
MONTH_NAME = "|".join(month[:length] for month in MONTHS for length in range(len(month), 2, -1))
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d\d)?")


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
