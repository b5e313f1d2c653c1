"""Fetch: vectors of passages for whichever thread asks, a leg of a search or a writer.

The thread that opened the catalogue reads through it. All others share one connection of their
own, one after the other: each reads a few hundred vectors, and only one leg asks for any.

What was read is kept for a while, since a search asks for the vectors of its hits up to three
times: to score them, to score what other legs found, to compare them with each other. It stays
true: under one id a passage never has another text, and no index finds one that is gone.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ragvault.ports import CacheBroken
from ragvault.store.catalogue import Catalogue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


KEPT = 4096  # vectors: those of a dozen searches, 6 MB


class Fetch:
    """The vectors of one model."""

    def __init__(self, catalogue: Catalogue, model: str) -> None:
        self._model, self._own = model, catalogue
        self._owner = threading.get_ident()
        self._others: Catalogue | None = None
        self._turn, self._closed = threading.Lock(), False
        self._kept: dict[int, NDArray[np.float32]] = {}

    def __call__(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
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

    def _keep(self, ids: list[int], rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Keep what is there; not a writer's thousands, which are read once."""
        import numpy as np

        if len(self._kept) + len(ids) > KEPT:
            self._kept = {}
        if len(ids) <= KEPT // 4:
            there = np.flatnonzero(~np.isnan(rows[:, 0]))
            self._kept.update((ids[at], rows[at]) for at in there.tolist())
        return rows

    def _read(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        if threading.get_ident() == self._owner:
            return self._own.chunk_vectors(self._model, ids)
        with self._turn:
            return self._shared().chunk_vectors(self._model, ids)

    def close(self) -> None:
        """Close what was opened here. A leg that nobody waits for any more reads nothing after."""
        with self._turn:
            self._closed = True
            if self._others is not None:
                self._others.close()
                self._others = None

    def _shared(self) -> Catalogue:
        if self._closed:
            raise CacheBroken("the vectors have been closed")
        if self._others is None:
            self._others = Catalogue.open(self._own.folder, shared=True)
        return self._others
