"""Hits: scores by field become what an engine answers, alike for every engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from ragvault.index.keyword_fields import Fields
from ragvault.types import KeywordHit

if TYPE_CHECKING:
    from numpy.typing import NDArray


def hit(
    fields: Fields,
    passage: int,
    note: int,
    scores: Mapping[str, float],
    coverage: float,
    fuzzy: bool = False,
) -> KeywordHit:
    """One hit, its score the sum of what its fields gave; fields that gave nothing are left out."""
    given = {name: score for name, score in scores.items() if score}
    of_note = fsum(given.get(name, 0.0) for name in fields.note)
    of_passage = fsum(given.get(name, 0.0) for name in fields.passage)
    return KeywordHit(
        passage, note, of_note + of_passage, of_note, of_passage, coverage, given, fuzzy
    )


def scaled(hit: KeywordHit, by: float) -> KeywordHit:
    """The same hit with every score multiplied."""
    return replace(
        hit,
        score=hit.score * by,
        note_score=hit.note_score * by,
        passage_score=hit.passage_score * by,
        fields={name: score * by for name, score in hit.fields.items()},
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
