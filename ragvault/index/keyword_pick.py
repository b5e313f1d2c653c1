"""Pick: the best of many scores, in an order that never changes between two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def best(
    scores: NDArray[np.float64],
    ids: NDArray[np.int64],
    notes: NDArray[np.int64],
    limit: int,
    per_note: int,
) -> NDArray[np.int64]:
    """Where the best are: highest score first, equal ones by id, few of one note."""
    wanted = limit
    while True:
        order = _top(scores, ids, wanted)
        picked = _few_a_note(order, notes, per_note)[:limit] if per_note else order
        if len(picked) == limit or len(order) == len(scores) or not per_note:
            return picked
        wanted *= 8  # what one note filled is looked for further down


def _top(scores: NDArray[np.float64], ids: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    if limit < len(scores):
        edge = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        near = np.flatnonzero(scores >= edge)  # all that tie at the edge, so that ids decide
    else:
        near = np.arange(len(scores))
    return near[np.lexsort((ids[near], -scores[near]))][:limit]


def _few_a_note(
    order: NDArray[np.int64], notes: NDArray[np.int64], per_note: int
) -> NDArray[np.int64]:
    own = notes[order]
    groups = np.argsort(own, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(own[groups]) != 0])
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    keep = np.zeros(len(order), dtype=bool)
    keep[groups[rank < per_note]] = True
    return order[keep]
