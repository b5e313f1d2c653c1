"""Any query is understood, or refused with a message and a fix."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import example, given

from ragvault.config import profiles
from ragvault.errors import UsageError
from ragvault.plan import leaves
from ragvault.query.operators import OPERATORS
from ragvault.query.restate import filter_json
from ragvault.query.understand import understand
from tests.fuzz_kit import awkward_texts, time_limit

pytestmark = pytest.mark.slow

NOW = datetime(2024, 3, 13, 15, 0, tzinfo=timezone.utc)
SEEDS = (
    'bread "sour dough" -rye tag:recipe (oven OR stove) path:"a b/c" since:2024-03',
    "[status:done] [rating:>3] [due:<=2024-01-01] [tags:null] -[a:b] link:Note#Heading in:vault",
    "created:last-week modified:2024-Q1 before:yesterday since:7d title:x heading:y task:open",
    "`get_bread_0` CamelCase snake_case a.b.c C++ #tag [[Note|label]] “quoted” AND NOT x OR y",
    '-(tag:a (tag:b OR -tag:c) "d e") f* lang:python kind:code [n:1..5] [s:"x\\"y"]',
)
PIECES = (
    *(
        "(",
        ")",
        '"',
        "'",
        "“",
        "”",
        "-",
        "+",
        "[",
        "]",
        ":",
        " OR ",
        " AND ",
        " NOT ",
        " ",
        "`",
        "[[",
    ),
    *(
        "]]",
        "..",
        ">",
        ">=",
        "<",
        "*",
        "?",
        "\\",
        '\\"',
        "#",
        "|",
        "~",
        "^",
        "null",
        "2024",
        "9" * 30,
    ),
    *(
        "last week",
        "3 days ago",
        "word ",
        "name: ",
        "[a:",
        "in:",
        *(f"{name}:" for name in OPERATORS),
    ),
)


@given(awkward_texts(SEEDS, PIECES))
@example("-(" * 3_000)
@example("[a:(" * 2_000)
@example("tag:(" * 2_000 + ")" * 2_000)
def test_queries(query):
    with time_limit():
        try:
            plan = understand(query, profiles.config("default").query, now=NOW)
        except UsageError as error:
            refused = error
        else:
            refused = None
    if refused:
        assert str(refused)
        assert refused.fix
        return
    restated = filter_json(plan.filter)

    assert plan.listing == (not plan.text)
    assert (plan.filter is None) == (not restated)
    assert plan.filter is None or len(list(leaves(plan.filter))) <= 100
