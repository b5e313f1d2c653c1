"""Calibration: ragdocs' curve, bands, and a confidence that one leg can carry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rank_kit import candidate, context, ids, names, pools

from ragvault.config import profiles
from ragvault.rank.calibrate import calibrate, evidence_parts, sigmoid
from ragvault.rank.fuse import fuse

SCORE = {"calibrate__source": "score"}
# A hit that nothing speaks for, where each leg found it.
HOPELESS = {"scores": {"vector": 0.5, "keyword": 0.4}, "evidence": {"coverage": 0.1}}
RANKS = {"vector": 1, "keyword": 1, "recency": 1, "access": 1}


@pytest.mark.parametrize(
    ("score", "sure"),
    [
        # The seed prints 0.42, 0.41, 0.09, 0.07 and 0.01: these are not its formula's values.
        (0.0325, 0.407),
        (0.0323, 0.400),
        (0.0175, 0.068),
        (0.0161, 0.055),
        (0.0082, 0.018),
        (0.035, 0.5),
    ],
)
def test_the_seeds_curve(score, sure):
    assert sigmoid(score, 0.035, 150.0) == pytest.approx(sure, abs=5e-4)


@pytest.mark.parametrize(
    ("sure", "name"),
    [
        (0.91, "excellent"),
        (0.9, "good"),
        (0.71, "good"),
        (0.7, "moderate"),
        (0.51, "moderate"),
        (0.5, "weak"),
        (0.31, "weak"),
        (0.3, "unlikely"),
        (0.0, "unlikely"),
    ],
)
def test_bands_begin_above_their_number(sure, name):
    assert context().settings.calibrate.bands.name(sure) == name


def test_the_seeds_floor_drops_what_one_leg_found_first():
    """Rank 1 of one leg is 0.058: a hybrid search has become one that wants both legs."""
    first = candidate("first", score=1 / 61)
    found = calibrate([first], context("ragdocs"))

    assert found.kept == ()
    assert found.removed[0].candidate.confidence == pytest.approx(0.058, abs=5e-4)
    assert found.removed[0].reason == "confidence 0.058 is below the floor of 0.3"


@pytest.mark.parametrize(
    "single",
    [
        candidate("vector", scores={"vector": 0.75}, vector=1),
        candidate("keyword", evidence={"coverage": 1.0}, keyword=1),
        candidate("title", exact="title"),
    ],
    ids=lambda each: each.note.title,
)
def test_what_one_leg_knows_survives_a_floor_in_the_default_profile(single):
    found = calibrate([single], context("default", calibrate__floor=0.3))

    assert ids(found) == [single.id]


def test_what_no_leg_knows_does_not():
    weak = candidate(scores={"vector": 0.5}, evidence={"coverage": 0.3}, vector=9)

    assert calibrate([weak], context("default", calibrate__floor=0.3, unrelated=0.45)).kept == ()


def test_a_cosine_counts_from_what_unrelated_texts_have_by_the_same_model():
    """0.72 of a model whose unrelated texts have 0.45, and 0.58 of one with 0.16, say the same."""
    near = calibrate([candidate(scores={"vector": 0.725})], context("default", unrelated=0.45))
    far = calibrate([candidate(scores={"vector": 0.58})], context("default", unrelated=0.16))

    assert near[0].confidence == pytest.approx(far[0].confidence)
    assert near[0].confidence > calibrate(
        [candidate(scores={"vector": 0.58})], context("default", unrelated=0.45)
    )[0].confidence  # fmt: skip


def test_words_carry_the_whole_evidence_where_there_are_no_vectors():
    worded = candidate("worded", evidence={"coverage": 1.0, "note": 0.5})
    alone = calibrate([worded], context("default"))[0]
    beside = calibrate([worded, candidate("near", scores={"vector": 0.6})], context("default"))[0]

    assert (alone.band, alone.confidence > beside.confidence) == ("excellent", True)


def test_a_confidence_of_the_floor_itself_stays():
    found = calibrate([candidate(score=0.035)], context(**SCORE, calibrate__floor=0.5))

    assert names(found) == ["a"]


@pytest.mark.parametrize("name", profiles.names())
def test_a_hopeless_hit_is_called_unlikely_whatever_the_scale_of_its_score(name):
    """But for the seed that has a calibration of its own: there, what legs agree on is sure."""
    ctx = context(name, calibrate__floor=0.0, unrelated=0.45)
    (found,) = calibrate(fuse([candidate(**HOPELESS, **RANKS)], ctx), ctx)

    if ctx.settings.calibrate.source == "evidence":
        assert (found.band, found.confidence < 0.1) == ("unlikely", True)
    else:
        assert name in {"ragdocs", "docs", "technical", "personal", "research"}


@pytest.mark.parametrize("name", profiles.names())
def test_confidence_removes_nothing_where_the_seed_has_no_floor(name):
    floor = profiles.config(name).calibrate.floor
    assert floor == (0.3 if name in {"ragdocs", "docs", "technical", "personal", "research"} else 0)


@given(st.floats(-1e6, 1e6))
def test_the_curve_never_leaves_its_ends(x):
    assert 0 <= sigmoid(x, 0.035, 150.0) <= 1


@pytest.mark.parametrize("source", ["score", "evidence"])
@given(pool=pools(scored=True))
def test_calibration_keeps_order_and_scores(source, pool):
    found = calibrate(pool, context(calibrate__source=source))

    assert [(c.id, c.score) for c in found] == [(c.id, c.score) for c in pool]
    assert all(0 <= c.confidence <= 1 and c.band for c in found)


@given(pools(scored=True))
def test_a_better_score_is_never_less_sure(pool):
    found = sorted(calibrate(pool, context(**SCORE)), key=lambda c: c.score)

    assert [c.confidence for c in found] == sorted(c.confidence for c in found)


def test_an_answer_that_the_floor_emptied_says_so():
    pool = [candidate("a", scores={"vector": 0.1}), candidate("b", scores={"vector": 0.2})]
    empty = calibrate(pool, context("default", calibrate__floor=1.0))
    some = calibrate(pool, context("default", calibrate__floor=0.0))

    assert empty.warnings == (
        "all 2 passages found are below the confidence floor of 1 (calibrate.floor)",
    )
    assert some.warnings == ()


@given(pools(scored=True))
def test_more_evidence_is_never_less_sure(pool):
    ctx = context("default", fuse__exact=0)
    found = calibrate([replace(each, exact="") for each in pool], ctx)
    sums = [sum(parts.values()) for parts in evidence_parts(found, ctx)]

    in_order = [c.confidence for _, c in sorted(zip(sums, found, strict=True), key=lambda p: p[0])]
    assert in_order == sorted(in_order)


def test_a_query_that_everything_matches_a_little_is_answered_by_nothing():
    best = candidate("best", scores={"vector": 0.72})
    ctx = context("default", unrelated=0.45)
    alike = calibrate([best, *(candidate(f"n{n}", scores={"vector": 0.7}) for n in range(9))], ctx)
    alone = calibrate([best, *(candidate(f"n{n}", scores={"vector": 0.5}) for n in range(9))], ctx)

    assert alone[0].confidence > alike[0].confidence + 0.15
