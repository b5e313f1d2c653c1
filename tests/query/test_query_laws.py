"""Laws: any text is understood or refused with a cure, and the plan keeps its promises."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragvault.config import profiles
from ragvault.errors import UsageError
from ragvault.plan import leaves
from ragvault.query.operators import OPERATORS
from ragvault.query.restate import filter_json
from ragvault.query.understand import understand

NOW = datetime(2024, 3, 13, 15, 0, tzinfo=timezone.utc)
SIGNS = ["(", ")", '"', "-", "[", "]", ":", " OR ", " AND ", " ", "`", "[[", "]]", "..", ">", "*"]
SIGNS += ["\\", "“", "”", "#", "é", "🎉", "\x00", "\ud800", "2024", "last week", "null", "a"]
pieces = st.sampled_from([*SIGNS, *(f"{name}:" for name in OPERATORS)])
typed = st.lists(pieces | st.text(max_size=3), max_size=25).map("".join)


def understood(query):
    """The plan, or None for a query that is refused with a message and a cure."""
    try:
        return understand(query, profiles.config("default").query, now=NOW)
    except UsageError as error:
        refused = error
    assert str(refused)
    assert refused.fix
    return None


def nodes(data):
    """The objects of a filter as data, without what they say about a property or a date."""
    if data:
        yield data
    for joined in ("all", "any"):
        for part in data.get(joined, []):
            yield from nodes(part)
    if "not" in data:
        yield from nodes(data["not"])


@given(typed | st.text(max_size=200))
@example("tag:(" * 50)
@example("-" * 10_000)
@example("[" * 10_000)
@example("(" * 10_000)
@example("`" * 9_999)
@example('"' * 9_999)
@example("` `")
@example("(` ` OR ` `)")
@example("-` ` tag:x")
@example("“" * 10_000)
@example("[a:" + " " * 9_900)
@example("since:" + "9" * 9_900)
@example("[a:" + "9" * 9_900 + "]")
@example("a OR " * 240)
@example("word " * 1_999)
@example("tag:x" + "x" * 9_900)
def test_any_text_is_understood_or_refused_with_a_cure(query):
    plan = understood(query)
    if plan is not None:
        assert plan.parse
        assert plan.listing == (not plan.text)
        assert plan.text or plan.filter is not None or plan.vaults
        assert (plan.keyword_query is None) == (not plan.text)
        assert all(len(node) == 1 for node in nodes(filter_json(plan.filter)))
        assert plan.filter is None or len(list(leaves(plan.filter))) <= 100


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=1, max_size=8))
def test_plain_words_are_the_text_as_typed(words):
    plan = understand(" ".join(words), profiles.config("default").query, now=NOW)

    assert plan.text == " ".join(words)
    assert plan.filter is None


@given(st.text(min_size=1, max_size=20).filter(lambda text: any(map(str.isalnum, text))))
def test_text_in_quotes_with_escapes_is_the_phrase_itself(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    plan = understand(f'"{escaped}"', profiles.config("default").query, now=NOW)

    assert plan.phrases == (text,)


@given(typed)
def test_the_same_query_and_clock_give_the_same_plan(query):
    assert understood(query) == understood(query)


@pytest.mark.parametrize(
    "query",
    ["a", "🎉", "the of and", "?" * 10, "x" * 10_000, "word " * 2_000, "'; DROP TABLE notes; --"],
)
def test_odd_queries_are_answered(query):
    plan = understood(query)

    assert plan is not None
    assert plan.text == query.strip()


@pytest.mark.parametrize(
    "query",
    [
        *("A" * 9_999, "A" * 9_998 + "a", "aB" * 4_999, "a_" * 4_999, "a." * 4_999, "1." * 4_999),
        *('"' * 9_998, "[" * 9_999, "]" * 9_999, "(" * 9_999, "-" * 9_999, "`" * 9_999),
        *("“" * 9_999, "[[" * 4_999, "@" * 9_999, "?" * 9_999, " " * 9_999, '"' + "\\" * 9_998),
        *("a-" * 4_998 + ":x", "tag:" * 2_499, "a:" * 4_999, "[a:" * 3_333, "-a " * 3_333),
        *("tag:" + "*a" * 4_997, "since:" + "1-" * 4_996, "link:" + "a#" * 4_997),
        " ".join(f"name{i}:x" for i in range(900)),
        "-(tag:x " + "word " * 1_990 + ")",
        "(" * 39 + "word " * 1_980 + ")" * 39,
    ],
    ids=lambda query: query[:8],
)
def test_no_query_takes_long_to_understand(query):
    assert len(query) <= 10_000
    began = time.process_time()
    understood(query)

    assert time.process_time() - began < 1.0  # the slowest take a tenth of this
