"""The vectors of one model, as its vector index needs them: new ones, and those of given passages.

The thread that opened the catalogue reads through it. All other threads take turns on one second
connection: each reads a few hundred vectors, and only one leg reads any.

Fetched vectors are cached: a search needs the vectors of its hits up to three times, to score them,
to score the hits of other legs, and to compare them with each other. The cache cannot be wrong: a
passage with the same id always has the same text, and no index returns a removed passage.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ragvault.ports import CacheBroken, VectorChanges, VectorFileRow
from ragvault.store.caches import vector_cache
from ragvault.store.catalogue import Catalogue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


KEPT = 4096  # vectors: those of a dozen searches, 6 MB


class ModelVectors:
    """Keeps the promises of ports.VectorSource."""

    def __init__(self, catalogue: Catalogue, model: str, dim: int) -> None:
        self.model, self.dim, self._own = model, dim, catalogue
        self._owner = threading.get_ident()
        self._others: Catalogue | None = None
        self._turn, self._closed = threading.Lock(), False
        self._kept: dict[int, NDArray[np.float32]] = {}

    def file(self) -> VectorFileRow | None:
        cache = self._own.cache(vector_cache(self.model))
        if cache is None:
            return None
        self._own.check_cache(cache, thorough=False)  # FAISS trusts what it maps
        return VectorFileRow(self._own.cache_folder(cache), cache.revision, cache.upto)

    def moment(self) -> tuple[int, int]:
        with self._own.snapshot():
            return self._own.revision, self._own.last_vector()

    def since(self, revision: int, upto: int) -> VectorChanges:
        with self._own.snapshot():
            ids, vectors = self._own.vectors_since(self.model, revision, upto)
            if vectors.shape[1] != self.dim:
                raise CacheBroken("its vectors have been deleted")
            return VectorChanges(ids, vectors, *self.moment())

    def gone(self, ids: NDArray[np.int64], revision: int) -> NDArray[np.bool_]:
        return self._own.gone(ids, revision)

    def fetch(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        import numpy as np

        wanted: list[int] = ids.tolist()
        kept = self._kept  # another thread may put an empty one in its place
        new = [id_ for id_ in wanted if id_ not in kept]
        if len(new) == len(wanted):
            return self._keep(new, self._read(ids))
        rows = self._keep(new, self._read(np.array(new, np.int64))) if new else ()
        read = dict(zip(new, rows, strict=True))
        found = [read[id_] if id_ in read else kept[id_] for id_ in wanted]
        if len({len(row) for row in found}) > 1:  # the model was dropped meanwhile
            raise CacheBroken("its vectors have been deleted")
        return np.array(found)

    def close(self) -> None:
        """Close what was opened here. A leg that nobody waits for any more reads nothing after."""
        with self._turn:
            self._closed = True
            if self._others is not None:
                self._others.close()
                self._others = None

    def _keep(self, ids: list[int], rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Keep what is there; not thousands at once, which are read once."""
        import numpy as np

        if len(self._kept) + len(ids) > KEPT:
            self._kept = {}
        if len(ids) <= KEPT // 4:
            there = np.flatnonzero(~np.isnan(rows[:, 0]))
            self._kept.update((ids[at], rows[at]) for at in there.tolist())
        return rows

    def _read(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        if threading.get_ident() == self._owner:
            return self._own.passage_vectors(self.model, ids)
        with self._turn:
            return self._shared().passage_vectors(self.model, ids)

    def _shared(self) -> Catalogue:
        if self._closed:
            raise CacheBroken("the vectors have been closed")
        if self._others is None:
            self._others = Catalogue.open(self._own.folder, shared=True)
        return self._others
