"""A segment: passages in one FAISS index that never changes again.

On disk a segment is 8 bits a number, flat or in lists (IVF); in memory the newest passages are a
segment too, in full precision. Rows are in the order of `ids`, which ascend. `error` bounds how far
a decoded vector is from the true one, and so how far a score is from the true score: what is built
on it can prove that a list is exact. A flat one is looked through in whole numbers (vector_codes),
which moves a score a little further.

A segment knows nothing of files that come and go, nor of which of its rows still count.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragvault.index import vector_faiss
from ragvault.index.vector_codes import Codes, Whole
from ragvault.ports import CacheBroken

# Added to every error: float32 sums, and a catalogue that rounds vectors to half precision, which
# moves a unit vector by at most 2 ** -11.
SLACK = 6e-4

ROWS_A_LIST = 256
# For the centres of lists. FAISS would take 25 rounds and 256 points: twice as long, for a recall
# at 10 of 0.993 instead of 0.990.
ROUNDS, POINTS = 10, 64
# Of a filter that keeps less than this of a segment, every row is looked at: it costs no more than
# the lists that would be searched without a filter, and nothing is missed.
SMALL_SHARE = 0.1


class Look(NamedTuple):
    """Rows and their scores, best first, each at most `slack` from the true score."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float64]
    slack: float
    more: bool = False  # may there be rows beyond the last one?
    whole: Whole | None = None  # the query, where scores are sums of whole numbers

    def highest(self, length: float) -> NDArray[np.float64]:
        """What the true scores are at most, for a query of this length."""
        return self.scores + self.slack * length


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """`lists` is 0 when every search looks at every row, which makes it exact."""

    number: int
    index: Any
    ids: NDArray[np.int64]
    error: float
    lists: int = 0
    owner: Any = None  # what `index` is a part of, and dies with
    codes: Codes | None = None  # of a flat one in 8 bits

    def scan(
        self,
        query: NDArray[np.float32],
        limit: int,
        keep: NDArray[np.bool_] | None,
        *,
        probe: float,
        threads: int,
    ) -> Look:
        """The best rows, for a unit query; `keep` marks what counts.

        At most `limit`, and fewer only when no more rows count.
        """
        if self.codes is None:
            rows, scores = self._best(query, limit, keep, probe, threads)
            return Look(rows, scores, self.error, len(rows) == limit)
        whole = self.codes.whole(query)
        rows, sums = self._best(whole.numbers, limit, keep, probe, threads)
        scores = whole.middle + whole.unit * sums
        return Look(rows, scores, self.error + whole.slack, len(rows) == limit, whole)

    def sharpened(self, look: Look, count: int) -> Look:
        """Its first rows, with scores no further from the truth than what is stored; unsorted."""
        rows = look.rows[:count]
        if self.codes is None or look.whole is None:
            return Look(rows, look.scores[:count], self.error)
        return Look(rows, self.codes.scores(look.whole, rows), self.error)

    def _best(
        self,
        query: NDArray[np.float32],
        limit: int,
        keep: NDArray[np.bool_] | None,
        probe: float,
        threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        eligible = len(self.ids) if keep is None else int(np.count_nonzero(keep))
        limit = min(limit, eligible)
        if not limit:
            return np.empty(0, np.int64), np.empty(0)
        faiss = vector_faiss.load(threads)
        # Both must outlive the search: FAISS holds pointers to them.
        bits = None if keep is None else np.packbits(keep, bitorder="little")
        selector = None if bits is None else faiss.IDSelectorBitmap(bits)
        lists = self._lists(eligible, probe)
        rows, scores = self._search(faiss, query, limit, selector, lists)
        if len(rows) < limit:  # the lists that were probed held too few of what the filter keeps
            rows, scores = self._search(faiss, query, limit, selector, self.lists)
        return rows, scores

    def _lists(self, eligible: int, probe: float) -> int:
        if eligible <= SMALL_SHARE * len(self.ids):
            return self.lists
        return max(1, round(probe * self.lists))

    def _search(
        self, faiss: Any, query: NDArray[np.float32], limit: int, selector: Any, lists: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        if self.lists:
            params = faiss.SearchParametersIVF(sel=selector, nprobe=lists)
        else:
            params = faiss.SearchParameters(sel=selector)
        scores, rows = self.index.search(query[np.newaxis], limit, params=params)
        found = rows[0] >= 0  # FAISS fills up with -1
        return rows[0][found], scores[0][found].astype(np.float64)


def build(
    ids: NDArray[np.int64], vectors: NDArray[np.float32], *, in_lists: bool, threads: int
) -> tuple[bytes, float]:
    """A segment's file and its error. `ids` ascend."""
    faiss = vector_faiss.load(threads)
    dim = vectors.shape[1]
    kind, metric = faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    if in_lists:
        lists = max(1, len(ids) // ROWS_A_LIST)
        by_residual = False  # so that a code means the same in every list
        centres = faiss.IndexFlatIP(dim)
        index = faiss.IndexIVFScalarQuantizer(centres, dim, lists, kind, metric, by_residual)
        index.cp.niter, index.cp.max_points_per_centroid = ROUNDS, POINTS
        index.cp.min_points_per_centroid = 1
    else:
        index = faiss.IndexScalarQuantizer(dim, kind, metric)
    index.train(vectors)
    decoded = index.sq.decode(index.sq.compute_codes(vectors))
    error = float(np.sqrt(np.square(vectors - decoded).sum(axis=1).max()))
    whole = faiss.IndexIDMap(index)
    whole.add_with_ids(vectors, ids)
    return faiss.serialize_index(whole).tobytes(), error


def load(path: Path, number: int, error: float, dim: int) -> Segment:
    """Map a segment's file, which has been checked: FAISS trusts what it reads."""
    faiss = vector_faiss.load()
    try:
        whole = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as problem:
        if not path.exists():  # since it was checked
            raise FileNotFoundError(errno.ENOENT, "gone", str(path)) from problem
        raise CacheBroken(f"FAISS cannot read {path.name}: {problem}") from problem
    ids = faiss.vector_to_array(whole.id_map)
    index = faiss.downcast_index(whole.index)
    if index.d != dim or index.ntotal != len(ids):
        raise CacheBroken(f"{path.name} does not hold what the manifest says")
    lists = getattr(index, "nlist", 0)
    codes = None if lists else Codes.of(index, error)
    return Segment(number, index, ids, error + SLACK, lists, whole, codes)


def in_memory(ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> Segment:
    """The newest passages, in full precision."""
    index = vector_faiss.load().IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return Segment(0, index, ids, SLACK)
