"""Snippet: the part of a passage that shows best why it matched, as people read it.

If words matched, it begins with the sentence that contains most of them, or with the first one
under a heading that contains more. If only the vector matched, it begins with the sentence nearest
to the query: by the vectors of the vault's own words, else by shared four-letter pieces.
A list item, a table row and a line of code count as sentences. Pure: text in, text and offsets out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ragvault.text.readable import Readable
from ragvault.text.spans import Span, sentences

LENGTH = 240  # characters: three lines of a terminal
LINES = 3
FILLED = 40  # characters: more room than this is filled with the beginning of the next sentence
# Share of the query's pieces. Up to this it is chance, and the first sentence is shown.
ALIKE = 0.25
MORE = "\u2026"
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\w+")


class Snippet(NamedTuple):
    """Up to three lines of text, the spans of it that matched, and where in the passage it is."""

    text: str
    marks: tuple[Span, ...]
    at: int  # offset in the passage: of the first match, else of the sentence that was chosen

    def below(self, line: str, marks: Sequence[Span]) -> Snippet:
        """The same under another line, which is not in the passage."""
        first = line if len(line) <= LENGTH else line[: LENGTH - 1] + MORE
        shown = [(a, b) for a, b in marks if b < LENGTH]
        body = "\n".join(self.text.split("\n")[: LINES - 1])
        lead = len(first) + 1
        kept = [(a + lead, b + lead) for a, b in self.marks if b <= len(body)]
        return Snippet(f"{first}\n{body}".rstrip(), (*shown, *kept), self.at)

    def line_in(self, passage: str) -> str:
        """The line of the passage in which the snippet begins."""
        before, after = passage[: self.at], passage[self.at :]
        return (before.rpartition("\n")[2] + after.partition("\n")[0]).strip()


class Unit(NamedTuple):
    """A sentence, an item, a row, a line of code or a heading; `line` is its line's number."""

    start: int
    end: int
    line: int
    heading: bool = False


def units_of(shown: Readable) -> list[Unit]:
    """What a snippet may begin with, in order."""
    found = []
    for number, line in enumerate(shown.lines):
        if line.kind in ("prose", "item"):
            spans = sentences(shown.text, line.start, line.end)
        else:
            spans = [(line.start, line.end)]
        found += [Unit(start, end, number, line.kind == "heading") for start, end in spans]
    return found


def best_snippet(
    shown: Readable,
    marks: Sequence[Span],
    query: str,
    nearness: Sequence[float] | None = None,
    length: int = LENGTH,
) -> Snippet:
    """The best part of a passage. `marks` are the spans that matched, in order, not overlapping.

    `nearness` says how near each of `units_of(shown)` is to the query.
    """
    units = units_of(shown)
    if not units:
        return Snippet("", (), 0)
    first, last = _window(shown, units, _best(shown, units, marks, query, nearness), marks, length)
    inside = [(a, b) for a, b in marks if first <= a and b <= last]
    before = f"{MORE} " if _is_cut(shown, first, -1) else ""
    text = shown.text[first:last].rstrip()
    after = _closed(text) + (f" {MORE}" if _is_cut(shown, first + len(text), 0) else "")
    moved = tuple((a - first + len(before), b - first + len(before)) for a, b in inside)
    return Snippet(before + text + after, moved, shown.source(inside[0][0] if inside else first))


def _best(
    shown: Readable,
    units: Sequence[Unit],
    marks: Sequence[Span],
    query: str,
    nearness: Sequence[float] | None,
) -> int:
    """The unit to begin with: never a heading, unless there is nothing else."""
    if marks:
        worth = [float(len(_matched(shown.text, each, marks))) for each in units]
    else:
        worth = _alike(shown.text, units, query)
        if nearness is not None:
            worth = [near + share for near, share in zip(nearness, worth, strict=True)]
        else:
            worth = [share if share > ALIKE else 0.0 for share in worth]
    bodies = [at for at, unit in enumerate(units) if not unit.heading] or [0]
    # Of equals the first, and a sentence before a heading, which is shown beside the snippet.
    best = max(range(len(units)), key=lambda at: (worth[at], not units[at].heading, -at))
    if worth[best] <= 0:
        return bodies[0]
    return next((at for at in bodies if at >= best), bodies[-1])


def _matched(text: str, unit: Unit, marks: Sequence[Span]) -> set[str]:
    """The different words that matched in a unit."""
    return {text[a:b].casefold() for a, b in marks if unit.start <= a < unit.end}


def _alike(text: str, units: Sequence[Unit], query: str) -> list[float]:
    """The share of the query's pieces that each unit has."""
    wanted = _pieces(query)
    return [len(wanted & _pieces(text[u.start : u.end])) / (len(wanted) or 1) for u in units]


def _pieces(text: str) -> set[str]:
    """All runs of four letters inside words: inflected forms of a word share most of them."""
    words = _WORD.findall(text.casefold())
    return {word[at : at + 4] for word in words for at in range(max(len(word) - 3, 1))}


def _window(
    shown: Readable, units: Sequence[Unit], best: int, marks: Sequence[Span], length: int
) -> Span:
    """From the best unit on, as far as `length` allows, at most up to the next heading.

    Where little follows, it begins earlier.
    """
    low = high = best
    while high + 1 < len(units) and _fits(units[low], units[high + 1], length):
        high += 1
    whole = high + 1 == len(units) or units[high + 1].heading
    while whole and low and units[high].end - units[low].start < length // 2:
        if not _fits(units[low - 1], units[high], length):
            break
        low -= 1
    first, last = units[low].start, units[high].end
    if last - first > length:  # one long unit: begin near the match
        held = [mark for mark in marks if first <= mark[0] < last]
        if held and held[0][1] - first > length // 2:
            first = _word(shown.text, held[0][0] - length // 3, first)
        return first, min(last, _word_end(shown.text, first, first + length))
    room = first + length - last
    if not whole and units[high + 1].line == units[high].line and room >= FILLED:
        last = _word_end(shown.text, last, last + room)
    return first, last


def _fits(first: Unit, last: Unit, length: int) -> bool:
    """Whether these units and all between them can be shown together."""
    if first.heading or last.heading:
        return False
    return last.end - first.start <= length and last.line - first.line < LINES


def _is_cut(shown: Readable, at: int, step: int) -> bool:
    """Whether a line goes on before or after an offset."""
    beside = at + step
    return 0 <= beside < len(shown.text) and shown.text[beside] != "\n"


def _closed(text: str) -> str:
    """The backtick that a cut took away."""
    return "`" if text.rpartition("\n")[2].count("`") % 2 else ""


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
