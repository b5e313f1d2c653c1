"""The watcher: keeps several vaults up to date in one loop, and answers searches meanwhile.

    with WatcherLock     there is one watcher, and it is this one
      with Server        searches are answered, by the function that was passed in
        Watcher.run      until SIGTERM or SIGINT, or until a client asks it to stop:
                           1  update vaults whose changes are due
                           2  otherwise finish one vault, until something changes
                           3  otherwise compact one that has been quiet for a few seconds
                           4  otherwise sleep, and check every vault once a second

Only the loop's thread writes. `stop` ends the loop and `pause` lets another process write; both
take effect within one slice of work, and what was finished is kept. A second signal ends the
process at once, and nothing is lost by that either.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ragvault.models.load import ModelPool
from ragvault.service.log import WatchLog, describe_unexpected
from ragvault.service.process import WatcherLock
from ragvault.service.server import ResidentIndexes, SearchDeclined, Server
from ragvault.service.vault_watcher import Interrupted, PendingCounter, VaultWatcher
from ragvault.vault import Vault

CHECK_SECONDS = 1.0  # between two checks for what no event reports
YIELD_SECONDS = 0.5  # that embedding waits for searches, at most, before each slice

# Arguments and surroundings of a search, how to open an index, and how to count pending files, to
# what is printed; None: the client answers by itself.
AnswerSearch = Callable[
    [list[str], Mapping[str, Any], ResidentIndexes, PendingCounter], Mapping[str, Any] | None
]


def run_watcher(vaults: Sequence[Vault], answer_search: AnswerSearch, log: WatchLog) -> None:
    """Watch until a signal arrives. Raises WatcherRunning if another watcher runs."""
    kit = ModelPool()
    indexes = ResidentIndexes(kit)
    with WatcherLock() as lock, ExitStack() as stack:
        vault_watchers = [VaultWatcher(vault, log, kit, lambda: watcher.wake()) for vault in vaults]
        pending = PendingCounter(vault_watchers)

        def answer(args: list[str], around: Mapping[str, Any]) -> Mapping[str, Any] | None:
            try:
                return answer_search(args, around, indexes, pending)
            except SearchDeclined:
                return None

        server = Server(
            lock.folder,
            answer=answer,
            idle=indexes.close_outdated,
            pause=lambda root: watcher.pause(root),
            status=lambda: _status(watcher, server),
            stop=lambda: watcher.stop(),
            failed=lambda error: log.info(describe_unexpected(error)),
            threads=max(vault.settings.config.watch.threads for vault in vaults),
        )
        watcher = Watcher(vault_watchers, busy=lambda: server.busy)
        stack.enter_context(_stopped_by_signals(watcher))
        stack.enter_context(server)
        lock.write_record([vault.root for vault in vaults], server.address, server.token)
        log.info(f"watching {', '.join(vault.name for vault in vaults)} (pid {os.getpid()})")
        watcher.run()
        log.info("stopped")


def _status(watcher: Watcher, server: Server) -> dict[str, Any]:
    """The state of each vault, for `ragvault watch --status`."""
    return {
        "answered": server.answered,
        "vaults": [
            {
                "name": each.vault.name,
                "root": str(each.root),
                "events": "polling" if each.polling_reason else "native",
                "why": each.polling_reason,
                "away": each.unavailable,
                "waiting": each.batch.waiting or each.unfinished or watcher.is_writing(each),
                "indexed": each.last_change or None,
                "paused": bool(each.paused),
                "backlog": each.backlog_waits,
            }
            for each in watcher.vaults
        ],
        "now": time.time(),
    }


@contextmanager
def _stopped_by_signals(watcher: Watcher) -> Iterator[None]:
    """The first signal stops the watcher in order, the second ends the process at once."""
    is_stopping = False

    def handle(number: int, frame: object) -> None:
        nonlocal is_stopping
        if is_stopping:
            raise KeyboardInterrupt
        is_stopping = True
        watcher.stop()

    names = ("SIGTERM", "SIGINT", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = [(number, signal.signal(number, handle)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


class Watcher:
    """The loop over all vaults. While `busy` returns True, embedding gives way to searches."""

    def __init__(
        self, vaults: Sequence[VaultWatcher], busy: Callable[[], bool] = lambda: False
    ) -> None:
        self.vaults = vaults
        self._busy = busy
        self._condition = threading.Condition()
        self._stopping = False
        self._writing: VaultWatcher | None = None

    def run(self) -> None:
        """Run until `stop` is called."""
        for vault in self.vaults:
            vault.listen()
        try:
            while not self._stopping:
                self._step()
        finally:
            for vault in self.vaults:
                vault.stop_listening()

    def stop(self) -> None:
        """End soon. A signal handler may call it: the loop's thread can take its lock twice."""
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        """There may be work."""
        with self._condition:
            self._condition.notify_all()

    def is_writing(self, vault: VaultWatcher) -> bool:
        """Whether the index of this vault is being written."""
        return self._writing is vault

    @contextmanager
    def pause(self, root: Path) -> Iterator[None]:
        """Let another process write this vault's index; waits until the loop is not writing it.

        Not for the loop's own thread.
        """
        vault = next((each for each in self.vaults if each.root == root), None)
        if vault is None:
            yield
            return
        with self._condition:
            vault.paused += 1
            while self._writing is vault:
                self._condition.wait(0.1)
        try:
            yield
        finally:
            with self._condition:
                vault.paused -= 1
            vault.add_change(at_once=True)

    def _step(self) -> None:
        for vault in self.vaults:
            vault.check()
        now = time.monotonic()
        due = [vault for vault in self.vaults if vault.due(now) <= 0]
        try:
            if due:
                for vault in due:
                    self._write(vault, vault.update, self._must_interrupt)
                return
            for vault in self.vaults:
                if vault.can_finish:
                    self._write(vault, vault.finish, self._should_give_way)
                    return
            for vault in self.vaults:
                if vault.can_tidy:
                    self._write(vault, vault.tidy, self._should_give_way)
                    return
        except Interrupted:
            return
        self._sleep()

    def _write(
        self,
        vault: VaultWatcher,
        work: Callable[[Callable[[], bool]], None],
        interrupt: Callable[[VaultWatcher], bool],
    ) -> None:
        with self._condition:
            if vault.paused:
                return
            self._writing = vault
        try:
            work(lambda: interrupt(vault))
        finally:
            with self._condition:
                self._writing = None
                self._condition.notify_all()

    def _must_interrupt(self, vault: VaultWatcher) -> bool:
        return self._stopping or bool(vault.paused)

    def _should_give_way(self, vault: VaultWatcher) -> bool:
        """Also waits for searches, and gives way to updates that are due in any vault.

        Not to updates that are only pending: an unavailable vault may stay so for days.
        """
        end = time.monotonic() + YIELD_SECONDS
        while self._busy() and time.monotonic() < end and not self._stopping:
            time.sleep(0.005)
        now = time.monotonic()
        return self._must_interrupt(vault) or any(each.due(now) <= 0 for each in self.vaults)

    def _sleep(self) -> None:
        with self._condition:
            now = time.monotonic()
            soonest = min((vault.due(now) for vault in self.vaults), default=CHECK_SECONDS)
            if soonest > 0 and not self._stopping:
                self._condition.wait(min(soonest, CHECK_SECONDS))
