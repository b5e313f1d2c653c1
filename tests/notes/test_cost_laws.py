"""Reading a note, and showing its passages, takes time in proportion to its length, whatever is
in it.

A vault may come from anyone, and one strange note must not stop the indexing of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from ragvault.answer.match import best_snippet, units_of
from ragvault.config import settings as config
from ragvault.index.keyword.fields import code_in
from ragvault.notes.chunk import chunk
from ragvault.notes.links import Resolver
from ragvault.notes.parse import BLANKS, parse
from ragvault.text.readable import readable
from ragvault.types import Passage
from tests.cost_kit import cpu_seconds
from tests.cost_shapes import FRONTMATTER, SHAPES

pytestmark = pytest.mark.slow


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
        resolver = Resolver([note], lambda path: (note.headings, note.blocks))
        return cpu_seconds(lambda: [*map(partial(resolver.resolve, "a.md"), note.links)])

    assert look_up(8000) <= 3 * look_up(4000)
