"""Spans: what is cut out of a note's text is what is there and not excluded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragvault.text.spans import back, cut


@st.composite
def texts(draw):
    """A text, stretches of it in order and apart, and a span."""
    text = draw(st.text(max_size=60))
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)))
    excluded = tuple(zip(edges[::2], edges[1::2], strict=False))
    start = draw(st.integers(0, len(text)))
    return text, excluded, start, draw(st.integers(start, len(text)))


def kept(excluded, start, end):
    """The offsets of a span that are not excluded, one by one: slow and plain."""
    return [at for at in range(start, end) if not any(a <= at < b for a, b in excluded)]


def test_a_comment_inside_a_passage_is_left_out():
    assert cut("one %%two%% three", 0, 17, [(4, 11)]) == "one  three"


def test_a_span_that_begins_and_ends_inside_excluded_text_loses_both_ends():
    assert cut("aaBBBccDDDee", 3, 9, [(2, 5), (7, 10)]) == "cc"


def test_a_span_inside_excluded_text_is_empty():
    assert cut("aaBBBcc", 3, 4, [(2, 5)]) == ""


def test_walking_back_steps_over_excluded_text():
    assert back(7, 3, [(2, 5)]) == 1


def test_walking_back_further_than_the_text_reaches_its_beginning():
    assert back(7, 99, [(0, 2), (4, 5)]) == 0


@given(texts())
def test_cut_keeps_exactly_the_characters_that_are_not_excluded(case):
    text, excluded, start, end = case
    assert cut(text, start, end, excluded) == "".join(text[i] for i in kept(excluded, start, end))


@given(texts(), st.integers(0, 70))
def test_walking_back_finds_as_many_characters_as_it_was_asked_for(case, count):
    text, excluded, start, _ = case
    found = cut(text, back(start, count, excluded), start, excluded)
    assert len(found) == min(count, len(kept(excluded, 0, start)))


@given(texts())
def test_cutting_at_any_place_and_joining_gives_the_whole(case):
    text, excluded, start, end = case
    middle = (start + end) // 2
    halves = cut(text, start, middle, excluded) + cut(text, middle, end, excluded)
    assert halves == cut(text, start, end, excluded)
