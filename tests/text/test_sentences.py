"""Where sentences end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.text.spans import sentence_ends, sentences


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text, 0, len(text))]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Call Dr. M. about the MRI. Then rest.", ["Call Dr. M. about the MRI.", "Then rest."]),
        ("As in e.g. Berlin. Yes!", ["As in e.g. Berlin.", "Yes!"]),
        ("See fig. 3 and no. 4. He said no. So be it.", None),
        ("Why? e.g. for fun. “Really.” Well", ["Why? e.g. for fun.", "“Really.”", "Well"]),
        ("version 1.2 of x.y is out", ["version 1.2 of x.y is out"]),
        ("1. One thing. It is 2. Two", ["1. One thing.", "It is 2.", "Two"]),
        ("一。二！三", ["一。", "二！", "三"]),
        ("Wait… What", ["Wait…", "What"]),
    ],
)
def test_abbreviations_and_initials_end_no_sentence(text, parts):
    wanted = parts or ["See fig. 3 and no. 4.", "He said no.", "So be it."]
    assert split(text) == wanted


@given(st.text(alphabet="ab M.!?\n。 Dr", max_size=80))
def test_sentences_have_every_letter_once_and_in_order(text):
    assert "".join("".join(split(text)).split()) == "".join(text.split())
    ends = sentence_ends(text)
    assert ends == sorted(set(ends))
    assert all(0 < end <= len(text) for end in ends)
