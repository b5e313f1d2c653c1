"""Tiers: one vector index for each model, and every passage in exactly one of them.

A passage belongs to the best tier that has it. One without a full vector yet is found by its static
vector, in a list of its own, because cosines of two models cannot be compared. All tiers are
refreshed from one moment of the catalogue, so no passage is missed while it moves up.

Tiers know names and their order, and not what makes one model better than another.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragvault.index.ids import Ids, among, both
from ragvault.ports import Allowed, VectorIndex

Found = tuple[Ids, NDArray[np.float64]]


class Tiers:
    """Vector indexes by name, the best first."""

    def __init__(self, indexes: Mapping[str, VectorIndex]) -> None:
        self._indexes = dict(indexes)
        # By a tier and the better ones: their ids, and those that only this tier has. An index
        # returns the same array until it is refreshed.
        self._known: dict[tuple[str, ...], tuple[list[Ids], Allowed]] = {}

    def __len__(self) -> int:
        return sum(self.counts().values())

    def counts(self) -> dict[str, int]:
        """How many passages each tier answers for: a tier with none needs no query vector."""
        return {name: len(ids) for name, ids in self.members().items()}

    def members(self) -> dict[str, Ids]:
        """The passages each tier answers for, ascending, the best tier first."""
        members = {}
        for name, index in self._indexes.items():
            own = self._own(name, self._indexes)
            members[name] = index.ids() if own is None else own
        return members

    def search(
        self,
        queries: Mapping[str, NDArray[np.float32]],
        *,
        limit: int,
        allowed: Allowed = None,
    ) -> dict[str, Found]:
        """One ranked list for each tier that `queries` has a vector for, the best tier first.

        No passage is in two of them.
        """
        return {
            name: index.search(
                queries[name], limit=limit, allowed=both(allowed, self._own(name, queries))
            )
            for name, index in self._indexes.items()
            if name in queries
        }

    def scores_of(
        self, queries: Mapping[str, NDArray[np.float32]], passages: ArrayLike
    ) -> dict[str, NDArray[np.float64]]:
        """The cosine of each passage in its own tier, NaN in the others; a row for each query."""
        ids = np.asarray(passages, np.int64)
        scores = {}
        for name, index in self._indexes.items():
            if name in queries:
                found, own = index.scores_of(queries[name], ids), self._own(name, queries)
                scores[name] = found if own is None else np.where(among(ids, own), found, np.nan)
        return scores

    def refresh(self) -> None:
        """See the catalogue as it is now; the caller keeps it at one moment meanwhile."""
        for index in self._indexes.values():
            index.refresh()

    def close(self) -> None:
        for index in self._indexes.values():
            index.close()

    def _own(self, tier: str, searched: Container[str]) -> Allowed:
        """The passages of this tier that no better tier that is searched has; None: all of them."""
        names = list(self._indexes)
        compared = (tier, *(name for name in names[: names.index(tier)] if name in searched))
        ids = [self._indexes[name].ids() for name in compared]
        known = self._known.get(compared)
        if known is None or not _same(ids, known[0]):
            marks = np.zeros(len(ids[0]), bool)
            for better in ids[1:]:
                marks |= among(ids[0], better)
            known = self._known[compared] = ids, ids[0][~marks] if marks.any() else None
        return known[1]


def _same(these: list[Ids], those: list[Ids]) -> bool:
    return len(these) == len(those) and all(a is b for a, b in zip(these, those, strict=True))
