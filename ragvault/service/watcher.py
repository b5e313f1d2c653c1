"""The watcher: keeps several vaults up to date in one loop, and answers searches meanwhile.

    with WatcherLock     there is one watcher, and it is this one
      with Server        searches are answered, by the function that was passed in
        Watcher.run      until SIGTERM or SIGINT, or until a client asks it to stop:
                           1  update vaults whose changes are due
                           2  otherwise finish one vault, until something changes
                           3  otherwise compact one that has been quiet for a few seconds
                           4  otherwise sleep, and check every vault once a second

A resident process is a watcher without vaults, which ends when nobody has searched for a while.
Only the loop's thread writes. `stop` ends the loop and `pause` lets another process write; both
take effect within one slice of work, and what was finished is kept. A second signal ends the
process at once, and nothing is lost by that either.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragvault.models.load import ModelPool
from ragvault.service.log import WatchLog, describe_unexpected
from ragvault.service.process import WatcherLock
from ragvault.service.resident import LastResults, ResidentIndexes, SearchDeclined
from ragvault.service.server import Server
from ragvault.vault import Vault

if TYPE_CHECKING:
    from ragvault.answer.vaults import CountPending
    from ragvault.corpus import LocalCorpus
    from ragvault.service.vault_watcher import VaultWatcher

CHECK_SECONDS = 1.0  # between two checks for what no event reports
YIELD_SECONDS = 0.5  # that embedding waits for searches, at most, before each slice


class SearchState(NamedTuple):
    """What a search finds in this process: open indexes, pending files, and the last results."""

    indexes: ResidentIndexes
    pending: CountPending[Vault, LocalCorpus]
    last: LastResults


# Arguments and surroundings of a search to what is printed; None: the client answers by itself.
AnswerSearch = Callable[[list[str], Mapping[str, Any], SearchState], Mapping[str, Any] | None]


def run_watcher(
    vaults: Sequence[Vault],
    answer_search: AnswerSearch,
    log: WatchLog,
    *,
    threads: int,
    idle: float | None = None,
) -> None:
    """Watch until a signal arrives, or until no search has come for `idle` seconds.

    With `idle` it is a resident process. Raises WatcherRunning if another watcher runs.
    """
    kit = ModelPool()
    with WatcherLock(resident=idle is not None) as lock, ExitStack() as stack:
        vault_watchers: list[VaultWatcher] = []
        pending: CountPending[Vault, LocalCorpus] = Vault.take_in_changes
        if vaults:  # a resident process starts faster without what keeps vaults up to date
            from ragvault.service.vault_watcher import PendingCounter, VaultWatcher

            vault_watchers = [
                VaultWatcher(each, log, kit, lambda: watcher.wake()) for each in vaults
            ]
            pending = PendingCounter(vault_watchers)
        state = SearchState(ResidentIndexes(kit, for_clients=True), pending, LastResults())

        def answer(args: list[str], around: Mapping[str, Any]) -> Mapping[str, Any] | None:
            try:
                return answer_search(args, around, state)
            except SearchDeclined:
                return None

        server = Server(
            lock.folder,
            answer=answer,
            idle=state.indexes.close_outdated,
            pause=lambda root: watcher.pause(root),
            status=lambda: _status(watcher, server),
            stop=lambda: watcher.stop(),
            failed=lambda error: log.info(describe_unexpected(error)),
            last_results=state.last.of,
            threads=threads,
        )
        watcher = Watcher(
            vault_watchers,
            busy=lambda: server.busy,
            seconds_left=lambda: math.inf if idle is None else idle - server.idle_seconds,
            is_recorded=lock.is_recorded,
        )
        stack.enter_context(_stopped_by_signals(watcher))
        stack.enter_context(server)
        lock.write_record([vault.root for vault in vaults], server.address, server.token)
        doing = f"watching {', '.join(vault.name for vault in vaults)}" if vaults else "resident"
        log.info(f"{doing} (pid {os.getpid()})")
        watcher.run()
        log.info("stopped" if lock.is_recorded() else "stopped: its folder was deleted")


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
        "ends_in": None if math.isinf(left := watcher.seconds_left()) else max(0.0, left),
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
    """The loop over all vaults. While `busy` returns True, embedding gives way to searches.

    It ends by itself when `seconds_left` returns 0 or less, and when `is_recorded` returns False:
    nobody could find or stop it, and it would write an index again that was deleted.
    """

    def __init__(
        self,
        vaults: Sequence[VaultWatcher],
        busy: Callable[[], bool] = lambda: False,
        seconds_left: Callable[[], float] = lambda: math.inf,
        is_recorded: Callable[[], bool] = lambda: True,
    ) -> None:
        self.vaults = vaults
        self.seconds_left = seconds_left
        self._is_recorded = is_recorded
        self._busy = busy
        self._condition = threading.Condition()
        self._stopping = False
        self._writing: VaultWatcher | None = None

    def run(self) -> None:
        """Run until `stop` is called."""
        for vault in self.vaults:
            vault.listen()
        try:
            while not self._stopping and self.seconds_left() > 0 and self._is_recorded():
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
        if not self.vaults:
            self._sleep()
            return
        from ragvault.service.vault_watcher import Interrupted

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
            soonest = min((vault.due(now) for vault in self.vaults), default=math.inf)
            check = CHECK_SECONDS if self.vaults else math.inf
            pause = min(soonest, check, self.seconds_left())
            if pause > 0 and not self._stopping:
                self._condition.wait(None if math.isinf(pause) else pause)
