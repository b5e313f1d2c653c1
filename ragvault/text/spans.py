"""Spans: the text between two offsets of a note, without what is not indexed; its lines; sentences.

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
from itertools import pairwise

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


def merged(spans: Iterable[Span]) -> Iterator[Span]:
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


class Lines:
    """Turns offsets of a text into line numbers and columns, from 1.

    A text may be made from a file, in parts of which each is on one line: `places` are the offsets
    at which they begin, with their lines. Where in its line a character is, is then not known.
    """

    def __init__(self, text: str, places: Sequence[Span] = ()) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._lines: Sequence[int] = range(1, len(self._starts) + 1)
        self._is_placed = bool(places)
        if places:
            self._starts = [start for start, _ in places]
            self._lines = [line for _, line in places]

    def of(self, offset: int) -> int:
        """The number of the line that an offset is on."""
        return self._lines[self._part(offset)]

    def span(self, first: int, last: int) -> Span:
        """The first and the last of the lines from one offset to another."""
        begin = self._part(first)
        lines = self._lines[begin : max(begin, self._part(last)) + 1]
        return min(lines), max(lines)

    def column(self, offset: int) -> int:
        """The number of the character in its line; 1 if it is not known."""
        return 1 if self._is_placed else offset - self._starts[self._part(offset)] + 1

    def _part(self, offset: int) -> int:
        return max(0, bisect_right(self._starts, offset) - 1)


# --- Sentences ---
# A full stop ends one unless it belongs to an abbreviation (`Dr.`, `e.g.`) or an initial (`M.`).
# Before a small letter no mark ends one; those of Chinese and Japanese always do.

_END = re.compile(
    r"(?<![.!?\u2026])(?P<mark>[.!?\u2026]+)[\"'\u201d\u2019)\]*_]*(?=\s|$)|[\u3002\uff01\uff1f]+"
)
_LAST_WORD = re.compile(r"[^\s(\[\"'\u201c\u2018]+$")
_LINE_END = re.compile(r"\n+")
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\w+",
        "approx bzw ca cf dept dr ed eds esp est gen hon jr lt mr mrs ms mt prof resp rev sen sr "
        "st univ vgl vs",
    )
)
_NUMBERED = frozenset(re.findall(r"\w+", "art ch eq fig figs no nos nr op p pp sec vol vols"))
_DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # M, e.g, U.S, z.B
_LONGEST = 12  # characters looked at before a full stop


def sentence_ends(text: str, start: int = 0, end: int | None = None) -> list[int]:
    """The offsets after each mark that ends a sentence between two offsets of a text."""
    last = len(text) if end is None else end
    return [
        found.end() for found in _END.finditer(text, start, last) if _is_end(text, found, start)
    ]


def cut_points(text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Where a text that is too long may be cut: behind its sentences and its lines."""
    last = len(text) if end is None else end
    lines = [found.end() for found in _LINE_END.finditer(text, start, last)]
    return sorted({*sentence_ends(text, start, end), *lines})


def sentences(text: str, start: int, end: int) -> list[Span]:
    """The sentences between two offsets, without the spaces around them; none is empty."""
    cuts = [start, *sentence_ends(text, start, end), end]
    found = []
    for first, last in pairwise(cuts):
        inner = text[first:last]
        left = first + len(inner) - len(inner.lstrip())
        right = last - len(inner) + len(inner.rstrip())
        if left < right:
            found.append((left, right))
    return found


def _is_end(text: str, found: re.Match[str], start: int) -> bool:
    rest = text[found.end() : found.end() + 2].lstrip()
    if found["mark"] and rest[:1].islower():
        return False
    if found["mark"] != ".":
        return True
    at = found.start("mark")
    word = _LAST_WORD.search(text[max(start, at - _LONGEST) : at])
    if word is None:
        return True
    last = word[0].lower()
    if last.isdigit() and at - len(last) == start:  # the number of a list item
        return False
    if _DOTTED.fullmatch(last) or last in _ABBREVIATIONS:
        return False
    return not (last in _NUMBERED and rest[:1].isdigit())
