"""Openings: indexes kept open between searches, for each thread that answers.

An Opened belongs to one thread, and its settings are part of what it is. The few used last are kept
for each thread; one whose index was made again meanwhile, or has gained a tier, is opened anew. An
open file outlives its deletion, so a thread that has nothing to do lets go of what was removed
(`tidy`). Models are in the kit, shared by all of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from ragvault.models.load import ModelPool
from ragvault.opened import Opened
from ragvault.store import layout
from ragvault.store.catalogue import Catalogue
from ragvault.vault import Vault

KEPT = 4  # indexes a thread keeps: vaults, or settings of one vault, that are asked in turns


class _Held(NamedTuple):
    opened: Opened
    stamp: tuple[object, ...]


class Declined(Exception):
    """The settings of a vault leave its searches to the process in which they were typed."""


class Openings:
    """Gives each thread an index that is open already. Use as a function of a vault."""

    def __init__(self, kit: ModelPool) -> None:
        self._kit = kit
        self._own = threading.local()

    @contextmanager
    def __call__(self, vault: Vault) -> Iterator[Opened]:
        if not vault.settings.config.watch.answer:
            raise Declined
        shelf = self._shelf()
        key = (vault.folder, msgspec.json.encode(vault.settings.config))
        held = shelf.pop(key, None)
        if held is not None and not _is_current(held, vault.folder):
            held.opened.close()
            held = None
        if held is None:
            held = self._opened(vault)
        try:
            yield held.opened
        except BaseException:
            held.opened.close()  # whatever went wrong, the next search begins anew
            raise
        shelf[key] = held
        while len(shelf) > KEPT:
            shelf.popitem(last=False)[1].opened.close()

    def tidy(self) -> None:
        """Let this thread's indexes follow their files, or close them where those are gone."""
        shelf = self._shelf()
        for key, held in list(shelf.items()):
            if not _is_current(held, key[0]):
                del shelf[key]
                held.opened.close()

    def _opened(self, vault: Vault) -> _Held:
        opened = vault.reading(kit=self._kit)
        try:
            return _Held(opened, _stamp(vault.folder, opened.catalogue))
        except BaseException:  # it was deleted this very moment
            opened.close()
            raise

    def _shelf(self) -> OrderedDict[tuple[Path, bytes], _Held]:
        if not hasattr(self._own, "shelf"):
            self._own.shelf = OrderedDict()
        shelf: OrderedDict[tuple[Path, bytes], _Held] = self._own.shelf
        return shelf


def _is_current(held: _Held, folder: Path) -> bool:
    if held.opened.missing:
        return False
    try:
        held.opened.refresh()
        return held.stamp == _stamp(folder, held.opened.catalogue)
    except Exception:  # whatever it is: who opens it anew is told what is wrong, if it still is
        return False


def _stamp(folder: Path, catalogue: Catalogue) -> tuple[object, ...]:
    """What must be the same for an open index to answer: the file, the models of its tiers."""
    file = (folder / layout.CATALOGUE).stat()
    models = (catalogue.fact("full"), catalogue.fact("static"))
    dims = catalogue.model_dims()
    return file.st_dev, file.st_ino, catalogue.identity, *((m, dims.get(m)) for m in models)
