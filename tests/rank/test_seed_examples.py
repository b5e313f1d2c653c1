"""The worked examples of the five seeds, asserted by their formulas.

Where a seed prints another number than its formula gives, that number stands in a comment with the
reason.
"""

from __future__ import annotations

from datetime import datetime, timezone
from math import log2

import pytest
from rank_kit import NOW, candidate, context, names, note

from ragvault.candidate import Context
from ragvault.rank.boost import boost
from ragvault.rank.budget import budget, token_counter
from ragvault.rank.calibrate import calibrate
from ragvault.rank.dedup import ngrams
from ragvault.rank.fuse import fuse
from ragvault.types import Date


def scores(pool, ctx: Context, *stages):
    for stage in stages:
        pool = stage(pool, ctx)
    return {each.note.title: each.score for each in pool}


# RRF


def test_auth_found_by_three_legs_passes_deploy_found_first_by_one():
    auth = candidate("auth", vector=3, keyword=5, graph=2)
    deploy = candidate("deploy", vector=1, graph=10)
    found = scores([deploy, auth], context(), fuse)

    assert found["auth"] == pytest.approx(0.0474, abs=5e-5)
    assert found["deploy"] == pytest.approx(0.0307, abs=5e-5)
    assert list(found) == ["auth", "deploy"]


def test_weighted_rrf():
    ctx = context(fuse__weights__vector=1.2, fuse__weights__keyword=0.8)
    found = scores([candidate("a", vector=3, keyword=5)], ctx, fuse)

    # The seed prints 0.0313: it adds 0.0190 and 0.0123, both cut off and not rounded.
    assert found["a"] == pytest.approx(0.0314, abs=5e-5)


# "API authentication", end to end

FILES = [
    candidate("authentication", of=note("authentication", days=90), vector=1, keyword=2),
    candidate("security", of=note("security", days=90), vector=2),
    candidate("api-reference", of=note("api-reference", days=90), vector=3, keyword=1),
    candidate("oauth-guide", of=note("oauth-guide", days=5), keyword=3),
    candidate("deployment", of=note("deployment", days=90), graph=1),
]
# The example has even weights and no communities.
PLAIN = {"fuse__aware__by": "off", "boost__community__enabled": False}


def test_end_to_end():
    found = scores(FILES, context("ragdocs", **PLAIN), fuse, boost)

    assert found == {
        "authentication": pytest.approx(0.0325, abs=5e-5),
        "api-reference": pytest.approx(0.0323, abs=5e-5),
        # The seed multiplies by 1.1 and prints 0.0175, though five days are in its tier of 1.2.
        "oauth-guide": pytest.approx(1.2 / 63, abs=1e-12),
        "security": pytest.approx(0.0161, abs=5e-5),
        "deployment": pytest.approx(0.0082, abs=5e-5),
    }
    assert list(found) == [
        "authentication",
        "api-reference",
        "oauth-guide",
        "security",
        "deployment",
    ]


def test_the_floor_of_the_seed_leaves_what_two_legs_found():
    ctx = context("ragdocs", **PLAIN)
    found = calibrate(boost(fuse(FILES, ctx), ctx), ctx)

    assert names(found) == ["authentication", "api-reference"]
    # The seed prints 0.42 and 0.41 and calls them moderate; by its own bands they are weak.
    assert [c.confidence for c in found] == pytest.approx([0.408, 0.399], abs=1e-3)
    assert {c.band for c in found} == {"weak"}
    assert {r.candidate.band for r in found.removed} == {"noise"}


def test_community_after_fusion_lifts_what_shares_the_top_notes_community():
    """The seed boosts before fusion, where a factor of a raw score may not change its rank at all.

    Ours is after it: a tenth more of an RRF score is worth about six ranks.
    """
    pool = [
        candidate("auth", of=note("auth", community=3), vector=1, keyword=1),
        candidate("other", of=note("other", community=4), vector=2),
        candidate("login", of=note("login", community=3), vector=7),
        candidate("late", of=note("late", community=3), vector=20),
    ]
    found = scores(pool, context("ragdocs", fuse__aware__by="off"), fuse, boost)

    assert list(found) == ["auth", "login", "other", "late"]
    assert found["login"] == pytest.approx(1.1 / 67)


# Four lists


def test_four_lists_with_their_weights_and_the_bonus_of_importance():
    of = note("a", importance="high")
    pool = [candidate("a", of=of, keyword=2, vector=1, recency=4, access=3)]
    found = scores(pool, context("recollection"), fuse, boost)

    bonus = 1 / 61 - 1 / 71
    assert bonus == pytest.approx(0.0023, abs=5e-5)
    assert found["a"] == pytest.approx(1 / 62 + 1 / 61 + 0.6 / 64 + 0.4 / 63 + bonus)


def test_an_old_keyword_hit_outside_of_the_window_still_has_its_place():
    """0 from the lists it is not in, and never the worst rank."""
    old = candidate("old", keyword=1, vector=230, recency=250, access=9)
    fresh = candidate("fresh", vector=40, recency=1, access=1)
    found = scores([fresh, old], context("recollection"), fuse)

    assert found["old"] == pytest.approx(1 / 61 + 1 / 290 + 0.6 / 310 + 0.4 / 69)


