"""Vectors of one model, in plain FAISS: a file, and what the catalogue has since that file.

    file   passages up to the file's revision, 8 bits a number, flat or in lists (IVF); written
           once, mapped by readers, never changed: changing a mapped FAISS index crashes
    tail   passages that got their vector later, as one matrix in memory

The index is a cache of passage ids and vectors, and the catalogue is its log: a changed note writes
no file. `refresh` reads only what is new, and `vectors_are_due` says when the writer should write a
new file. Scores of the file are rounded, so a search scores its nearest passages again from the
catalogue's vectors: every score is a true cosine, wherever the passage is.

FAISS is imported when it is first needed, because the import takes a tenth of a second.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragvault.config.settings import Vector
from ragvault.errors import EngineMissing, disk_full, refusals
from ragvault.index.ids import Ids, among
from ragvault.ports import Allowed, CacheBroken, FetchVectors, VectorFileRow, VectorSource

Scores = NDArray[np.float64]

FILE = "vectors.faiss"
FORMAT = 2
PAGE = 8192  # vectors read and added at a time: 12 MB
SAMPLE = 100_000  # vectors that the ranges of a flat file are taken from
# Lists: how many vectors each has on average, and what their centres are computed from. FAISS would
# take 25 rounds and 256 points a centre, which takes five times as long for the same recall.
ROWS_A_LIST, ROUNDS, POINTS = 1024, 10, 64
# When a filter keeps less than this share, all lists are searched: that costs no more than the
# usual share of them without a filter, and misses nothing.
SMALL_SHARE = 0.1
DEVIATIONS = 4  # a rounding error beyond so many standard deviations is not reckoned with
SMALL_TAIL, LARGE_TAIL = 2_000, 50_000  # passages; the latter are 77 MB of 384 numbers each
TAIL_SHARE, REMOVED_SHARE = 0.1, 0.2
# More candidates than these are not scored again: so many alike are copies of one text.
MOST_RESCORED = 4096
THREADS = 1  # of one search: a single query gains nothing from two
TIE = 1e-5  # float32 scores of one vector differ by less


# --- FAISS ---

_importing = threading.Lock()
# Not sys.modules: that has a module as soon as its import begins.
_loaded: dict[str, Any] = {}


def load_faiss() -> Any:
    """The module, with its thread count set for the calling thread. Raises EngineMissing.

    OpenMP keeps that number per thread, so every thread that searches has to set it.
    """
    faiss = _imported() if "faiss" not in _loaded else _loaded["faiss"]
    faiss.omp_set_num_threads(THREADS)
    return faiss


def _imported() -> Any:
    # Warning filters belong to the whole process, so two threads must not restore them in turns.
    with _importing, warnings.catch_warnings():
        # SWIG makes types without __module__; Python 3.12 and later warn once, at import.
        warnings.filterwarnings(
            "ignore",
            message=r"builtin type \w+ has no __module__ attribute",
            category=DeprecationWarning,
        )
        try:
            import faiss
        except ImportError as error:
            raise EngineMissing("the vector index", "faiss-cpu", str(error)) from error
        _loaded["faiss"] = faiss
    return faiss


# --- The file ---


def vector_recipe(dim: int, settings: Vector) -> str:
    """All that a file depends on: one with another recipe has to be rebuilt."""
    return f"faiss format={FORMAT} sq8 dim={dim} exact_max={settings.exact_max}"


@dataclass(frozen=True, eq=False)
class VectorFile:
    """An open file. `ids` ascend, and row n of `index` is the vector of passage `ids[n]`."""

    index: Any
    ids: Ids
    lists: int  # 0: flat, every vector is compared
    rounding: float  # how far a score from the file may be from the true one
    whole: Any  # FAISS's own object: it owns `index`

    def nearest(
        self,
        query: NDArray[np.float32],
        limit: int,
        keep: NDArray[np.bool_] | None,
        settings: Vector,
    ) -> tuple[Ids, NDArray[np.float32]]:
        """Rows and rounded scores of the nearest, best first; `keep` marks the rows that count."""
        eligible = len(self.ids) if keep is None else int(np.count_nonzero(keep))
        limit = min(limit, eligible)
        if not limit:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        share = settings.probe if eligible > SMALL_SHARE * len(self.ids) else 1.0
        lists = max(1, round(share * self.lists))
        rows, scores = self._search(query, limit, keep, lists)
        if len(rows) < limit:  # these lists have too few of the allowed passages
            rows, scores = self._search(query, limit, keep, self.lists)
        return rows, scores

    def _search(
        self,
        query: NDArray[np.float32],
        limit: int,
        keep: NDArray[np.bool_] | None,
        lists: int,
    ) -> tuple[Ids, NDArray[np.float32]]:
        faiss = load_faiss()
        # Both must outlive the search: FAISS holds pointers to them.
        bits = None if keep is None else np.packbits(keep, bitorder="little")
        selector = None if bits is None else faiss.IDSelectorBitmap(bits)
        if self.lists:
            params = faiss.SearchParametersIVF(sel=selector, nprobe=lists)
        else:
            params = faiss.SearchParameters(sel=selector)
        scores, rows = self.index.search(query[np.newaxis], limit, params=params)
        found = rows[0] >= 0  # FAISS fills up with -1
        return rows[0][found], scores[0][found]


def write_file(folder: Path, ids: Ids, fetch: FetchVectors, dim: int, settings: Vector) -> None:
    """Write the file of these passages into a folder, in one step. `ids` ascend.

    Passages without a vector are left out. Raises IndexUnusable, for one when the disk is full.
    """
    faiss = load_faiss()
    index = _empty(faiss, len(ids), dim, settings)
    if len(ids):
        sample = ids[:: max(1, len(ids) // _sample_size(index))]
        index.train(_known(sample, fetch)[1])
    whole = faiss.IndexIDMap(index)
    for page, vectors in _pages(ids, fetch):
        whole.add_with_ids(vectors, page)
    _replace(faiss, whole, folder / FILE)


def open_file(folder: Path, dim: int) -> VectorFile:
    """Map a file. Raises CacheBroken when it is missing, cut, or of another dimension."""
    faiss = load_faiss()
    path = folder / FILE
    try:
        with path.open("rb") as file:
            size = file.seek(-len(_ending(0)), os.SEEK_END)
            if file.read() != _ending(size):
                raise CacheBroken(f"{path.name} is damaged")
        # Only POSIX deletes a file that another process has mapped.
        whole = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if os.name == "posix" else 0)
        ids = faiss.vector_to_array(whole.id_map)
        index = faiss.downcast_index(whole.index)
        ranges = faiss.vector_to_array(index.sq.trained)
    except (OSError, RuntimeError, AttributeError, MemoryError) as error:
        why = "is missing" if not path.exists() else "cannot be read by FAISS"
        raise CacheBroken(f"{path.name} {why}") from error
    trained = len(ranges) == 2 * dim or not len(ids)
    if index.d != dim or index.ntotal != len(ids) or not trained:
        raise CacheBroken(f"{path.name} is damaged")
    return VectorFile(index, ids, getattr(index, "nlist", 0), _rounding(ranges[dim:]), whole)


def _ending(size: int) -> bytes:
    """What a file ends with: its length so far. FAISS crashes on some files that were cut."""
    return size.to_bytes(8, "little")


def _empty(faiss: Any, count: int, dim: int, settings: Vector) -> Any:
    kind, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    if count <= settings.exact_max:
        return faiss.IndexScalarQuantizer(dim, kind, metric)
    lists = max(1, count // ROWS_A_LIST)
    by_residual = False  # so that a code means the same in every list
    centres = faiss.IndexFlatIP(dim)
    index = faiss.IndexIVFScalarQuantizer(centres, dim, lists, kind, metric, by_residual)
    index.cp.niter, index.cp.max_points_per_centroid = ROUNDS, POINTS
    index.cp.min_points_per_centroid = 1
    return index


def _sample_size(index: Any) -> int:
    return max(SAMPLE, POINTS * getattr(index, "nlist", 0))


def _rounding(steps: NDArray[np.float32]) -> float:
    """Of a unit query's score, from the width of the range of each dimension.

    A stored number is off by up to half a step of 1/255 of its range, evenly spread.
    """
    if not len(steps):
        return 0.0
    halves = steps.astype(np.float64) / 255 / 2
    return float(DEVIATIONS * np.sqrt(np.square(halves).max() / 3)) + 1e-6


def _pages(ids: Ids, fetch: FetchVectors) -> Iterator[tuple[Ids, NDArray[np.float32]]]:
    for first in range(0, len(ids), PAGE):
        yield _known(ids[first : first + PAGE], fetch)


def _known(ids: Ids, fetch: FetchVectors) -> tuple[Ids, NDArray[np.float32]]:
    vectors = fetch(ids)
    have = ~np.isnan(vectors[:, 0])
    return ids[have], vectors[have]


def _replace(faiss: Any, index: Any, path: Path) -> None:
    """Write beside, flush, rename: the file is complete or not there."""
    waiting = path.with_suffix(".new")
    with refusals(path.parent):
        handle = os.open(waiting, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
        try:
            faiss.write_index(index, str(waiting))
            size = os.fstat(handle).st_size
            os.pwrite(handle, _ending(size), size)
            os.fsync(handle)
        except RuntimeError as error:  # FAISS names no reason; a short write has this one
            raise disk_full(path.parent) from error
        finally:
            os.close(handle)
        waiting.replace(path)
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Flush a rename to disk. Windows cannot open folders and does not need it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# --- The index: the file and the tail ---


def vectors_are_due(in_file: int, tail: int, removed: int) -> bool:
    """Whether a new file is worth writing, by the numbers of passages in the file and the tail."""
    if not in_file:
        return tail > 0
    large = max(SMALL_TAIL, min(TAIL_SHARE * in_file, LARGE_TAIL))
    return tail > large or removed > REMOVED_SHARE * in_file


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
        left = self.file.ids if self.alive is None else self.file.ids[self.alive]
        return np.sort(np.concatenate([left, self.tail])) if len(self.tail) else left


class FaissVectors:
    """Finds passages by their unit vectors, all of one model. Ids are the catalogue's.

    It reflects the catalogue as it was at the last `refresh`. Any number of threads may search.
    """

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
        allowed: Allowed = None,
    ) -> tuple[Ids, Scores]:
        state, query = self._state, self._unit(query)
        if limit < 1:
            return np.empty(0, np.int64), np.empty(0)
        parts = [_best_of_tail(state, query, limit, allowed)]
        if state.file is not None:
            parts.append(self._best_of_file(state, state.file, query, limit, allowed))
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
        """The current file, without what came after it."""
        row, nothing = self._source.file(), _nothing(self.dim)
        if row is None:
            return nothing
        file = open_file(row.folder, self.dim)
        return replace(nothing, row=row, file=file, revision=row.revision, upto=row.upto)

    def _current(self, state: _State) -> _State:
        """The same, updated: removed passages are masked, new ones are in the tail."""
        source, file, alive = self._source, state.file, state.alive
        if (state.revision, state.upto) == source.moment():
            return state
        new = source.since(state.revision, state.upto)
        keep = ~source.gone(state.tail, state.revision)
        add = ~among(new.ids, state.tail)
        if file is not None:
            gone = source.gone(file.ids, state.revision)
            if gone.any():
                alive = ~gone if alive is None else alive & ~gone
            add &= ~among(new.ids, file.ids)  # it may reach further than its row says
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
        allowed: Allowed,
    ) -> tuple[Ids, Scores]:
        """The nearest of the file by true cosine, and some more."""
        keep = _marks(file.ids, state.alive, allowed)
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
    allowed: Allowed,
) -> tuple[Ids, Scores]:
    keep = _marks(state.tail, None, allowed)
    rows = np.arange(len(state.tail)) if keep is None else np.flatnonzero(keep)
    if len(rows) > limit:
        rough = (state.vectors @ query)[rows]
        rows = rows[rough >= np.partition(rough, -limit)[-limit] - TIE]
    return state.tail[rows], cosines(query, state.vectors[rows])


def _marks(ids: Ids, alive: NDArray[np.bool_] | None, allowed: Allowed) -> NDArray[np.bool_] | None:
    """Which of these passages a search may find; None: all."""
    if allowed is None:
        return alive
    marks = among(ids, allowed)
    return marks if alive is None else marks & alive


def _nothing(dim: int) -> _State:
    empty = np.empty(0, np.int64)
    return _State(None, None, None, empty, np.empty((0, dim), np.float32), 0, 0)
