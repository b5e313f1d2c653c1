"""The FAISS file of one model: 8 bits a number, flat or in lists (IVF), with the passages' ids.

`write_file` makes it once, `open_file` maps it. It is never changed: adding to or removing from a
mapped FAISS index crashes. Scores from it are rounded; whoever searches scores the best again from
the catalogue's vectors, and `rounding` says how far apart the two may be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragvault.config.settings import Vector
from ragvault.errors import disk_full, refused
from ragvault.index.vector import faiss_import
from ragvault.ports import CacheBroken, FetchVectors

FILE = "vectors.faiss"
FORMAT = 1
PAGE = 8192  # vectors read and added at a time: 12 MB
SAMPLE = 100_000  # vectors that the ranges of a flat file are taken from
# Lists: how many vectors each has on average, and what their centres are computed from. FAISS would
# take 25 rounds and 256 points a centre, which takes five times as long for the same recall.
ROWS_A_LIST, ROUNDS, POINTS = 1024, 10, 64
# When a filter keeps less than this share, all lists are searched: that costs no more than the
# usual share of them without a filter, and misses nothing.
SMALL_SHARE = 0.1
DEVIATIONS = 4  # a rounding error beyond so many standard deviations is not reckoned with


def recipe(dim: int, settings: Vector) -> str:
    """What a file is made with: one of another recipe has to be rebuilt."""
    return f"faiss format={FORMAT} sq8 dim={dim} exact_max={settings.exact_max}"


@dataclass(frozen=True, eq=False)
class VectorFile:
    """An open file. `ids` ascend, and row n of `index` is the vector of passage `ids[n]`."""

    index: Any
    ids: NDArray[np.int64]
    lists: int  # 0: flat, every vector is compared
    rounding: float  # how far a score from the file may be from the true one
    whole: Any  # FAISS's own object: it owns `index`

    def nearest(
        self,
        query: NDArray[np.float32],
        limit: int,
        keep: NDArray[np.bool_] | None,
        settings: Vector,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows and rounded scores of the nearest, best first; `keep` marks the rows that count."""
        eligible = len(self.ids) if keep is None else int(np.count_nonzero(keep))
        limit = min(limit, eligible)
        if not limit:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        share = settings.probe if eligible > SMALL_SHARE * len(self.ids) else 1.0
        lists = max(1, round(share * self.lists))
        rows, scores = self._search(query, limit, keep, lists, settings.threads)
        if len(rows) < limit:  # these lists hold too few of what the filter keeps
            rows, scores = self._search(query, limit, keep, self.lists, settings.threads)
        return rows, scores

    def _search(
        self,
        query: NDArray[np.float32],
        limit: int,
        keep: NDArray[np.bool_] | None,
        lists: int,
        threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        faiss = faiss_import.load(threads)
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


def write_file(
    folder: Path, ids: NDArray[np.int64], fetch: FetchVectors, dim: int, settings: Vector
) -> None:
    """Write the file of these passages into a folder, in one step. `ids` ascend.

    Passages without a vector are left out. Raises IndexUnusable, for one when the disk is full.
    """
    faiss = faiss_import.load(settings.threads)
    index = _empty(faiss, len(ids), dim, settings)
    if len(ids):
        sample = ids[:: max(1, len(ids) // _sample_size(index))]
        index.train(_known(sample, fetch)[1])
    whole = faiss.IndexIDMap(index)
    for page, vectors in _pages(ids, fetch):
        whole.add_with_ids(vectors, page)
    _replace(faiss, whole, folder / FILE)


def open_file(folder: Path, dim: int) -> VectorFile:
    """Map a file. Raises CacheBroken when it is missing, not FAISS's or of another dimension.

    FAISS trusts what it maps: the caller has compared its size with what was written.
    """
    faiss = faiss_import.load()
    path = folder / FILE
    try:
        # Only POSIX deletes a file that another process has mapped.
        whole = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if os.name == "posix" else 0)
        ids = faiss.vector_to_array(whole.id_map)
        index = faiss.downcast_index(whole.index)
        ranges = faiss.vector_to_array(index.sq.trained)
    except (RuntimeError, AttributeError, MemoryError) as error:
        why = "is missing" if not path.exists() else "cannot be read by FAISS"
        raise CacheBroken(f"{path.name} {why}") from error
    trained = len(ranges) == 2 * dim or not len(ids)
    if index.d != dim or index.ntotal != len(ids) or not trained:
        raise CacheBroken(f"{path.name} is damaged")
    return VectorFile(index, ids, getattr(index, "nlist", 0), _rounding(ranges[dim:]), whole)


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


def _pages(
    ids: NDArray[np.int64], fetch: FetchVectors
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    for first in range(0, len(ids), PAGE):
        yield _known(ids[first : first + PAGE], fetch)


def _known(
    ids: NDArray[np.int64], fetch: FetchVectors
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    vectors = fetch(ids)
    have = ~np.isnan(vectors[:, 0])
    return ids[have], vectors[have]


def _replace(faiss: Any, index: Any, path: Path) -> None:
    """Write beside, bring to the disk, rename: the file is whole or not there."""
    waiting = path.with_suffix(".new")
    try:
        handle = os.open(waiting, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
        try:
            faiss.write_index(index, str(waiting))
            os.fsync(handle)
        finally:
            os.close(handle)
        waiting.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise refused(path.parent, error) from error
    except RuntimeError as error:  # FAISS names no reason; a short write has this one
        raise disk_full(path.parent) from error


def _sync_folder(folder: Path) -> None:
    """A rename is on the disk when its folder is. Windows cannot open folders and needs not."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
