"""Kit: models that are open, for everyone in this process who asks for the same ones.

Weights are read once, however many vaults, threads and settings of a ranking there are: a model may
be used by several threads at a time. What is asked for with other settings of [models] is another;
those of the few settings used last are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ragvault.ports import Embedder, Reranker

if TYPE_CHECKING:
    from ragvault.config.settings import Models
    from ragvault.models.load import Opening

M = TypeVar("M", Embedder, Reranker)
KEPT = 4  # settings of [models] whose weights stay in memory: up to 200 MB each


class Kit:
    """Opens each model once, and keeps it until KEPT other settings have been used."""

    def __init__(self) -> None:
        self._embedders: dict[tuple[str, str], Embedder] = {}
        self._rerankers: dict[tuple[str, str], Reranker] = {}
        self._opening: dict[tuple[str, str, int], threading.Lock] = {}
        self._used: dict[str, None] = {}  # settings, the ones used last behind
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
        self._use(how)
        found = kept.get((name, how))
        if found is not None:
            return found
        with self._opening_of(name, how, id(kept)):
            found = kept.get((name, how))
            if found is None:
                found = opened()
                # By its full name too, which is what the catalogue remembers of it; one that was
                # opened by that name already is the same.
                found = kept[name, how] = kept.setdefault((found.name, how), found)
            return found

    def _use(self, how: str) -> None:
        """Let go of the models of settings that nobody has used for long."""
        with self._lock:
            self._used.pop(how, None)
            self._used[how] = None
            for old in list(self._used)[:-KEPT]:
                del self._used[old]
                self._forget(self._embedders, old)
                self._forget(self._rerankers, old)

    def _forget(self, kept: dict[tuple[str, str], M], how: str) -> None:
        for key in [key for key in list(kept) if key[1] == how]:
            del kept[key]

    def _opening_of(self, name: str, how: str, kind: int) -> threading.Lock:
        """A lock for each model: nobody waits for the download of another one."""
        with self._lock:
            return self._opening.setdefault((name, how, kind), threading.Lock())
