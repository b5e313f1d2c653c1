"""Parents, limit and budget: what is shown, how much of it, and what is said about the rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rank_kit import candidate, context, few, ids, names, pools

from ragvault.candidate import Excerpt, SectionPlace
from ragvault.rank.budget import budget, fit_budget
from ragvault.rank.limit import is_likely, limit
from ragvault.rank.parents import parents

SECTIONS = {"parents__enabled": True, "parents__unit": "section"}
SHOWN = {
    at: Excerpt(
        at,
        f"section {at}\n",
        (at * 10, at * 10 + 9),
        (f"H{at}",),
        before=at - 1 if at > 1 else None,
        after=at + 1 if at < 5 else None,
    )
    for at in range(1, 6)
}


def in_section(name, section, *, score, ordinal=0):
    return candidate(name, ordinal=ordinal, score=score, passage={"section": section})


def test_passages_of_one_section_become_one_result_with_the_best_score():
    pool = [
        in_section("a", 1, score=0.9, ordinal=1),
        in_section("b", 2, score=0.8),
        in_section("a", 1, score=0.7, ordinal=2),
    ]
    found = parents(pool, context(**SECTIONS, sections=SHOWN))

    assert [(c.text, c.lines, c.headings, c.score) for c in found] == [
        ("section 1\n", (10, 19), ("H1",), 0.9),
        ("section 2\n", (20, 29), ("H2",), 0.8),
    ]
    assert found[0].passage.text == "the text of a 1"
    assert found[0].merged == (pool[2].id,)
    assert (found.removed[0].candidate, found.removed[0].by.id) == (pool[2], pool[0].id)


def test_the_highest_score_is_kept_even_where_it_came_later():
    pool = [in_section("a", 1, score=0.2), in_section("a", 1, score=0.7, ordinal=2)]

    assert [c.score for c in parents(pool, context(**SECTIONS, sections=SHOWN))] == [0.7]


def test_a_passage_whose_section_is_gone_is_shown_itself():
    (found,) = parents([in_section("a", 99, score=1.0)], context(**SECTIONS))

    assert (found.text, found.shown) == ("the text of a 0", None)


def test_sections_that_the_limit_takes_out_are_not_read():
    class Read(dict):
        def __missing__(self, at):
            raise AssertionError(f"section {at} was read")

        def __contains__(self, at):
            return True

    pool = [in_section("a", 1, score=0.9), in_section("b", 2, score=0.8)]
    found = parents(pool, context(**SECTIONS, limit=1, sections=Read({1: SHOWN[1]})))

    assert [c.text for c in found] == ["section 1\n", "the text of b 0"]


def test_neighbours_are_joined_on_both_sides_and_nothing_is_shown_twice():
    pool = [in_section("a", 3, score=0.9), in_section("a", 5, score=0.5, ordinal=1)]
    ctx = context(**SECTIONS, parents__neighbours=1, sections=SHOWN)
    found = parents(pool, ctx)

    assert [c.text for c in found] == ["section 2\nsection 3\nsection 4\n", "section 5\n"]
    assert [c.lines for c in found] == [(20, 49), (50, 59)]


def test_a_candidate_that_is_shown_as_a_neighbour_is_no_result_of_its_own():
    """The seed's pipeline adds the passages before and after each of the best."""
    passages = {at: Excerpt(at, f"p{at}", (at, at), (), at - 1, at + 1) for at in range(44, 80)}
    pool = [candidate("a", id=at, score=1 / at) for at in (45, 46, 78)]
    found = parents(pool, context("policy", passages=passages))

    assert [c.text for c in found] == ["p44\np45\np46", "p77\np78\np79"]
    assert found.removed[0].reason == "shown with its neighbour"


@few
@given(pools(scored=True), st.integers(0, 2))
def test_every_result_contains_its_candidate(pool, neighbours):
    sections = {at: Excerpt(at, f"{at};", (1, 1), (), at - 1, at + 1) for at in range(9)}
    ctx = context(**SECTIONS, parents__neighbours=neighbours, sections=sections)
    found = parents(pool, ctx)

    shown = [part for c in found for part in c.text.replace("\n", "").split(";")[:-1]]
    assert len(shown) == len(set(shown))
    assert all(str(c.passage.section) in c.text for c in found)
    assert len(found) + len(found.removed) == len(pool)
    assert {*ids(found), *(m for c in found for m in c.merged)} == set(ids(pool))


# One row a note

ONE_ROW = {**SECTIONS, "parents__per_note": 1, "unrelated": 0.45}
NEAR, FAR = [1.0, 0.0], [0.6, 0.8]  # a cosine of 0.6 is an evidence of 0.27


def of_two_notes():
    return [
        in_section("a", 1, score=0.9),
        in_section("a", 2, score=0.8, ordinal=1),
        in_section("b", 3, score=0.7),
        in_section("a", 4, score=0.6, ordinal=2),
    ]


