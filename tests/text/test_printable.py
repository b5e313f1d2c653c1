"""Text of unknown origin cannot steer a terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.text.printable import encode, harmless, one_line, printable

STEERING = [
    *map(chr, range(0x80, 0xA0)),
    *"\ud83d\udc80\u2028\u2029\x0b\x0c\x1b\x07\x7f\u061c\u200e\u200f\u202a\u202e\u2066\u2069",
]


@pytest.mark.parametrize("char", STEERING, ids=lambda char: f"U+{ord(char):04X}")
@pytest.mark.parametrize("made_safe", [printable, one_line, harmless, encode])
def test_controls_and_marks_of_direction_are_escaped(made_safe, char):
    assert char not in made_safe(f"note{char}.md")


@pytest.mark.parametrize("made_safe", [printable, one_line, harmless])
def test_a_usual_name_stays_as_it_is(made_safe):
    assert made_safe("Grüße – 会議 🎉.md") == "Grüße – 会議 🎉.md"


def test_bytes_that_are_not_utf_8_are_shown_as_bytes():
    assert printable("a\udcff.md") == "a\\xff.md"


@given(st.text())
def test_an_escape_in_json_does_not_change_the_value(text):
    assert json.loads(encode({"note": text})) == {"note": text}
