"""Snippet: the part of a passage that shows best why it matched.

If words matched, it begins with the sentence that contains most of them. If only the vector
matched, it begins with the sentence that shares most four-letter pieces with the query; comparing
vectors of sentences would mean loading a model. Pure: text in, text and offsets out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ragvault.spans import Span

LENGTH = 240  # characters: three lines of a terminal
# Share of the query's pieces. Up to this it is chance, and the first sentence is shown.
ALIKE = 0.25
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
    """One line of text, the spans of it that matched, and where in the passage it begins."""

    text: str
    marks: tuple[Span, ...]
    at: int  # offset in the passage: of the first match, else of the sentence that was chosen

    def line_in(self, passage: str) -> str:
        """The line of the passage in which the snippet begins."""
        before, after = passage[: self.at], passage[self.at :]
        return (before.rpartition("\n")[2] + after.partition("\n")[0]).strip()


def best_snippet(text: str, marks: Sequence[Span], query: str, length: int = LENGTH) -> Snippet:
    """The best part of a passage. `marks` are the spans that matched, in order, not overlapping."""
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
    """Where the text begins after the headings, which are shown beside the snippet."""
    found = _HEADINGS.match(text)
    return found.end() if found and text[found.end() :].strip() else 0


def _best(text: str, start: int, marks: Sequence[Span], query: str) -> Span:
    """The sentence with most matches; the first one if the heading has more."""
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


def _matched(text: str, span: Span, marks: Sequence[Span]) -> set[str]:
    """The different words that matched in a span."""
    return {text[a:b].casefold() for a, b in marks if span[0] <= a < span[1]}


def _sentences(text: str, start: int) -> list[Span]:
    cuts = [start, *(found.end() for found in _ENDS.finditer(text, start)), len(text)]
    spans = [(b - len(text[a:b].lstrip()), b) for a, b in pairwise(cuts)]
    return [(a, b) for a, b in spans if a < b] or [(start, len(text))]


def _pieces(text: str) -> set[str]:
    """All runs of four letters inside words: inflected forms of a word share most of them."""
    words = _WORD.findall(text.casefold())
    return {word[at : at + 4] for word in words for at in range(max(len(word) - 3, 1))}


def _window(text: str, first: int, marks: Sequence[Span], length: int) -> Span:
    """From the sentence on, as far as `length` allows, at most up to the next heading."""
    if marks and marks[0][1] - first > length * 2 // 3:  # long: begin nearer to the match
        first = _word(text, marks[0][0] - length // 3, first)
    heading = _HEADING.search(text, first + 1)
    end = heading.start() if heading else len(text)
    return first, min(_word_end(text, first, first + length), end)


def _word(text: str, at: int, least: int) -> int:
    """Where the first word at or after `at` begins."""
    found = _SPACE.search(text, max(at, least))
    return found.end() if found else max(at, least)


def _word_end(text: str, first: int, at: int) -> int:
    """Where the last word before `at` ends; a word longer than the room is cut."""
    if at >= len(text):
        return len(text)
    if text[at].isspace():
        return at
    ends = [found.start() for found in _SPACE.finditer(text, first, at)]
    return ends[-1] if ends and ends[-1] > first else at


def _on_one_line(text: str, first: int, last: int, marks: Sequence[Span]) -> tuple[str, list[Span]]:
    """The span with each run of white space as one space, and its marks moved accordingly."""
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
