"""Segment: the cheapest way to cut a run of pieces into stretches of a wished-for size.

Sections and passages are cut by the same rule with other numbers. Every place between two pieces
has a price (a heading is free, a sentence is dear), every stretch has one for being too short or
too long, and the cut with the lowest total wins. Dynamic programming over the pieces, so the
answer is the best one and does not depend on where one starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

INFINITE = float("inf")
MOST_PIECES = 256  # in one stretch: keeps a note of ten thousand one-word headings affordable
EMPTY = 1000.0  # the price of a stretch without a letter: only where there is no other way


class Piece(NamedTuple):
    """A stretch that stays whole. `first` and `last` count visible characters before its first
    and after its last letter, so that the size of a run is last - first; `price` is that of a cut
    just before it; `heading` its level where it is a heading."""

    start: int
    end: int
    first: int
    last: int
    price: float
    heading: int = 0


@dataclass(frozen=True, slots=True)
class Wish:
    """What a stretch should be like, and what it costs to be otherwise.

    A stretch is closed where a heading or the end of the note follows: it could not have been
    longer, so that being short costs `short_closed` there and `short` elsewhere.
    """

    most: int  # characters, never more
    least: int  # fewer is short
    short: float
    short_closed: float
    target: int = 0  # the best size, if there is one: others cost the square of what they miss
    crossing: float = 0.0  # for every heading after the first line
    mixed: float = 0.0  # for holding a heading and ending before its text does
    dear: float = 1.0  # how much the prices of cuts count
    glue: bool = False  # a heading stays with what follows, even where that is too long


def segment(pieces: Sequence[Piece], wish: Wish) -> list[tuple[int, int]]:
    """Cut the pieces into runs [i, j), at the lowest price; one over the most is a single piece."""
    best: list[float] = [0.0]
    came_from: list[int] = [0]
    for j in range(1, len(pieces) + 1):
        closed = j == len(pieces) or pieces[j].heading > 0
        price, start = _cheapest(pieces, best, j, closed, wish)
        best.append(price)
        came_from.append(start)
    return _walk_back(came_from)


def _cheapest(
    pieces: Sequence[Piece], best: Sequence[float], j: int, closed: bool, wish: Wish
) -> tuple[float, int]:
    """The cheapest run that ends before piece j, and where it begins."""
    # The innermost loop of reading a vault: names are local, and nothing is called.
    most, least, target, dear = wish.most, wish.least, wish.target, wish.dear
    short = wish.short_closed if closed else wish.short
    crossing, mixed = wish.crossing, 0.0 if closed else wish.mixed
    last, inside, glued = pieces[j - 1].last, 0, wish.glue
    found, start = INFINITE, j - 1
    for i in range(j - 1, max(j - 1 - MOST_PIECES, -1), -1):
        _, _, first, _, cut, heading = pieces[i]
        size = last - first
        if i < j - 1:
            glued = glued and heading > 0
            if size > most and not glued:
                break
        price = best[i] + cut * dear if i else 0.0
        if size < least:
            price += short + 0.2 * (least - size) / least if size > 0 else EMPTY
        if target:
            miss = (size - target) / target
            price += miss * miss
        if inside:
            price += inside * crossing + mixed
        if price < found:
            found, start = price, i
        inside += heading > 0
    return found, start


def _walk_back(came_from: Sequence[int]) -> list[tuple[int, int]]:
    runs = []
    j = len(came_from) - 1
    while j > 0:
        runs.append((came_from[j], j))
        j = came_from[j]
    return runs[::-1]
