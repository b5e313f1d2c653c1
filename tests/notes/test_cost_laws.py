"""Reading a note takes time in proportion to its length, whatever is in it.

A vault may come from anyone, and one strange note must not stop the indexing of the others.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ragvault.config import settings as config
from ragvault.notes.chunk import chunk
from ragvault.notes.parse import parse
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


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_note_is_at_most_three_times_the_work(shape):
    make = SHAPES[shape]

    assert cost(make(100_000)) <= 3 * cost(make(50_000))


@pytest.mark.parametrize("shape", FRONTMATTER)
def test_twice_the_frontmatter_is_at_most_three_times_the_work(shape):
    small, large = (f"---\n{FRONTMATTER[shape](n)}---\nbody\n" for n in (30_000, 60_000))

    assert cost(large) <= 3 * cost(small)
