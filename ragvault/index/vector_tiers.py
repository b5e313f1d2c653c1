"""Tiers: one vector index for each model, and every passage in exactly one of them.

A passage counts in the best tier that has it: one without a transformer's vector yet is found by
its static vector, in a list of its own, since cosines of two models share no unit. Moving up is
adding to the better tier; the rest follows.

Nothing is hidden while passages move, because of an order kept everywhere: changes are committed in
the better tier first, and read in the worse tier first. So whoever no longer sees a passage in the
worse one looks for it in the better one after it got there.

Tiers know names and order, and nothing of what makes one model better than another.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragvault.index.ids import among
from ragvault.index.vector_state import permits, settled
from ragvault.ports import Allowed, VectorIndex

Found = tuple[NDArray[np.int64], NDArray[np.float64]]


class Tiers:
    """Vector indexes by name, the best first. Changes are made by one thread at a time."""

    def __init__(self, indexes: Mapping[str, VectorIndex]) -> None:
        self._indexes = dict(indexes)
        self._worst_first = list(self._indexes)[::-1]
        # By tier: what was compared, and what came of it. It changes with a commit, not a search.
        self._moving: dict[str, tuple[list[NDArray[np.int64]], NDArray[np.int64]]] = {}
        self._members: tuple[list[NDArray[np.int64]], dict[str, NDArray[np.int64]]] | None = None

    @property
    def revision(self) -> int:
        """The catalogue's revision that all tiers reflect."""
        return min(index.revision for index in self._indexes.values())

    def __len__(self) -> int:
        return sum(self.counts().values())

    def counts(self) -> dict[str, int]:
        """How many passages each tier answers for: where it is none, no query vector is needed."""
        return {name: len(ids) for name, ids in self.members().items()}

    def members(self) -> dict[str, NDArray[np.int64]]:
        """The passages each tier answers for, ascending, the best tier first."""
        held = [self._indexes[name].ids() for name in self._worst_first]
        known = self._members
        if known is None or not _same(held, known[0]):
            known = self._members = held, self._split(held)
        return known[1]

    def search(
        self,
        queries: Mapping[str, NDArray[np.float32]],
        *,
        limit: int,
        allowed: Allowed = None,
    ) -> dict[str, Found]:
        """One ranked list a tier, for those that `queries` has a vector for, the best tier first.

        No passage is in two of them.
        """
        lists: dict[str, Found] = {}
        for name in self._worst_first:
            if name in queries:
                permission = _but_not(self._above(name, queries), allowed)
                index = self._indexes[name]
                lists[name] = index.search(queries[name], limit=limit, allowed=permission)
        return _once({name: lists[name] for name in self._indexes if name in lists})

    def scores_of(
        self, queries: Mapping[str, NDArray[np.float32]], passages: ArrayLike
    ) -> dict[str, NDArray[np.float64]]:
        """The cosine of each passage in its own tier, NaN in the others; a row for each query."""
        ids = np.asarray(passages, np.int64)
        scores = {}
        for name in self._worst_first:
            if name in queries:
                own = self._indexes[name].scores_of(queries[name], ids)
                scores[name] = np.where(among(ids, self._above(name, queries)), np.nan, own)
        return {name: scores[name] for name in self._indexes if name in scores}

    def add(self, tier: str, passages: ArrayLike, vectors: NDArray[np.float32]) -> None:
        """Add to one tier, and take out of the worse ones."""
        ids = np.asarray(passages, np.int64)
        self._indexes[tier].add(ids, vectors)
        for name in self._worst_first[: self._worst_first.index(tier)]:
            self._indexes[name].remove(ids)

    def remove(self, passages: ArrayLike) -> None:
        for index in self._indexes.values():
            index.remove(np.asarray(passages, np.int64))

    def commit(self, revision: int) -> None:
        """Better tiers first: in between, a passage is in two, and the better one counts."""
        for index in self._indexes.values():
            index.commit(revision)

    def refresh(self) -> None:
        for name in self._worst_first:
            self._indexes[name].refresh()

    def merge(self) -> bool:
        """One bounded step in one tier; False when none needs it."""
        return any(index.merge() for index in self._indexes.values())

    def compact(self) -> None:
        for index in self._indexes.values():
            index.compact()

    def close(self) -> None:
        for index in self._indexes.values():
            index.close()

    def _split(self, held: list[NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
        """Each passage to the best tier that holds it."""
        by_tier = dict(zip(self._worst_first, held, strict=True))
        seen: list[NDArray[np.int64]] = []
        for name in self._indexes:
            own = by_tier[name]
            hidden = [permits(better, own) for better in seen]
            seen.append(own)
            by_tier[name] = own[~np.logical_or.reduce(hidden)] if hidden else own
        return {name: by_tier[name] for name in self._indexes}

    def _above(self, tier: str, asked: Container[str]) -> NDArray[np.int64]:
        """What is in this tier and in a better one that is asked too, for as long as it moves."""
        own = self._indexes[tier].ids()
        above = self._worst_first[self._worst_first.index(tier) + 1 :]
        others = [self._indexes[name].ids() for name in above if name in asked]
        known = self._moving.get(tier)
        if known is None or not _same([own, *others], known[0]):
            hidden = [own[permits(ids, own)] for ids in others]
            moving = np.sort(np.concatenate([np.empty(0, np.int64), *hidden]))
            known = self._moving[tier] = ([own, *others], moving)
        return known[1]


def _same(these: list[NDArray[np.int64]], those: list[NDArray[np.int64]]) -> bool:
    """The very same arrays: an index hands out one for each commit."""
    return len(these) == len(those) and all(a is b for a, b in zip(these, those, strict=True))


def _but_not(hidden: NDArray[np.int64], allowed: Allowed) -> Allowed:
    if not len(hidden):
        return allowed
    ready = settled(allowed)

    def permission(ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        return permits(ready, ids) & ~permits(hidden, ids)

    return permission


def _once(lists: dict[str, Found]) -> dict[str, Found]:
    """What moved up between two searches was found by both, and stays in the better list."""
    seen = np.empty(0, np.int64)
    for name, (ids, scores) in lists.items():
        new = ~among(ids, seen)
        lists[name] = ids[new], scores[new]
        seen = np.sort(np.concatenate([seen, ids]))
    return lists
