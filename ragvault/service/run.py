"""Run: a watcher from its start to its end. The loop, the socket and the record, put together.

    with Place       there is one watcher, and it is this one
      with Server    searches are answered, by the function that was given
        Watch.run    until SIGTERM or SIGINT

A second signal ends at once; nothing is lost by that either.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from ragvault.models.load import ModelPool
from ragvault.service.kept import Kept
from ragvault.service.logs import Log, unexpected
from ragvault.service.openings import Declined, Openings
from ragvault.service.pending import Pending
from ragvault.service.running import Place
from ragvault.service.server import Server
from ragvault.service.watch import Watch
from ragvault.vault import Vault

# What was typed, where, how to open an index and how to count the files that wait, to what is to
# be printed; None: not by us.
Answering = Callable[[list[str], Mapping[str, Any], Openings, Pending], Mapping[str, Any] | None]


def run(vaults: Sequence[Vault], answering: Answering, log: Log) -> None:
    """Watch until a signal comes. Raises WatcherRunning when another one does so already."""
    kit = ModelPool()
    openings = Openings(kit)
    with Place() as place, ExitStack() as stack:
        kept = [Kept(vault, log, kit, lambda: watch.wake()) for vault in vaults]
        pending = Pending(kept)
        server = Server(
            place.folder,
            answer=partial(_answered, answering, openings, pending),
            idle=openings.tidy,
            aside=lambda root: watch.aside(root),
            status=lambda: _status(watch, server),
            failed=lambda error: log.info(unexpected(error)),
            threads=max(vault.settings.config.watch.threads for vault in vaults),
        )
        watch = Watch(kept, busy=lambda: server.busy)
        stack.enter_context(_ended_by_signals(watch))
        stack.enter_context(server)
        place.tell([vault.root for vault in vaults], server.address, server.token)
        log.info(f"watching {', '.join(vault.name for vault in vaults)} (pid {os.getpid()})")
        watch.run()
        log.info("stopped")


def _answered(
    answering: Answering,
    openings: Openings,
    pending: Pending,
    args: list[str],
    around: Mapping[str, Any],
) -> Mapping[str, Any] | None:
    try:
        return answering(args, around, openings, pending)
    except Declined:
        return None


def _status(watch: Watch, server: Server) -> dict[str, Any]:
    """How each vault is, in plain values."""
    return {
        "answered": server.answered,
        "vaults": [
            {
                "name": each.vault.name,
                "root": str(each.root),
                "events": "polling" if each.polling else "native",
                "why": each.polling,
                "away": each.away,
                "waiting": each.batch.waiting or each.unfinished or watch.is_writing(each),
                "indexed": each.indexed or None,
                "paused": bool(each.paused),
            }
            for each in watch.vaults
        ],
        "now": time.time(),
    }


@contextmanager
def _ended_by_signals(watch: Watch) -> Iterator[None]:
    """The first signal ends it in order, the second at once."""
    asked = False

    def end(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        watch.stop()

    names = ("SIGTERM", "SIGINT", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = [(number, signal.signal(number, end)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
