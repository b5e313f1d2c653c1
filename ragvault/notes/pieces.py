"""Pieces: a block is taken apart only as far as its size makes necessary.

    a list at its items, a table at its rows, a quotation at its blocks, prose at its sentences;
    code at blank lines and then at lines; whatever is still too long at a space, and a word
    longer than a passage anywhere

Each place has a price, the price of cutting there.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from ragvault.notes.segment import Piece
from ragvault.types import Block

# The price of a cut, by what stands behind it.
BLOCK, ITEM, SENTENCE, LINE, WORD, AFTER_HEADING = 0.1, 0.3, 0.6, 1.0, 4.0, 6.0

_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’»)\]*_]*\s+(?=[^\sa-zà-ÿ])|(?<=[。！？])(?=\S)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n+")
_LINE = re.compile(r"\n")
_SPACE = re.compile(r"\s+(?=\S)")
_GRAIN = 16  # pieces smaller than a sixteenth of a stretch are not worth telling apart

Cut = tuple[int, float]  # where, and at what price


class Visible:
    """Counts the characters of a text that are indexed, and finds the first and last of them."""

    def __init__(self, text: str, excluded: Sequence[tuple[int, int]]) -> None:
        self.text = text
        self.excluded = excluded
        self._starts = [start for start, _ in excluded]
        self._hidden = [0, *accumulate(end - start for start, end in excluded)]

    def before(self, offset: int) -> int:
        """How many indexed characters come before an offset."""
        if not self.excluded:
            return offset
        i = bisect_left(self._starts, offset)
        inside = max(0, self.excluded[i - 1][1] - offset) if i else 0
        return offset - self._hidden[i] + inside

    def letters(self, start: int, end: int) -> tuple[int, int] | None:
        """Where the first visible letter of a stretch is and where the last one ends, if any."""
        if not self.excluded:
            return self._edges(start, end)
        found = [edges for span in self._shown(start, end) if (edges := self._edges(*span))]
        return (found[0][0], found[-1][1]) if found else None

    def _shown(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        i = max(0, bisect_left(self._starts, start) - 1)
        for hidden, until in self.excluded[i : bisect_left(self._starts, end)]:
            if hidden > start:
                yield start, hidden
            start = max(start, until)
        if start < end:
            yield start, end

    def _edges(self, start: int, end: int) -> tuple[int, int] | None:
        stretch = self.text[start:end]
        left = len(stretch) - len(stretch.lstrip())
        return (start + left, start + len(stretch.rstrip())) if left < len(stretch) else None


def pieces(
    blocks: Iterable[Block], visible: Visible, *, soft: int, hard: int, code: int
) -> list[Piece]:
    """The blocks as pieces: whole up to `soft` characters, code up to `code`, none over `hard`."""
    found: list[Piece] = []
    after_heading = False
    for block in blocks:
        whole = code if block.kind == "code" else soft
        # The line under a heading belongs to it.
        price = AFTER_HEADING if after_heading else 0.0 if block.level else BLOCK
        cuts = [(block.start, price), *_cuts(block, visible, whole, hard), (block.end, 0.0)]
        for (start, cost), (end, _) in pairwise(cuts):
            level = block.level if start == block.start else 0
            _append(found, _piece(start, end, cost, level, visible, found), soft // _GRAIN)
        after_heading = block.level > 0
    return found


def _append(found: list[Piece], piece: Piece, grain: int) -> None:
    """Add a piece; a crumb joins the crumb before it, so that a thousand of them stay cheap."""
    last = found[-1] if found else None
    if last and len(found) == 1 and last.first == last.last:
        # Nothing visible has come yet: what there is belongs to the first piece that has a letter.
        found[-1] = piece._replace(start=last.start, price=last.price)
    elif last and not piece.heading and not last.heading and piece.last - last.first < grain:
        found[-1] = last._replace(end=piece.end, last=piece.last)
    else:
        found.append(piece)


def _piece(
    start: int, end: int, price: float, heading: int, visible: Visible, before: list[Piece]
) -> Piece:
    """A piece; one without a visible letter takes no room, wherever it is put."""
    letters = visible.letters(start, end)
    if letters is None:
        at = before[-1].last if before else visible.before(end)
        return Piece(start, end, at, at, price, heading)
    first, last = letters
    return Piece(start, end, visible.before(first), visible.before(last), price, heading)


def _cuts(block: Block, visible: Visible, soft: int, hard: int) -> list[Cut]:
    """Where a block is cut, in order: by its own parts if it is large, further if they are."""
    if block.end - block.start <= soft or _size(block.start, block.end, visible) <= soft:
        return []
    rules = _CODE if block.kind == "code" else _PROSE
    cuts: list[Cut] = []
    for start, end in _parts(block):
        if start > block.start:
            cuts.append((start, ITEM))
        if _size(start, end, visible) > soft:
            cuts += sorted(_by_rules(start, end, visible, hard, rules))
    return cuts


def _parts(block: Block) -> list[tuple[int, int]]:
    inner = block.cuts[1:] if block.kind == "table" else block.cuts  # a header keeps its first row
    return list(pairwise([block.start, *inner, block.end]))


Rule = tuple[re.Pattern[str], float]
_PROSE: tuple[Rule, ...] = ((_SENTENCE, SENTENCE), (_LINE, LINE))
_CODE: tuple[Rule, ...] = ((_BLANK_LINE, SENTENCE), (_LINE, LINE))


def _by_rules(
    start: int, end: int, visible: Visible, hard: int, rules: Sequence[Rule]
) -> Iterator[Cut]:
    """Cut at the first rule; a part that is then still over `hard` at the next, or at spaces."""
    if not rules:
        yield from _at_spaces(start, end, visible.text, hard)
        return
    (pattern, price), *rest = rules
    places = [m.end() for m in pattern.finditer(visible.text, start, end) if m.end() < end]
    yield from ((at, price) for at in places)
    for left, right in pairwise([start, *places, end]):
        if _size(left, right, visible) > hard:
            yield from _by_rules(left, right, visible, hard, rest)


def _at_spaces(start: int, end: int, text: str, hard: int) -> Iterator[Cut]:
    """The last space that keeps each part within `hard`; without any, the place itself."""
    while end - start > hard:
        spaces = [m.end() for m in _SPACE.finditer(text, start, start + hard + 1)]
        start = spaces[-1] if spaces and spaces[-1] > start else start + hard
        if start < end:
            yield start, WORD


def _size(start: int, end: int, visible: Visible) -> int:
    """How many characters a stretch has from its first letter to its last."""
    letters = visible.letters(start, end)
    return visible.before(letters[1]) - visible.before(letters[0]) if letters else 0
