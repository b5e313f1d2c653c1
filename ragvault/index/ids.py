"""Ids in arrays: which of some are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def among(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these ids, in any order, are known; `known` ascends."""
    if not len(known):
        return np.zeros(len(ids), bool)
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids
    return found


def among_sorted(ids: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The same where `ids` ascend too and none comes twice: the shorter is looked up."""
    if len(known) > len(ids):
        return among(ids, known)
    marks = np.zeros(len(ids), bool)
    if len(ids):
        at = np.minimum(np.searchsorted(ids, known), len(ids) - 1)
        marks[at[ids[at] == known]] = True
    return marks
