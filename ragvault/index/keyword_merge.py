"""Merge: several segments become one, without the documents that were removed.

What no living document holds any more is in no file afterwards: not its places, not its terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge as in_order
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from ragvault.index.keyword_segment import Block, Columns, Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

Alive = Mapping[str, "NDArray[np.bool_]"]  # by level: which documents of a segment are left


def columns(segments: Sequence[tuple[Segment, Alive]], level_of: Mapping[str, str]) -> Columns:
    """The columns of what is left, in the order of the segments."""
    names = sorted({name for segment, _ in segments for name in segment.columns})
    joined: Columns = {}
    for name in names:
        level = level_of[name.partition(".")[0]]
        joined[name] = np.concatenate(
            [s.columns[name][alive[level]] for s, alive in segments if name in s.columns]
        )
    return joined


def blocks(
    segments: Sequence[tuple[Segment, Alive]], level_of: Mapping[str, str]
) -> Iterator[tuple[str, str, Block]]:
    """The blocks of what is left, under new numbers."""
    numbers = _renumbered(segments)
    streams = [_stream(at, segment) for at, (segment, _) in enumerate(segments)]
    for (field, term), found in groupby(in_order(*streams), key=itemgetter(0, 1)):
        held = [block.kept(numbers[at][level_of[field]]) for _, _, at, block in found]
        joined = held[0] if len(held) == 1 else _joined(held)
        if len(joined.docs):
            yield field, term, joined


def _stream(at: int, segment: Segment) -> Iterator[tuple[str, str, int, Block]]:
    return ((field, term, at, block) for field, term, block in segment.blocks())


def _joined(held: Sequence[Block]) -> Block:
    return Block(
        np.concatenate([block.docs for block in held]),
        np.concatenate([block.counts for block in held]),
        np.concatenate([block.places for block in held]),
    )


def _renumbered(
    segments: Sequence[tuple[Segment, Alive]],
) -> list[dict[str, NDArray[np.int64]]]:
    """For each segment and level: the new number of each document, -1 for those left out."""
    base: dict[str, int] = {}
    numbers = []
    for _, alive in segments:
        own = {}
        for level, mask in alive.items():
            first = base.get(level, 0)
            own[level] = np.where(mask, np.cumsum(mask) - 1 + first, -1)
            base[level] = first + int(mask.sum())
        numbers.append(own)
    return numbers
