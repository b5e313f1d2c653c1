"""The vectors of one model: the FAISS file, and the tail of what the catalogue has since.

    file   passages up to the file's revision; those removed since are masked out
    tail   passages that got their vector later, as one matrix in memory

`refresh` reads only what is new. The nearest of the file are scored again from the catalogue's
vectors, so that every score is a true cosine and it makes no difference where a passage is.
`is_due` says when the writer should make a new file.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragvault.config.settings import Vector
from ragvault.index.ids import among, among_sorted
from ragvault.index.vector.file import VectorFile, open_file
from ragvault.ports import VectorFileRow, VectorSource

Ids = NDArray[np.int64]
Scores = NDArray[np.float64]

SMALL_TAIL, LARGE_TAIL = 2_000, 50_000  # passages; the latter are 77 MB of 384 numbers each
TAIL_SHARE, REMOVED_SHARE = 0.1, 0.2
# More candidates than these are not scored again: so many alike are copies of one text.
MOST_RESCORED = 4096
TIE = 1e-5  # float32 scores of one vector differ by less


def is_due(held: int, tail: int, removed: int) -> bool:
    """Whether a new file is worth writing, by the passages of the file and of the tail."""
    if not held:
        return tail > 0
    large = max(SMALL_TAIL, min(TAIL_SHARE * held, LARGE_TAIL))
    return tail > large or removed > REMOVED_SHARE * held


@dataclass(frozen=True, eq=False)
class _State:
    """What a search looks at. It never changes: `refresh` makes another one."""

    row: VectorFileRow | None
    file: VectorFile | None
    alive: NDArray[np.bool_] | None  # rows of the file that still count; None: all
    tail: Ids  # ascending
    vectors: NDArray[np.float32]  # of the tail
    revision: int
    upto: int

    @cached_property
    def ids(self) -> Ids:
        if self.file is None:
            return self.tail
        held = self.file.ids if self.alive is None else self.file.ids[self.alive]
        return np.sort(np.concatenate([held, self.tail])) if len(self.tail) else held


class FaissVectors:
    """An open vector index; keeps the promises of ports.VectorIndex."""

    def __init__(self, source: VectorSource, settings: Vector | None = None) -> None:
        """Open the current file and read the tail. Raises CacheBroken, EngineMissing."""
        self._source, self._settings = source, settings or Vector()
        self.model, self.dim = source.model, source.dim
        self._refreshing = threading.Lock()
        self._state = self._current(self._opened())

    @property
    def revision(self) -> int:
        return self._state.revision

    @property
    def tail(self) -> int:
        """How many passages are in memory and not in the file."""
        return len(self._state.tail)

    def __len__(self) -> int:
        return len(self._state.ids)

    def ids(self) -> Ids:
        return self._state.ids

    def search(
        self,
        query: NDArray[np.float32],
        *,
        limit: int,
        allowed: Ids | None = None,
        without: Ids | None = None,
    ) -> tuple[Ids, Scores]:
        state, query = self._state, self._unit(query)
        if limit < 1:
            return np.empty(0, np.int64), np.empty(0)
        parts = [_best_of_tail(state, query, limit, allowed, without)]
        if state.file is not None:
            parts.append(self._best_of_file(state, state.file, query, limit, allowed, without))
        ids, scores = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((ids, -scores))[:limit]
        return ids[order], scores[order]

    def scores_of(self, query: NDArray[np.float32], passages: ArrayLike) -> Scores:
        ids = np.asarray(passages, np.int64)
        scores = np.full(len(ids), np.nan)
        here = among(ids, self._state.ids)
        if here.any():
            scores[here] = cosines(self._unit(query), self._source.fetch(ids[here]))
        return scores

    def vectors_of(self, passages: ArrayLike) -> NDArray[np.float32]:
        return self._source.fetch(np.asarray(passages, np.int64))

    def refresh(self) -> None:
        with self._refreshing:
            state = self._state
            if self._source.file() != state.row:
                state = self._opened()
            self._state = self._current(state)

    def close(self) -> None:
        self._state = _nothing(self.dim)
        self._source.close()

    def _opened(self) -> _State:
        """The current file, and nothing of what came after it."""
        row, nothing = self._source.file(), _nothing(self.dim)
        if row is None:
            return nothing
        file = open_file(row.folder, self.dim)
        return replace(nothing, row=row, file=file, revision=row.revision, upto=row.upto)

    def _current(self, state: _State) -> _State:
        """The same brought up to date: what was removed is masked, what is new is in the tail."""
        source, file, alive = self._source, state.file, state.alive
        if (state.revision, state.upto) == source.moment():
            return state
        new = source.since(state.revision, state.upto)
        keep = ~source.gone(state.tail, state.revision)
        add = ~among_sorted(new.ids, state.tail)
        if file is not None:
            gone = source.gone(file.ids, state.revision)
            alive = _both(alive, ~gone) if gone.any() else alive
            add &= ~among_sorted(new.ids, file.ids)  # it may reach further than its row says
        tail = np.concatenate([state.tail[keep], new.ids[add]])
        order = np.argsort(tail)
        vectors = np.concatenate([state.vectors[keep], new.vectors[add]])[order]
        return _State(state.row, file, alive, tail[order], vectors, new.revision, new.upto)

    def _best_of_file(
        self,
        state: _State,
        file: VectorFile,
        query: NDArray[np.float32],
        limit: int,
        allowed: Ids | None,
        without: Ids | None,
    ) -> tuple[Ids, Scores]:
        """The nearest of the file by true cosine, and some more."""
        keep = _marks(file.ids, state.alive, allowed, without)
        width = 2 * limit + 32
        while True:
            rows, rounded = file.nearest(query, width, keep, self._settings)
            # Whatever rounding may have put beyond the limit is scored again.
            edge = rounded[limit - 1] - 2 * file.rounding if len(rows) > limit else -np.inf
            near = int(np.count_nonzero(rounded >= edge))
            if near < width or len(rows) < width or width > MOST_RESCORED:
                break
            width *= 4  # many are alike here
        ids = file.ids[rows]
        scores = cosines(query, self._source.fetch(ids[:near]))
        if np.isnan(scores).any() and near < len(ids):  # some are gone: others take their places
            scores = cosines(query, self._source.fetch(ids))
        known = ~np.isnan(scores)
        return ids[: len(scores)][known], scores[known]

    def _unit(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The query, checked: with another length its scores would be no cosines."""
        vector = np.ascontiguousarray(query, np.float32)
        if vector.shape != (self.dim,):
            raise ValueError(f"vectors of {self.model} have {self.dim} numbers, not {vector.shape}")
        if not abs(float(np.linalg.norm(vector)) - 1) < 0.01:
            raise ValueError("a query vector must have length 1")
        return vector


