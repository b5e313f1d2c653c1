"""Sentences: where one ends and the next begins.

A full stop ends a sentence unless it belongs to an abbreviation (`Dr.`, `e.g.`) or an initial
(`M.`). Before a small letter no mark ends one; those of Chinese and Japanese always do.
"""

from __future__ import annotations

import re
from itertools import pairwise

from ragvault.text.spans import Span

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
