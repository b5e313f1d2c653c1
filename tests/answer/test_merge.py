"""Several answers become one list: each in its own order, the surest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rank_kit import DAY, candidate, note

from ragvault.answer.results import SearchResult
from ragvault.answer.vaults import by_date, interleaved
from ragvault.candidate import Step, Term
from ragvault.types import Date


def answer(name: str, *confidence: float | None):
    return [
        SearchResult(name, replace(candidate(f"{name}{at}"), confidence=sure))
        for at, sure in enumerate(confidence)
    ]


def order(*answers) -> list[str]:
    return [each.candidate.note.path for each in interleaved(answers)]


def test_the_surest_of_the_next_results_comes_first():
    one, other = answer("a", 0.9, 0.5), answer("b", 0.7, 0.6)
    assert order(one, other) == ["a0.md", "b0.md", "b1.md", "a1.md"]


def test_a_vault_keeps_its_own_order_also_against_confidence():
    one, other = answer("a", 0.2, 0.9), answer("b", 0.5)
    assert order(one, other) == ["b0.md", "a0.md", "a1.md"]


def test_without_confidence_the_vaults_take_turns():
    assert order(answer("a", None, None), answer("b", None, None)) == [
        *("a0.md", "b0.md", "a1.md", "b1.md"),
    ]


def listed(name: str, *days: int, exact: str = ""):
    """A list by date, of days since 1970."""
    dates = [Date(day * DAY, "name") for day in days]
    return [
        SearchResult(name, candidate(of=note(f"{name}{at}", date=date), exact=exact))
        for at, date in enumerate(dates)
    ]


def dated(*answers) -> list[str]:
    return [each.candidate.note.path for each in by_date(answers)]


def test_lists_by_date_become_one_list_by_date():
    one, other = listed("a", 9, 8, 1), listed("b", 7, 3)
    assert dated(one, other) == ["a0.md", "a1.md", "b0.md", "b1.md", "a2.md"]


def test_notes_of_one_day_stand_in_the_order_of_the_vaults_and_then_in_their_own():
    one, other = listed("a", 5, 5), listed("b", 6, 5)
    assert dated(one, other) == ["b0.md", "a0.md", "a1.md", "b1.md"]
    assert dated(other, one) == ["b0.md", "b1.md", "a0.md", "a1.md"]


def test_a_note_whose_name_was_asked_for_comes_before_the_newest():
    one, named = listed("a", 9), listed("b", 3, exact="title")
    assert dated(one, named) == ["b0.md", "a0.md"]


answers = st.lists(st.lists(st.none() | st.floats(0, 1), max_size=6), max_size=4)


@given(answers)
def test_every_result_is_there_once_and_in_the_order_of_its_vault(drawn):
    given_ = [answer(f"v{at}-", *confidence) for at, confidence in enumerate(drawn)]
    merged = interleaved(given_)
    for at, results in enumerate(given_):
        assert [each for each in merged if each.answer == f"v{at}-"] == results


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=4))
def test_a_joined_list_is_by_date_and_leaves_the_order_of_each_vault(drawn):
    given_ = [listed(f"v{at}-", *sorted(days)[::-1]) for at, days in enumerate(drawn)]
    merged = by_date(given_)
    dates = [each.candidate.note.date.at for each in merged]
    assert dates == sorted(dates, reverse=True)
    for at, results in enumerate(given_):
        assert [each for each in merged if each.answer == f"v{at}-"] == results


def test_what_was_asked_for_by_its_very_name_comes_first_in_whichever_vault_it_is():
    lifted = [Step("fuse", 0.0, 9.0, (Term("exact", 9.0),))]
    first = replace(candidate("named", exact="title"), confidence=0.95, steps=tuple(lifted))
    named = [SearchResult("b", first)]
    assert order(answer("a", 0.99, 0.97), named) == ["named.md", "a0.md", "a1.md"]
