"""Any text is a date or is not, in properties, in names and in queries."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragvault.notes.dates import Daily, moment_of, named_date
from ragvault.query.dates import iso_time, moment, range_in_words, read_date_range
from tests.fuzz_kit import awkward_texts, time_limit

pytestmark = pytest.mark.slow

SEEDS = (
    *("2024-03-01", "2024-03-01T09:30:00.5+02:00", "Friday, 1 March 2024 at 9:30 pm (CET)"),
    *("20240301T093000Z", "1709285400", "1709285400000", "31/12/2024", "[[2024-03-01]]", "2024-03"),
    *(
        "1. 3. 2024",
        "March 1st, 2024",
        "2024-W10",
        "2024-Q1",
        "last monday",
        "feb 29",
        "3 feb 2023",
    ),
    *(
        "two weeks ago",
        "past 999999 years",
        "7d",
        "999999w",
        "this quarter",
        "2024-02-30",
        "0000-1-1",
    ),
    *("9000-12-31", "9999-12-31T23:59:59-23:59", "1000-01-01", "2024-03-01 25:61", "2024-13-01"),
)
PIECES = (
    *(
        "2024",
        "0001",
        "9999",
        "1000",
        "9000",
        "03",
        "31",
        "-",
        "/",
        ".",
        "_",
        ":",
        "T",
        "Z",
        "+02:00",
    ),
    *(
        "-99:99",
        "+24",
        "at ",
        "am",
        "pm",
        " ",
        ",",
        "(",
        ")",
        "march",
        "mar",
        "sept",
        "st",
        "th",
        "W53",
    ),
    *(
        "Q4",
        "last ",
        "this ",
        "past ",
        " ago",
        "days",
        "week",
        "month",
        "year",
        "hour",
        "999999",
        "12",
    ),
)
FORMATS = (
    "YYYY",
    "YY",
    "MMMM",
    "MMM",
    "MM",
    "M",
    "Mo",
    "DDDD",
    "DDD",
    "DD",
    "D",
    "Do",
    "dddd",
    "ww",
)
FORMAT_PIECES = (
    *FORMATS,
    *("[", "]", "[Day]", "-", "/", ".", " ", "(", "*", "a", "H", "gggg", "\\"),
)
CLOCKS = st.datetimes(datetime(1970, 1, 2), datetime(8999, 12, 30)) | st.sampled_from(
    [datetime(2024, 2, 29), datetime(2023, 12, 31, 23, 59, 59), datetime(2024, 3, 31)]
)
ZONES = st.integers(-23, 23).map(lambda hours: timezone(timedelta(hours=hours)))


@given(awkward_texts(SEEDS, PIECES))
@example("2024-03-01 09:30" + " " * 9_000 + "x")
@example("2024-03-01" + " ," * 4_000 + "x")
@example("1 march" + " " * 9_000 + "x")
def test_dates_of_properties(text):
    with time_limit():
        found = [moment_of(text), moment_of([text])]

    assert found[0] == found[1]
    assert found[0] is None or math.isfinite(found[0])


@given(awkward_texts(["YYYY-MM-DD", "YYYY/MM/[Day] Do MMMM", "DDDD.YY"], FORMAT_PIECES), st.data())
def test_dates_of_names(form, data):
    letters = st.sampled_from(
        ["2024", "03", "1", "march", "a", "Day", "-", "/", ".", "é", "٣", "st"]
    )
    stem = data.draw(st.lists(letters, max_size=80).map(lambda parts: "".join(parts)[:255]))
    with time_limit():
        found = named_date(f"{stem}.md", Daily("", form))

    assert found is None or math.isfinite(found)


@pytest.mark.parametrize("token", ["dddd", "MMMM", "H", "w", "ddd", "D", "a"])
def test_a_format_that_repeats_a_token_does_not_hang(token):
    for stem in ("a" * 200, "1" * 200, "am" * 100):
        with time_limit():
            named_date(f"{stem}-.md", Daily("", token * 40))


@given(awkward_texts(SEEDS, PIECES), CLOCKS, ZONES)
@example("999999 years ago", datetime(2024, 2, 29), timezone.utc)
def test_dates_of_queries(text, clock, zone):
    now = clock.replace(tzinfo=zone)
    with time_limit():
        found = read_date_range(text, now)
        if found is None:
            return
        since, until = (moment(end, now) for end in found)
        assert range_in_words(since.day, until.day)
        assert iso_time(since.day)

    assert found.first < found.last
