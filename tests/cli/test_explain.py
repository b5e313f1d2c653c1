"""Why a result is where it is, in a sentence made of what the stages returned."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rank_kit import candidate, note

from ragvault.answer.match import Match, Snippet
from ragvault.answer.results import SearchResult, VaultAnswer
from ragvault.candidate import Candidate, Ranked, Term
from ragvault.cli.results import why_sentence
from ragvault.config import profiles
from ragvault.plan import QueryPlan
from ragvault.rank.pipeline import Outcome


def result(each: Candidate, *stages: Outcome, in_title: bool = False) -> SearchResult:
    plan = QueryPlan(query="q", text="q")
    matches = {each.id: Match(Snippet("", (), 0), 1, (), in_title)}
    config = profiles.config("default")
    answer = VaultAnswer(
        plan, config, (each,), True, stages, (), {}, "full", 1, {}, (), 0.0, matches=matches
    )
    return SearchResult(answer, each)


def fused(each: Candidate, **amounts: float) -> Candidate:
    return each.after("fuse", [Term(leg, amount) for leg, amount in amounts.items()])


def test_the_title_the_legs_that_count_and_the_move_are_named():
    linked = fused(
        candidate("a", of=note("a", linkers=12), vector=2, keyword=50), vector=0.8, keyword=0.01
    )
    rival = fused(candidate("b", vector=1), vector=0.81)
    term = Term("backlinks", 0.1, 1.0, "multiply", "12 notes link here")
    boosted = linked.after("boost", [term])
    stages = (
        Outcome("fuse", Ranked((rival, linked))),
        Outcome("boost", Ranked((boosted, rival))),
    )
    assert why_sentence(1, result(boosted, *stages, in_title=True)) == (
        "First because its title matches, and it is near in meaning; moved up one by 12 backlinks"
    )


@pytest.mark.parametrize(
    ("exact", "said"),
    [
        ("title", "Second because its name is the query, and it contains your words"),
        ("alias", "Second because the query is another name of it, and it contains your words"),
        ("phrase", "Second because it contains the phrase, and it contains your words"),
    ],
)
def test_an_exact_name_comes_first(exact, said):
    each = fused(candidate("a", exact=exact, keyword=1), keyword=0.5, exact=1.0)
    assert why_sentence(2, result(each)) == said


def test_a_fall_is_named_with_its_cause_and_a_move_without_one_is_not():
    old = fused(candidate("a", of=note("a"), keyword=1), keyword=0.5)
    other = fused(candidate("b", keyword=2), keyword=0.49)
    fallen = old.after("boost", [Term("recency", -0.1, 1.0, "multiply", "3000 days")])
    stages = (Outcome("fuse", Ranked((old, other))), Outcome("boost", Ranked((other, fallen))))
    said = "12th because it contains your words; moved down one by its date"
    assert why_sentence(12, result(fallen, *stages)) == said
    untouched = replace(old, steps=old.steps[:1]).after("boost", [])
    assert why_sentence(12, result(untouched, *stages)) == "12th because it contains your words"
