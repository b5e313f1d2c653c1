"""Words: where they are in a text, and what they are made of.

A text is cut into chunks at spaces and punctuation, except where punctuation belongs to a name:

    C++  C#  .NET  Node.js  v1.2.3  PIO-1384  @scope/pkg  notes/a-b.md  R&D  getUserById

A character that is not seen (a soft hyphen, a space of no width) parts no word, and an emoji is a
chunk by itself. A chunk is cut into its parts, in order, with every compound on the way:

    notes/myFile.md  ->  parts notes, my, File, md;  compounds myFile, myFile.md, notes/myFile.md

Knows letters, not meaning: folding, stemming and stop words come after.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ragvault.plan import PICTURES
from ragvault.text.cjk import UNSPACED

# Marks that are part of a word and that \w leaves out; and the Indic blocks, with marks for vowels.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u0dff\u1ab0-\u1aff\u1dc0-\u1dff"
)
_LETTER = rf"[^\W{UNSPACED}]"
_JOINT = "[-./+'’@&]"
# What is not seen. Joiners only behind letters that need none: in Persian and in the scripts of
# India they tell words apart.
_UNSEEN = "\u00ad\u200b\u2060\ufeff"
_JOINERS = "\u200c\u200d"
_SKIPPED = rf"(?:[{_UNSEEN}]|(?<=[A-Za-z\u00aa-\u058f])[{_JOINERS}])"


@cache  # made when the first text needs it: either takes as long as a keyword search
def _chunk(wide: bool) -> re.Pattern[str]:
    run = rf"{_WIDE}(?:{_WIDE}|{_SKIPPED})*" if wide else f"{_LETTER}+"
    joint = rf"{_JOINT}{_SKIPPED}*" if wide else _JOINT
    return re.compile(rf"[{UNSPACED}]+|[@.]?{run}(?:{joint}{run})*(?:\+\+|[+#])?|{PICTURES}")


_ASCII = re.compile(rf"[@.]?\w+(?:{_JOINT}\w+)*(?:\+\+|[+#])?", re.ASCII)
_WIDE = rf"(?:{_LETTER}|[{_MARKS}])"  # slower, and needed by few texts
_HAS_MARKS = re.compile(rf"[{_MARKS}]")
_NEEDS_WIDE = re.compile(rf"[{_MARKS}{_UNSEEN}{_JOINERS}]")
UNSPACED_RUN = re.compile(rf"[{UNSPACED}]")
PICTURE = re.compile(PICTURES)
UNSEEN = re.compile(rf"[{_UNSEEN}{_JOINERS}]")  # in a chunk: what it is looked up without

# One hump of a name: HTTP|Response|Error, get|User|By|Id, python|3.
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")
_PLURAL_CAPITALS = re.compile(r"[A-Z]{2,}s")  # APIs, URLs: one word
# What stands between joints; don't and user's are one piece, l'amour is two.
_PIECE = re.compile(r"[^-.+'’@&#]+(?:['’](?:s|t|ll|re|ve|d|m)\b)?", re.IGNORECASE)

MAX_LENGTH = 64  # of a term: longer ones are data (hashes, base64), found by their beginning
MAX_PARTS = 32


def chunker(text: str) -> re.Pattern[str]:
    """The expression whose matches in this text are its chunks."""
    if text.isascii():
        return _ASCII
    return _chunk(_NEEDS_WIDE.search(text) is not None)


class Part(NamedTuple):
    """One simple word inside a chunk, [start, end)."""

    text: str
    start: int
    end: int


class Compound(NamedTuple):
    """Several parts, from number `first` on, written as one. `parts` says how many."""

    text: str
    first: int
    parts: int


def split(chunk: str, *, glue: bool = True) -> tuple[list[Part], list[Compound]]:
    """The parts of a chunk and the compounds they make, the whole chunk last.

    A chunk that is one simple word has one part and no compound. `glue` keeps iPhone and eBay
    together, which code does not want.
    """
    parts: list[Part] = []
    compounds: list[Compound] = []
    at = 0
    for segment in chunk.split("/"):
        first = len(parts)
        for piece in _PIECE.finditer(segment):
            _add_piece(chunk, at + piece.start(), at + piece.end(), glue, parts, compounds)
        _add_compound(segment, first, parts, compounds)
        at += len(segment) + 1
    if "/" in chunk:
        _add_compound(chunk, 0, parts, compounds)
    return parts, compounds


def _add_piece(
    chunk: str, start: int, end: int, glue: bool, parts: list[Part], compounds: list[Compound]
) -> None:
    first = len(parts)
    for left, right in _humps(chunk[start:end], glue):
        if len(parts) < MAX_PARTS:
            parts.append(Part(chunk[start + left : start + right], start + left, start + right))
    _add_compound(chunk[start:end], first, parts, compounds)


def _add_compound(text: str, first: int, parts: list[Part], compounds: list[Compound]) -> None:
    """Note what was written as one, unless it is one simple word or was noted already."""
    count = len(parts) - first
    if count < 1 or (count == 1 and parts[first].text == text):
        return
    if count == 1 and not _is_name(text, parts[first].text):
        return
    compound = Compound(text, first, count)
    if not compounds or compounds[-1] != compound:
        compounds.append(compound)


def _is_name(text: str, word: str) -> bool:
    """Is the punctuation around one word part of its name? C++ and .NET yes, issue# no."""
    before, _, after = text.partition(word)
    if after in ("+", "#"):
        return len(word) <= 2
    return bool(after == "++" or before in (".", "@") or before + after == "____")


def _humps(piece: str, glue: bool) -> list[tuple[int, int]]:
    """Spans of the simple words in a piece that holds no joint but underscores."""
    if piece.isalpha() and (piece[1:].islower() or piece.isupper()):
        return [(0, len(piece))]
    if (not piece.isascii() and _HAS_MARKS.search(piece)) or _PLURAL_CAPITALS.fullmatch(piece):
        return [(0, len(piece))]
    if "'" in piece or "’" in piece:
        return [(0, len(piece))]
    spans = [match.span() for match in _HUMP.finditer(piece)]
    return _glued(piece, spans) if glue else spans


def _glued(piece: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Undo cuts that part what belongs together: i|Phone, mp|3, x|86."""
    out: list[tuple[int, int]] = []
    for start, end in spans:
        before = out[-1] if out else (0, 0)
        touching = bool(out) and before[1] == start
        short = before[1] - before[0] <= (2 if piece[start].isdigit() else 1)
        if touching and short and not piece[before[0]].isdigit():
            out[-1] = (before[0], end)
        else:
            out.append((start, end))
    return out
