"""Caches: one cache of the catalogue is opened, brought up to date and closed again.

Damage is mostly met when a cache is opened, and mended there (engines.py). What shows only while it
is written to, or when its engine refuses to go on, is mended here: the cache is emptied, and made
from the catalogue once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from functools import cached_property

from ragvault.engines import Engines
from ragvault.ports import CacheBroken
from ragvault.store.caches import vector_cache
from ragvault.store.catalogue import Catalogue
from ragvault.write.meanings import update_vectors
from ragvault.write.words import TAKING, follow_words

EVERY = 2.0  # seconds of reading after which words follow, so that a changed note is soon found


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


class Following:
    """Words follow while notes are still being read: call it now and then.

    A note whose passages were replaced is in no answer until its words have followed. Where no
    index answers yet there is nothing to miss, and words are written in one go when all is read.
    """

    def __init__(self, catalogue: Catalogue, engines: Engines) -> None:
        self._catalogue, self._engines = catalogue, engines
        self._last = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._last < EVERY or not self._is_missed:
            return
        for name in self._engines.word_indexes():
            bring_words(name, self._catalogue, self._engines)
        self._last = time.monotonic()

    @cached_property
    def _is_missed(self) -> bool:
        if not self._engines.are_of(self._catalogue):
            return False
        try:
            index = self._engines.keyword()
        except CacheBroken:
            return False
        with closing(index):
            identity, since = self._catalogue.identity, index.revision
            return since > 0 and self._catalogue.can_catch_up(identity, since)


def bring_vectors(
    model: str, catalogue: Catalogue, engines: Engines, better: str = "", *, clean: bool = False
) -> None:
    """Write the vector file of one model anew where that is due, or where it is damaged."""
    settings = engines.config.vector
    rebuild = engines.must_rebuild(model) and catalogue.cache(vector_cache(model)) is not None
    try:
        if not rebuild:
            engines.check_vectors(model, catalogue)
            update_vectors(catalogue, model, settings, better, clean=clean)
    except CacheBroken as broken:
        engines.talk.say(f"the vector index of {model}: {broken}; it is made again")
        rebuild = True
    if rebuild:
        engines.remade.add("vectors")
        update_vectors(catalogue, model, settings, better, rebuild=True)


def _follow(
    name: str, catalogue: Catalogue, engines: Engines, tell: Callable[[int, int], None]
) -> None:
    index = engines.words(name, catalogue)
    try:
        follow_words(index, catalogue, TAKING[name], tell)
    finally:
        index.close()
    engines.words_made(name, catalogue)
