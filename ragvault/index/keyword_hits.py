"""Hits: how those that only near spellings found stay below the exact ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragvault.sought import KeywordHit

if TYPE_CHECKING:
    from numpy.typing import NDArray


def scaled(hit: KeywordHit, by: float) -> KeywordHit:
    """The same hit with every score multiplied."""
    return hit._replace(
        score=hit.score * by,
        note_score=hit.note_score * by,
        passage_score=hit.passage_score * by,
        title_score=hit.title_score * by,
    )


def below_exact(scores: NDArray[np.float64], exact: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What to multiply scores by so that no hit that is not exact passes one that is."""
    scale = np.ones(len(scores))
    if exact.all() or not exact.any():
        return scale
    highest = scores[~exact].max()
    lowest = scores[exact].min()
    if highest >= lowest:
        scale[~exact] = 0.99 * lowest / highest if highest > 0 else 1.0
    return scale
