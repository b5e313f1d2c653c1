"""Rankings are scored, scores become reports, and reports are compared.

The metrics are held against trec_eval and against values done by hand.
"""

from __future__ import annotations

import random
from math import log2

import pytest
import pytrec_eval
from evaluate_kit import answer, answered, question
from hypothesis import given
from hypothesis import strategies as st
from rank_kit import candidate

from ragvault.evaluate.report import (
    METRICS,
    average,
    bootstrap_interval,
    comparison,
    context_precision,
    context_scores,
    difference,
    kind_differences,
    ndcg,
    overall_and_kinds,
    percentiles,
    regressions,
    score,
    summarize,
    unique_notes,
)

notes = st.sampled_from([f"n{number}" for number in range(25)])
rankings = st.lists(notes, max_size=40)
judgements = st.dictionaries(notes, st.integers(0, 4), min_size=1)
shares = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=60)


# --- Metrics ---


def by_trec_eval(ranking, grades, relevant):
    """The same metrics from trec_eval, whose gain is the grade itself and whose lists are long."""
    notes = unique_notes(ranking)
    run = {"q": {note: float(-rank) for rank, note in enumerate(notes, 1)}}
    ten = {"q": {note: float(-rank) for rank, note in enumerate(notes[:10], 1)}}
    binary = {"q": {note: int(grade >= relevant) for note, grade in grades.items()}}
    gains = {"q": {note: 2**grade - 1 for note, grade in grades.items()}}

    def told(judged, found, measure):
        return pytrec_eval.RelevanceEvaluator(judged, {measure}).evaluate(found)["q"]

    return {
        "mrr@10": told(binary, ten, "recip_rank")["recip_rank"],
        "success@1": told(binary, run, "success.1")["success_1"],
        "p@3": told(binary, run, "P.3")["P_3"],
        "p@5": told(binary, run, "P.5")["P_5"],
        "ndcg@10": told(gains, run, "ndcg_cut.10")["ndcg_cut_10"],
        "recall@10": told(binary, run, "recall.10")["recall_10"],
    }


@given(rankings.filter(bool), judgements, st.integers(1, 3))
def test_every_metric_is_what_trec_eval_says(ranking, grades, relevant):
    mine = score(ranking, grades, relevant=relevant)
    reference = by_trec_eval(ranking, grades, relevant)

    assert mine == {name: pytest.approx(reference[name]) for name in mine}


@given(rankings, judgements)
def test_every_value_is_a_share(ranking, grades):
    assert all(0 <= value <= 1 for value in score(ranking, grades).values())


@given(rankings, judgements)
def test_further_passages_of_a_note_change_nothing(ranking, grades):
    repeated = [note for note in ranking for _ in range(3)]
    assert score(repeated, grades) == score(ranking, grades)


@given(judgements.filter(lambda grades: max(grades.values()) > 0))
def test_the_judges_own_order_is_perfect(grades):
    ideal = sorted(grades, key=lambda note: -grades[note])
    assert score(ideal, grades)["ndcg@10"] == pytest.approx(1)


def test_gain_is_two_to_the_grade_less_one():
    grades = {"best": 3, "fair": 1}
    found = ndcg(["fair", "best"], grades, 10)
    assert found == pytest.approx((1 + 7 / log2(3)) / (7 + 1 / log2(3)))


def test_grade_one_does_not_count_as_relevant():
    told = score(["maybe", "yes"], {"maybe": 1, "yes": 2})
    assert (told["success@1"], told["mrr@10"]) == (0, 1 / 2)


def test_a_short_answer_is_not_a_precise_one():
    assert score(["yes"], {"yes": 3})["p@5"] == 1 / 5


def test_a_relevant_note_after_the_tenth_is_not_found():
    ranking = [f"other {number}" for number in range(10)] + ["yes"]
    told = score(ranking, {"yes": 3})
    assert told["mrr@10"] == told["recall@10"] == told["ndcg@10"] == 0


def test_a_question_without_a_relevant_note_tells_only_what_it_can():
    assert set(score(["a"], {"a": 1})) == {"ndcg@10"}
    assert score(["a"], {"a": 0}) == {}
    assert score(["a"], {}) == {}


def test_the_mean_is_over_the_questions_that_tell_a_metric():
    told = average([{"ndcg@10": 1.0, "mrr@10": 0.5}, {"ndcg@10": 0.0}])
    assert told == {"ndcg@10": 0.5, "mrr@10": 0.5}
    assert list(told) == [name for name in METRICS if name in told]
    assert average([]) == {}


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
    lost = {each.question.id for each in base} & {each["id"] for each in regressions(worse, base)}
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
    found = kind_differences(now, base)

    assert {kind: (each.n, each.mean) for kind, each in found.items()} == {
        "title": (1, -1.0),
        "typo": (2, 0.25),
    }
    assert found["typo"].low < 0 < 0.25 < found["typo"].high, "two questions say little"


def test_a_kind_has_the_interval_of_its_questions_alone():
    base = [*answered([0.5] * 30, kind="typo"), answer("t", 1.0, kind="title")]
    now = [*answered([0.6] * 30, kind="typo"), answer("t", 0.0, kind="title")]
    found = kind_differences(now, base)["typo"]

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
    assert (lost["rank_before"], lost["rank_after"]) == (1, 3)
    gone = regressions([answer("q", 0.0, notes=("b.md",))], base)[0]
    assert gone["rank_after"] == 0
