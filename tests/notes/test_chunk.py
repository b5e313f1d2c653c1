"""The laws of cutting: nothing lost, nothing twice, nothing split that can stay whole."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.config import settings as config
from ragvault.notes import chunk as chunking
from ragvault.notes.chunk import chunk, embedding_text
from ragvault.notes.parse import parse
from ragvault.text.spans import cut
from ragvault.types import Note, Passage, Section

DEFAULT = config.Chunk()
SMALL = config.Chunk(parent_min=60, parent_max=120, child_min=10, child_target=30, child_max=60)


def note(text: str) -> Note:
    return parse("a.md", text, config.Parse(), config.Links())


def cut_up(text: str, settings: config.Chunk = DEFAULT) -> tuple[list[Section], list[Passage]]:
    return chunk(note(text), settings)


def cuts(n: Note, settings: config.Chunk) -> tuple[list[Section], list[Passage]]:
    """The same without the passage that stands for a note without text: it is cut from nothing."""
    parents, children = chunk(n, settings)
    return parents, [child for child in children if child.kind != "properties"]


def sentences(count: int, word: str = "dough") -> str:
    return " ".join(f"Sentence {i} speaks of {word} at length." for i in range(count))


BLOCKS = st.sampled_from(
    [
        "# One\n",
        "## Two\n",
        "### Three ^id\n",
        "Setext\n===\n",
        "Some words. And more! Ümläute?\n",
        "- a\n- b\n  - c\n",
        "1. [ ] task\n2. done\n",
        "```py\ndef f():\n\n    return 1\n```\n",
        "~~~\nnever closed\n",
        "- item\n  ```sh\n  ls\n  ```\n",
        "> ```js\n> let é\n> ```\n",
        "> [!note]\n> > ~~~rs\n> > fn\n",
        "    indented\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
        "> [!note] Title\n> text\n",
        "> quoted\n> > twice\n",
        "%%hidden%% shown\n",
        "%%\n# hidden\n%%\n",
        "<!-- hidden -->\n",
        "<div>\nhtml\n</div>\n",
        "[^1]: a footnote\n",
        "[ref]: other.md\n",
        "$$\nx = \\frac{1}{2}\n$$\n",
        "---\n",
        "\n",
        "\n\n\n\n",
        "   \t\n",
        "漢字の文。次の文！\n",
        "word " * 40 + "\n",
        "x" * 150 + "\n",
        "\u2028\x0b\x0c\x85\n",
        "🍞 #tag [[Link]] ^block\n",
    ]
)
TEXTS = st.one_of(
    st.lists(BLOCKS, max_size=25).map("".join),
    st.lists(BLOCKS, max_size=10).map("\n".join),
    st.text(max_size=400),
)
SETTINGS = st.sampled_from(
    [
        DEFAULT,
        SMALL,
        config.Chunk(parent_min=30, parent_max=40, child_min=1, child_target=5, child_max=20),
    ]
)


@given(TEXTS, SETTINGS)
def test_every_character_that_no_rule_excludes_is_in_one_child_in_order(text, settings):
    n = note(text)
    children = cuts(n, settings)[1]
    body = cut(n.text, n.body, len(n.text), n.excluded)

    assert "".join(child.text for child in children) == (body if body.strip() else "")
    assert [child.ordinal for child in children] == list(range(len(children)))


@given(TEXTS, SETTINGS)
def test_children_and_parents_lie_end_to_end_and_no_child_crosses_a_parent(text, settings):
    parents, children = cuts(note(text), settings)

    assert all(a.end == b.start for a, b in pairwise(parents))
    assert all(a.end == b.start for a, b in pairwise(children))
    for child in children:
        parent = parents[child.section]
        assert parent.start <= child.start < child.end <= parent.end


@given(TEXTS, SETTINGS)
def test_no_child_is_empty_and_none_is_over_the_maximum(text, settings):
    for child in cut_up(text, settings)[1]:
        assert 0 < len(child.text.strip()) <= settings.child_max


@given(TEXTS, SETTINGS)
def test_lines_and_columns_point_at_that_very_text_in_the_file(text, settings):
    n = note(text)
    for child in cuts(n, settings)[1]:
        lines = n.text.split("\n")[child.lines[0] - 1 : child.lines[1]]
        lines[-1] = lines[-1][: child.columns[1]]
        lines[0] = lines[0][child.columns[0] - 1 :]
        pointed = "\n".join(lines)
        visible = child.text.strip()
        assert pointed[0] == visible[0]
        assert pointed[-1] == visible[-1]
        if not n.excluded:
            assert pointed == visible


@given(st.one_of(TEXTS, st.sampled_from(["", "\n", "---\na: 1\n---\n", "%%x%%"])), SETTINGS)
def test_a_note_without_text_and_no_other_has_one_passage_of_its_names_and_properties(
    text, settings
):
    n = note(text)
    parents, children = chunk(n, settings)

    if cut(n.text, n.body, len(n.text), n.excluded).strip():
        assert parents
        assert all(child.kind != "properties" for child in children)
    else:
        assert parents == []
        assert [child.kind for child in children] == ["properties"]
        assert children[0].text.split("\n")[0] == n.title


def test_the_passage_of_a_note_without_text_is_on_the_lines_of_the_frontmatter():
    text = (
        "---\ntitle: Breath of the Wild\naliases: [BotW]\nrating: 5\nauthor:\n- Nintendo\n"
        "- '[[Aonuma]]'\ncssclass: wide\nempty:\n---\n\n%%nothing yet%%\n"
    )

    [only] = cut_up(text)[1]

    assert only.text == ("Breath of the Wild\na\nBotW\nrating: 5\nauthor: Nintendo, [[Aonuma]]")
    assert (only.lines, only.columns) == ((1, 10), (1, 3))
    assert (only.start, only.end) == (0, 0)


@given(TEXTS, st.integers(1, 29))
def test_with_overlap_each_childs_own_part_obeys_the_same_law(text, overlap):
    plain = cut_up(text, SMALL)[1]
    settings = config.Chunk(
        parent_min=60, parent_max=120, child_min=10, child_target=30, child_max=60, overlap=overlap
    )
    overlapping = cut_up(text, settings)[1]

    assert [c.text[c.overlap :] for c in overlapping] == [c.text for c in plain]
    for before, after in pairwise(overlapping):
        assert after.overlap <= overlap
        if after.section != before.section:
            assert after.overlap == 0
        assert before.text[before.overlap :].endswith(after.text[: after.overlap])


def test_a_line_longer_than_the_maximum_is_split_at_a_sentence_with_columns():
    text = sentences(120)
    children = cut_up(text)[1]

    assert len(children) > 2
    assert all(re.match(r"Sentence \d+ speaks", child.text) for child in children)
    assert [child.lines for child in children] == [(1, 1)] * len(children)
    for before, after in pairwise(children):
        assert after.columns[0] == before.columns[1] + 2


def test_a_word_longer_than_the_maximum_is_still_cut():
    assert max(len(child.text) for child in cut_up("x" * 10_000)[1]) <= DEFAULT.child_max


def test_small_siblings_share_a_section_under_their_heading_path():
    text = "# Bread\n\n" + "".join(f"## Kind {i}\n\n{sentences(10)}\n\n" for i in range(8))
    parents, _ = cut_up(text)

    assert len(parents) < 8
    assert parents[0].headings == ("Bread",)
    assert all(len(cut(text, p.start, p.end, ())) <= DEFAULT.parent_max for p in parents)


def test_short_sections_that_share_a_passage_keep_their_headings():
    text = "# Bread\n\nIn short.\n\n" + "".join(f"## Kind {i}\n\nFew words.\n\n" for i in range(3))
    (passage,) = cut_up(text)[1]

    assert passage.headings == ("Bread",)
    assert passage.subheadings == ("Kind 0", "Kind 1", "Kind 2")


def test_text_before_the_first_heading_leaves_the_others_their_names():
    (passage,) = cut_up("Words first.\n\n# A\n\n## B\n\nMore.\n\n# C\n\n## B\n\nLast.\n")[1]

    assert (passage.headings, passage.subheadings) == ((), ("A", "B", "C"))


def test_a_passage_under_one_heading_has_no_others():
    text = f"# Bread\n\n{sentences(30)}\n\n## Rye\n\n{sentences(30)}\n"
    assert {(p.headings, p.subheadings) for p in cut_up(text)[1]} == {
        (("Bread",), ()),
        (("Bread", "Rye"), ()),
    }


@given(TEXTS, SETTINGS)
def test_no_heading_is_lost(text, settings):
    n = note(text)
    children = chunk(n, settings)[1]
    for child in children:
        for heading in n.headings:
            if child.start <= heading.start < child.end:
                assert {*heading.path} <= {*child.headings, *child.subheadings}


def test_a_large_section_is_split_between_blocks_into_full_parents():
    paragraphs = [sentences(8) for _ in range(40)]
    text = "# Long\n\n" + "\n\n".join(paragraphs) + "\n"
    parents, _ = cut_up(text)

    sizes = [len(text[p.start : p.end].strip()) for p in parents]
    assert all(DEFAULT.parent_min <= size <= DEFAULT.parent_max for size in sizes[:-1])
    for parent in parents:
        assert text[parent.start : parent.end].strip().endswith(paragraphs[0][-12:])


@pytest.mark.parametrize(
    "unit",
    ["```py\n" + "x = 1  # a line\n" * 80 + "```", "~~~\n" + "y = 2\n" * 200 + "~~~"],
    ids=["backticks", "tildes"],
)
def test_a_fence_that_fits_a_passage_is_never_split(unit):
    text = f"{sentences(9)}\n\n{unit}\n\n{sentences(9)}\n"
    holding = [child for child in cut_up(text)[1] if unit[4:40] in child.text]

    assert len(holding) == 1
    assert unit in holding[0].text


def test_a_fence_longer_than_a_section_makes_one_long_section_and_is_cut_at_lines():
    fence = "```js\n" + "".join(f"const name{i} = {i};\n" for i in range(250)) + "```\n"
    parents, children = cut_up(f"# Code\n\n{fence}")

    assert [len(p.headings) for p in parents] == [1]
    assert len(children) > 2
    assert {(child.kind, child.lang) for child in children} == {("code", frozenset({"js"}))}
    assert all(child.text.endswith("\n") for child in children)


def test_list_items_and_table_rows_stay_whole():
    items = "".join(f"- item {i} {'and its words ' * 4}\n" for i in range(60))
    rows = "| a | b |\n|---|---|\n" + "".join(f"| row {i} | {'cell ' * 12}|\n" for i in range(60))
    for text, start, kind in ((items, "- item", "list"), (rows, "|", "table")):
        children = cut_up(text)[1]
        assert len(children) > 3
        assert all(child.text.startswith(start) and child.kind == kind for child in children)
        assert all(child.text.endswith("\n") for child in children)


def test_kinds_languages_and_what_a_passage_has():
    text = (
        "# A\n\n" + sentences(12) + "\n\n## B\n\n```rust\n" + "let x = 1;\n" * 40 + "```\n\n"
        "## C\n\n" + "| a | b |\n|--|--|\n" + "| long cell here | and another |\n" * 20 + "\n"
        "## D\n\n" + "- [ ] a task to do one day\n" * 20 + "\n"
        "## E\n\n> [!warning]- Hot\n" + "> Steam burns the hand that opens the oven.\n" * 12
    )
    found = {child.headings[-1]: child for child in cut_up(text)[1]}

    assert {name: child.kind for name, child in found.items()} == {
        "A": "prose", "B": "code", "C": "table", "D": "list", "E": "callout",
    }  # fmt: skip
    assert (found["B"].lang, found["B"].has) == ({"rust"}, {"code"})
    assert found["C"].has == {"table"}
    assert found["D"].has == {"task"}


@given(TEXTS, SETTINGS)
def test_a_child_has_the_languages_of_the_fences_it_has_a_letter_of_and_no_other(text, settings):
    whole = note(text)
    for child in chunk(whole, settings)[1]:
        shared = [
            held
            for held in whole.layout.held
            if text[max(held.start, child.start) : min(held.end, child.end)].strip()
        ]
        assert child.lang == {held.lang for held in shared} - {""}
        assert child.has & {"code", "table"} == {held.part for held in shared}


@pytest.mark.parametrize(("lead", "indent"), [("1. Run:\n", "   "), ("> [!tip]\n", "> ")])
def test_a_long_fence_in_a_list_or_a_callout_is_code_in_all_its_passages(lead, indent):
    lines = ["```js", *(f"const name{i} = {i};" for i in range(120)), "```"]
    children = cut_up(lead + "".join(f"{indent}{line}\n" for line in lines))[1]

    assert len(children) > 2
    assert {(child.lang, child.has) for child in children} == {
        (frozenset({"js"}), frozenset({"code"}))
    }


def test_the_text_that_is_embedded_names_the_headings_and_never_the_file():
    text = "# Bread\n\n## Rye\n\nSour and dense."
    here, there = (parse(p, text, config.Parse(), config.Links()) for p in ("a.md", "b/c.md"))
    [one], [other] = chunk(here, DEFAULT)[1], chunk(there, DEFAULT)[1]

    assert embedding_text(one) == embedding_text(other)
    assert embedding_text(one).startswith("Bread")


def test_ten_thousand_tiny_blocks_are_cut_in_reasonable_time():
    for unit in ("a\n\n", "- b\n", "# c\n", "A. ", "| x |\n"):
        parents, children = cut_up(unit * 10_000)
        assert len(children) >= len(parents) > 3


def test_a_paragraph_above_a_rule_is_a_heading_that_no_passage_carries_whole():
    """A log of many lines with `---` below it: passages must not grow with the square of it."""
    lines = "".join(f"12:00:{at % 60:02} server said number {at}\n" for at in range(2000))
    text = f"# Log\n\n{lines}---\nafter\n"
    parents, children = cut_up(text)

    carried = sum(len(each) for part in (*parents, *children) for each in part.headings)
    assert len(children) > 50
    assert carried < len(text)
    assert all(len(each) <= 300 for part in children for each in part.headings)


@given(st.lists(st.tuples(st.integers(1, 70), st.integers(0, 1)), min_size=1, max_size=9))
def test_no_other_grouping_is_cheaper(sizes):
    rule, units, at = chunking._passage_rule(SMALL), [], 0
    for size, heading in sizes:
        units.append(chunking._Unit(at, at + size, at, at + size, 0.0 if heading else 0.1, heading))
        at += size

    def price(first: int, last: int) -> float:
        size = units[last - 1].last - units[first].first
        if size > rule.most and last - first > 1:
            return float("inf")
        short = rule.short + 0.2 * (rule.least - size) / rule.least if size < rule.least else 0.0
        inside = sum(unit.heading for unit in units[first + 1 : last])
        cut_here = units[first].price if first else 0.0
        return cut_here + short + ((size - rule.target) / rule.target) ** 2 + inside * rule.crossing

    def total(groups: list[tuple[int, int]]) -> float:
        return sum(price(*group) for group in groups)

    every = (
        list(pairwise([0, *places, len(units)]))
        for count in range(len(units))
        for places in combinations(range(1, len(units)), count)
    )
    assert total(chunking._grouped(units, rule)) == pytest.approx(min(map(total, every)))
