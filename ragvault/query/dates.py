"""Dates as people type them: each names a range of time.

    2024   2024-03   2024-03-01   2024-03-01T09:30   2024-W10   2024-Q1
    today  yesterday  monday  fri  "last monday"  march  "march 2024"  "3 feb"  "feb 3 2024"
    "this week"  "last quarter"  "3 days ago"  "a week ago"  "past two weeks"  7d  2w

`since:` and `before:` compare with the beginning of the range, `created:` asks for a date inside
it. Several words are in quotes, or joined by hyphens: last-week. Weeks begin on Monday. The
caller passes the clock; nothing here asks what time it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import NamedTuple

from ragvault.plan import Moment
from ragvault.text.dates import MONTH_NAME, ORDINAL, WEEKDAYS, month_number

YEARS = range(1000, 9001)  # others are numbers, or so near the calendar's end that sums overflow
EPOCH = datetime(1970, 1, 1)
NUMBERS = (
    *("one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
UNITS = {"h": "hour", "d": "day", "w": "week", "m": "month", "y": "year"}
_CLOCK = r"(?:[t ](\d\d?):(\d\d)(?::(\d\d))?z?)?"
_UNIT = r"(hour|day|week|month|year)s?"
_COUNT = re.compile(rf"\b(an?|{'|'.join(NUMBERS)})(?= {_UNIT}\b)")


class DateRange(NamedTuple):
    """From `first` up to, not including, `last`, in the caller's local time."""

    first: datetime
    last: datetime


def read_date_range(text: str, now: datetime) -> DateRange | None:
    """The range of time that a text names; None if it names none."""
    words = " ".join(text.lower().split())
    if not words.isascii():  # \d matches digits that int() and people read differently
        return None
    local, spoken = now.replace(tzinfo=None), _spoken(words)
    for pattern, make in _FORMS:
        if match := pattern.fullmatch(words) or pattern.fullmatch(spoken):
            try:
                return make(match, local)
            except (ValueError, OverflowError):
                return None
    return None


def _spoken(words: str) -> str:
    """With spaces for hyphens and digits for number words: two-weeks-ago, 2 weeks ago."""

    def digits(word: re.Match[str]) -> str:
        return str(NUMBERS.index(word[1]) + 1) if word[1] in NUMBERS else "1"

    return _COUNT.sub(digits, re.sub(r"[-_]", " ", words))


def moment(local: datetime, now: datetime) -> Moment:
    """A local time as the two numbers notes are compared with, in the zone of `now`."""
    zoned = local.replace(tzinfo=now.tzinfo)  # without a zone: the machine's
    return Moment((local - EPOCH).total_seconds(), zoned.timestamp())


def range_in_words(since: float, until: float) -> str:
    """A range in words: on a day, from a first to a last day, or to the minute."""
    first, last = iso_time(since), iso_time(until - 86400)
    if " " in first or " " in last:
        return f"from {first} until {iso_time(until)}"
    return f"on {first}" if first == last else f"from {first} to {last}"


def iso_time(at: float) -> str:
    """A moment as an ISO date, with its time unless that is midnight."""
    local = EPOCH + timedelta(seconds=at)
    precision = "seconds" if local.second else "minutes"
    return local.isoformat(" ", precision).removesuffix(" 00:00")


# --- The forms: each has a pattern and a function that reads its match at a given time ---


def _at(year: int, month: int = 1, day: int = 1, clock: tuple[int, ...] = (0, 0, 0)) -> datetime:
    if year not in YEARS:
        raise ValueError(year)
    hour, minute, second = clock
    return datetime(year, month, day, hour, minute, second)


def _day(day: date | datetime, days: int = 1) -> DateRange:
    first = datetime(day.year, day.month, day.day)
    return DateRange(first, first + timedelta(days=days))


def _months(year: int, month: int, count: int = 1) -> DateRange:
    """Whole months; month 13 is January of the next year."""
    first = year * 12 + month - 1
    ends = (divmod(at, 12) for at in (first, first + count))
    return DateRange(*(_at(year, month + 1) for year, month in ends))


def _iso(match: re.Match[str], now: datetime) -> DateRange:
    year, month, day, *clock = (None if part is None else int(part) for part in match.groups())
    hour, minute, second = (part or 0 for part in clock)
    start = (1 if month is None else month, 1 if day is None else day)
    first = _at(year or 0, *start, (hour, minute, second))
    if month is None:
        return _months(first.year, 1, 12)
    if day is None:
        return _months(first.year, first.month)
    if clock[0] is None:
        return _day(first)
    return DateRange(first, first + timedelta(seconds=60 if clock[2] is None else 1))


def _iso_week(match: re.Match[str], now: datetime) -> DateRange:
    return _day(date.fromisocalendar(_at(int(match[1])).year, int(match[2]), 1), 7)


