"""Any ignore file and any filter of Obsidian decides on every path, in time."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragvault.notes.ignore import ObsidianFilters, Rules
from tests.fuzz_kit import awkward_texts, time_limit

pytestmark = pytest.mark.slow

SEEDS = (
    "*.tmp\n!keep.tmp\n/build/\n**/cache/**\ndocs/**/draft-?.md\n# comment\n\\#name\ntrailing\\ \n",
    "[a-z]*.md\n[!0-9]x\n[[:alpha:]_]*\n[]a]\n[\\]]\n!/a/b/\n**\n*/**/x\na**b\n",
    "folder/*/deep/*.md\n!folder/a/\n/*\n!/notes\nfoo[\n\\\n",
)
PIECES = (
    *(
        "*",
        "**",
        "?",
        "/",
        "**/",
        "/**",
        "!",
        "#",
        "\\",
        "[",
        "]",
        "[!",
        "[^",
        "[:alpha:]",
        "[a-",
        "-",
    ),
    *(
        "\n",
        " ",
        "a",
        "b",
        ".md",
        "a*",
        "*a",
        "[z-a]",
        "[]",
        "[]]",
        "\\/",
        "a/b",
        "(",
        ")",
        "|",
        "+",
        "$",
    ),
)
FILTERS = (
    "/^a.*b$/",
    "/(draft|old)\\/[^/]+\\.md/",
    "folder/",
    "/\\.tmp$/",
    "/(?<x>a)?b{1,3}/",
    "Notes",
)
FILTER_PIECES = (
    *(
        "/",
        "^",
        "$",
        ".",
        ".*",
        "+",
        "?",
        "*?",
        "{2,}",
        "{,9}",
        "(",
        ")",
        "(?:",
        "(?<n>",
        "(?=",
        "|",
    ),
    *(
        "[",
        "]",
        "[^/]",
        "\\",
        "\\d",
        "\\w",
        "\\1",
        "\\k<n>",
        "\\p{L}",
        "a",
        "aa",
        "a*",
        "(a|b)",
        "\\b",
    ),
    *(
        "{",
        "}",
        "{9999999999}",
        "{1000}",
        "[a-",
        "[[:",
        "(?i)",
        "(?#",
        "&&",
        "\\u{1}",
        "\\cA",
        "\\x",
    ),
)
segments = st.sampled_from(
    ["a", "b", "ab", "a.md", "cache", "draft-1.md", "é", "a" * 200, "Z", "x" * 60]
)
paths = st.lists(segments, min_size=1, max_size=12).map("/".join)


@given(awkward_texts(SEEDS, PIECES), paths, st.booleans())
@example("**/a/" * 2_000, "/".join("a" * 100), False)
@example("*a" * 5_000, "a" * 255, False)
@example("[" * 5_000, "a", True)
@example("[a-" * 3_000 + "]", "a", True)
@example("!" * 5_000, "a", True)
def test_ignore_rules(text, path, folder):
    with time_limit():
        rules = Rules(text.split("\n"))
        verdict = rules.decide(path, path.rpartition("/")[2], folder)

    assert verdict in (True, False, None)


@given(st.lists(awkward_texts(FILTERS, FILTER_PIECES), max_size=3), paths, st.booleans())
@example(["/(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)b/"], "a" * 255, False)
@example(["/(?:a{9}){9}/", "/((((a?)?)?)?)?b/"], "a" * 255, False)
@example(["/(" * 2_000], "a", False)
@example(["[[:", "/[[a]/", "/[a--b]/"], "a", False)
@example(["/" + "a{0,9999}" * 30 + "/"], "a" * 255, False)
@example(["/" + "a{99}" * 50 + "/"], "a" * 255, False)
def test_obsidian_filters(filters, path, folder):
    wrapped = [*filters, *(f"/{text}/" for text in filters)]
    with time_limit():
        known = ObsidianFilters(wrapped)
        verdict = known.decide(path, path.rpartition("/")[2], folder)

    assert verdict in (True, None)
    assert set(known.refused) <= {text.strip() for text in wrapped}
