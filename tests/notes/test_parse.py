"""Parsing never raises, and blanking out never moves anything."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.config import settings as config
from ragvault.notes import frontmatter, markdown
from ragvault.notes.markdown import blank_out, clean_tag, find_tags
from ragvault.notes.parse import PARSERS, parse
from ragvault.text.spans import Lines
from ragvault.types import Note

ODD = st.text(alphabet="#[]|^%`$<>!-–*_ \n\t:/.ab1é漢🍞\\\ud800\x00", max_size=200)


def read(text: str, path: str = "a.md") -> Note:
    return parse(path, text, config.Parse(), config.Links())


@given(st.one_of(st.text(max_size=300), ODD, ODD.map(lambda text: f"---\n{text}\n---\n{text}")))
def test_parsing_any_text_never_raises_and_offsets_are_inside_it(text):
    note = read(text)

    assert 0 <= note.body <= len(text)
    assert all(0 <= link.start < len(text) for link in note.links)
    assert all(note.body <= heading.start < len(text) for heading in note.headings)
    assert all(a < b <= c < d for (a, b), (c, d) in pairwise(note.excluded))


@given(ODD)
def test_blocks_lie_end_to_end_over_the_body(text):
    note = read(text)
    blocks = note.layout.blocks
    if note.body < len(text):
        assert (blocks[0].start, blocks[-1].end) == (note.body, len(text))
    assert all(a.end == b.start for a, b in pairwise(blocks))
    assert all(b.start < cut < b.end for b in blocks for cut in b.cuts)


@given(ODD)
def test_code_and_tables_lie_apart_each_in_one_block(text):
    note = read(text)
    held = note.layout.held
    assert all(a.end <= b.start for a, b in pairwise(held))
    assert all(
        any(block.start <= each.start < each.end <= block.end for block in note.layout.blocks)
        for each in held
    )


@given(st.text("ab\n", max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))))
def test_blanking_keeps_length_and_lines(text, spans):
    inside = [(a, b) for a, b in spans if a <= b <= len(text)]
    blanked = blank_out(text, inside)

    assert len(blanked) == len(text)
    assert [i for i, c in enumerate(blanked) if c == "\n"] == [
        i for i, c in enumerate(text) if c == "\n"
    ]
    for i, character in enumerate(blanked):
        hidden = any(a <= i < b for a, b in inside)
        assert character == (" " if hidden and text[i] != "\n" else text[i])


@given(st.text("ab\n", min_size=1, max_size=60), st.data())
def test_line_and_column_find_the_offset_again(text, data):
    offset = data.draw(st.integers(0, len(text) - 1))
    lines = Lines(text)
    line, column = lines.of(offset), lines.column(offset)
    before = text.split("\n")[: line - 1]
    assert sum(len(part) + 1 for part in before) + column - 1 == offset


@given(st.text(max_size=200))
def test_frontmatter_of_any_text_never_raises(text):
    front = frontmatter.split(f"---\n{text}\n---\nbody")
    assert isinstance(front.properties, dict)


def test_types_of_frontmatter_are_kept():
    front = frontmatter.split(
        "---\nn: 3\nf: 2.5\nb: true\nd: 2024-03-14\nt: 2024-03-14T10:20:30\nyes: yes\n"
        "clock: 12:30\nnothing:\nl: [1, x]\nbad: 2024-02-31\nzip: 01234\n---\n"
    )
    assert front.properties == {
        "n": 3, "f": 2.5, "b": True, "d": dt.date(2024, 3, 14),
        "t": dt.datetime(2024, 3, 14, 10, 20, 30), "yes": "yes", "clock": "12:30",
        "nothing": None, "l": [1, "x"], "bad": "2024-02-31", "zip": "01234",
    }  # fmt: skip


def test_a_billion_laughs_are_not_laughed():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    front = frontmatter.split(f"---\n{bomb}---\nbody")
    assert front.properties == {}
    assert "too many values" in front.warnings[0]


@pytest.mark.parametrize(
    "yaml",
    [
        "a: " + "[" * 5000,
        "a: &a [*a]",
        "!!python/object/apply:os.system ['true']",
        "- a\n- b",
        "a: *b",
        "a: " + "[" * 30000 + "]" * 30000,
        "a: " + "{" * 30000,
        "- " * 30000 + "x",
        "a: 1\n" + "? " * 30000,
        "!!merge <<: {a: 1}",
    ],
)
def test_yaml_that_cannot_be_used_leaves_a_warning_and_the_text(yaml):
    note = read(f"---\n{yaml}\n---\n# Kept\n")
    assert note.title == "Kept"
    assert len(note.warnings) == 1
    assert note.warnings[0].startswith("frontmatter ignored")


def test_nested_merge_keys_cost_no_more_than_their_characters():
    merges = "a: &a {x: 1}\n" + "".join(
        f"b{i}: &b{i}\n  <<: [{', '.join(['*a' if i == 0 else f'*b{i - 1}'] * 9)}]\n"
        for i in range(12)
    )
    note = read(f"---\ntitle: Kiwi\n{merges}---\nkiwi\n")
    assert note.warnings == ("frontmatter ignored: it holds too many values (more than 10,000)",)


def test_a_merge_key_is_a_key_like_any_other():
    front = frontmatter.split("---\nbase: &b {x: 1}\nmine:\n  <<: *b\n  y: 2\n---\n")
    assert front.properties == {"base": {"x": 1}, "mine": {"<<": {"x": 1}, "y": 2}}


def test_a_frontmatter_warning_names_the_line_of_the_file():
    assert (
        "line 3" in read("---\ngood: 1\nbad: [1, 2\n---\n").warnings[0]
        or "line 4" in read("---\ngood: 1\nbad: [1, 2\n---\n").warnings[0]
    )


@given(st.text("#ab1/- é🍞漢.(", max_size=30))
def test_tags_found_are_clean_tags(text):
    for tag in find_tags(text):
        assert clean_tag(tag) == tag
        assert tag in text


def test_fields_met_twice_become_a_list_and_frontmatter_comes_first():
    merged = frontmatter.with_fields({"rating": 5}, "rating:: 4\nmade:: 2024-03-14\n(soft:: true)")
    assert merged == {"rating": [5, 4], "made": dt.date(2024, 3, 14), "soft": True}


@given(st.text(st.sampled_from("#a1/[](): <>\\&-_é\n^!x|"), max_size=30))
def test_no_tag_is_missed_by_the_look_for_a_likely_one(text):
    met = (clean_tag(match[1] or "") for match in markdown._TAG.finditer(text))
    assert list(find_tags(text)) == [tag for tag in met if tag]


def test_what_can_be_parsed_is_what_the_walk_takes_for_a_note():
    assert sorted(PARSERS) == sorted(config.Walk().extensions)


@given(ODD)
def test_plain_text_of_any_kind_is_all_of_it_prose(text):
    note = read(text, "a.txt")
    blocks = note.layout.blocks
    assert "".join(text[block.start : block.end] for block in blocks) == text
    assert (note.headings, note.tags, note.properties, note.excluded) == ((), (), {}, ())


@pytest.mark.parametrize(
    ("text", "tasks"),
    [
        ("- [ ] a\n* [x] b\n2. [/] c\n", 3),
        ("- a\n\t- [-] nested\n> 1) [ ] quoted\n", 2),
        ("- [x](a.md)\n- [x]\n[ ] no item\n", 0),
        ("```\n- [ ] code\n```\n", 0),
    ],
)
def test_a_task_is_an_item_with_a_box_whatever_is_in_it(text, tasks):
    assert [mark for _, mark in read(text).layout.marks].count("task") == tasks


@pytest.mark.parametrize("spaces", range(5))
def test_the_destination_of_a_reference_has_no_tag(spaces):
    tags = list(find_tags(f"#bread\n{' ' * spaces}[a]: page#part\n{' ' * spaces}[b]:  #part\n"))
    assert tags == (["bread"] if spaces <= 3 else ["bread", "part"])
