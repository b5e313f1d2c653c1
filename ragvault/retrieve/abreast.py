"""Abreast: what two models found, side by side, though their cosines share no unit.

The n-th hit of one counts as good as the n-th of the other, and stands behind it. A passage that is
in no list is placed by the straight line on which the ends of both lists lie: as far below the last
hit of its own model as that makes in the other's unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragvault.candidate import Hit

Listed = tuple[NDArray[np.int64], NDArray[np.float64]]
Scale = Callable[[float], float]


def abreast(lists: Mapping[str, Listed]) -> tuple[list[Hit], dict[str, Scale]]:
    """One list of those of all tiers, the best tier first, and what a cosine of each counts."""
    (tier, first), *others = lists.items()
    hits = _hits(*first)
    scales: dict[str, Scale] = {tier: _as_it_is}
    for name, (ids, scores) in others:
        scales[name] = _scale(scores, first[1])
        hits = _laid_beside(hits, ids)
    return hits, scales


def _as_it_is(score: float) -> float:
    return score


def _scale(theirs: NDArray[np.float64], ours: NDArray[np.float64]) -> Scale:
    """Their cosine of something that is not in their list, in our unit: never above our last."""
    spread = float(theirs[0] - theirs[-1])
    slope = float(ours[0] - ours[-1]) / spread if spread > 0 else 0.0
    last, end = float(theirs[-1]), float(ours[-1])
    return lambda score: max(0.0, end - slope * max(0.0, last - score))


def _hits(ids: NDArray[np.int64], scores: NDArray[np.float64]) -> list[Hit]:
    pairs = zip(ids, scores, strict=True)
    return [Hit(int(passage), rank, float(score)) for rank, (passage, score) in enumerate(pairs, 1)]


def _laid_beside(hits: Sequence[Hit], ids: NDArray[np.int64]) -> list[Hit]:
    like = [hits[min(place, len(hits) - 1)].score for place in range(len(ids))]
    both = [(hit.rank, 0, hit.passage, hit.score) for hit in hits]
    both += [(rank, 1, int(passage), like[rank - 1]) for rank, passage in enumerate(ids, 1)]
    return [
        Hit(passage, rank, score) for rank, (_, _, passage, score) in enumerate(sorted(both), 1)
    ]