def test_query_independent_lists_can_outvote_the_best_keyword_hit():
    """The trap of recency and access as lists, and why they are off in the default profile."""
    exact = candidate("exact", keyword=1, vector=60, recency=200, access=30)
    recent = candidate("recent", vector=20, recency=1, access=1, keyword=30)
    found = scores([exact, recent], context("recollection"), fuse)

    assert list(found) == ["recent", "exact"]


# Features


@pytest.mark.parametrize(("year", "recency"), [(2024, 0.9), (2022, 0.6), (2020, 0.4)])
def test_recency_by_years(year, recency):
    """Two years are always worth two thirds; 0.9 is half a year old."""
    now = datetime(2024, 7, 9, tzinfo=timezone.utc).timestamp()
    at = datetime(year, 1, 1, tzinfo=timezone.utc).timestamp()
    (found,) = fuse([candidate(of=note(date=Date(at, "frontmatter")))], context("policy", now=now))
    terms = {term.name: term.value for term in found.steps[0].terms}

    assert terms["recency"] == pytest.approx(recency, abs=2e-3)


def test_neighbours_that_were_found_as_well():
    """The refund example: 45 and 46 have each other, 78 has nobody."""
    pool = [candidate("policy", ordinal=at, id=at) for at in (45, 46, 78)]
    pool += [candidate("other", ordinal=at, id=100 + at) for at in (1, 2, 3)]
    found = {
        each.id: {term.name: term.value for term in each.steps[0].terms}["adjacency"]
        for each in fuse(pool, context("policy"))
    }

    # The seed gives 45 two neighbours, of which its own list of results has one.
    assert (found[45], found[46], found[78]) == (0.65, 0.65, 0.3)
    assert found[102] == 1.0


def test_the_breakdown_of_a_score():
    """similarity 0.92, recency 0.8, hierarchy 1.0, adjacency 0.65 with .5 / .2 / .2 / .1."""
    of = note("a", days=1249 * log2(1 / 0.8))
    headings = {"headings": ("Definitions",)}
    pool = [
        candidate("a", of=of, ordinal=at, scores={"vector": 0.92 * at}, passage=headings)
        for at in (0, 1)
    ]
    best = fuse(pool, context("policy"))[0]

    assert [(term.name, term.value, term.weight) for term in best.steps[0].terms] == [
        ("similarity", 0.92, 0.5),
        ("recency", pytest.approx(0.8), 0.2),
        ("hierarchy", 1.0, 0.2),
        ("adjacency", 0.65, 0.1),
    ]
    # The seed prints 0.87 beside these parts; their sum is 0.885.
    assert best.score == pytest.approx(0.885)


@pytest.mark.parametrize(
    ("profile", "shares"),
    [
        ("policy", (0.5, 0.2, 0.2, 0.1)),
        ("historical", (0.5, 0.05, 0.3, 0.15)),
        ("current", (0.4, 0.4, 0.15, 0.05)),
        ("definitions", (0.4, 0.1, 0.4, 0.1)),
    ],
)
def test_shares_of_the_use_cases(profile, shares):
    found = candidate(
        of=note(days=0), scores={"vector": 0.8}, passage={"headings": ("Definitions",)}
    )
    (ranked,) = fuse([found], context(profile))

    assert sum(shares) == pytest.approx(1.0)
    assert ranked.score == pytest.approx(
        shares[0] * 0.8 + shares[1] * 1.0 + shares[2] * 1.0 + shares[3] * 0.3
    )


def test_shares_of_ones_own():
    own = {"similarity": 0.6, "recency": 0.1, "hierarchy": 0.25, "adjacency": 0.05}
    ctx = context("policy", **{f"fuse__features__{name}": share for name, share in own.items()})
    (ranked,) = fuse([candidate(of=note(days=0), scores={"vector": 1.0})], ctx)

    assert ranked.score == pytest.approx(0.6 + 0.1 + 0.25 * 0.5 + 0.05 * 0.3)


def test_four_thousand_tokens_of_four_characters():
    ctx = context("policy")
    pool = [candidate(str(at), passage={"text": "word " * 800}) for at in range(5)]

    assert token_counter(ctx)("x" * 4001) == 1001
    assert len(budget(pool, ctx)) == 4


# Trigrams


def test_the_trigrams_of_hello_world():
    seed = {"hel", "ell", "llo", "lo ", "o w", " wo", "wor", "orl", "rld"}
    assert ngrams("hello world", 3) == seed


# Legacy


def test_the_first_legacy_formula_mixes_scales():
    """What rank fusion was brought in for: a raw BM25 of 14 drowns every cosine."""
    found = scores(
        [
            candidate("meant", scores={"vector": 0.92, "keyword": 2.0}),
            candidate("stray", scores={"vector": 0.1, "keyword": 14.0}),
        ],
        context("ragtriever-weighted", now=NOW),
        fuse,
        boost,
    )

    assert found == {"stray": pytest.approx(7.1), "meant": pytest.approx(1.92)}
