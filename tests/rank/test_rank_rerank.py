"""Rerank: replacing, blending, the rest, and a model that fails."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rank_kit import candidate, context, names

from ragvault.errors import ModelUnusable
from ragvault.rank.fuse import fuse
from ragvault.rank.rerank import rerank


class Says:
    """A reranker that gives each text the number it was told."""

    name = "says"

    def __init__(self, **given: float) -> None:
        self.given = given

    def score(self, query, passages):
        return [self.given[each] for each in passages]


class Fails:
    name = "fails"

    def score(self, query, passages):
        raise ModelUnusable("small-reranker", "it has no weights")


def pool(text="abcd"):
    return [candidate(n, score=1 - at / 10, passage={"text": n}) for at, n in enumerate(text)]


def ranked(reranker, **settings):
    ctx = context(rerank__enabled=True, **settings, reranker=reranker)
    return rerank(pool(), ctx)


def test_its_scores_replace_the_order_and_become_the_confidence():
    found = ranked(Says(a=0.2, b=0.9, c=0.5), rerank__n=3)

    assert [(c.note.title, c.score) for c in found] == [("b", 0.9), ("c", 0.5), ("a", 0.2)]
    assert (found[0].confidence, found[0].band) == (0.9, "good")


def test_both_readings_count_in_the_confidence():
    """A right answer that it does not understand stays a good one, and it can raise another."""
    first = [replace(each, confidence=0.78) for each in pool("ab")]
    ctx = context(
        "default",
        rerank__enabled=True,
        rerank__close=0,
        rerank__titles=False,
        reranker=Says(a=0.0, b=1.0),
    )
    found = {each.note.title: each for each in rerank(first, ctx)}

    assert found["a"].confidence == pytest.approx(0.61, abs=0.01)
    assert found["b"].confidence == pytest.approx(0.83, abs=0.01)
    assert (found["a"].band, found["b"].band) == ("moderate", "good")


def test_what_it_did_not_read_is_dropped_or_stays_behind():
    says = Says(a=-7.0, b=-9.0)
    dropped = ranked(says, rerank__n=2)
    kept = ranked(says, rerank__n=2, rerank__rest="keep")

    assert names(dropped) == ["a", "b"]
    assert dropped.removed[0].reason == "not among the 2 reranked"
    assert names(kept) == ["a", "b", "c", "d"]
    assert [c.score for c in kept] == [-7.0, -9.0, -10.0, -11.0]
    assert kept[0].confidence is None, "a logit is no confidence"


BY_SCORE = {"rerank__n": 3, "rerank__method": "score", "rerank__weight": 0.25}


def test_blended_by_score_both_scores_count_between_their_lowest_and_highest():
    found = ranked(Says(a=0.2, b=0.9, c=0.0), **BY_SCORE)

    assert [(c.note.title, c.score) for c in found] == [
        ("a", pytest.approx(0.25 * 0.2 / 0.9 + 0.75)),
        ("b", pytest.approx(0.25 + 0.75 * 0.5)),
        ("c", 0.0),
    ]


def test_scores_of_rank_fusion_are_not_drowned_by_those_of_a_reranker():
    """RRF has 0.033 and 0.028 between first and tenth; a share of a tenth is a tenth of it."""
    letters = "abcdefghij"
    before = [candidate(n, passage={"text": n}, vector=r, keyword=r)
              for r, n in enumerate(letters, 1)]  # fmt: skip
    says = Says(**{n: 0.5 + at / 100 for at, n in enumerate(letters)})
    how = {"rerank__enabled": True, "rerank__method": "score", "rerank__weight": 0.1}
    ctx = context("ragtriever", **how, reranker=says)

    assert names(rerank(fuse(before, ctx), ctx)) == list(letters)


@pytest.mark.parametrize("given", [0.0, 0.4, -7.0])
def test_a_reranker_that_finds_all_alike_says_nothing(given):
    found = ranked(Says(a=given, b=given, c=given), **BY_SCORE)

    assert [c.score for c in found] == pytest.approx([0.25 + 0.75, 0.25 + 0.375, 0.25])


def test_a_reranker_that_fails_changes_nothing_and_is_named():
    found = ranked(Fails())

    assert found.kept == tuple(pool())
    assert found.warnings == (
        "not reranked: the model small-reranker cannot be used: it has no weights",
    )


def test_without_a_reranker_the_order_does_not_change():
    assert ranked(None).kept == tuple(pool())


class Remembers(Says):
    """Gives every text the same score, and knows what it was asked to read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def score(self, query, passages):
        self.read += passages
        return [0.5] * len(passages)


def test_it_reads_the_title_and_the_headings_above_each_passage_each_once():
    reader = Remembers()
    passage = {"text": "Twice a day.", "headings": ("Rye", "Feeding"), "subheadings": ("When",)}
    only = [candidate("Rye", score=1.0, passage=passage)]

    rerank(only, context(rerank__enabled=True, rerank__titles=True, reranker=reader))
    rerank(only, context(rerank__enabled=True, rerank__titles=False, reranker=reader))

    assert reader.read == ["Rye > Feeding > When\nTwice a day.", "Twice a day."]


@pytest.mark.parametrize(("close", "reads"), [(0.0, True), (0.9, True), (0.95, False)])
def test_it_reads_only_where_the_second_score_is_close_to_the_first(close, reads):
    """The first two of the pool have 1.0 and 0.9."""
    reader = Remembers()

    found = ranked(reader, rerank__close=close)

    assert bool(reader.read) == reads
    assert names(found) == ["a", "b", "c", "d"]


def test_nonsense_from_a_reranker_changes_nothing_and_is_reported():
    nonsense = ranked(Says(a=float("nan"), b=0.1, c=0.1, d=0.1))
    assert nonsense.kept == tuple(pool())
    assert nonsense.warnings == ("not reranked: says gave no score for some of the passages",)


@pytest.mark.parametrize("odd", [float("inf"), float("-inf")])
def test_a_score_without_end_is_nonsense_too(odd):
    assert ranked(Says(a=odd, b=0.1, c=0.1, d=0.1)).kept == tuple(pool())


def test_every_score_is_the_sum_of_its_terms():
    for method in ("replace", "score"):
        for each in ranked(
            Says(a=3.0, b=-2.0), rerank__n=2, rerank__method=method, rerank__rest="keep"
        ):
            assert each.steps[-1].total == pytest.approx(each.score, abs=1e-9)


def test_what_was_asked_for_by_its_very_name_stays_first_and_unread():
    near = [candidate(n, scores={"vector": 0.9}, passage={"text": n}) for n in "ab"]
    named = candidate("named", exact="title", scores={"vector": 0.2})
    how = {"rerank__enabled": True, "rerank__method": "replace", "rerank__titles": False}
    ctx = context("default", **how, reranker=Says(a=0.2, b=0.9))
    found = rerank(fuse([*near, named], ctx), ctx)
    dropping = context("default", **how, rerank__rest="drop", rerank__n=1, reranker=Says(a=0.2))
    fewer = rerank(fuse([*near, named], dropping), dropping)

    assert names(found) == ["named", "b", "a"]
    assert names(fewer) == ["named", "a"]
    assert [step.stage for step in found[0].steps] == ["fuse"]
