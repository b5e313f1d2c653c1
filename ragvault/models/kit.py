"""Kit: models that are open, for everyone in this process who asks for the same ones.

Weights are read once, however many vaults, threads and settings of a ranking there are: a model may
be used by several threads at a time. What is asked for with other settings of [models] is another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ragvault.ports import Embedder, Reranker

if TYPE_CHECKING:
    from ragvault.config import Models
    from ragvault.models.load import Opening

M = TypeVar("M", Embedder, Reranker)


class Kit:
    """Opens each model once, and keeps it for as long as this is kept."""

    def __init__(self) -> None:
        self._embedders: dict[tuple[str, str], Embedder] = {}
        self._rerankers: dict[tuple[str, str], Reranker] = {}
        self._opening: dict[tuple[str, str, int], threading.Lock] = {}
        self._lock = threading.Lock()

    def embedder(self, name: str, settings: Models, how: Opening) -> Embedder:
        """Raises what opening it raises; that is tried again the next time."""
        from ragvault.models.load import open_embedder

        return self._kept(self._embedders, name, settings, lambda: open_embedder(name, how))

    def reranker(self, name: str, settings: Models, how: Opening) -> Reranker:
        """The same for a reranker."""
        from ragvault.models.load import open_reranker

        return self._kept(self._rerankers, name, settings, lambda: open_reranker(name, how))

    def _kept(
        self, kept: dict[tuple[str, str], M], name: str, settings: Models, opened: Callable[[], M]
    ) -> M:
        how = repr(settings)
        if (name, how) in kept:
            return kept[name, how]
        with self._opening_of(name, how, id(kept)):
            if (name, how) not in kept:
                found = opened()
                # By its full name too, which is what the catalogue remembers of it; one that was
                # opened by that name already is the same.
                kept[name, how] = kept.setdefault((found.name, how), found)
            return kept[name, how]

    def _opening_of(self, name: str, how: str, kind: int) -> threading.Lock:
        """A lock for each model: nobody waits for the download of another one."""
        with self._lock:
            return self._opening.setdefault((name, how, kind), threading.Lock())
