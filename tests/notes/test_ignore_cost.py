"""Ignore rules take time in proportion to their length, and to that of the path.

The same for a filter of Obsidian. Both are files of a vault, which may come from anyone.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ragvault.notes.ignore import ObsidianFilters, Rules
from tests.cost_kit import cpu_seconds

pytestmark = pytest.mark.slow

LINES: dict[str, Callable[[int], str]] = {
    "names": lambda n: "".join(f"name{i}\n" for i in range(n // 9)),
    "suffixes": lambda n: "".join(f"*.a{i}\n" for i in range(n // 8)),
    "paths": lambda n: "".join(f"/a/b{i}/\n" for i in range(n // 11)),
    "names asked back": lambda n: "a\n!a\n" * (n // 5),
    "folders at any depth": lambda n: "".join(f"**/a{i}/**\n" for i in range(n // 14)),
    "stars": lambda n: "*a" * (n // 2),
    "only stars": lambda n: "*" * n,
    "folders in one line": lambda n: "**/a/" * (n // 5),
    "question marks": lambda n: "?" * n,
    "classes": lambda n: "[a-z]" * (n // 5),
    "a class that is never closed": lambda n: "[" * n,
    "ranges": lambda n: "[" + "a-z" * (n // 3) + "]",
    "names of classes": lambda n: "[" + "[:alpha:]" * (n // 9) + "]",
    "names of classes that are never closed": lambda n: "[" + "[:a" * (n // 3),
    "backslashes": lambda n: "\\" * n,
    "exclamation marks": lambda n: "!" * n,
    "slashes": lambda n: "a/" * (n // 2),
    "comments": lambda n: "# a\n" * (n // 4),
    "spaces": lambda n: "a" + " " * n + "b",
    "blank lines": lambda n: "\n" * n,
}
GLOBS = {
    "stars": "*a*a*a*a*a*a*a*a*b",
    "folders": "**/a/**/a/**/a/**/b",
    "stars in folders": "*a*/**/*a*/**/*b",
    "everything but a name": "**/*[!b]/b",
}
FILTERS = {
    "a repeat": "/a*b/",
    "a repeat in the middle": "/^.*a.*b$/",
    "choices": "/(a|aa)(a|aa)(a|aa)(a|aa)b/",
    "optional letters": "/a?a?a?a?a?a?b/",
    "a prefix": "a/a/a",
}


@pytest.mark.parametrize("shape", LINES)
def test_twice_the_rules_are_at_most_three_times_the_work(shape):
    def work(text: str) -> None:
        rules = Rules(text.split("\n"))
        rules.decide("a/b/c.md", "c.md", False)

    small, large = (LINES[shape](n) for n in (20_000, 40_000))

    assert cpu_seconds(lambda: work(large)) <= 3 * cpu_seconds(lambda: work(small))


@pytest.mark.parametrize("segment", ["a", "aaaa"])
@pytest.mark.parametrize("glob", GLOBS)
def test_twice_the_path_is_at_most_three_times_the_work_of_a_rule(glob, segment):
    rules = Rules([GLOBS[glob], "/" + GLOBS[glob]])

    def work(length: int) -> None:
        path = "/".join([segment] * length)
        for _ in range(20):
            rules.decide(path, "a" * length, False)

    assert cpu_seconds(lambda: work(1_000)) <= 3 * cpu_seconds(lambda: work(500))


@pytest.mark.parametrize("name", FILTERS)
def test_twice_the_path_is_at_most_five_times_the_work_of_a_filter(name):
    """A repeat that begins anywhere takes the square; paths above 1,024 characters are skipped."""
    filters = ObsidianFilters([FILTERS[name]])

    def work(length: int) -> None:
        for _ in range(20):
            filters.decide("a" * length, "a" * length, False)

    assert cpu_seconds(lambda: work(1_000)) <= 5 * cpu_seconds(lambda: work(500))
    assert cpu_seconds(lambda: work(1_000)) < 20 * 0.1
