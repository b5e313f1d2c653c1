"""The pipeline: what holds for every stage, and for all of them in a row."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_kit import candidate, context, few, ids, pools

from ragvault import rank
from ragvault.candidate import Context, Excerpt
from ragvault.config import profiles
from ragvault.config.settings import Config
from ragvault.rank.pipeline import STAGES, run_stages, stage_name

NAMES = ["fuse", "boost", "calibrate", "dedup", "diversify"]
NAMES += ["rerank", "parents", "limit", "budget"]
SWITCHED = [stage for stage in STAGES if stage_name(stage) not in ("fuse", "limit")]


class Lengths:
    """A reranker that prefers long passages."""

    name = "lengths"

    def score(self, query, passages):
        return [len(each) / 1000 for each in passages]


def everything(profile: str, pool, **settings) -> Context:
    """A context in which every stage has what it asks for."""
    angles = {each.id: each.scores["vector"] * np.pi / 2 for each in pool}
    return context(
        profile,
        vectors={at: np.array([np.cos(a), np.sin(a)]) for at, a in angles.items()},
        sections={at: Excerpt(at, f"s{at}.\n", (1, 9), (), at - 1, at + 1) for at in range(8)},
        passages={at: Excerpt(at, f"p{at}.\n", (1, 9), (), at - 1, at + 1) for at in range(12)},
        reranker=Lengths(),
        note_length=400,
        **settings,
    )


def test_a_stage_is_one_word_everywhere():
    assert [stage_name(stage) for stage in STAGES] == NAMES
    files = {each.stem for each in Path(rank.__file__).parent.glob("*.py")}
    assert set(NAMES) <= files
    assert all(hasattr(Config(), name) for name in NAMES)


def test_the_trace_is_what_each_stage_returned():
    pool = [candidate("a", vector=1, scores={"vector": 0.5}), candidate("b", keyword=1)]
    ranked, trace = run_stages(pool, context("default", limit=1))

    assert [each.stage for each in trace] == NAMES
    assert trace[-1].ranked == ranked
    assert trace[0].ranked[0].steps[0].stage == "fuse"


@pytest.mark.parametrize("stage", SWITCHED, ids=stage_name)
@few
@given(pool=pools(scored=True))
def test_a_stage_that_is_switched_off_changes_nothing(stage, pool):
    ctx = context("default", **{f"{stage_name(stage)}__enabled": False}, reranker=Lengths())

    assert stage(pool, ctx).kept == tuple(pool)
    assert (stage(pool, ctx).removed, stage(pool, ctx).warnings) == ((), ())


@pytest.mark.parametrize("profile", ["default", "ragdocs", "policy", "ragtriever", "recollection"])
@few
@given(pool=pools())
def test_each_stage_keeps_or_removes_whom_it_was_given_and_invents_nobody(profile, pool):
    _, trace = run_stages(pool, everything(profile, pool))

    before = sorted(ids(pool))
    for each in trace:
        after = ids(each.ranked.kept)
        assert sorted(after + [r.candidate.id for r in each.ranked.removed]) == before
        assert all(r.reason for r in each.ranked.removed)
        before = sorted(after)


@pytest.mark.parametrize("profile", profiles.names())
@settings(max_examples=8)
@given(pool=pools(), random=st.randoms())
def test_the_order_candidates_arrive_in_does_not_matter(profile, pool, random):
    ctx = everything(profile, pool)

    assert run_stages(random.sample(pool, len(pool)), ctx) == run_stages(pool, ctx)


@pytest.mark.parametrize("profile", ["default", "ragdocs", "policy", "recollection-weighted"])
@few
@given(pool=pools())
def test_every_step_of_every_result_adds_up_and_follows_from_the_one_before(profile, pool):
    ranked, _ = run_stages(pool, everything(profile, pool))

    for each in ranked:
        score = 0.0
        for step in each.steps:
            assert step.before in (0.0, score)
            assert step.total == pytest.approx(step.score, abs=1e-9)
            score = step.score
        assert each.score == score


@few
@given(pool=pools())
def test_exact_hits_come_first_in_the_default_profile(pool):
    ranked, _ = run_stages(pool, everything("default", pool))
    lifted = [
        any(term.name == "exact" for step in each.steps for term in step.terms) for each in ranked
    ]

    assert lifted == sorted(lifted, reverse=True)
    assert any(lifted) == any(each.exact for each in pool)


LARGEST = {
    **{f"fuse__weights__{name}": 1e6 for name in ("vector", "keyword", "code", "graph")},
    "fuse__exponent": 1e6,
    "fuse__exact": 1e6,
    "boost__backlinks__weight": 1e6,
    "boost__backlinks__cap": 1000,
    "boost__recency__tiers": [[1e9, 1e6]],
    "boost__recency__bias": 1.0,
    "boost__community__factor": 1e6,
    "boost__access__enabled": True,
    "boost__access__weight": 1e6,
}


@pytest.mark.parametrize("bounded", [True, False])
@few
@given(pool=pools())
def test_the_largest_settings_there_are_leave_scores_finite(bounded, pool):
    ranked, _ = run_stages(pool, everything("default", pool, boost__bounded=bounded, **LARGEST))

    assert all(isfinite(each.score) and 0 <= each.confidence <= 1 for each in ranked)


def test_nothing_found_is_an_empty_answer():
    assert run_stages([], context("ragdocs"))[0].kept == ()
