"""Tiers: one vector index for each model, and every passage in exactly one of them.

A passage takes part with the best tier that has it: one without a transformer's vector yet is found
by its static vector, in a list of its own, since cosines of two models share no unit. All tiers are
refreshed from one moment of the catalogue, so that nothing is missed while passages move up.

Tiers know names and order, and nothing of what makes one model better than another.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragvault.index.ids import among, among_sorted
from ragvault.ports import VectorIndex

Ids = NDArray[np.int64]
Found = tuple[Ids, NDArray[np.float64]]


class Tiers:
    """Vector indexes by name, the best first."""

    def __init__(self, indexes: Mapping[str, VectorIndex]) -> None:
        self._indexes = dict(indexes)
        # By tier and the better ones that are asked: the ids compared, and what they have in
        # common. An index returns the same array until it is refreshed.
        self._shared: dict[tuple[str, ...], tuple[list[Ids], Ids]] = {}

    def __len__(self) -> int:
        return sum(self.counts().values())

    def counts(self) -> dict[str, int]:
        """How many passages each tier answers for: where it is none, no query vector is needed."""
        return {
            name: len(index) - len(self._outdone(name, self._indexes))
            for name, index in self._indexes.items()
        }

    def members(self) -> dict[str, Ids]:
        """The passages each tier answers for, ascending, the best tier first."""
        found = {}
        for name, index in self._indexes.items():
            ids = index.ids()
            found[name] = ids[~among_sorted(ids, self._outdone(name, self._indexes))]
        return found

    def search(
        self,
        queries: Mapping[str, NDArray[np.float32]],
        *,
        limit: int,
        allowed: Ids | None = None,
    ) -> dict[str, Found]:
        """One ranked list for each tier that `queries` has a vector for, the best tier first.

        No passage is in two of them.
        """
        return {
            name: index.search(
                queries[name], limit=limit, allowed=allowed, without=self._outdone(name, queries)
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
                own = index.scores_of(queries[name], ids)
                scores[name] = np.where(among(ids, self._outdone(name, queries)), np.nan, own)
        return scores

    def refresh(self) -> None:
        """See the catalogue as it is now; the caller keeps it at one moment meanwhile."""
        for index in self._indexes.values():
            index.refresh()

    def close(self) -> None:
        for index in self._indexes.values():
            index.close()

    def _outdone(self, tier: str, asked: Container[str]) -> Ids:
        """The passages of this tier that a better one has, which is asked too; ascending."""
        names = list(self._indexes)
        better = [name for name in names[: names.index(tier)] if name in asked]
        compared = (tier, *better)
        held = [self._indexes[name].ids() for name in compared]
        known = self._shared.get(compared)
        if known is None or not _same(held, known[0]):
            own = held[0]
            marks = np.zeros(len(own), bool)
            for other in held[1:]:
                marks |= among_sorted(own, other)
            known = self._shared[compared] = held, own[marks]
        return known[1]


def _same(these: list[Ids], those: list[Ids]) -> bool:
    return len(these) == len(those) and all(a is b for a, b in zip(these, those, strict=True))
