"""Spans: the text between two offsets of a note, without what is not indexed; and lines.

A note's text is stored once. Sections and passages are offsets into it, and their text is cut out
when it is needed. The chunker and the catalogue cut with the same function, so a passage that is
read back is the passage that was embedded. This module knows nothing about Markdown, SQLite or
files.

`excluded` are stretches [first, last) in order and apart, as in `Note.excluded`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

Span = tuple[int, int]


def cut(text: str, start: int, end: int, excluded: Sequence[Span]) -> str:
    """The characters of [start, end) that are not excluded."""
    if not excluded:
        return text[start:end]
    kept, at = [], start
    for first, last in _touching(start, end, excluded):
        kept.append(text[at:first])  # empty when the span begins inside this stretch
        at = max(at, last)
    kept.append(text[at:end])
    return "".join(kept)


def back(start: int, count: int, excluded: Sequence[Span]) -> int:
    """Where the last `count` characters before `start` begin, counting none that are excluded.

    0 when there are fewer: `cut(text, back(start, n, excluded), start, excluded)` has at most n.
    """
    at = start
    for first, last in reversed(_touching(0, start, excluded)):
        room = at - min(last, at)
        if room >= count:
            break
        count -= room
        at = first
    return max(at - count, 0)


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order, none empty, those that touch as one: HTML blocks come line by line."""
    at, until = 0, 0
    for start, end in sorted(spans):
        if start > until:
            if until > at:
                yield at, until
            at, until = start, end
        else:
            until = max(until, end)
    if until > at:
        yield at, until


def _touching(start: int, end: int, excluded: Sequence[Span]) -> Sequence[Span]:
    """The stretches that share a character with [start, end)."""
    # They are in order and apart, so that their ends are in order as well.
    low = bisect_left(excluded, (start, start))
    if low and excluded[low - 1][1] > start:
        low -= 1
    return excluded[low : bisect_left(excluded, (end, end), lo=low)]


class PlacedLines:
    """The lines of a file for a text that was made from it, in parts: each part is on one line.

    `places` are the offsets at which parts begin, with their lines.
    """

    def __init__(self, places: Sequence[Span]) -> None:
        self._starts = [start for start, _ in places]
        self._lines = [line for _, line in places]

    def of(self, offset: int) -> int:
        """The line of the part that an offset is in."""
        at = max(0, bisect_right(self._starts, offset) - 1)
        return self._lines[at] if self._lines else 1

    def span(self, first: int, last: int) -> Span:
        """The first and the last line of all parts from one offset to another."""
        i, j = (max(1, bisect_right(self._starts, at)) for at in (first, last))
        lines = self._lines[i - 1 : j] or [1]
        return min(lines), max(lines)

    def column(self, offset: int) -> int:
        """Always 1: where in its line a character is, is not known."""
        return 1


class Lines:
    """Turns offsets of a text into line numbers and columns, from 1."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def of(self, offset: int) -> int:
        """The number of the line that an offset is on."""
        return bisect_right(self._ends, offset - 1) + 1

    def span(self, first: int, last: int) -> Span:
        """The lines that two offsets are on."""
        return self.of(first), self.of(last)

    def column(self, offset: int) -> int:
        """The number of the character in its line."""
        line = self.of(offset)
        return offset - (self._ends[line - 2] + 1 if line > 1 else 0) + 1
