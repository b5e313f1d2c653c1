"""Sets of passages: ascending arrays of ids without duplicates. None means all passages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ragvault.ports import Allowed

Ids = NDArray[np.int64]


def among(ids: Ids, known: Ids) -> NDArray[np.bool_]:
    """Which of these ids, in any order, are in the set `known`."""
    if not len(known):
        return np.zeros(len(ids), bool)
    found: NDArray[np.bool_] = known[_places(ids, known)] == ids
    return found


def value_of(ids: Ids, known: Ids, values: Ids) -> Ids:
    """The value of each id, where `values` has one for each of `known`; -1 for an unknown id."""
    if not len(known):
        return np.full(len(ids), -1)
    places = _places(ids, known)
    return np.where(known[places] == ids, values[places], -1)


def both(first: Allowed, second: Allowed) -> Allowed:
    """The passages of both sets."""
    if first is None or second is None:
        return second if first is None else first
    return np.intersect1d(first, second, assume_unique=True)


def _places(ids: Ids, known: Ids) -> NDArray[np.intp]:
    return np.minimum(np.searchsorted(known, ids), len(known) - 1)