def test_the_best_section_stands_for_its_note_and_the_others_are_named_below_it():
    pool = of_two_notes()
    found = parents(pool, context(**ONE_ROW, sections=SHOWN))

    assert [c.text for c in found] == ["section 1\n", "section 3\n"]
    assert found[0].also == (SectionPlace(("H2",), (20, 29)), SectionPlace(("H4",), (40, 49)))
    assert [(r.reason, r.by.id) for r in found.removed] == [
        ("its note is already shown", pool[0].id)
    ] * 2


def test_sections_that_say_different_things_have_rows_of_their_own():
    pool = of_two_notes()
    vectors = {each.id: np.array(NEAR) for each in pool} | {pool[1].id: np.array(FAR)}
    found = parents(pool, context(**ONE_ROW, sections=SHOWN, vectors=vectors))

    assert [c.text for c in found] == ["section 1\n", "section 2\n", "section 3\n"]
    assert [len(c.also) for c in found] == [1, 0, 0]


def test_more_rows_a_note_on_request():
    found = parents(of_two_notes(), context(**{**ONE_ROW, "parents__per_note": 2}, sections=SHOWN))

    assert [c.text for c in found] == ["section 1\n", "section 2\n", "section 3\n"]


def test_only_what_would_have_been_among_the_results_is_named():
    found = parents(of_two_notes(), context(**ONE_ROW, sections=SHOWN, limit=3))

    assert found[0].also == (SectionPlace(("H2",), (20, 29)),)


def test_the_sections_of_the_only_note_found_are_the_results():
    pool = [in_section("a", at, score=1 / at, ordinal=at) for at in (1, 2, 3)]

    assert len(parents(pool, context(**ONE_ROW, sections=SHOWN))) == 3


# Limit


def sure(*confidence, **facts):
    return [
        replace(candidate(f"n{at}", **facts), confidence=number, band="as it was")
        for at, number in enumerate(confidence)
    ]


def test_no_result_looks_more_likely_than_the_one_above_it():
    found = limit(sure(0.6, 0.8, 0.4), context())

    assert [(c.confidence, c.band) for c in found][1:] == [(0.6, "moderate"), (0.4, "as it was")]
    assert found[1].steps[-1].why == "0.600: no more likely than the result above (0.800)"


@given(st.lists(st.one_of(st.floats(0, 1), st.none()), max_size=12))
def test_shown_confidence_never_rises_and_is_never_raised(drawn):
    pool = sure(*drawn)
    found = limit(pool, context(limit__n=20, all_matches=True))
    shown = [c.confidence for c in found if c.confidence is not None]

    assert shown == sorted(shown, reverse=True)
    assert ids(found) == ids(pool)
    assert all(
        before.confidence is None or now.confidence <= before.confidence
        for now, before in zip(found, pool, strict=True)
    )


@pytest.mark.parametrize(
    ("pool", "flags", "count"),
    [
        (sure(0.04, *[0.03] * 6), {}, 5),
        (sure(0.04, *[0.03] * 6), {"all_matches": True}, 7),
        (sure(0.045, *[0.03] * 6), {}, 7),
        (sure(*[None] * 7), {}, 7),  # a list by a filter
        (sure(0.04, *[0.03] * 6, exact="phrase"), {}, 7),
        (sure(0.04, *[0.03] * 6, evidence={"coverage": 1.0}), {}, 7),
        (sure(0.04, *[0.03] * 6), {"limit": 2}, 2),
    ],
)
def test_where_nothing_is_likely_only_the_closest_few_are_shown(pool, flags, count):
    found = limit(pool, context("default", **flags))

    assert len(found) == count
    assert len(found) + len(found.removed) == len(pool)
    assert is_likely(found.kept, context("default").settings) == (count > 5 and not flags)


def test_results_below_the_least_confidence_are_not_shown():
    some = limit(sure(0.9, 0.5, 0.4), context(limit__min_confidence=0.5))
    none = limit(sure(0.45, 0.4), context(limit__min_confidence=0.5))
    listed = limit(sure(None, None), context(limit__min_confidence=0.5))

    assert [c.confidence for c in some] == [0.9, 0.5]
    assert some.removed[0].reason == "its confidence is below 0.5"
    assert none.warnings == ("no result has a confidence of 0.5; the highest is 0.45",)
    assert (len(none), len(listed)) == (0, 2)


def test_the_callers_number_wins_over_the_modes_and_that_over_the_setting():
    pool = [candidate(str(at)) for at in range(20)]

    assert len(limit(pool, context(limit__n=7))) == 7
    assert len(limit(pool, context("speed"))) == 2
    assert len(limit(pool, context("speed", limit=5))) == 5
    assert len(limit(pool, context("lightrag", note_length=300))) == 3
    assert len(limit(pool, context("lightrag", note_length=300, fuse__mode="auto"))) == 2
    assert limit(pool, context(limit__n=7)).removed[0].reason == "not among the first 7"


# Budget


def sized(*texts):
    return [candidate(f"n{at}", passage={"text": text}) for at, text in enumerate(texts)]


