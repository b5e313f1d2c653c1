"""Several answers become one list: each in its own order, the surest first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rank_kit import candidate

from ragvault.several import interleaved


def answer(name: str, *confidence: float | None):
    return [
        replace(candidate(f"{name}{at}"), confidence=sure) for at, sure in enumerate(confidence)
    ]


def order(*answers) -> list[str]:
    return [each.note.path for _, each in interleaved(answers)]


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


answers = st.lists(st.lists(st.none() | st.floats(0, 1), max_size=6), max_size=4)


@given(answers)
def test_every_result_is_there_once_and_in_the_order_of_its_vault(drawn):
    given_ = [answer(f"v{at}-", *confidence) for at, confidence in enumerate(drawn)]
    merged = interleaved(given_)
    for at, results in enumerate(given_):
        assert [each for of, each in merged if of == at] == results
