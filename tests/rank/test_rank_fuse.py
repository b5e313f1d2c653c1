"""Fusion: the formulas, and what they promise."""

from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rank_kit import candidate, context, few, names, note, pools

from ragvault.candidate import Candidate, Context
from ragvault.rank.fuse import fuse, hierarchy, leg_weights, renormalised
from ragvault.rank.limit import rank_mode

METHODS = ["rrf", "weighted", "features", "union"]


def only(ctx: Context, **ranks: int) -> float:
    return fuse([candidate(**ranks)], ctx)[0].score


def test_a_leg_that_missed_adds_nothing():
    assert only(context(), vector=1) == 1 / 61
    assert only(context()) == 0


@pytest.mark.parametrize(("rank", "worth"), [(1, 0.0164), (10, 0.0143), (100, 0.00625)])
def test_ranks_count_from_one(rank, worth):
    assert only(context(), vector=rank) == pytest.approx(worth, abs=5e-5)


def test_found_twice_beats_found_first_once():
    both, first = candidate("both", vector=4, keyword=4), candidate("first", vector=1)

    assert names(fuse([first, both], context())) == ["both", "first"]


def test_equal_scores_are_ordered_by_note_and_place_in_it():
    pool = [candidate("b"), candidate("a", ordinal=2), candidate("a", ordinal=1)]

    assert [(c.note.title, c.passage.ordinal) for c in fuse(pool, context())] == [
        ("a", 1),
        ("a", 2),
        ("b", 0),
    ]


def test_the_plans_factors_multiply_the_weights():
    assert only(context(weights={"keyword": 1.5}), keyword=1) == 1.5 / 61


def test_raw_scores_are_weighted_as_they_are():
    found = candidate(scores={"vector": 0.8, "keyword": 12.0}, vector=1, keyword=1)

    assert fuse([found], context("ragtriever-weighted"))[0].score == 1.0 * 0.8 + 0.5 * 12.0


def test_the_second_legacy_formula():
    """0.5 (0.7 vector + 0.3 minmax) + 0.3 half-life + 0.2 access."""
    best = candidate("a", of=note("a", days=30, access=3), scores={"vector": 0.8, "keyword": 9.0})
    mid = candidate("b", of=note("b", days=0, access=0), scores={"vector": 0.4, "keyword": 5.0})
    low = candidate("c", of=note("c", days=60, access=1), scores={"vector": 0.6, "keyword": 1.0})
    pool = [replace(each, ranks={"keyword": at}) for at, each in enumerate((best, mid, low), 1)]

    found = {c.note.title: c.score for c in fuse(pool, context("recollection-weighted"))}

    assert found["a"] == pytest.approx(0.5 * (0.7 * 0.8 + 0.3 * 1.0) + 0.3 * 0.5 + 0.2 * 4 / 4)
    assert found["b"] == pytest.approx(0.5 * (0.7 * 0.4 + 0.3 * 0.5) + 0.3 * 1.0 + 0.2 * 1 / 4)
    halves = exp(-log(2) / 30 * 60)
    assert found["c"] == pytest.approx(0.5 * (0.7 * 0.6 + 0.0) + 0.3 * halves + 0.2 * 2 / 4)


def test_a_lone_keyword_hit_is_worth_half_and_an_important_note_at_least_the_floor():
    ctx = context("recollection-weighted")
    lone = candidate(of=note(days=0), scores={"vector": 0.0, "keyword": 7.0}, keyword=1)
    high = candidate(of=note(days=0, importance="high"), scores={"vector": 0.1})

    assert fuse([lone], ctx)[0].score == pytest.approx(0.5 * 0.3 * 0.5 + 0.3 + 0.2)
    assert fuse([high], ctx)[0].score == pytest.approx(0.5 * 0.3 + 0.3 + 0.2)


def test_a_hit_counts_by_its_rank_and_by_its_evidence():
    """vector: (0.7 - 0.45) / 0.55; keyword: coverage 0.6, note 0.4."""
    found = candidate(
        scores={"vector": 0.7},
        evidence={"passage": 0.5, "note": 0.25, "title": 1.0, "coverage": 0.9},
        vector=3,
        keyword=2,
    )
    near = 0.25 / 0.55
    words = 0.6 * 0.9 + 0.4 * 0.25

    [weighed] = fuse([found], context("default", unrelated=0.45))
    [plain] = fuse([found], context("default", unrelated=0.45, fuse__exponent=0))

    assert weighed.score == pytest.approx(near**1.5 / 63 + 1.2 * words**1.5 / 62)
    assert plain.score == pytest.approx(1 / 63 + 1.2 / 62)
    assert [t.why for t in weighed.steps[0].terms] == [
        "rank 2, evidence 0.64",
        "rank 3, evidence 0.45",
    ]


