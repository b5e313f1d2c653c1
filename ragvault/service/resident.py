"""What stays in memory between two searches: open indexes, and the results of the last search.

    ResidentIndexes    indexes that stay open, with the models they share
    LastResults        what the last search of each terminal found, for `ragvault open N`

Nothing of this is ever written to disk.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ragvault.corpus import LocalCorpus
from ragvault.models.load import ModelPool
from ragvault.vault import Vault

OPEN_INDEXES = 4  # that each worker keeps: vaults, or settings of one vault
SESSIONS = 50  # terminals whose last results are remembered


class ResidentIndexes:
    """Keeps indexes open between searches. Call it with a vault, as a context manager.

    A LocalCorpus belongs to one thread and to one set of settings. Each thread keeps the few it
    used last, and reopens one whose index was rebuilt or gained a tier. The kit shares models
    between all of them; an index whose models it has dropped is closed, because it holds them.
    """

    def __init__(self, kit: ModelPool) -> None:
        self._kit = kit
        self._local = threading.local()

    @contextmanager
    def __call__(self, vault: Vault) -> Iterator[LocalCorpus]:
        self._kit.use(vault.settings.config.models)
        self._close(lambda resident: not self._has_models(resident))
        indexes = self._of_this_thread()
        key = (vault.folder, msgspec.json.encode(vault.settings.config))
        resident = indexes.pop(key, None)
        if resident is not None and not _is_current(resident):
            resident.opened.close()
            resident = None
        if resident is None:
            resident = self._open(vault)
        try:
            yield resident.opened
        except BaseException:
            resident.opened.close()  # after any error the next search starts afresh
            raise
        indexes[key] = resident
        while len(indexes) > OPEN_INDEXES:
            indexes.popitem(last=False)[1].opened.close()

    def close_outdated(self) -> None:
        """Bring this thread's indexes up to date, and close those whose files were deleted.

        An open file keeps its bytes on the disk after its deletion.
        """
        self._close(lambda resident: not (self._has_models(resident) and _is_current(resident)))

    def _close(self, unwanted: Callable[[_Resident], bool]) -> None:
        indexes = self._of_this_thread()
        for key, resident in list(indexes.items()):
            if unwanted(resident):
                del indexes[key]
                resident.opened.close()

    def _has_models(self, resident: _Resident) -> bool:
        return self._kit.keeps(resident.opened.engines.config.models)

    def _open(self, vault: Vault) -> _Resident:
        opened = vault.corpus(kit=self._kit)
        try:
            return _Resident(opened, opened.stamp())
        except BaseException:  # it was deleted this very moment
            opened.close()
            raise

    def _of_this_thread(self) -> OrderedDict[tuple[Path, bytes], _Resident]:
        if not hasattr(self._local, "indexes"):
            self._local.indexes = OrderedDict()
        indexes: OrderedDict[tuple[Path, bytes], _Resident] = self._local.indexes
        return indexes


class _Resident(NamedTuple):
    opened: LocalCorpus
    stamp: tuple[object, ...]


def _is_current(resident: _Resident) -> bool:
    if resident.opened.missing:
        return False
    try:
        resident.opened.refresh()
        return resident.stamp == resident.opened.stamp()
    except Exception:  # opening it again reports the error, if it is still there
        return False


class LastResults:
    """The results of the last search of each session: a terminal, an editor, an agent.

    Safe for threads. Only the sessions that searched last are remembered.
    """

    def __init__(self) -> None:
        self._of: OrderedDict[int, Sequence[Mapping[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, session: int, results: Sequence[Mapping[str, Any]]) -> None:
        with self._lock:
            self._of.pop(session, None)
            self._of[session] = results
            while len(self._of) > SESSIONS:
                self._of.popitem(last=False)

    def of(self, session: int) -> Sequence[Mapping[str, Any]] | None:
        """The results, best first; None if this session has not searched yet."""
        with self._lock:
            return self._of.get(session)
