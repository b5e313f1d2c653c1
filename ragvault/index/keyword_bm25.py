"""BM25, once, for every engine and field.

    idf   = ln(1 + (N - df + 0.5) / (df + 0.5))
    bm25  = idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))
    score = sum over terms and fields of boost * weight * bm25

N counts the documents of a field's level (notes or passages). A field that a note does not have
counts as one word long: otherwise one alias among ten thousand notes would seem endlessly long.
`bm25` stays below idf * (k1 + 1) however often a term stands there, which bounds the score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class BM25:
    """The two knobs: how soon repetition stops counting, and how much length does."""

    k1: float = 1.2
    b: float = 0.75

    def scores(
        self, idf: float, counts: NDArray[np.float64], lengths: NDArray[np.float64], average: float
    ) -> NDArray[np.float64]:
        """The scores of one term in the documents that hold it."""
        room = self.k1 * (1 - self.b + self.b * lengths / average)
        return idf * (self.k1 + 1) * counts / (counts + room)

    def bound(self, idf: float) -> float:
        """What `scores` stays below."""
        return idf * (self.k1 + 1)


def idf(holders: int, documents: int) -> float:
    """How much a term tells that `holders` of `documents` hold; never negative."""
    return math.log(1 + (max(documents, holders) - holders + 0.5) / (holders + 0.5))
