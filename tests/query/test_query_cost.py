"""Understanding a query takes time in proportion to its length, whatever is in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone

import pytest

from ragvault.config import profiles
from ragvault.errors import UsageError
from ragvault.query.understand import understand
from tests.cost_kit import cpu_seconds

pytestmark = pytest.mark.slow

NOW = datetime(2024, 3, 13, 15, 0, tzinfo=timezone.utc)
LONGEST = 9_800  # characters; a query may have 10,000
SHAPES: dict[str, Callable[[int], str]] = {
    "words": lambda n: "word " * (n // 5),
    "other words": lambda n: " ".join(f"w{i}" for i in range(n // 6)),
    "one long word": lambda n: "a" * n,
    "capitals": lambda n: "aB" * (n // 2),
    "identifiers": lambda n: "get_a.b " * (n // 8),
    "phrases": lambda n: '"a b" ' * (n // 6),
    "a long phrase": lambda n: '"' + "a " * (n // 2) + '"',
    "a phrase that is never closed": lambda n: '"' + "\\" * n,
    "excluded words": lambda n: "-a " * (n // 3),
    "minus signs": lambda n: "-" * n,
    "round brackets": lambda n: "(" * n,
    "square brackets": lambda n: "[" * n,
    "brackets of properties": lambda n: "[a:" * (n // 3),
    "wikilinks": lambda n: "[[a|b]] " * (n // 8),
    "backticks": lambda n: "`a` " * (n // 4),
    "alternatives": lambda n: "a" + " OR a" * (n // 5),
    "operators": lambda n: "tag:a " * (n // 6),
    "names that are no operators": lambda n: " ".join(f"name{i}:x" for i in range(n // 11)),
    "colons": lambda n: "a:" * (n // 2),
    "a value in brackets": lambda n: "tag:(" + "a OR " * (n // 5) + "a)",
    "a glob": lambda n: "path:" + "*a" * (n // 2),
    "a date": lambda n: "since:" + "1-" * (n // 2),
    "a range": lambda n: "[a:" + "1.." * (n // 3) + "]",
    "spaces": lambda n: "a" + " " * n + "b",
    "quotation marks of other languages": lambda n: "“a” " * (n // 4),
    "letters with an accent": lambda n: "é\u0301 " * (n // 3),
    "Chinese": lambda n: "中文" * (n // 2),
}


def work(query: str) -> None:
    with suppress(UsageError):
        understand(query, profiles.config("default").query, now=NOW)


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_query_is_at_most_three_times_the_work(shape):
    small, large = (SHAPES[shape](n) for n in (LONGEST // 2, LONGEST))

    assert cpu_seconds(lambda: work(large)) <= 3 * cpu_seconds(lambda: work(small))
