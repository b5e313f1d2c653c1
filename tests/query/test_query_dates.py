"""Dates as people type them, on a Wednesday in the afternoon."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.query.dates import iso_time, moment, read_date_range

NOW = datetime(2024, 3, 13, 15, 4, 5)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2024", "2024-01-01", "2025-01-01"),
        ("2024-03", "2024-03-01", "2024-04-01"),
        ("2023-12", "2023-12-01", "2024-01-01"),
        ("2024-02-29", "2024-02-29", "2024-03-01"),
        ("2024-2-9", "2024-02-09", "2024-02-10"),
        ("2024/03/01", "2024-03-01", "2024-03-02"),
        ("2024-03-01T09:30", "2024-03-01 09:30", "2024-03-01 09:31"),
        ("2024-W10", "2024-03-04", "2024-03-11"),
        ("2020-W53", "2020-12-28", "2021-01-04"),
        ("2024-q4", "2024-10-01", "2025-01-01"),
        ("today", "2024-03-13", "2024-03-14"),
        ("Yesterday", "2024-03-12", "2024-03-13"),
        ("tomorrow", "2024-03-14", "2024-03-15"),
        ("wednesday", "2024-03-13", "2024-03-14"),
        ("last wednesday", "2024-03-06", "2024-03-07"),
        ("last monday", "2024-03-11", "2024-03-12"),
        ("monday", "2024-03-11", "2024-03-12"),
        ("march", "2024-03-01", "2024-04-01"),
        ("apr", "2023-04-01", "2023-05-01"),
        ("march  2022", "2022-03-01", "2022-04-01"),
        ("this week", "2024-03-11", "2024-03-18"),
        ("last week", "2024-03-04", "2024-03-11"),
        ("last-week", "2024-03-04", "2024-03-11"),
        ("last_month", "2024-02-01", "2024-03-01"),
        ("this year", "2024-01-01", "2025-01-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("3 days ago", "2024-03-10", "2024-03-11"),
        ("2-weeks-ago", "2024-02-28", "2024-03-06"),
        ("1 month ago", "2024-02-13", "2024-03-13"),
        ("1 year ago", "2023-03-13", "2024-03-13"),
        ("2 hours ago", "2024-03-13 13:04", "2024-03-13 14:04"),
        ("two weeks ago", "2024-02-28", "2024-03-06"),
        ("two-weeks-ago", "2024-02-28", "2024-03-06"),
        ("a week ago", "2024-03-06", "2024-03-13"),
        ("an hour ago", "2024-03-13 14:04", "2024-03-13 15:04"),
        ("twelve months ago", "2023-03-13", "2023-04-13"),
        ("past three days", "2024-03-10", "2024-03-14"),
        ("feb 3", "2024-02-03", "2024-02-04"),
        ("3 feb", "2024-02-03", "2024-02-04"),
        ("march 13", "2024-03-13", "2024-03-14"),
        ("march 14", "2023-03-14", "2023-03-15"),
        ("3 february 2023", "2023-02-03", "2023-02-04"),
        ("February 3 2023", "2023-02-03", "2023-02-04"),
        ("feb 3rd, 2023", "2023-02-03", "2023-02-04"),
        ("3rd of feb", "2024-02-03", "2024-02-04"),
        ("feb-3-2023", "2023-02-03", "2023-02-04"),
        ("sept 2023", "2023-09-01", "2023-10-01"),
        ("fri", "2024-03-08", "2024-03-09"),
        ("wed", "2024-03-13", "2024-03-14"),
        ("last tues", "2024-03-12", "2024-03-13"),
        ("this quarter", "2024-01-01", "2024-04-01"),
        ("last quarter", "2023-10-01", "2024-01-01"),
        ("past week", "2024-03-06", "2024-03-14"),
        ("last 3 days", "2024-03-10", "2024-03-14"),
        ("7d", "2024-03-06", "2024-03-14"),
        ("1m", "2024-02-13", "2024-03-14"),
    ],
)
def test_a_date_names_a_stretch_of_time(text, first, last):
    found = read_date_range(text, NOW)

    assert found is not None
    assert found.first == datetime.fromisoformat(first)
    assert found.last == datetime.fromisoformat(last)


@pytest.mark.parametrize("month_end", [datetime(2024, 3, 31), datetime(2023, 12, 31, 23, 59)])
def test_a_month_ago_exists_on_the_31st(month_end):
    found = read_date_range("1 month ago", month_end)

    assert found is not None
    assert found.first < found.last <= month_end


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "last", "week", "2024-13", "2024-02-30", "24-03-01", "2024-00", "2024-W54"),
        *("0999", "99999 years ago", "999999 months ago", "12:30", "٢٠٢٤", "2024-03-01T25:00"),
        *(
            "feb 30",
            "feb 0",
            "31 april 2024",
            "thirteen days ago",
            "a monday",
            "feb 3 24",
            "next fri",
        ),
        *("-5 days ago", "last hundred days", "2024-q5", "1e5 days ago", "3 days", "ago"),
    ],
)
def test_what_is_no_date_is_none(text):
    assert read_date_range(text, NOW) is None


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)))
def test_the_29th_of_february_is_the_latest_there_was(now):
    found = read_date_range("feb 29", now)

    assert found is not None
    assert (found.first.month, found.first.day) == (2, 29)
    assert now - timedelta(days=8 * 366) < found.first <= now


@given(st.text(max_size=30), st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)))
def test_any_text_is_a_stretch_that_is_not_empty_or_none(text, now):
    found = read_date_range(text, now)

    assert found is None or found.first < found.last


@given(
    st.sampled_from(
        [
            "today",
            "last week",
            "3 months ago",
            "dec 31",
            "sun",
            "last quarter",
            "a week ago",
            "past year",
            "last monday",
            "1y",
            "may",
        ]
    ),
    st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)),
)
def test_what_was_begins_before_now(text, now):
    found = read_date_range(text, now)

    assert found is not None
    assert found.first <= now


def test_a_moment_is_kept_as_a_day_and_as_an_instant():
    zone = timezone(timedelta(hours=9))
    found = moment(datetime(2024, 3, 1), NOW.replace(tzinfo=zone))

    assert found.day == datetime(2024, 3, 1, tzinfo=timezone.utc).timestamp()
    assert found.instant == datetime(2024, 3, 1, tzinfo=zone).timestamp()


def test_without_a_zone_an_instant_is_the_machines():
    assert moment(datetime(2024, 3, 1), NOW).instant == datetime(2024, 3, 1).timestamp()


def test_a_stamp_has_a_time_where_there_is_one():
    assert iso_time(0) == "1970-01-01"
    assert iso_time(3600 * 9.5) == "1970-01-01 09:30"
