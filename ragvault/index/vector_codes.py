"""Codes: what a segment stores in 8 bits, compared in whole numbers.

A code c of one number stands for middle + step * c, with c from -128 to 127 and a middle and a step
for each dimension. So a query's score is query . middle + (query * step) . c, and when query * step
is rounded to 8 bits too, the second part is a sum of products of whole numbers. FAISS does that for
vectors it calls direct and signed in a third of the time it takes to decode every code: 107,880
vectors of 384 numbers in 3.3 ms instead of 8.4. The rounding moves a score by at most `slack`; the
few that matter are then compared with the query as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragvault.index import vector_faiss

MOST = 127  # the largest whole number in a rounded query


class Whole(NamedTuple):
    """A query in whole numbers: a score is at most `slack` from `middle` + `unit` * their sum.

    `scaled` is the query they were rounded from, as it is compared with the codes that matter.
    """

    numbers: NDArray[np.float32]
    unit: float
    middle: float
    slack: float
    scaled: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """The codes of one flat index, from 0 to 255, and what they mean."""

    stored: NDArray[np.uint8]  # in the memory of the index, and gone with it
    step: NDArray[np.float64]
    middle: NDArray[np.float64]
    reach: float  # how far from the middle a decoded vector is, at most

    @classmethod
    def of(cls, index: Any, error: float) -> Codes:
        """Take over a flat index of 8 bits: from now on it compares whole numbers."""
        faiss = vector_faiss.load()
        low, width = np.split(faiss.vector_to_array(index.sq.trained).astype(np.float64), 2)
        middle = low + width * 128.5 / 255
        index.sq.qtype = faiss.ScalarQuantizer.QT_8bit_direct_signed
        stored = faiss.rev_swig_ptr(index.codes.data(), index.ntotal * index.d)
        # A true vector is of length 1, and a decoded one at most its error away.
        reach = 1.01 + error + float(np.linalg.norm(middle))
        return cls(stored.reshape(index.ntotal, index.d), width / 255, middle, reach)

    def whole(self, query: NDArray[np.float32]) -> Whole:
        """A query as it is compared with every code."""
        scaled = query * self.step
        unit = float(np.abs(scaled).max()) / MOST or 1.0
        numbers = np.rint(scaled / unit)
        left = scaled - numbers * unit
        # In a dimension without a step all are alike, and nothing is lost there.
        lost = np.divide(left, self.step, out=np.zeros_like(left), where=self.step > 0)
        slack = float(np.linalg.norm(lost)) * self.reach
        middle = float(query @ self.middle)
        return Whole(numbers.astype(np.float32), unit, middle, slack, scaled)

    def scores(self, whole: Whole, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The scores of some rows as they are stored."""
        codes = self.stored[rows].astype(np.float32)
        # einsum: few rows, for which BLAS would wait for its threads.
        sums = np.einsum("ij,j->i", codes, whole.scaled.astype(np.float32))
        scores: NDArray[np.float64] = sums + (whole.middle - 128 * whole.scaled.sum())
        return scores
