"""Lines that fit a terminal: nothing is lost, and no word is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragvault.text.printable import wrapped

WORDS = st.lists(st.text(st.characters(categories=["L", "N", "P"]), min_size=1), min_size=1)


@given(WORDS, st.integers(20, 120))
def test_no_word_is_lost_or_cut(words, width):
    line = " ".join(words)
    lines = wrapped(line, width).split("\n")

    assert " ".join(lines).split() == line.split()
    assert all(len(each) <= width or len(each.split()) == 1 for each in lines)


def test_the_text_hangs_on_its_label():
    assert wrapped("size      2.3 MB (catalogue 741.4 kB)", 30).split("\n") == [
        "size      2.3 MB (catalogue",
        "          741.4 kB)",
    ]
    assert wrapped("     fix: use one of these words", 30).split("\n")[1] == "          words"
    assert wrapped("    a reason in some words that go on", 30).split("\n")[1] == "    that go on"


def test_without_a_terminal_nothing_changes():
    assert wrapped("a " * 200, 0) == "a " * 200
