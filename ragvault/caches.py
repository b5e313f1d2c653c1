"""Caches: one cache of the catalogue is opened, brought up to date and closed again.

Damage is mostly met when a cache is opened, and mended there (engines.py). What shows only while it
is written to, or when its engine refuses to go on, is mended here: the cache is emptied, and made
from the catalogue once more.
"""

from __future__ import annotations

from collections.abc import Callable

from ragvault.engines import Engines
from ragvault.ports import CacheBroken
from ragvault.store.catalogue import Catalogue
from ragvault.write.meanings import follow_vectors
from ragvault.write.words import TAKING, follow_words


def bring_words(
    name: str,
    catalogue: Catalogue,
    engines: Engines,
    tell: Callable[[int, int], None] = lambda *_: None,
) -> None:
    """Bring the keyword or the code index up to date."""
    try:
        _follow(name, catalogue, engines, tell)
    except CacheBroken as broken:
        engines.lose(name, broken)
        _follow(name, catalogue, engines, tell)


def bring_vectors(model: str, catalogue: Catalogue, engines: Engines, better: str = "") -> None:
    """Bring the vectors of one model up to date; a model without a single one has no index."""
    dim = catalogue.model_dims().get(model)
    if dim is None:
        return
    index = engines.vectors(model, dim, catalogue, write=True)
    try:
        follow_vectors(catalogue, index, better)
    finally:
        index.close()


def _follow(
    name: str, catalogue: Catalogue, engines: Engines, tell: Callable[[int, int], None]
) -> None:
    index = engines.words(name, catalogue)
    try:
        follow_words(index, catalogue, TAKING[name], tell)
    finally:
        index.close()