def test_common_words_say_little_even_if_a_passage_has_all_of_them():
    rare = candidate("rare", evidence={"coverage": 0.7, "telling": 0.6}, keyword=2)
    common = candidate("common", evidence={"coverage": 1.0, "telling": 0.2}, keyword=1)
    [alone] = fuse([rare], context("default"))

    assert alone.score == pytest.approx(1.2 * (0.6 * 0.7 * 0.6) ** 1.5 / 62)
    assert names(fuse([common, rare], context("default"))) == ["rare", "common"]


def test_a_list_of_stray_words_does_not_outvote_the_leg_that_knew():
    knew = candidate("knew", scores={"vector": 0.8}, vector=1)
    stray = candidate(
        "stray", scores={"vector": 0.5}, evidence={"coverage": 0.2}, vector=40, keyword=1
    )

    assert names(fuse([stray, knew], context("default", unrelated=0.45))) == ["knew", "stray"]
    assert names(fuse([stray, knew], context("default", fuse__exponent=0))) == ["stray", "knew"]


def test_code_and_neighbours_count_by_their_evidence():
    found = candidate(evidence={"code": 0.8, "graph": 0.5}, code=3, graph=4)
    [one] = fuse([found], context("default"))

    assert one.score == pytest.approx(0.1 * 0.8**1.5 / 63 + 0.2 * 0.5**1.5 / 64)


def test_a_passage_without_a_vector_has_no_cosine():
    found = candidate(scores={"vector": float("nan")}, vector=1)

    assert fuse([found], context("default"))[0].score == 0.0


def test_a_union_is_one_list_after_the_other():
    pool = [
        candidate("keyword", keyword=1),
        candidate("both", vector=2, keyword=1),
        candidate("graph", graph=1),
        candidate("vector", vector=1),
    ]

    assert names(fuse(pool, context("lightrag-mix"))) == ["vector", "both", "graph", "keyword"]


@pytest.mark.parametrize("name", ["title", "alias"])
@pytest.mark.parametrize("method", METHODS)
def test_a_note_that_is_called_by_a_phrase_stands_before_passages_that_hold_it(name, method):
    of = note("low")
    pool = [
        candidate("holds", exact="phrase", scores={"vector": 0.9}, vector=1, keyword=1),
        candidate(of=of, ordinal=1, exact=name, scores={"vector": 0.1}, vector=3),
        candidate(of=of, ordinal=2, exact=name, scores={"vector": 0.0}, vector=4),
        candidate("other", scores={"vector": 0.95}, vector=2, keyword=2),
    ]
    ranked = fuse(pool, context("default", fuse__method=method, fuse__exact=1.0))

    assert names(ranked) == ["low", "holds", "low", "other"]
    assert all(each.steps[-1].total == pytest.approx(each.score) for each in ranked)


def test_an_exact_hit_comes_first_however_low_its_score():
    low = candidate("low", exact="title", scores={"vector": -0.2})
    best = candidate("best", scores={"vector": 0.9}, evidence={"passage": 1.0, "note": 1.0})

    assert names(fuse([best, low], context("default"))) == ["low", "best"]


def test_a_title_lifts_one_passage_of_its_note_and_a_phrase_every_one():
    def top(exact):
        pool = [
            candidate("x", ordinal=i, exact=exact, scores={"vector": i / 9}, vector=4 - i)
            for i in (1, 2)
        ]
        rest = [candidate("y", scores={"vector": 0.9}, vector=1)]
        return names(fuse([*pool, *rest], context("default")))

    assert top("title") == top("alias") == ["x", "y", "x"]
    assert top("phrase") == ["x", "x", "y"]


# Weights that follow the query


def test_an_unsure_leg_loses_weight_to_the_other_and_the_sum_stays():
    """Variance: cosines 0.5 and 0.7 have 0.01, a tenth of CERTAIN; a fifth is the least."""
    pool = [
        candidate("a", scores={"vector": 0.5, "keyword": 1.0}, vector=2, keyword=2),
        candidate("b", scores={"vector": 0.7, "keyword": 9.0}, vector=1, keyword=1),
    ]
    found = leg_weights(pool, context(fuse__score_aware=True))

    assert found["vector"] == pytest.approx(2 * 0.2 / 1.2)
    assert found["keyword"] == pytest.approx(2 * 1.0 / 1.2)


def test_the_seeds_weights_keep_their_own_sum():
    sure = renormalised({"vector": 1.2, "keyword": 0.8}, {"vector": 1.0, "keyword": 0.25})

    assert 1.2 * sure["vector"] + 0.8 * sure["keyword"] == pytest.approx(2.0)
    assert sure["vector"] == 4 * sure["keyword"]