def cosines(query: NDArray[np.float32], vectors: NDArray[np.float32]) -> Scores:
    """True scores. Summed row by row: a matrix product rounds by the size of the batch."""
    scores: Scores = (vectors.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    return scores


def _best_of_tail(
    state: _State,
    query: NDArray[np.float32],
    limit: int,
    allowed: Ids | None,
    without: Ids | None,
) -> tuple[Ids, Scores]:
    keep = _marks(state.tail, None, allowed, without)
    rows = np.arange(len(state.tail)) if keep is None else np.flatnonzero(keep)
    if len(rows) > limit:
        rough = (state.vectors @ query)[rows]
        rows = rows[rough >= np.partition(rough, -limit)[-limit] - TIE]
    return state.tail[rows], cosines(query, state.vectors[rows])


def _marks(
    ids: Ids, alive: NDArray[np.bool_] | None, allowed: Ids | None, without: Ids | None
) -> NDArray[np.bool_] | None:
    """Which of these passages a search may find; None: all."""
    marks = alive
    if allowed is not None:
        marks = _both(marks, among_sorted(ids, allowed))
    if without is not None and len(without):
        marks = _both(marks, ~among_sorted(ids, without))
    return marks


def _both(first: NDArray[np.bool_] | None, second: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return second if first is None else first & second


def _nothing(dim: int) -> _State:
    empty = np.empty(0, np.int64)
    return _State(None, None, None, empty, np.empty((0, dim), np.float32), 0, 0)
