"""Allow: the many forms a filter may have become one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragvault.ports import Allowed


def allowed_rows(allowed: Allowed, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these passages may be returned."""
    if allowed is None:
        return np.ones(len(ids), dtype=bool)
    if callable(allowed):
        return np.asarray(allowed(ids), dtype=bool)
    given: NDArray[Any] = np.asarray(allowed)
    if not len(given):
        return np.zeros(len(ids), dtype=bool)
    if given.dtype == bool:
        inside = given[np.minimum(ids, len(given) - 1)]
        return np.asarray((ids < len(given)) & inside, dtype=bool)
    beyond = int(given.max()) + 1
    marks = np.zeros(beyond + 1, dtype=bool)  # a look into a table, not a search for each
    marks[given] = True
    return np.asarray(marks[np.minimum(ids, beyond)], dtype=bool)
