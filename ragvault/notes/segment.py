"""Segment: the cheapest way to cut a run of pieces into stretches of a wished-for size.

Sections and passages are cut by the same rule with other numbers. Every place between two pieces
has a price (a heading is free, a sentence is dear), every stretch has one for being too short or
too long, and the cut with the lowest total wins. Dynamic programming over the pieces, so the
answer is the best one and does not depend on where one starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

INFINITE = float("inf")
MOST_PIECES = 256  # in one stretch: keeps a note of ten thousand one-word headings affordable


@dataclass(frozen=True, slots=True)
class Piece:
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
    """What a stretch should be like: its greatest size, and what any other size costs.

    `cost(size, closed, inside)` is the price of a stretch; `closed` says that a heading or the
    end of the note follows, so that it could not have been longer; `inside` counts the headings
    after its first line. `dear` makes cuts count for more, against the sizes. With `glue` a
    heading stays with what follows it even where that makes the stretch too long.
    """

    most: int
    cost: Callable[[int, bool, int], float]
    dear: float = 1.0
    glue: bool = False


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
    last, inside, glued = pieces[j - 1].last, 0, wish.glue
    found, start = INFINITE, j - 1
    for i in range(j - 1, max(j - 1 - MOST_PIECES, -1), -1):
        piece = pieces[i]
        size = last - piece.first
        if i < j - 1:
            glued = glued and piece.heading > 0
            if size > wish.most and not glued:
                break
        price = best[i] + wish.cost(size, closed, inside)
        if i:
            price += piece.price * wish.dear
        if price < found:
            found, start = price, i
        inside += piece.heading > 0
    return found, start


def _walk_back(came_from: Sequence[int]) -> list[tuple[int, int]]:
    runs = []
    j = len(came_from) - 1
    while j > 0:
        runs.append((came_from[j], j))
        j = came_from[j]
    return runs[::-1]
