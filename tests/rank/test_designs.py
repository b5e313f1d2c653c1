"""What the five designs say about single stages, and the traps in it.

Their worked examples are recomputed from real searches in tests/test_worked_examples.py.
"""

from __future__ import annotations

import pytest
from rank_kit import NOW, candidate, context, note

from ragvault.candidate import Context
from ragvault.rank.boost import boost
from ragvault.rank.budget import budget, token_counter
from ragvault.rank.dedup import ngrams
from ragvault.rank.fuse import fuse


def scores(pool, ctx: Context, *stages):
    for stage in stages:
        pool = stage(pool, ctx)
    return {each.note.title: each.score for each in pool}


def test_community_after_fusion_lifts_what_shares_the_top_notes_community():
    """ragdocs boosts before fusion, where a factor of a raw score may not change its rank at all.

    Ours is after it: a tenth more of an RRF score is worth about six ranks.
    """
    pool = [
        candidate("auth", of=note("auth", community=3), vector=1, keyword=1),
        candidate("other", of=note("other", community=4), vector=2),
        candidate("login", of=note("login", community=3), vector=7),
        candidate("late", of=note("late", community=3), vector=20),
    ]
    found = scores(pool, context("ragdocs", fuse__score_aware=False), fuse, boost)

    assert list(found) == ["auth", "login", "other", "late"]
    assert found["login"] == pytest.approx(1.1 / 67)


# Four lists


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


def test_neighbours_that_were_found_as_well():
    """The refund example: 45 and 46 have each other, 78 has nobody."""
    pool = [candidate("policy", ordinal=at, id=at) for at in (45, 46, 78)]
    pool += [candidate("other", ordinal=at, id=100 + at) for at in (1, 2, 3)]
    found = {
        each.id: {term.name: term.value for term in each.steps[0].terms}["adjacency"]
        for each in fuse(pool, context("policy"))
    }

    # policy's document gives 45 two neighbours, of which its own list of results has one.
    assert (found[45], found[46], found[78]) == (0.65, 0.65, 0.3)
    assert found[102] == 1.0


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
    printed = {"hel", "ell", "llo", "lo ", "o w", " wo", "wor", "orl", "rld"}
    assert ngrams("hello world", 3) == printed


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
