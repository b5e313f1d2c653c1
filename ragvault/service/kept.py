"""Kept: one vault that is kept true. It listens, notices when its folder goes away, and indexes.

    listen     native events, or looks now and then, with the reason why
    tend       notice what events do not tell: a folder that is gone or back, events that were lost
    catch_up   everything that changed becomes searchable: words and rough vectors
    finish     the transformer's vectors, in slices that can be left at any moment

Whoever calls these decides when, in one thread. Nothing here knows the other vaults or the socket.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from ragvault.answer.freshness import is_empty
from ragvault.config import settings as config
from ragvault.errors import ConfigError, IndexLocked, IndexMissing, RagvaultError
from ragvault.ingest import Tier
from ragvault.models.kit import Kit
from ragvault.models.talk import Talk
from ragvault.notes.rewalk import Rewalk
from ragvault.notes.walk import Walked
from ragvault.presence import identity, why_away
from ragvault.service.batch import Batch
from ragvault.service.events import Native, Unheard
from ragvault.service.leaving import Leaving, Left
from ragvault.service.logs import unexpected
from ragvault.service.polled import Polled
from ragvault.service.sieve import Sieve
from ragvault.vault import Vault
from ragvault.write.notes import Report

LOCKED = 1.0  # seconds until another writer is asked again
SLAB = 8  # texts: a fifth of a second, after which a search or a change need not wait any more
FAILED = 30.0  # seconds until what could not be done is tried again
TOLD = 0.05  # seconds for events on their way; walking a small vault takes as long


class Kept:
    """One vault under watch. `wake` is called, from any thread, when there may be work."""

    def __init__(
        self, vault: Vault, talk: Talk, kit: Kit, wake: Callable[[], None] = lambda: None
    ) -> None:
        self.vault, self.talk, self._kit, self._wake = vault, talk, kit, wake
        settings = vault.settings.config.watch
        self.batch = Batch(settings.debounce, settings.patience)
        self.unfinished = False  # the best tier waits
        self.away = ""  # why nothing can be done now
        self.polling = ""  # why changes are looked for and not heard
        self.indexed = 0.0  # when the last change was taken in, in seconds since 1970
        self.paused = 0  # others who write this index now
        self._native: Native | None = None
        self._rewalk = Rewalk(vault.root, vault.settings.config.walk)
        self._unheard: frozenset[str] = frozenset()  # folders, as far as listening anew was tried
        self.runs = 0  # of indexing, each counted as it begins and as it ends
        self._identity: tuple[int, int] | None = None
        self._not_before = 0.0
        self._next_look = 0.0
        self._said = ""

    @property
    def root(self) -> Path:
        return self.vault.root

    # --- listening ---

    def listen(self) -> None:
        """Hear of changes from now on, and look at what changed before."""
        self.deafen()
        settings = self.vault.settings.config
        self._sieve = Sieve(self.root, settings.walk)
        self._polled = Polled(self.root, settings.walk)
        self._rewalk = Rewalk(self.root, settings.walk)
        reason = "watch.events is polling" if settings.watch.events == "polling" else ""
        try:
            if not reason:
                native = Native(self.root, self._sieve, self.changed, self._rewalk.tell)
                self._rewalk.heard, self._native = native.heard, native
        except Unheard as unheard:
            reason = str(unheard)
        if reason and reason != self.polling:
            self.talk.say(f"{self.vault.name}: changes are looked for, not heard: {reason}")
        self.polling = reason
        self._identity = identity(self.root)
        self._not_before = 0.0  # whatever failed before may be possible now
        self._next_look = time.monotonic() + self._interval()
        self.changed(at_once=True)

    def deafen(self) -> None:
        if self._native is not None:
            self._native.close()
            self._native = None

    def changed(self, *, at_once: bool = False) -> None:
        """Something in the vault may be another."""
        self.batch.add(time.monotonic(), at_once=at_once)
        self._wake()

    def _interval(self) -> float:
        settings = self.vault.settings.config.watch
        return self._polled.pause(settings.polling if self.polling else settings.reconcile)

    # --- what events do not tell ---

    def tend(self) -> None:
        """Called about once a second, and cheap. Whatever fails is tried again the next time."""
        try:
            self._tend()
        except Exception as error:
            self._say_once(f"{self.vault.name}: {unexpected(error)}")

    def _tend(self) -> None:
        was, self.away = self.away, why_away(self.root)
        if self.away:
            if not was:
                self.talk.say(f"{self.vault.name}: {self.away}; the index stays as it is")
                self.deafen()
            return
        if was:
            self.talk.say(f"{self.vault.name}: the vault is back")
            self.listen()
        elif identity(self.root) != self._identity:
            self.listen()  # another folder of the same name: a disk was mounted, or a copy restored
        elif self._native is not None and self._native.lost:
            self.talk.say(f"{self.vault.name}: {self._native.lost}")
            self.listen()
        elif time.monotonic() >= self._next_look:
            if self._polled.look():
                self._rewalk.tell("")
                self.changed(at_once=True)
            self._next_look = time.monotonic() + self._interval()

    # --- indexing ---

    def due(self, now: float) -> float:
        """Seconds until `catch_up` should be called; infinity while there is nothing to do."""
        if self.away or self.paused:
            return math.inf
        return max(self.batch.due(now), self._not_before - now)

    def catch_up(self, leave: Callable[[], bool]) -> None:
        """Take in what changed. Raises Left when `leave` says so."""
        self.batch.take()
        try:
            self._reopen()
            if self._is_emptied():
                return
            wanted = self.vault.settings.config.watch.tier
            report = self._index("keyword" if wanted == "keyword" else "static", leave)
            self.unfinished = wanted == "full" and report.tier != "full"
            if report.anything:
                self.indexed = time.time()
                self.talk.say(f"{self.vault.name}: {_counted(report)}, {report.seconds:.1f} s")
        except Left:
            self.changed(at_once=True)
            raise
        except Exception as error:
            self._put_off(error)
            self.changed(at_once=True)

    def finish(self, leave: Callable[[], bool]) -> None:
        """Go on with the transformer's vectors. Raises Left when `leave` says so."""
        try:
            if self._is_emptied():
                self.unfinished = False  # until the vault is back
                return
            report = self._index("full", leave)
            self.unfinished = False
            if report.tier == "full":
                self.talk.say(f"{self.vault.name}: every passage has its vector")
            for warning in report.warnings:
                self.talk.say(f"{self.vault.name}: {warning}")
        except Left:
            raise
        except Exception as error:
            self._put_off(error)

    @property
    def may_finish(self) -> bool:
        waits = self.away or self.paused or time.monotonic() < self._not_before
        return self.unfinished and not waits

    def _index(self, tier: Tier, leave: Callable[[], bool]) -> Report:
        leaving = Leaving(self.talk, leave)
        engines = self.vault.engines(talk=leaving, kit=self._kit, slab=SLAB)
        self.runs += 1
        try:
            report = self.vault.index(tier, tell=leaving.tell, engines=engines, look=self._walk)
        finally:
            self.runs += 1
        self._said = ""
        return report

    def seen(self, settings: config.Walk) -> Walked | None:
        """What a walk by these settings would find now; None where only a walk can tell.

        May be called by any thread. Raises as a walk does.
        """
        native, rewalk = self._native, self._rewalk
        if native is None or rewalk.settings != settings or not native.has_told_all(TOLD):
            return None
        if native.outdated:
            return None
        walked = rewalk.walk()
        self._mind_unheard(native, rewalk)
        return walked

    def _walk(self) -> Walked:
        """The vault as it is; only what was told of is looked at where all of it is told."""
        native, rewalk = self._native, self._rewalk
        if native is None or not native.misses_nothing:
            rewalk.tell("")
        walked = rewalk.walk()
        if native is not None:
            self._mind_unheard(native, rewalk)
        return walked

    def _mind_unheard(self, native: Native, rewalk: Rewalk) -> None:
        """Listen anew where a folder has notes and is not listened to; once for the same folders.

        Obsidian's settings say what is ignored, and lie where nobody listens.
        """
        unheard = rewalk.unheard() if native.has_told_all(0) else None
        if unheard is None:
            return
        before, self._unheard = self._unheard, unheard
        if unheard - before:
            native.outdated = True
            self.changed(at_once=True)

    def _reopen(self) -> None:
        """Settings may have changed, and with them what is watched."""
        before = self.vault.settings.config
        self.vault = Vault.open(self.root)
        now = self.vault.settings.config
        self.batch.debounce, self.batch.patience = now.watch.debounce, now.watch.patience
        rules = self._native is not None and self._native.outdated
        if rules or (now.walk, now.watch) != (before.walk, before.watch):
            self.listen()
            self.batch.take()

    def _is_emptied(self) -> bool:
        """An empty folder in the place of notes: a disk that is not mounted, more likely than not.

        Whoever has deleted every note says so with `ragvault index --allow-empty`.
        """
        if not is_empty(self.root):
            return False
        try:
            with self.vault.catalogue() as catalogue:
                notes = catalogue.counts().notes
        except IndexMissing:
            return False
        if notes:
            self._say_once(
                f"{self.vault.name}: the folder is empty and {notes:,} notes are indexed; "
                "nothing is removed (if that is meant: ragvault index --allow-empty)"
            )
        return bool(notes)

    def _put_off(self, error: Exception) -> None:
        """Try again later, whatever it was: a watcher goes on. The same thing is said once."""
        soon = isinstance(error, IndexLocked | ConfigError)  # someone is writing, or editing
        self._not_before = time.monotonic() + (LOCKED if soon else FAILED)
        if isinstance(error, RagvaultError):
            self._say_once(f"{self.vault.name}: {error} (fix: {error.fix})")
        else:
            self._say_once(f"{self.vault.name}: {unexpected(error)}")

    def _say_once(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self.talk.say(line)


def _counted(report: Report) -> str:
    kinds = ("added", "changed", "moved", "removed", "recut")
    return ", ".join(f"{count} {kind}" for kind in kinds if (count := getattr(report, kind)))
