"""The line of a key, and a value written so that it reads back."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.config import toml

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"))
    | st.dates()
    | st.datetimes()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
# Gaps between two keys, of every kind that could be mistaken for something else.
gaps = st.sampled_from(["", "\n", "# key = 1\n", "# [table]\n\n", "  \t\n", '# it\'s """ odd\n'])


@given(values)
def test_what_is_written_reads_back(value):
    assert toml.value(toml.literal(value)) == value


@given(st.dictionaries(names, st.tuples(gaps, values), min_size=1, max_size=6))
def test_every_key_is_found_on_its_line(pairs):
    text, expected = "", {}
    for name, (gap, value) in pairs.items():
        text += gap
        expected[name] = text.count("\n") + 1
        text += f"{toml.key(name)} = {toml.literal(value)}\n"

    found = toml.lines(text)

    assert {name: found[(name,)] for name in pairs} == expected


@given(st.text())
def test_no_text_makes_the_search_for_lines_fail(text):
    toml.lines(text)


@given(st.text())
def test_a_text_is_toml_or_a_toml_error(text):
    with suppress(toml.TomlError):
        toml.parse(text)


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a.b.c = 1", ("a", "b", "c"), 1),
        ("\na . 'b' = 1", ("a", "b"), 2),
        ("[t]\n\nk = 1", ("t", "k"), 3),
        ("[ t . u ]\nk = 1", ("t", "u", "k"), 2),
        ("t = { k = [\n1], u.v = 2 }", ("t", "u", "v"), 2),
        ('x = """\n[t]\nk = 1\n"""\n[t]\nk = 2', ("t", "k"), 6),
        ("x = '''\nk = 1'''\nk = 2", ("k",), 3),
        ("x = [\n 1, # ]\n { y = '}' },\n]\nk = 2", ("k",), 5),
        ('x = "\\"" # "\nk = 2', ("k",), 2),
        ("x = 1979-05-27 07:32:00\nk = 2", ("k",), 2),
        ("[[t]]\nj = 1\n[[t]]\nk = 1", ("t", "k"), 4),
        ("a = 1\r\n[t]\r\nk = 1\r\n", ("t", "k"), 3),
    ],
)
def test_a_key_is_found_however_it_is_written(text, path, line):
    toml.parse(text)

    assert toml.lines(text)[path] == line


@pytest.mark.parametrize("text", ["1\nother = 2", "1\n[table]", "", "a b", "{"])
def test_what_is_not_exactly_one_value_is_refused(text):
    with pytest.raises(toml.TomlError):
        toml.value(text)


def test_nesting_without_end_is_an_error_and_not_a_crash():
    with pytest.raises(toml.TomlError):
        toml.parse("a = " + "[" * 100_000)


def test_an_escape_sequence_cannot_reach_the_terminal():
    assert toml.literal("\x1b[31m\u202e") == '"\\u001b[31m\\u202e"'
