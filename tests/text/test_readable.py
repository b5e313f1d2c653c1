"""Markdown as people read it: no markup, and every character knows its place."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.text.readable import readable


def lines(text: str, **how) -> list[str]:
    shown = readable(text, **how)
    return [shown.text[line.start : line.end] for line in shown.lines]


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[[thoughts/CRDT#Operation-based|CmRDTs]]", "CmRDTs"),
        ("see [[thoughts/CRDT]] and [[a/b#C]]", "see CRDT and b > C"),
        ("[[#Rules]] [[Note#^id]]", "Rules Note"),
        ("![[photo.png|300]] by ![[Annie]]", "by Annie"),
        ("[Source](https://hapgood.us/2015/the_garden(x)/ 'title') here", "Source here"),
        ("[text][ref] and [^1] end", "text and end"),
        ("[![badge](https://a.b/c.svg)](https://d.e)", "badge"),
        ("<https://docs.github.com/en/pages> and <me@a.b>", "docs.github.com and me@a.b"),
        ("see https://www.example.org/a?b=c.", "see example.org."),
        ('<img src="./banner.svg" width="701"> **Bold** _it_ ~~no~~ ==yes==', "Bold it no yes"),
        ("a &amp; b<br>c <!-- no --> d", "a & b c d"),
        ("2 * 3 * 4, snake_case_x, a == b, C++", "2 * 3 * 4, snake_case_x, a == b, C++"),
        (r"\*not\* \[\[x\]\]", "*not* x"),
        ("keep `[[code]](x)` as it is", "keep `[[code]](x)` as it is"),
        ("cost $a_b$ and $5", "cost $a_b$ and $5"),
        ("- [due:: 2024-01-02] call ^block1", "• due: 2024-01-02 call"),
        ("- [/] half done", "☑ half done"),
        ("%%hidden%% shown", "shown"),
        ("[[cut off", "cut off"),
        ("rest of a link](https://a.b/c) goes on", "rest of a link goes on"),
    ],
)
def test_a_line_is_shown_without_its_markup(markdown, shown):
    assert lines(markdown) == [shown]


def test_every_block_is_lines_of_its_own():
    text = """# Head

Two lines
of prose.

> [!tip]- Look
> inside

- one
  goes on
- [ ] open
- [x] done
3. third

| a | b |
|:--|--:|
| `x` | [[y\\|z]] |

```sh
ls -l
```
Under
=====
---
[ref]: https://a.b
"""
    assert lines(text) == [
        "Head",
        "Two lines of prose.",
        "Look: inside",
        "• one goes on",
        "☐ open",
        "☑ done",
        "3. third",
        "a · b",
        "`x` · z",
        "`ls -l`",
        "Under",
    ]
    kinds = [line.kind for line in readable(text).lines]
    assert kinds[0] == kinds[-1] == "heading"
    assert kinds[7:10] == ["row", "row", "code"]


def test_a_part_of_a_note_may_begin_inside_code_or_a_table():
    assert lines("rm -r x\n```\nProse [[a]].\n", code=True) == ["`rm -r x`", "Prose a."]
    assert lines("[[ -f x ]] && y\nz", code=True) == ["`[[ -f x ]] && y`", "`z`"]
    assert lines("| 2 |\n| 3 | 4 |") == ["2", "3 · 4"]
    assert lines("| 3 | 4 |\n| 5 | 6 |") == ["3 · 4", "5 · 6"]
    assert lines("a | b\n--- | ---\n1 | 2") == ["a · b", "1 · 2"]
    assert lines("> ```\n> x\n> ```\n> | a | b |\n> |---|---|") == ["`x`", "a · b"]


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("````text\n```tasks\nnot done\n```\n````\n", ["`not done`"]),
        ("```\n\n### Head\n\n```js\nlet x;\n```\n", ["Head", "`let x;`"]),
        ("# Head\n\t- one\n\t-\n\t  ```py\n\t  x\n\t  ```\n", ["Head", "• one", "`x`"]),
        ("Text\n\n    - one\n    - two\n", ["Text", "• one", "• two"]),
        ("One\n2. two\n    - three\n", ["One", "2. two", "• three"]),
        ("Text\n\n    code\n", ["Text", "`code`"]),
    ],
)
def test_fences_in_code_are_not_shown_and_indented_lists_are_lists(markdown, shown):
    assert lines(markdown) == shown


@pytest.mark.parametrize("text", ["| --- | --- |\n", "| | |\n", "|\n", "  |\n| | |\n", ""])
def test_a_row_without_text_is_not_shown(text):
    assert lines(text) == []


@pytest.mark.parametrize(
    ("cut_row", "shown"),
    [("|", []), ("end |", ["end"]), ("end | last |", ["end · last"]), ("| a \\| b |", ["a | b"])],
)
def test_a_part_may_begin_inside_a_row_of_a_table(cut_row, shown):
    assert lines(f"{cut_row}\n| 1 | 2 |\n") == [*shown, "1 · 2"]


def test_labels_come_first_where_the_vault_writes_them_so():
    assert lines("[[a label|the.target]]", order="label-first") == ["a label"]


MARKS = r"[[ ]] ]( ``` | ` * _ # - [x] > <b> <!-- http://x.y/z $ $$ \\ ! ( ) &amp; a B. é 字"
PIECES = [*re.findall(r"\S+", MARKS), " ", "\n", "\r", "```\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.booleans())
def test_whatever_the_text_lines_lie_in_order_and_every_character_has_a_place(text, code):
    shown = readable(text, code=code)
    assert len(shown.origin) == len(shown.text)
    assert all(0 <= at < len(text) for at in shown.origin)
    assert "\n".join(shown.text[line.start : line.end] for line in shown.lines) == shown.text
    for line in shown.lines:
        inside = shown.text[line.start : line.end]
        assert inside == inside.strip() != ""


@pytest.mark.parametrize(
    "text",
    ["[" * 1500, "[a](b) [" * 200, "`" * 1500, "`a " * 500, "$$" * 700, "<a" * 700, "![[" * 500,
     "*" * 1500, "[x](y " * 250, "\\" * 1500, "[ [a](b) " * 150, "|" * 1500, "%%" * 700],
)  # fmt: skip
def test_hostile_text_is_read_to_its_end(text):
    assert len(readable(text).text) <= len(text)  # an exponential pattern would never come here
