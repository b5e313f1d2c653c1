"""The metrics of the contract, held against trec_eval and against values done by hand."""

from math import log2

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from ragvault.evaluate.metrics import METRICS, average, ndcg, score, unique_notes

notes = st.sampled_from([f"n{number}" for number in range(25)])
rankings = st.lists(notes, max_size=40)
judgements = st.dictionaries(notes, st.integers(0, 4), min_size=1)


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
