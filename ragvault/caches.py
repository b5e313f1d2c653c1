"""Caches: one cache of the catalogue is opened, brought up to date and closed again.

Damage is mostly met when a cache is opened, and mended there (engines.py). What shows only while it
is written to, or when its engine refuses to go on, is mended here: the cache is emptied, and made
from the catalogue once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

from ragvault.engines import Engines
from ragvault.ports import CacheBroken
from ragvault.store.caches import KEYWORD, vector_cache
from ragvault.store.catalogue import Catalogue
from ragvault.write.keyword import can_update, update_keyword, wanted_cache
from ragvault.write.meanings import update_vectors

EVERY = 2.0  # seconds of reading after which words follow, so that a changed note is soon found


def bring_keyword(
    catalogue: Catalogue,
    engines: Engines,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    rebuild: bool = False,
) -> None:
    """Bring the keyword index up to date, and rebuild it where that is due."""
    settings = engines.config.keyword
    rebuild = engines.must_rebuild(KEYWORD) or rebuild
    was = catalogue.cache(KEYWORD)
    try:
        if not rebuild:
            engines.check_cache(KEYWORD, catalogue)
        rebuilt = update_keyword(catalogue, settings, progress, rebuild=rebuild)
    except CacheBroken as broken:
        engines.talk.info(f"the keyword index: {broken}; it is rebuilt from the catalogue")
        rebuilt = update_keyword(catalogue, settings, progress, rebuild=True)
    if rebuilt and (was is not None or catalogue.last_run()):
        engines.remade.add(KEYWORD)


class Following:
    """Words follow while notes are still being read: call it now and then.

    A note whose passages were replaced is in no answer until its words have followed. Where no
    index answers yet there is nothing to miss, and words are written in one go when all is read.
    """

    def __init__(self, catalogue: Catalogue, engines: Engines) -> None:
        self._catalogue, self._engines = catalogue, engines
        self._last = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._last >= EVERY and self._is_missed:
            bring_keyword(self._catalogue, self._engines)
            self._last = time.monotonic()

    @cached_property
    def _is_missed(self) -> bool:
        cache = self._catalogue.cache(KEYWORD)
        if cache is None:
            return False
        wanted = wanted_cache(self._catalogue, self._engines.config.keyword, cache)
        return can_update(self._catalogue, cache, wanted)


def bring_vectors(
    model: str, catalogue: Catalogue, engines: Engines, better: str = "", *, clean: bool = False
) -> None:
    """Write the vector file of one model anew where that is due, or where it is damaged."""
    settings = engines.config.vector
    rebuild = engines.must_rebuild(model) and catalogue.cache(vector_cache(model)) is not None
    try:
        if not rebuild:
            engines.check_cache(vector_cache(model), catalogue)
            update_vectors(catalogue, model, settings, better, clean=clean)
    except CacheBroken as broken:
        engines.talk.info(f"the vector index of {model}: {broken}; it is made again")
        rebuild = True
    if rebuild:
        engines.remade.add("vectors")
        update_vectors(catalogue, model, settings, better, rebuild=True)