def test_the_sum_that_is_kept_is_that_of_the_weights_as_the_query_changed_them():
    """The seed asks what kind of query it is first: 1.3 and 1 become 2.3 again, not 2."""
    pool = [
        candidate("a", scores={"vector": 0.2, "keyword": 8.0}, vector=2, keyword=2),
        candidate("b", scores={"vector": 0.2 + 0.2**0.5, "keyword": 10.0}, vector=1, keyword=1),
    ]
    found = leg_weights(pool, context(fuse__score_aware=True, weights={"vector": 1.3}))

    assert found["vector"] + found["keyword"] == pytest.approx(2.3)
    assert found["vector"] / found["keyword"] == pytest.approx(1.3 * 0.5)


@pytest.mark.parametrize(
    ("mode", "length", "k", "n"),
    [
        ("off", 100, 60, None),
        ("speed", 100, 40, 2),
        ("balanced", 100, 60, 3),
        ("quality", 100, 80, 3),
        ("auto", 499, 80, 2),
        ("auto", 500, 60, 3),
        ("auto", None, 60, 3),
    ],
)
def test_k_follows_mode_and_length_of_notes(mode, length, k, n):
    assert rank_mode(context(fuse__mode=mode).settings.fuse, length) == (k, n)


# Features


@pytest.mark.parametrize(
    ("headings", "kind", "text", "worth"),
    [
        (("Definitions", "Terms"), "table", "| a |", 1.0),
        (("Overview",), "prose", "plain", 0.9),
        (("Requirements",), "prose", "plain", 0.85),
        (("Summary",), "prose", "plain", 0.8),
        (("Lunch",), "prose", "plain", 0.5),
        (("Lunch",), "table", "| a |", 0.65),
        (("Lunch",), "list", "1. one\n2. two", 0.6),
        (("Lunch",), "prose", "as [[Rules]] say", 0.6),
        (("Lunch",), "prose", "## Soup\nhot", 0.55),
        (("Midterms",), "prose", "plain", 0.5),
    ],
)
def test_a_section_is_worth_what_it_is_called_and_its_form_adds(headings, kind, text, worth):
    passage = candidate(passage={"headings": headings, "kind": kind, "text": text}).passage

    assert hierarchy(passage)[0] == pytest.approx(worth)


def test_a_short_section_is_worth_what_it_is_called_in_a_passage_it_shares():
    shared = {"headings": ("Lunch",), "subheadings": ("Soup", "Rules"), "text": "plain"}

    assert hierarchy(candidate(passage=shared).passage) == (0.85, "policy")


def test_a_note_without_a_date_has_the_stated_recency():
    (found,) = fuse([candidate()], context("policy"))

    assert [(t.name, t.value) for t in found.steps[0].terms if t.name == "recency"] == [
        ("recency", 0.5)
    ]


# Laws


@pytest.mark.parametrize("method", METHODS)
@few
@given(pool=pools(), random=st.randoms())
def test_the_order_candidates_arrive_in_does_not_matter(method, pool, random):
    ctx = context("default", fuse__method=method)
    shuffled = [
        replace(each, ranks=dict(random.sample(sorted(each.ranks.items()), len(each.ranks))))
        for each in random.sample(pool, len(pool))
    ]

    assert fuse(shuffled, ctx) == fuse(pool, ctx)


@pytest.mark.parametrize("method", METHODS)
@few
@given(pool=pools(), data=st.data())
def test_a_better_rank_never_lowers_a_score(method, pool, data):
    ranked = [at for at, each in enumerate(pool) if each.ranks]
    if not ranked:
        return
    at = data.draw(st.sampled_from(ranked))
    leg = data.draw(st.sampled_from(sorted(pool[at].ranks)))
    better = data.draw(st.integers(1, pool[at].ranks[leg]))
    ctx = context(fuse__method=method)

    def score_with(rank: int) -> float:
        changed: Candidate = replace(pool[at], ranks={**pool[at].ranks, leg: rank})
        rest = pool[:at] + pool[at + 1 :]
        return next(c.score for c in fuse([*rest, changed], ctx) if c.id == changed.id)

    assert score_with(better) >= score_with(pool[at].ranks[leg])


@pytest.mark.parametrize("method", METHODS)
@few
@given(pool=pools())
def test_the_terms_of_a_score_add_up_to_it(method, pool):
    for each in fuse(pool, context("default", fuse__method=method)):
        assert each.steps[-1].total == pytest.approx(each.score, abs=1e-9)
        assert sum(t.value * t.weight for t in each.steps[-1].terms) == pytest.approx(each.score)


def test_what_is_far_below_the_wanted_results_goes_no_further():
    many = [candidate(f"n{at}", vector=at + 1) for at in range(40)]
    ranked = fuse(many, context(fuse__keep=3, limit__n=5))
    assert len(ranked.kept) == 15
    assert [gone.reason for gone in ranked.removed] == ["not among the best 15"] * 25
    assert len(fuse(many, context(fuse__keep=3, limit__n=5, limit=8)).kept) == 24
    assert len(fuse(many, context(fuse__keep=3, limit__n=5, limit=1)).kept) == 15
    assert len(fuse(many, context(fuse__keep=0)).kept) == 40
