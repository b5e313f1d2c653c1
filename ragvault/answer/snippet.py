"""Snippet: the part of a passage that shows best why it was found.

By word: the sentences that hold most of the different words that matched. By meaning alone: the
sentence that shares most pieces of words with the query; there is no whole word to go by, and a
model would have to be loaded. Pure: text in, text and offsets out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ragvault.spans import Span

LENGTH = 240  # characters: three lines of a terminal
ALIKE = (
    0.25  # of the query's pieces: up to this, likeness is chance and the first sentence is shown
)
MORE = "\u2026"
_HEADINGS = re.compile(r"(?:\s*#{1,6}[ \t][^\n]*\n)+")
# A sentence ends at its mark, at a blank line, and where a list item or a table row ends.
_ENDS = re.compile(
    r"[.!?\u2026][\"'\u201d\u2019)\]*_]*\s+|[\u3002\uff01\uff1f]|\n\s*\n|\n(?=\s*[-*+|>]\s)"
)
_HEADING = re.compile(r"\n#{1,6}[ \t]")
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\w+")


class Snippet(NamedTuple):
    """One line of text, the stretches of it that matched, and where in the passage it begins."""

    text: str
    marks: tuple[Span, ...]
    at: int  # offset in the passage: of the first match, else of the sentence that was chosen


def snippet(text: str, marks: Sequence[Span], query: str, length: int = LENGTH) -> Snippet:
    """The best stretch of a passage. `marks` are offsets of what matched, in order and apart."""
    start = _body(text)
    sentence = _best(text, start, marks, query)
    held = [mark for mark in marks if sentence[0] <= mark[0] < sentence[1]]
    first, last = _window(text, sentence[0], held, length)
    shown = [mark for mark in marks if first <= mark[0] and mark[1] <= last]
    said, moved = _on_one_line(text, first, last, shown)
    before = f"{MORE} " if text[start:first].strip() else ""
    after = f" {MORE}" if text[last:].strip() else ""
    marked = tuple((a + len(before), b + len(before)) for a, b in moved)
    return Snippet(before + said + after, marked, shown[0][0] if shown else first)


def _body(text: str) -> int:
    """Where a passage begins to say something: after its headings, which are shown beside it."""
    found = _HEADINGS.match(text)
    return found.end() if found and text[found.end() :].strip() else 0


def _best(text: str, start: int, marks: Sequence[Span], query: str) -> Span:
    """The sentence that shows best; the first, where the heading shows better."""
    sentences = _sentences(text, start)
    if marks:
        worth = [float(len(_matched(text, each, marks))) for each in sentences]
        least = float(len(_matched(text, (0, start), marks)))
    else:
        wanted = _pieces(query)
        worth = [len(wanted & _pieces(text[a:b])) / (len(wanted) or 1) for a, b in sentences]
        least = ALIKE
    most = max(worth)
    return sentences[worth.index(most) if most > least else 0]


def _matched(text: str, stretch: Span, marks: Sequence[Span]) -> set[str]:
    """The different words that matched in a stretch."""
    return {text[a:b].casefold() for a, b in marks if stretch[0] <= a < stretch[1]}


def _sentences(text: str, start: int) -> list[Span]:
    cuts = [start, *(found.end() for found in _ENDS.finditer(text, start)), len(text)]
    spans = [(b - len(text[a:b].lstrip()), b) for a, b in pairwise(cuts)]
    return [(a, b) for a, b in spans if a < b] or [(start, len(text))]


def _pieces(text: str) -> set[str]:
    """Every four letters in a row, of one word: forms of a word share most of them."""
    words = _WORD.findall(text.casefold())
    return {word[at : at + 4] for word in words for at in range(max(len(word) - 3, 1))}


def _window(text: str, first: int, marks: Sequence[Span], length: int) -> Span:
    """From a sentence on as far as there is room, at most to the next heading."""
    if marks and marks[0][1] - first > length * 2 // 3:  # a long one: begin nearer to the match
        first = _word(text, marks[0][0] - length // 3, first)
    heading = _HEADING.search(text, first + 1)
    end = heading.start() if heading else len(text)
    return first, min(_word_end(text, first, first + length), end)


def _word(text: str, at: int, least: int) -> int:
    """The first beginning of a word from `at` on."""
    found = _SPACE.search(text, max(at, least))
    return found.end() if found else max(at, least)


def _word_end(text: str, first: int, at: int) -> int:
    """The last end of a word before `at`; a word longer than that is cut."""
    if at >= len(text):
        return len(text)
    if text[at].isspace():
        return at
    ends = [found.start() for found in _SPACE.finditer(text, first, at)]
    return ends[-1] if ends and ends[-1] > first else at


def _on_one_line(text: str, first: int, last: int, marks: Sequence[Span]) -> tuple[str, list[Span]]:
    """A stretch with every run of white space as one space, and where its marks are then."""
    pieces, moved, at, size = [], [], first, 0
    for start, end in [*marks, (last, last)]:
        plain = _SPACE.sub(" ", text[at:start])
        plain = plain.lstrip() if not size else plain
        marked = _SPACE.sub(" ", text[start:end])
        size += len(plain)
        if marked:
            moved.append((size, size + len(marked)))
        size += len(marked)
        pieces += [plain, marked]
        at = end
    return "".join(pieces).rstrip(), moved