def _quarter(match: re.Match[str], now: datetime) -> DateRange:
    return _months(int(match[1]), int(match[2]) * 3 - 2, 3)


def _near_day(match: re.Match[str], now: datetime) -> DateRange:
    return _day(now + timedelta(days=("yesterday", "today", "tomorrow").index(match[1]) - 1))


def _weekday(match: re.Match[str], now: datetime) -> DateRange:
    """The latest one, today included; with "last", the latest before today."""
    wanted = next(at for at, name in enumerate(WEEKDAYS) if name.startswith(match[2]))
    back = (now.weekday() - wanted) % 7
    return _day(now - timedelta(days=back or (7 if match[1] else 0)))


def _month_name(match: re.Match[str], now: datetime) -> DateRange:
    """That month of the year, or without a year the latest that has begun."""
    month = month_number(match[1])
    if match[2]:
        return _months(int(match[2]), month)
    return _months(now.year - (month > now.month), month)


def _month_and_day(match: re.Match[str], now: datetime) -> DateRange:
    """That day of the year, or without a year the latest such day (February 29: of a leap year)."""
    month, day = month_number(match["month"]), int(match["day"])
    if match["year"]:
        return _day(_at(int(match["year"]), month, day))
    for year in range(now.year, now.year - 9, -1):
        with suppress(ValueError):
            if (found := _at(year, month, day)) <= now:
                return _day(found)
    raise ValueError(day)


def _this_or_last(match: re.Match[str], now: datetime) -> DateRange:
    back, unit = ("this", "last").index(match[1]), match[2]
    if unit == "day":
        return _day(now - timedelta(days=back))
    if unit == "week":
        return _day(now - timedelta(days=now.weekday() + 7 * back), 7)
    if unit == "month":
        return _months(now.year, now.month - back)
    if unit == "quarter":
        return _months(now.year, now.month - (now.month - 1) % 3 - 3 * back, 3)
    return _months(now.year - back, 1, 12)


def _ago(match: re.Match[str], now: datetime) -> DateRange:
    """One unit long, beginning that long ago: "2 weeks ago" is seven days."""
    count = int(match[1])
    return DateRange(_back(now, count, match[2]), _back(now, count - 1, match[2]))


def _past(match: re.Match[str], now: datetime) -> DateRange:
    """From that long ago to the end of today."""
    unit = UNITS.get(match[2], match[2])
    return DateRange(_back(now, int(match[1] or 1), unit), _day(now).last)


def _back(now: datetime, count: int, unit: str) -> datetime:
    """That many units ago, at the beginning of the day; hours to the minute."""
    if unit == "hour":
        return _checked((now - timedelta(hours=count)).replace(second=0, microsecond=0))
    today = _day(now).first
    if unit in ("day", "week"):
        return _checked(today - timedelta(days=count * (7 if unit == "week" else 1)))
    year, month = divmod(now.year * 12 + now.month - 1 - count * (12 if unit == "year" else 1), 12)
    last = (_months(year, month + 1).last - timedelta(days=1)).day
    return _at(year, month + 1, min(now.day, last))


def _checked(local: datetime) -> datetime:
    return local if local.year in YEARS else _at(local.year)


_Make = Callable[[re.Match[str], datetime], DateRange]
_DAY = "|".join([*WEEKDAYS, *(name[:3] for name in WEEKDAYS), "tues", "thur", "thurs"])
_NTH = rf"(?P<day>\d\d?){ORDINAL}"
_FORMS: tuple[tuple[re.Pattern[str], _Make], ...] = tuple(
    (re.compile(pattern), make)
    for pattern, make in (
        (rf"(\d{{4}})(?:[-/.](\d\d?)(?:[-/.](\d\d?){_CLOCK})?)?", _iso),
        (r"(\d{4})-?w(\d\d?)", _iso_week),
        (r"(\d{4})-?q([1-4])", _quarter),
        (r"(yesterday|today|tomorrow)", _near_day),
        (rf"(last )?({_DAY})", _weekday),
        (rf"({MONTH_NAME})(?: (\d{{4}}))?", _month_name),
        (rf"(?P<month>{MONTH_NAME}) {_NTH}(?:,? (?P<year>\d{{4}}))?", _month_and_day),
        (rf"{_NTH}\.? (?:of )?(?P<month>{MONTH_NAME})(?:,? (?P<year>\d{{4}}))?", _month_and_day),
        (r"(this|last) (day|week|month|quarter|year)", _this_or_last),
        (rf"(\d{{1,6}}) {_UNIT} ago", _ago),
        (rf"(?:past|last) (?:(\d{{1,6}}) )?{_UNIT}", _past),
        (r"(\d{1,6})([hdwmy])", _past),
    )
)
