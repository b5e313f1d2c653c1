"""Fetch: vectors of passages for whichever thread asks, a leg of a search or a writer.

The thread that opened the catalogue reads through it. All others share one connection of their
own, one after the other: each reads a few hundred vectors, and only one leg asks for any.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ragvault.ports import CacheBroken
from ragvault.store.catalogue import Catalogue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Fetch:
    """The vectors of one model."""

    def __init__(self, catalogue: Catalogue, model: str) -> None:
        self._model, self._own = model, catalogue
        self._owner = threading.get_ident()
        self._others: Catalogue | None = None
        self._turn, self._closed = threading.Lock(), False

    def __call__(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
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
