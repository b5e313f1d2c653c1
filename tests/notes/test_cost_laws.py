"""Reading a note, and showing its passages, takes time in proportion to its length, whatever is
in it.

A vault may come from anyone, and one strange note must not stop the indexing of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from ragvault.answer.snippet import best_snippet, units_of
from ragvault.config import settings as config
from ragvault.index.keyword.fields import code_in
from ragvault.notes.chunk import chunk
from ragvault.notes.parse import BLANKS, parse
from ragvault.notes.resolve import Resolver
from ragvault.text.readable import readable
from ragvault.types import Passage
from tests.cost_kit import cpu_seconds

pytestmark = pytest.mark.slow

SHAPES: dict[str, Callable[[int], str]] = {
    "quotation marks in one line": lambda n: ">" * n + " a\n",
    "quotation marks and spaces": lambda n: "> " * n + "a\n",
    "a nested callout": lambda n: ">" * n + " [!note] a\n",
    "callouts": lambda n: "> [!note] a\n> b\n\n" * (n // 10),
    "list marks in one line": lambda n: "- " * n + "a\n",
    "list items": lambda n: "- item\n" * (n // 4),
    "a nested list": lambda n: "".join(" " * (2 * (i % 200)) + "- a\n" for i in range(n // 100)),
    "tasks": lambda n: "- [ ] a\n" * (n // 8),
    "spaces between two words": lambda n: "one" + " " * n + "two\n",
    "spaces between two sentences": lambda n: "One." + " " * n + "Two.\n",
    "blank lines": lambda n: "one" + "\n" * n + "two\n",
    "headings": lambda n: "# a\n" * (n // 20),
    "headings with text": lambda n: "".join(f"# h{i}\ntext {i}\n" for i in range(n // 20)),
    "underlined headings": lambda n: "a\n---\n" * (n // 20),
    "rules": lambda n: "***\n" * (n // 8),
    "links that are never closed": lambda n: "[[a " * (n // 4) + " #tag",
    "links": lambda n: "[[a|b]] #tag " * (n // 12),
    "square brackets": lambda n: "[" * n + " #tag",
    "brackets of destinations": lambda n: "](a " * (n // 4) + " #tag",
    "spaces in a link": lambda n: "[[ " + " " * n + "]]",
    "stars": lambda n: "*a **b " * (n // 8),
    "backticks of different lengths": lambda n: "".join(
        "`" * (i % 50 + 1) + "a" for i in range(n // 25)
    ),
    "comments that are never closed": lambda n: "%% a\n" * (n // 8) + "<!-- b\n" * (n // 8),
    "comments": lambda n: "a <!-- b --> c %%d%%\n" * (n // 20),
    "highlights and math": lambda n: "==a $b $$c " * (n // 12),
    "angle brackets": lambda n: "<" * n + " #tag",
    "HTML that is never closed": lambda n: "<a #b " * (n // 6),
    "HTML blocks": lambda n: "<div>\n\n" * (n // 10),
    "tags without a space": lambda n: "#tag" * (n // 4),
    "addresses": lambda n: "http://a#b" * (n // 10) + " #tag",
    "rows of a table": lambda n: "|a|b|\n|-|-|\n" + "|c|d|\n" * (n // 6),
    "columns of a table": lambda n: "|a" * n + "|\n" + "|-" * n + "|\n" + "|c" * n + "|\n",
    "footnotes": lambda n: "".join(f"[^{i}]: x\n[^{i}]\n\n" for i in range(n // 20)),
    "block ids": lambda n: "".join(f"para ^id{i}\n\n" for i in range(n // 20)),
    "spaces after a block id": lambda n: "a ^b" + " " * n + "c",
    "lines of code": lambda n: "```\n" + "a\n" * (n // 2) + "```\n",
    "fences": lambda n: "```\n" * (n // 4),
    "fields of one name": lambda n: "".join(f"k:: v{i}\n" for i in range(n // 8)),
    "fields in a line and inside it": lambda n: "k:: v [a:: b]\n" * (n // 14),
    "fields that are never closed": lambda n: "[k:: v " * (n // 8),
    "backslashes": lambda n: "\\" * n + "[[a]]",
    "letters with an accent": lambda n: "é # " * (n // 4),
    "spaces before a word": lambda n: "one\n" + " " * n + "two\n",
    "tabs before a word": lambda n: "one\n" + "\t" * n + "two\n",
    "lines of spaces": lambda n: "one\n" + (" " * 50 + "\n") * (n // 50) + "two\n",
    "spaces in a block of code": lambda n: "```\none\n" + " " * n + "\ntwo\n```\n",
    "comments in white space": lambda n: "one" + "%%a%% \n" * (n // 8) + "two\n",
    "spaces in a heading": lambda n: "# one" + " " * n + "two\n",
    "spaces in a row of a table": lambda n: "|a|\n|-|\n|" + " " * n + "b\n",
    "nothing but blank lines": lambda n: "\n" * n,
    "full stops": lambda n: "." * n + "a\n",
    "quotation marks behind a full stop": lambda n: "a." + '"' * n + "b\n",
    "a fence of tildes with a backtick": lambda n: "~" * n + "`\n",
    "a fence with a long language": lambda n: f"```{'a' * (n // 2)}\n{'code ' * (n // 10)}\n```\n",
    "a long title": lambda n: f"# {'title ' * (n // 6)}\ntext\n",
    "a long tag": lambda n: f"#{'a' * n}\n",
    "a long value of a field": lambda n: f"k:: {'v ' * (n // 2)}\n",
    "fields of many names": lambda n: "".join(f"k{i}:: v\n" for i in range(n // 10)),
    "many tags": lambda n: "".join(f"#t{i} " for i in range(n // 7)),
    "links to headings": lambda n: "[[#a]] " * (n // 7),
}
FRONTMATTER: dict[str, Callable[[int], str]] = {  # of up to 64,000 characters
    "spaces after a key": lambda n: "key" + " " * n + "x\n",
    "spaces after a colon": lambda n: "key:" + " " * n + "x\n",
    "lines without a colon": lambda n: "a b\n" * (n // 4),
    "a list": lambda n: "tags:\n" + "- a\n" * (n // 4),
    "nested lists": lambda n: "a: " + "[" * n + "\n",
    "links": lambda n: "l:\n" + "".join(f'- "[[a{i}]]"\n' for i in range(n // 14)),
}


def cost(text: str) -> float:
    """CPU seconds to read a note."""
    return cpu_seconds(
        lambda: chunk(parse("a.md", text, config.Parse(), config.Links()), config.Chunk())
    )


def passages(text: str) -> list[Passage]:
    return chunk(parse("a.md", text, config.Parse(), config.Links()), config.Chunk())[1]


def showing_cost(found: Sequence[Passage]) -> float:
    """CPU seconds to index the words of passages and to show each of them as a result."""

    def work() -> None:
        for passage in found:
            code_in(passage.text, "code" in passage.has)
            best_snippet(readable(passage.text, code=passage.kind == "code"), [], "two words")

    return cpu_seconds(work)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_passage_is_long_whatever_is_in_a_note(shape):
    longest = max((len(each.text) for each in passages(SHAPES[shape](60_000))), default=0)

    assert longest <= config.Chunk().child_max + 2 * BLANKS


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_note_is_at_most_three_times_the_work_to_show_it(shape):
    make = SHAPES[shape]

    assert showing_cost(passages(make(60_000))) <= 3 * showing_cost(passages(make(30_000)))


@pytest.mark.parametrize("sign", [" ", "\t", ".", "~", "|", "- ", "> ", "# ", "$", "[", "a."])
def test_a_text_that_is_no_passage_is_shown_in_linear_time_too(sign):
    def cost_of(text: str) -> float:
        return cpu_seconds(lambda: (units_of(readable(text)), code_in(text, has_block=True)))

    assert cost_of(sign * 40_000 + "y`") <= 3 * cost_of(sign * 20_000 + "y`")


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_note_is_at_most_three_times_the_work(shape):
    make = SHAPES[shape]

    assert cost(make(100_000)) <= 3 * cost(make(50_000))


@pytest.mark.parametrize("shape", FRONTMATTER)
def test_twice_the_frontmatter_is_at_most_three_times_the_work(shape):
    small, large = (f"---\n{FRONTMATTER[shape](n)}---\nbody\n" for n in (30_000, 60_000))

    assert cost(large) <= 3 * cost(small)


ANCHORS: dict[str, Callable[[int], str]] = {
    "links to each heading": lambda n: "".join(f"# h{i}\n[[#h{i}]]\n" for i in range(n)),
    "links to headings of one name": lambda n: "# a\n" * n + "[[#b#a]] " * n,
    "links that name no heading": lambda n: "# a\n" * n + "".join(f"[[#b{i}]] " for i in range(n)),
}


@pytest.mark.parametrize("shape", ANCHORS)
def test_twice_the_headings_and_links_to_them_are_at_most_three_times_the_work_to_look_up(shape):
    def look_up(count: int) -> float:
        note = parse("a.md", ANCHORS[shape](count), config.Parse(), config.Links())
        return cpu_seconds(lambda: [*map(partial(Resolver([note]).resolve, "a.md"), note.links)])

    assert look_up(8000) <= 3 * look_up(4000)
