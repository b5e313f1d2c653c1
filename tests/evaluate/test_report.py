"""Scores become reports, and reports are compared: values done by hand, and planted differences."""

from __future__ import annotations

import random

import pytest
from evaluate_kit import answer, answered, question
from hypothesis import given
from hypothesis import strategies as st
from rank_kit import candidate

from ragvault.evaluate.metrics import context_precision, context_scores
from ragvault.evaluate.report import (
    bootstrap_interval,
    by_kind,
    comparison,
    difference,
    overall_and_kinds,
    percentiles,
    regressions,
    summarize,
)

shares = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=60)


def section(name: str, *headings: str, text: str = ""):
    return candidate(name, passage={"headings": headings, "text": text})


# --- Context ---


def test_context_precision_is_the_mean_of_precision_at_the_useful_places():
    assert context_precision([True, False, True]) == pytest.approx((1 + 2 / 3) / 2)
    assert context_precision([False, True]) == pytest.approx(1 / 2)
    assert context_precision([False, False]) == context_precision([]) == 0


def test_context_recall_is_the_share_of_what_was_wanted():
    asked = question("q", "a.md", "b.md", "c.md=1")
    told = context_scores([section("a"), section("x")], asked)
    assert told == {"context_precision": 1, "context_recall": 1 / 2}


def test_a_section_is_useful_below_the_heading_a_judge_named():
    asked = question("q", "a.md#The ear")
    below, other = section("a", "Scoring", "The Ear"), section("a", "Scoring")
    assert context_scores([below], asked)["context_recall"] == 1
    assert context_scores([other], asked)["context_recall"] == 0


@pytest.mark.parametrize("text", ["before\n\n### The ear\n\nHold it flat.", "The ear\n-------\n"])
def test_a_short_section_may_hold_the_heading_itself(text):
    told = context_scores([section("a", "Scoring", text=text)], question("q", "a.md#the ear"))
    assert told["context_recall"] == 1


def test_a_question_that_nothing_answers_has_no_context_scores():
    assert context_scores([section("a")], question("q")) == {}
    assert context_scores([], question("q", "a.md"))["context_recall"] == 0


@given(st.lists(st.booleans(), max_size=30))
def test_context_precision_is_a_share_and_best_when_useful_sections_come_first(useful):
    found = context_precision(useful)
    assert 0 <= found <= context_precision(sorted(useful, reverse=True)) <= 1


# --- Reports ---


def test_percentiles_are_values_that_were_measured():
    told = percentiles([5.0, 1.0, 3.0, 2.0, 4.0])
    assert told == {"p50": 3.0, "p90": 5.0, "p95": 5.0, "p99": 5.0, "max": 5.0}
    assert percentiles([]) == {}


def test_a_summary_tells_held_back_answers_of_both_sorts_apart():
    told = summarize(
        [
            answer("right", 1.0, held_back=False),
            answer("hesitant", 0.5, held_back=True),
            answer("none", None, held_back=True),
            answer("invented", None, held_back=False),
        ]
    )
    assert told["held_back_answerable"] == 1 / 2
    assert told["unanswerable"] == {"n": 2, "held_back": 1 / 2}
    assert told["ndcg@10"] == 0.75


def test_a_report_has_every_kind_and_what_could_not_be_asked():
    told = overall_and_kinds(
        [answer("a", 1.0, kind="typo"), answer("b", 0.0, kind="title", refused="empty")]
    )
    assert set(told["kinds"]) == {"typo", "title"}
    assert told["kinds"]["typo"]["ndcg@10"] == 1
    assert told["refused"] == {"b": "empty"}


# --- Comparisons ---


def planted(loss: float, *, count: int = 200, seed: int = 1):
    """A base, and the same with some answers lost: `loss` points of a hundred in the mean."""
    chance = random.Random(seed)
    base = [chance.choice((0.3, 0.5, 0.63, 1.0)) for _ in range(count)]
    worse = list(base)
    for place in chance.sample(range(count), k=count):
        if sum(base) - sum(worse) < loss * count:
            worse[place] = 0.0
    return answered(base), answered(worse)


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_regression_of_three_points_is_detected(seed):
    base, worse = planted(0.03, seed=seed)
    found = difference(worse, base)

    assert found.mean == pytest.approx(-0.03, abs=0.006)
    assert found.high < 0
    lost = {each.question.id for each in base} & {each.id for each in regressions(worse, base)}
    changed = {a.question.id for a, b in zip(worse, base, strict=True) if a.scores != b.scores}
    assert lost == changed