def test_what_fits_is_taken_best_first_and_what_is_left_out_is_said():
    pool = sized("x" * 400, "y" * 400, "z" * 4)
    found = budget(pool, context(budget__enabled=True, budget__tokens=150))

    assert names(found) == ["n0"], "the third would fit, and is worse than the second"
    assert found.warnings == ("2 results left out: the 150-token budget is used up",)
    assert {r.reason for r in found.removed} == {"does not fit into 150 tokens"}


def test_the_last_one_is_cut_at_a_sentence():
    long = "Third is too long for what is left" + " of it" * 10
    pool = sized("One. " * 20, f"First sentence. Second one! {long}.")
    found = budget(pool, context(budget__enabled=True, budget__tokens=45))

    assert [c.text for c in found][1] == "First sentence. Second one!"
    assert (found[1].cut, found[1].passage.text) == (True, pool[1].text)
    assert found.warnings == ("the last result is cut to fit the budget",)


@pytest.mark.parametrize(("last", "ends"), [(13, 11), (17, 15)])  # and with a comment of four
def test_the_lines_of_what_is_cut_hold_it_whatever_is_not_shown(last, ends, monkeypatch):
    monkeypatch.setattr("ragvault.rank.budget.LEAST", 1)
    (one,) = sized("First.\nSecond.\nThird is too long.\nFourth.\n")
    shown = replace(one, shown=Excerpt(1, one.text, (10, last), ()))
    (found,) = budget([shown], context(budget__enabled=True, budget__tokens=5)).kept

    assert found.text == "First.\nSecond."
    assert found.lines == (10, ends)


def test_where_no_sentence_fits_it_is_left_out():
    found = budget(sized("a" * 500), context(budget__enabled=True, budget__tokens=50))

    assert (found.kept, len(found.removed)) == ((), 1)


def test_a_loaded_tokenizer_counts():
    ctx = context(
        budget__enabled=True, budget__tokens=3, count_tokens=lambda text: len(text.split())
    )

    assert names(budget(sized("one two", "three", "four"), ctx)) == ["n0", "n1"]


def test_nothing_is_cut_where_too_little_is_left_for_it(monkeypatch):
    monkeypatch.setattr("ragvault.rank.budget.LEAST", 6)
    pool = sized(
        "x" * 40, "One. Two. Three. Four. Five. Six. Seven. Eight. Nine. Ten. Eleven. Twelve."
    )

    def count(room):
        ctx = context(budget__enabled=True, budget__tokens=10 + room)
        return len(budget(pool, ctx))

    assert (count(5), count(6)) == (1, 2)


def test_a_part_that_is_counted_as_more_than_the_longer_one_it_is_of_is_cut_again(monkeypatch):
    def count(text):
        return len(text) + 50 * (not text.endswith("\n"))  # without its end it is dearer

    pool = sized("One is short\nTwo goes on for a while\n" + "Three has no end " * 9)
    ctx = context(budget__enabled=True, budget__tokens=70, count_tokens=count)
    (found,) = budget(pool, ctx)

    assert found.text == "One is short"


@given(
    texts=st.lists(st.text("ab .!\n\u3002", max_size=200), max_size=8),
    tokens=st.integers(1, 120),
    odd=st.booleans(),
)
def test_the_budget_is_never_exceeded(texts, tokens, odd):
    # A tokenizer may well count a shorter text as more.
    count = (lambda text: len(text) // 3 + 5 * (not text.endswith("\n"))) if odd else None
    ctx = context(budget__enabled=True, budget__tokens=tokens, count_tokens=count)
    found = budget(sized(*texts), ctx)
    size = count or (lambda text: -(-len(text) // 4))

    assert sum(size(c.text) for c in found) <= tokens
    assert all(c.passage.text.startswith(c.text) for c in found)
    assert len(found) + len(found.removed) == len(texts)


@given(
    texts=st.lists(st.text("ab .!\n\u3002", max_size=200), max_size=8),
    tokens=st.integers(1, 150),
    odd=st.booleans(),
)
def test_no_more_is_written_than_the_budget_allows(texts, tokens, odd):
    """Counted as it is written: tokens of a whole need not be the sum of those of its parts."""

    def written(some):
        return "\n".join(f"[{at}] {c.note.path}\n{c.text.strip()}" for at, c in enumerate(some))

    def size(some):
        text = written(some)
        return len(text) // 3 + 5 * (not text.endswith("b")) if odd and text else -(-len(text) // 4)

    ctx = context(budget__enabled=True, budget__tokens=tokens)
    found = fit_budget(sized(*texts), ctx, size)

    assert size(found.kept) <= tokens
    assert len(found) + len(found.removed) == len(texts)


def test_an_answer_with_every_word_is_not_held_back_and_not_called_unlikely():
    found = [
        replace(candidate("a"), confidence=0.1),
        replace(candidate("b", evidence={"coverage": 1.0}), confidence=0.05),
        replace(candidate("c"), confidence=0.04, band="unlikely"),
    ]
    kept = limit(found, context("default"))
    numbers = [each.confidence for each in kept]

    assert [each.band for each in kept] == ["weak", "weak", "unlikely"]
    assert numbers == sorted(numbers, reverse=True)
