"""Ids in arrays: which of some are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def among(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these few ids, in any order, are known; what is known ascends."""
    if not len(known):
        return np.zeros(len(ids), bool)
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids
    return found