def test_noise_without_a_direction_is_not_called_a_regression():
    chance = random.Random(3)
    base = [chance.random() for _ in range(200)]
    other = [min(1, max(0, score + chance.choice((-0.1, 0.1)))) for score in base]
    found = difference(answered(other), answered(base))
    assert found.low <= 0 <= found.high


@given(shares)
def test_a_ranking_is_no_better_than_itself(scores):
    found = difference(answered(scores), answered(scores))
    assert (found.mean, found.low, found.high) == (0, 0, 0)
    assert not regressions(answered(scores), answered(scores))


@given(shares, st.randoms())
def test_an_interval_turns_round_with_the_sides(scores, chance):
    other = chance.sample(scores, len(scores))
    one, back = (
        difference(answered(scores), answered(other)),
        difference(answered(other), answered(scores)),
    )
    assert one.mean == pytest.approx(-back.mean)
    assert (one.low, one.high) == (pytest.approx(-back.high), pytest.approx(-back.low))


@given(shares)
def test_an_interval_holds_the_mean_and_is_the_same_twice(shifts):
    low, high = bootstrap_interval(shifts)
    mean = sum(shifts) / len(shifts)
    assert low - 1e-9 <= mean <= high + 1e-9 or len(shifts) < 5
    assert bootstrap_interval(shifts) == (low, high)


def test_an_interval_covers_what_it_promises():
    """Of a hundred samples from one distribution, about 95 intervals hold its mean."""
    chance = random.Random(0)
    held = 0
    for _ in range(100):
        low, high = bootstrap_interval([chance.gauss(0.1, 0.3) for _ in range(80)])
        held += low <= 0.1 <= high
    assert 88 <= held <= 100


def test_each_kind_has_a_difference_of_its_own():
    base = [*answered([0.5, 0.5], kind="typo"), answer("t", 1.0, kind="title")]
    now = [*answered([1.0, 0.5], kind="typo"), answer("t", 0.0, kind="title")]
    found = by_kind(now, base)

    assert {kind: (each.n, each.mean) for kind, each in found.items()} == {
        "title": (1, -1.0),
        "typo": (2, 0.25),
    }
    assert found["typo"].low < 0 < 0.25 < found["typo"].high, "two questions say little"


def test_a_kind_has_the_interval_of_its_questions_alone():
    base = [*answered([0.5] * 30, kind="typo"), answer("t", 1.0, kind="title")]
    now = [*answered([0.6] * 30, kind="typo"), answer("t", 0.0, kind="title")]
    found = by_kind(now, base)["typo"]

    assert (found.mean, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))


def test_an_order_can_change_without_the_score():
    base = [answer("p", 1.0, notes=("a.md", "b.md")), answer("q", 1.0, notes=("a.md",))]
    now = [answer("p", 1.0, notes=("a.md", "c.md")), answer("q", 1.0, notes=("a.md",))]
    told = comparison("b", now, "a", base)

    assert (told["changed"], told["mean"]) == (1, 0.0)
    assert comparison("a", base, "a", base)["changed"] == 0


def test_questions_without_an_answer_are_in_no_difference():
    told = comparison("b", [answer("x", None), answer("y", 1.0)], "a", [answer("y", 0.0)])
    assert (told["n"], told["mean"]) == (1, 1.0)


def test_a_regression_says_where_the_note_stood_and_stands():
    base = [answer("q", 1.0, notes=("a.md", "b.md"))]
    now = [answer("q", 0.5, notes=("b.md", "c.md", "a.md"))]
    lost = regressions(now, base)[0]
    assert (lost.rank_before, lost.rank_after) == (1, 3)
    gone = regressions([answer("q", 0.0, notes=("b.md",))], base)[0]
    assert gone.rank_after == 0
