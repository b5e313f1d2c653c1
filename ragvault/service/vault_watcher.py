"""One vault kept up to date: it listens for changes, notices when its folder is gone, and indexes.

    listen          native events, or polling with the reason why
    check           notice what no event reports: a folder that is gone or back, lost events
    update          make all changes searchable: words and static vectors
    finish          compute communities and full vectors; can be interrupted at any time. Many
                    missing vectors, the backlog, wait until the machine is idle
    tidy            compact index files, once nothing has changed for a few seconds

The caller decides when, in one thread. Nothing here knows the other vaults or the socket.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ragvault.config.settings import Walk
from ragvault.corpus import LocalCorpus
from ragvault.errors import ConfigError, IndexLocked, IndexMissing, RagvaultError
from ragvault.models.load import ModelPool
from ragvault.notes.walk import IncrementalWalk, Walked
from ragvault.ports import NoProgress, Progress
from ragvault.service.events import NativeEvents, NoNativeEvents, PathFilter, Poller
from ragvault.service.idle import Machine
from ragvault.service.log import describe_unexpected
from ragvault.types import Tier
from ragvault.update.freshness import folder_error, is_empty, recipe, waiting
from ragvault.update.graph import REGROUP
from ragvault.update.notes import Report
from ragvault.vault import Vault

RETRY_SOON = 1.0  # seconds until the next try while another process writes, or settings are edited
RETRY_LATER = 30.0  # seconds until the next try after any other error
EMBED_SLICE = 8  # texts: about 0.2 s, the longest that a search or a change waits
TIDY_SECONDS = 3.0  # without a change, after which compaction does not hold up an edit
BACKLOG = 500  # passages without a full vector, half a minute of work: fewer do not wait
FEW_NOTES = 20  # changed at once: too few to become a backlog
DRAIN_SECONDS = 0.05  # to wait for events on their way; walking a small vault takes as long


class Interrupted(Exception):
    """Work ended because something more urgent waits; what was finished is kept."""


class ChangeBatch:
    """Collects changes, so that many of them become one update. Safe for threads.

    An editor writes a file twice for one save, a sync tool hundreds, a checkout thousands. An
    update is due when nothing has changed for `debounce` seconds, or after `patience` seconds of
    steady changes, so that one busy file does not delay the others. The caller passes the time.
    """

    def __init__(self, debounce: float, patience: float) -> None:
        self.debounce, self.patience = debounce, patience
        self._first: float | None = None
        self._last = 0.0
        self._lock = threading.Lock()

    def add(self, now: float, *, at_once: bool = False) -> None:
        """Something has changed; `at_once` if there is no need to wait for more."""
        with self._lock:
            self._last = now - self.debounce if at_once else now
            if self._first is None:
                self._first = now

    def due(self, now: float) -> float:
        """Seconds until an update should begin: 0 is now, infinity is never."""
        with self._lock:
            if self._first is None:
                return math.inf
            quiet = self._last + self.debounce
            return max(0.0, min(quiet, self._first + self.patience) - now)

    def take(self) -> None:
        """An update begins: later changes belong to the next batch."""
        with self._lock:
            self._first = None

    @property
    def waiting(self) -> bool:
        return self._first is not None


class VaultWatcher:
    """One watched vault. Calls `wake`, from any thread, when there may be work."""

    def __init__(
        self,
        vault: Vault,
        progress: Progress,
        kit: ModelPool,
        wake: Callable[[], None] = lambda: None,
        machine: Machine | None = None,
    ) -> None:
        self._machine = machine or Machine()
        self.vault, self._progress, self._kit, self._wake = vault, progress, kit, wake
        settings = vault.settings.config.watch
        self.batch = ChangeBatch(settings.debounce, settings.patience)
        self.unfinished = False  # communities or full vectors are missing
        self.has_backlog: bool | None = None  # many full vectors are missing; None: not known yet
        self.untidy = False  # compaction is due
        self.unavailable = ""  # why the vault cannot be read now
        self.polling_reason = ""  # why there are no native events
        self.last_change = 0.0  # when the last change was indexed, in seconds since 1970
        self.paused = 0  # how many other processes want to write this index now
        self.runs = 0  # of indexing; counted at the beginning and at the end of each
        self._events: NativeEvents | None = None
        self._rewalk = IncrementalWalk(vault.root, vault.settings.config.walk)
        self._unheard: frozenset[str] = frozenset()  # folders for which listening again was tried
        self._folder_id: tuple[int, int] | None = None
        self._retry_at = 0.0
        self._next_poll = 0.0
        self._last_report = ""
        self._last_wait = ""
        self._warned: set[str] = set()
        self._updated_at = 0.0

    @property
    def root(self) -> Path:
        return self.vault.root

    # --- listening ---

    def listen(self) -> None:
        """Listen for changes from now on, and update what changed before."""
        self.stop_listening()
        settings = self.vault.settings.config
        self._poller = Poller(self.root, settings.walk)
        self._rewalk = IncrementalWalk(self.root, settings.walk)
        reason = "watch.events is polling" if settings.watch.events == "polling" else ""
        try:
            if not reason:
                paths = PathFilter(self.root, settings.walk)
                events = NativeEvents(self.root, paths, self.add_change, self._rewalk.mark_changed)
                self._rewalk.watched, self._events = events.watched_folders, events
        except NoNativeEvents as error:
            reason = str(error)
        if reason and reason != self.polling_reason:
            self._report(f"polling for changes: {reason}")
        self.polling_reason = reason
        self._folder_id = _folder_id(self.root)
        self._retry_at = 0.0  # what failed before may work now
        self._next_poll = time.monotonic() + self._poll_interval()
        self.add_change(at_once=True)

    def stop_listening(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    def add_change(self, *, at_once: bool = False) -> None:
        """Something in the vault may have changed."""
        self.batch.add(time.monotonic(), at_once=at_once)
        self._wake()

    def _poll_interval(self) -> float:
        settings = self.vault.settings.config.watch
        return self._poller.pause(settings.polling if self.polling_reason else settings.reconcile)

    # --- what no event reports ---

    def check(self) -> None:
        """Called about once a second, and cheap. What fails is tried again the next time."""
        try:
            self._check()
        except Exception as error:
            self._report_once(describe_unexpected(error))

    def _check(self) -> None:
        self._report_waiting()
        before, self.unavailable = self.unavailable, _why_unavailable(self.root)
        if self.unavailable:
            if not before:
                self._report(f"{self.unavailable}; the index stays as it is")
                self.stop_listening()
            return
        if before:
            self._report("the vault is back")
            self.listen()
        elif _folder_id(self.root) != self._folder_id:
            self.listen()  # another folder of that name: a disk was mounted, or a copy restored
        elif self._events is not None and self._events.failure:
            self._report(self._events.failure)
            self.listen()
        elif time.monotonic() >= self._next_poll:
            if self._poller.has_changed():
                self._rewalk.mark_changed("")
                self.add_change(at_once=True)
            self._next_poll = time.monotonic() + self._poll_interval()

    def _report_waiting(self) -> None:
        before, self._last_wait = self._last_wait, self.backlog_waits
        if self._last_wait and not before:
            self._report(f"full vectors wait until the machine is idle ({self._last_wait})")
        elif before and self.unfinished and not self._last_wait:
            self._report("the machine is idle; embedding goes on")

    # --- indexing ---

    def due(self, now: float) -> float:
        """Seconds until `update` should be called; infinity if there is nothing to do."""
        if self.unavailable or self.paused:
            return math.inf
        return max(self.batch.due(now), self._retry_at - now)

    @property
    def can_finish(self) -> bool:
        blocked = self.unavailable or self.paused or time.monotonic() < self._retry_at
        return self.unfinished and not blocked and not self.backlog_waits

    @property
    def backlog_waits(self) -> str:
        """Why full vectors of many notes wait, by `watch.backlog`; empty if they do not."""
        if not (self.unfinished and self.has_backlog):
            return ""
        return self._machine.busy() if self._backlog_setting == "idle" else ""

    @property
    def _backlog_setting(self) -> str:
        return self.vault.settings.config.watch.backlog

    def _tier(self) -> Tier:
        """How far to index now at most: full vectors of a backlog may have to wait."""
        waits = self.backlog_waits or (self.has_backlog and self._backlog_setting == "off")
        return "static" if waits else "full"

    def _count_unembedded(self) -> int:
        with self.vault.catalogue() as catalogue:
            return len(catalogue.unembedded(catalogue.tier_model("full")))

    @property
    def can_tidy(self) -> bool:
        working = self.unfinished and not self.backlog_waits
        blocked = self.unavailable or self.paused or working or self.batch.waiting
        return self.untidy and not blocked and time.monotonic() - self._updated_at >= TIDY_SECONDS

    def update(self, interrupt: Callable[[], bool]) -> None:
        """Index what changed. Raises Interrupted when `interrupt` returns True."""
        self.batch.take()
        try:
            self._reload_settings()
            if self._is_emptied():
                return
            report = self._index("static", interrupt, regroup=math.inf, postpone_compact=True)
            lacks_vectors = self.vault.tier == "full" and report.tier != "full"
            many = report.added + report.changed + report.recut > FEW_NOTES
            if self.has_backlog is None or many or not lacks_vectors:
                self.has_backlog = lacks_vectors and self._count_unembedded() > BACKLOG
            if self.has_backlog and self._backlog_setting == "off":
                lacks_vectors = False
            self.unfinished = lacks_vectors or report.communities_due
            self.untidy, self._updated_at = report.compact_due, time.monotonic()
            if report.anything:
                self.last_change = time.time()
                self._report(f"{_counts(report)}, {report.seconds:.1f} s")
        except Interrupted:
            self.add_change(at_once=True)
            raise
        except Exception as error:
            self._retry(error)
            self.add_change(at_once=True)

    def finish(self, interrupt: Callable[[], bool]) -> None:
        """Continue with communities and full vectors, then compact.

        Raises Interrupted as `update` does.
        """
        try:
            if self._is_emptied():
                self.unfinished = False  # until the vault is back
                return
            must_stop = lambda: interrupt() or bool(self.backlog_waits)  # noqa: E731
            report = self._index(self._tier(), must_stop, regroup=REGROUP)
            self.unfinished = False
            if report.tier == "full":
                self.has_backlog = False
            if report.tier == "full" and report.embedded:
                self._report("all passages are embedded")
            self._warn_once(report)
        except Interrupted:
            raise
        except Exception as error:
            self._retry(error)

    def tidy(self, interrupt: Callable[[], bool]) -> None:
        """Compact index files if much was removed. Raises Interrupted as `update` does."""
        self.untidy = False  # an error is not worth a second try: the next update sets it again
        try:
            if self._is_emptied():
                return
            report = self._index(self._tier(), interrupt, regroup=math.inf, postpone_compact=False)
            self._warn_once(report)
        except Interrupted:
            self.untidy = True
            raise
        except Exception as error:
            self._retry(error)

    def _warn_once(self, report: Report) -> None:
        """Each warning once, not after every edit: a library stays missing."""
        for warning in report.warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self._report(warning)

    def _index(
        self,
        at_most: Tier,
        interrupt: Callable[[], bool],
        regroup: float,
        *,
        postpone_compact: bool = True,
    ) -> Report:
        progress = _InterruptingProgress(self._progress, interrupt)
        engines = self.vault.engines(progress=progress, kit=self._kit, slab=EMBED_SLICE)
        self.runs += 1
        try:
            report = self.vault.index(
                at_most=at_most,
                engines=engines,
                look=self._walk,
                regroup=regroup,
                postpone_compact=postpone_compact,
            )
        finally:
            self.runs += 1
        self._last_report = ""
        return report

    def _reload_settings(self) -> None:
        """Settings may have changed, and with them what to listen to."""
        before = self.vault.settings.config
        self.vault = Vault.open(self.root)
        now = self.vault.settings.config
        self.batch.debounce, self.batch.patience = now.watch.debounce, now.watch.patience
        rules_changed = self._events is not None and self._events.rules_changed
        if rules_changed or (now.walk, now.watch) != (before.walk, before.watch):
            self.listen()
            self.batch.take()

    def _is_emptied(self) -> bool:
        """Whether the folder is empty though notes are indexed: most likely an unmounted disk.

        A user who has deleted every note runs `ragvault index --allow-empty`.
        """
        if not is_empty(self.root):
            return False
        try:
            with self.vault.catalogue() as catalogue:
                notes = catalogue.counts().notes
        except IndexMissing:
            return False
        if notes:
            self._report_once(
                f"the folder is empty but {notes:,} notes are indexed; nothing is removed "
                "(if you deleted them: ragvault index --allow-empty)"
            )
        return bool(notes)

    def _retry(self, error: Exception) -> None:
        """Try again later, whatever the error. The same error is reported once."""
        soon = isinstance(error, IndexLocked | ConfigError)
        self._retry_at = time.monotonic() + (RETRY_SOON if soon else RETRY_LATER)
        if isinstance(error, RagvaultError):
            self._report_once(f"{error} (fix: {error.fix})")
        else:
            self._report_once(describe_unexpected(error))

    def _report(self, line: str) -> None:
        self._progress.info(f"{self.vault.name}: {line}")

    def _report_once(self, line: str) -> None:
        if line != self._last_report:
            self._last_report = line
            self._report(line)

    # --- walking only what events named ---

    def current_files(self, settings: Walk) -> Walked | None:
        """What a walk with these settings would return now; None if events cannot tell.

        Safe for threads. Raises as a walk does.
        """
        events, rewalk = self._events, self._rewalk
        if events is None or rewalk.settings != settings or not events.is_drained(DRAIN_SECONDS):
            return None
        if events.rules_changed:
            return None
        walked = rewalk.walk()
        self._check_unheard_folders(events, rewalk)
        return walked

    def _walk(self) -> Walked:
        """The vault as it is. Where no event is lost, only the places they named are walked."""
        events, rewalk = self._events, self._rewalk
        if events is None or not events.is_lossless:
            rewalk.mark_changed("")
        walked = rewalk.walk()
        if events is not None:
            self._check_unheard_folders(events, rewalk)
        return walked

    def _check_unheard_folders(self, events: NativeEvents, rewalk: IncrementalWalk) -> None:
        """Listen again if a folder with notes is not listened to; once for the same folders.

        This happens when Obsidian's settings change what is ignored: nobody listens to them.
        """
        unheard = rewalk.unwatched() if events.is_drained(0) else None
        if unheard is None:
            return
        before, self._unheard = self._unheard, unheard
        if unheard - before:
            events.rules_changed = True
            self.add_change(at_once=True)


class PendingCounter:
    """Counts the files that wait to be indexed, from events instead of a walk. Safe for threads.

    The number is the one that a walk would give at that moment: it waits for events on their way,
    looks at what they name, and keeps the count until the files or the catalogue change. A vault
    whose events may be lost is walked, and so is one that is not watched: there the search takes
    in a few changed files, which in a watched vault is left to the watcher.
    """

    def __init__(self, vaults: Sequence[VaultWatcher]) -> None:
        self._watchers = {each.root: each for each in vaults}
        self._counts: dict[Path, _PendingCount] = {}

    def __call__(self, vault: Vault, index: LocalCorpus) -> int:
        watcher = self._watchers.get(vault.root)
        # Read before the walk: a run that ends meanwhile must make this count outdated.
        runs = watcher.runs if watcher else 0
        walked = watcher.current_files(index.config.walk) if watcher else None
        if watcher is None:
            return vault.take_in_changes(index)
        if walked is None:
            return sum(waiting(vault.root, index.catalogue, index.config))
        catalogue = index.catalogue
        state = (runs, catalogue.identity, catalogue.revision, recipe(index.config))
        last = self._counts.get(vault.root)
        if last is None or last.walked is not walked or last.state != state:
            files = sum(waiting(vault.root, catalogue, index.config, walked))
            last = self._counts[vault.root] = _PendingCount(walked, state, files)
        return last.files


class _PendingCount(NamedTuple):
    walked: Walked
    state: tuple[object, ...]  # of the index
    files: int


class _InterruptingProgress(NoProgress):
    """Receives the progress of an indexing run, and ends it when `interrupt` returns True."""

    def __init__(self, progress: Progress, interrupt: Callable[[], bool]) -> None:
        self._progress, self._interrupt = progress, interrupt

    def info(self, text: str) -> None:
        self._progress.info(text)

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        self.checkpoint()

    def download(self, done: int, total: int) -> None:
        self.checkpoint()

    def checkpoint(self) -> None:
        if self._interrupt():
            raise Interrupted


def _counts(report: Report) -> str:
    kinds = ("added", "changed", "moved", "removed", "recut")
    return ", ".join(f"{count} {kind}" for kind in kinds if (count := getattr(report, kind)))


def _why_unavailable(root: Path) -> str:
    """Why the vault cannot be read now; empty if it can."""
    error = folder_error(root)
    if error is None:
        return ""
    if isinstance(error, FileNotFoundError):
        return "the vault's folder is gone"
    return f"the vault cannot be read ({error.strerror})"


def _folder_id(root: Path) -> tuple[int, int] | None:
    """Differs for another folder of the same name: a mounted disk, or a restored copy."""
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
