"""Diversify: MMR by hand, and at most so many passages a note."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rank_kit import candidate, context, ids, names, pools

from ragvault.candidate import best_first
from ragvault.rank.diversify import diversify
from ragvault.rank.fuse import fuse

VECTORS = {1: np.array([1.0, 0.0]), 2: np.array([0.8, 0.6]), 3: np.array([0.0, 1.0])}
POOL = [
    candidate("a", id=1, scores={"vector": 0.9}),
    candidate("b", id=2, scores={"vector": 0.8}),
    candidate("c", id=3, scores={"vector": 0.5}),
]


def mmr(share, **more):
    ctx = context(diversify__enabled=True, diversify__mmr_lambda=share, vectors=VECTORS, **more)
    return diversify(POOL, ctx)


def test_mmr_by_hand():
    """After a (0.63): b is 0.7 * 0.8 - 0.3 * 0.8 = 0.32, c is 0.7 * 0.5 - 0 = 0.35; then b 0.32."""
    found = mmr(0.7)

    assert names(found) == ["a", "c", "b"]
    assert [c.score for c in found] == pytest.approx([0.63, 0.35, 0.32])


@pytest.mark.parametrize(("share", "order"), [(1.0, "abc"), (0.7, "acb"), (0.3, "acb")])
def test_lambda_is_the_share_of_relevance(share, order):
    assert names(mmr(share)) == list(order)


def test_what_has_no_vector_resembles_nothing():
    ctx = context(diversify__enabled=True, diversify__mmr_lambda=0.5)

    assert names(diversify(POOL, ctx)) == ["a", "b", "c"]


def test_what_was_asked_for_by_its_very_name_stays_first_and_counts_as_chosen():
    """b is nearer to the query than c, and much like the note that was asked for."""
    asked = candidate("asked", id=1, exact="title", scores={"vector": 0.5})
    how = {"mmr_lambda": 0.7, "relevance": "vector", "order": "mmr"}
    ctx = context(
        "default", vectors=VECTORS, **{f"diversify__{name}": value for name, value in how.items()}
    )
    found = diversify(fuse([asked, *POOL[1:]], ctx), ctx)

    assert names(found) == ["asked", "c", "b"]
    assert found[1].score == pytest.approx(0.7 * 0.5)
    assert found[2].score == pytest.approx(0.7 * 0.8 - 0.3 * 0.8)
    assert [step.stage for step in found[0].steps] == ["fuse"]


def test_mmr_chooses_what_is_shown_and_the_score_says_in_which_order():
    """Of two places, c takes the one that b would have had; a third result is b, behind them."""
    pool = [replace(each, score=score) for each, score in zip(POOL, (3.0, 2.0, 1.5), strict=True)]
    ctx = context("default", vectors=VECTORS, diversify__mmr_lambda=0.4, limit__n=2)
    found = diversify(pool, ctx)

    assert names(found) == ["a", "c", "b"]
    assert [each.score for each in found] == [3.0, 1.5, 1.5]
    assert found[2].steps[-1].terms[0].why == "more like the results above"


def test_at_most_so_many_passages_a_note():
    pool = [candidate("a", ordinal=at) for at in range(4)] + [candidate("b")]
    found = diversify(pool, context("default", diversify__per_note=2, diversify__relax=False))

    assert names(found) == ["a", "a", "b"]
    assert {r.reason for r in found.removed} == {"2 passages of this note rank above it"}
    assert {r.by.id for r in found.removed} == {pool[0].id}


@pytest.mark.parametrize("relevance", ["vector", "score"])
@given(pool=pools(scored=True))
def test_mmr_loses_nobody_and_its_scores_only_fall(relevance, pool):
    vectors = {c.id: np.array([c.scores["vector"], (1 - c.scores["vector"] ** 2) ** 0.5])
               for c in pool}  # fmt: skip
    ctx = context(diversify__enabled=True, diversify__relevance=relevance, vectors=vectors)
    found = diversify(pool, ctx)

    assert sorted(ids(found)) == sorted(ids(pool))
    for above, below in pairwise(found):
        assert above.score >= below.score - 1e-12
    for each in found:
        assert each.steps[-1].total == pytest.approx(each.score, abs=1e-9)


def test_where_too_few_would_be_left_more_of_the_same_notes_follow_behind():
    pool = [candidate("a", ordinal=at, score=9.0 - at) for at in range(4)]
    pool.append(candidate("b", score=1.0))
    ctx = {"diversify__per_note": 2, "limit": 4}
    found = diversify(pool, context("default", **ctx))

    assert [(c.note.title, c.passage.ordinal) for c in found] == [
        *(("a", 0), ("a", 1), ("b", 0), ("a", 2)),
    ]
    assert found[-1].score == 1.0
    assert found[-1].steps[-1].total == pytest.approx(1.0, abs=1e-9)
    assert [r.candidate.passage.ordinal for r in found.removed] == [3]


def test_a_section_that_is_shown_already_fills_no_place():
    pool = [candidate("a", ordinal=at, passage={"section": at // 3}) for at in range(6)]
    found = diversify(pool, context("default", diversify__per_note=1, limit=5))

    assert [c.passage.ordinal for c in found] == [0, 3]


@given(pool=pools(scored=True), most=st.integers(1, 3), few=st.integers(1, 4))
def test_the_first_are_the_same_however_many_are_wanted(pool, most, few):
    pool = best_first(pool)
    less, more = (
        diversify(pool, context("default", diversify__per_note=most, limit=n)) for n in (few, 20)
    )

    assert ids(more)[: len(less)] == ids(less)
    assert sorted(ids(more)) == sorted({*ids(more)})
    for above, below in pairwise(more):
        assert above.score >= below.score - 1e-12
