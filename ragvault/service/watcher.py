"""The watcher: keeps several vaults up to date in one loop, and answers searches meanwhile.

    with WatcherLock     there is one watcher, and it is this one
      with Server        searches are answered, by the function that was passed in
        Watcher.run      until SIGTERM or SIGINT, or until a client asks it to stop:
                           1  update vaults whose changes are due
                           2  otherwise finish one vault, until something changes
                           3  otherwise sleep, and check every vault once a second

A resident process is a watcher without vaults, which ends when nobody has searched for a while.
Only the loop's thread writes. `stop` ends the loop and `pause` lets another process write; both
take effect within one slice of work, and what was finished is kept. A second signal ends the
process at once, and nothing is lost by that either.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ragvault.config import folders
from ragvault.corpus import LocalCorpus
from ragvault.models.load import ModelPool
from ragvault.ports import Interrupted, Progress
from ragvault.service.process import WatcherError, WatcherLock, describe_unexpected
from ragvault.service.protocol import closed_after_error
from ragvault.service.server import Server
from ragvault.store.files import make_file, make_folder
from ragvault.vault import Vault

if TYPE_CHECKING:
    from ragvault.service.vault_watcher import VaultWatcher

CHECK_SECONDS = 1.0  # between two checks for what no event reports
YIELD_SECONDS = 0.5  # that embedding waits for searches, at most, before each slice


# What a client asks, the open indexes and the last results, to the message that the client gets;
# None: it answers by itself.
AnswerSearch = Callable[
    [Mapping[str, Any], "ResidentIndexes", "LastResults"], Mapping[str, Any] | None
]


def run_watcher(
    vaults: Sequence[Vault],
    answer_search: AnswerSearch,
    log: WatchLog,
    idle: float | None = None,
) -> None:
    """Watch until a signal arrives, or until no search has come for `idle` seconds.

    With `idle` it is a resident process. Raises WatcherError if another watcher runs.
    """
    kit = ModelPool()
    with WatcherLock(resident=idle is not None) as lock, ExitStack() as stack:
        vault_watchers: list[VaultWatcher] = []
        if vaults:  # a resident process starts faster without what keeps vaults up to date
            from ragvault.service.vault_watcher import VaultWatcher

            vault_watchers = [
                VaultWatcher(each, log, kit, lambda: watcher.wake()) for each in vaults
            ]
        indexes, last = ResidentIndexes(kit), LastResults()

        def seconds_left() -> float:
            if lock.is_lost():
                return 0.0
            return math.inf if idle is None else idle - server.idle_seconds

        server = Server(
            lock.folder,
            answer=lambda request: answer_search(request, indexes, last),
            idle=indexes.close_outdated,
            pause=lambda root: watcher.pause(root),
            status=lambda: _status(watcher, server),
            stop=lambda: watcher.stop(),
            failed=lambda error: log.info(describe_unexpected(error)),
            last_results=last.of,
        )
        watcher = Watcher(
            vault_watchers,
            busy=lambda: server.busy,
            seconds_left=seconds_left,
        )
        stack.enter_context(_stopped_by_signals(watcher))
        stack.enter_context(server)
        lock.write_record([vault.root for vault in vaults], server.address, server.token)
        doing = f"watching {', '.join(vault.name for vault in vaults)}" if vaults else "resident"
        log.info(f"{doing} (pid {os.getpid()})")
        watcher.run()
        if lock.is_lost():
            raise WatcherError(
                f"the folder {lock.folder} was removed, so the watcher has ended",
                fix="start it again: ragvault watch",
            )
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

    It ends by itself when `seconds_left` returns 0 or less.
    """

    def __init__(
        self,
        vaults: Sequence[VaultWatcher],
        busy: Callable[[], bool] = lambda: False,
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self.vaults = vaults
        self.seconds_left = seconds_left
        self._busy = busy
        self._condition = threading.Condition()
        self._stopping = False
        self._writing: VaultWatcher | None = None

    def run(self) -> None:
        """Run until `stop` is called."""
        try:
            while not self._stopping and self.seconds_left() > 0:
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
            vault.add_everything()

    def _step(self) -> None:
        if not self.vaults:
            self._sleep()
            return
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
        return self._stopping or bool(vault.paused) or self.seconds_left() <= 0

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


# --- what stays in memory between two searches ---


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
            resident[0].close()
            resident = None
        if resident is None:
            resident = self._open(vault)
        with closed_after_error(resident[0]):  # after any, the next search starts afresh
            yield resident[0]
        indexes[key] = resident
        while len(indexes) > OPEN_INDEXES:
            indexes.popitem(last=False)[1][0].close()

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
                resident[0].close()

    def _has_models(self, resident: _Resident) -> bool:
        return self._kit.keeps(resident[0].engines.config.models)

    def _open(self, vault: Vault) -> _Resident:
        opened = vault.corpus(kit=self._kit)
        with closed_after_error(opened):  # it may be deleted this very moment
            return opened, opened.stamp()

    def _of_this_thread(self) -> OrderedDict[tuple[Path, bytes], _Resident]:
        if not hasattr(self._local, "indexes"):
            self._local.indexes = OrderedDict()
        indexes: OrderedDict[tuple[Path, bytes], _Resident] = self._local.indexes
        return indexes


# An open index, and its stamp when it was opened.
_Resident = tuple[LocalCorpus, tuple[object, ...]]


def _is_current(resident: _Resident) -> bool:
    opened, stamp = resident
    if opened.missing:
        return False
    try:
        opened.refresh()
        return stamp == opened.stamp()
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


# --- the log ---


LOG_FILE = "watch.log"
LOG_BYTES = 1_000_000  # of one file
OLDER_FILES = 3  # kept beside the current one


def watch_log_path(environ: Mapping[str, str] | None = None) -> Path:
    """Where the watcher writes its log."""
    return folders.cache_dir(environ) / LOG_FILE


class WatchLog(Progress):
    """Writes messages to the log, and with `echo` also to stderr."""

    def __init__(self, path: Path, *, echo: bool) -> None:
        make_folder(path.parent)
        make_file(path)
        self._handler = _PrivateHandler(
            path, maxBytes=LOG_BYTES, backupCount=OLDER_FILES, encoding="utf-8"
        )
        self._handler.setFormatter(
            logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S")
        )
        self._echo = echo

    def info(self, text: str) -> None:
        plain = "".join(char if char.isprintable() else "?" for char in text)
        self._handler.handle(logging.makeLogRecord({"msg": plain}))
        if self._echo and sys.stderr:
            try:
                sys.stderr.write(f"{plain}\n")
                sys.stderr.flush()
            except OSError:
                self._echo = False  # nobody reads stderr any more; the log goes on

    def close(self) -> None:
        """Close the log."""
        self._handler.close()


class _PrivateHandler(RotatingFileHandler):
    """Gives the file that a rotation starts the same private mode."""

    def doRollover(self) -> None:  # noqa: N802 - the name is logging's
        super().doRollover()
        make_file(Path(self.baseFilename))
