"""Update notes: the steps that bring the catalogue up to date with the vault.

    compare        walk against catalogue: what was added, changed, moved, removed
    store          prepared notes into the catalogue, removed ones out of it
    resolve_links  what every new or doubtful link means

ingest.py calls them in this order. Each note is stored in one transaction, and a link is marked in
the catalogue until it is resolved: after a stop the next run continues from there and ends with the
same catalogue. A file is read only if its status (size, times, inode) has changed, and the vault is
only ever read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import Any

from ragvault.config.settings import Config
from ragvault.errors import RagvaultError, VaultEmptied
from ragvault.notes.dates import (
    Daily,
    GitDates,
    created_of,
    date_of,
    git_dates,
    head,
    modified_of,
    read_daily_notes,
)
from ragvault.notes.diff import TICK_NS, Changes, diff, status_of
from ragvault.notes.links import Resolver
from ragvault.notes.read import BINARY, FAILED, digest
from ragvault.notes.walk import Walked
from ragvault.ports import Progress
from ragvault.store.access import move_access
from ragvault.store.catalogue import Catalogue
from ragvault.store.notes import NoteRows
from ragvault.text.printable import printable, valid_unicode
from ragvault.types import Date, Dates, File, Skipped
from ragvault.update.freshness import Unusable, recipe, unusable

COMMIT_EVERY = 64  # notes: a commit costs as much as storing ten of them


@dataclass(slots=True)
class Report:
    """What one run did."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    touched: int = 0
    removed: int = 0
    recut: int = 0
    unchanged: int = 0
    kept: int = 0
    links: int = 0
    embedded: int = 0  # passages that got a vector, each counted once
    unembedded: int = 0  # passages still without a full vector, if the time was up before
    notes: int = 0  # in the index now, as are passages
    passages: int = 0
    rebuilt: tuple[str, ...] = ()  # caches that were rebuilt: keyword, vectors
    communities_due: bool = False  # enough links changed since communities were computed
    compact_due: bool = False  # bytes of removed text are still in some file
    tier: str = ""  # the best tier that every passage is in
    seconds: float = 0.0
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    @property
    def anything(self) -> bool:
        """Whether any note of the index has changed."""
        return bool(self.added or self.changed or self.moved or self.removed or self.recut)

    def warn(self, error: RagvaultError) -> None:
        """Record that the run goes on without something; a later run adds it."""
        warning = f"{error} (fix: {error.fix})"
        if warning not in self.warnings:
            self.warnings = (*self.warnings, warning)


# --- What has changed ---


@dataclass(frozen=True, slots=True)
class NoteChanges:
    """Everything a run has to do to the notes of the catalogue."""

    found: Walked
    walked: Walked  # `found` with files known to be unusable among the skipped ones
    changes: Changes
    to_rechunk: Sequence[File]  # chunked with other settings, and not changed
    dates: Dating
    recipe: str
    now_ns: int  # the clock before anything was looked at

    def to_read(self) -> list[File]:
        """The files to read, by path."""
        moved = (file for _, file in self.changes.moved)
        files = (*self.changes.added, *self.changes.changed, *moved, *self.to_rechunk)
        return sorted(files, key=lambda file: file.path)


def compare(
    root: Path,
    catalogue: Catalogue,
    found: Walked,
    config: Config,
    now_ns: int,
    *,
    allow_empty: bool = False,
) -> NoteChanges:
    """What differs between a walk and the catalogue. `now_ns` is the clock before the walk.

    Raises VaultEmptied where every note would be removed, unless that is allowed.
    """
    found = _with_others_skipped(catalogue, found)
    # A name that is not valid Unicode is that of no stored note.
    only = found.only and [path for path in found.only if path == valid_unicode(path)]
    seen, how, notes = catalogue.files(only), recipe(config), catalogue.note_count()
    skip_of = unusable(catalogue, how)
    walked = _without_unusable(found, seen, skip_of)

    def digest_of(file: File) -> bytes | Skipped:
        return skip_of(file.path, file) or digest(root, file, config.walk.max_bytes)

    changes = diff(seen, walked, digest_of)
    if not found.files and len(changes.removed) == notes > 0 and not allow_empty:
        raise VaultEmptied(root, notes)
    changes = replace(changes, unchanged=changes.unchanged + notes - len(seen))
    last_head = catalogue.facts.git_head
    dates = dating(root, config, last_head=last_head, anything_new=bool(changes))
    changed = {file.path for file in changes.changed}
    old = [
        file
        for file in walked.files
        if file.path in seen and seen[file.path].recipe != how and file.path not in changed
    ]
    failed = [skip for file in old if (skip := skip_of(file.path, file))]
    walked = replace(walked, skipped=(*walked.skipped, *failed))
    rest = [file for file in old if not skip_of(file.path, file)]
    return NoteChanges(found, walked, changes, rest, dates, how, now_ns)


def _with_others_skipped(catalogue: Catalogue, found: Walked) -> Walked:
    """With the skipped files that a walk of some paths did not look at."""
    if found.only is None:
        return found
    looked_at = {*map(printable, found.only), *(skip.path for skip in found.skipped)}
    others = (skip for skip in catalogue.skipped() if skip.path not in looked_at)
    return replace(found, skipped=(*found.skipped, *others))


# --- Storing ---


def store(
    catalogue: Catalogue,
    pending: NoteChanges,
    prepared: Iterable[NoteRows | Skipped],
    config: Config,
    progress: Progress,
    meanwhile: Callable[[], None] = lambda: None,
) -> Report:
    """Store every change in the catalogue. `prepared` are the files of `pending.to_read()`.

    `meanwhile` is called whenever some more notes are stored, and may read the catalogue.
    """
    changes, dates = pending.changes, pending.dates
    unread = _store_read(catalogue, pending, prepared, progress, meanwhile)
    _touch(catalogue, changes, dates, pending.now_ns)
    for path in changes.removed:
        catalogue.remove(path)
    report = _report(pending, unread)
    if list(report.skipped) != catalogue.skipped():
        catalogue.set_skipped(report.skipped)
    _remember_unusable(catalogue, pending, report.skipped)
    catalogue.set_facts(git_head=dates.git_head)
    return report


def _store_read(
    catalogue: Catalogue,
    pending: NoteChanges,
    prepared: Iterable[NoteRows | Skipped],
    progress: Progress,
    meanwhile: Callable[[], None],
) -> list[Skipped]:
    """Store each note as it is read; returns what could not be read."""
    total, rest = len(pending.to_read()), iter(prepared)
    before = {file.path: old for old, file in pending.changes.moved}
    skipped: list[Skipped] = []
    done = 0
    while some := list(islice(rest, COMMIT_EVERY)):
        with catalogue.batch():
            for found in some:
                if isinstance(found, Skipped):
                    skipped.append(found)
                    continue
                dates = pending.dates.of(found.file, found.properties)
                was = before.get(found.file.path)
                catalogue.put(found, dates, recipe=pending.recipe, was=was)
                if was is not None:
                    move_access(catalogue.folder, was, found.file.path)
        done += len(some)
        progress.step("reading notes", done, total)
        meanwhile()
    return skipped


def _touch(catalogue: Catalogue, changes: Changes, dates: Dating, now_ns: int) -> None:
    """Store new file times, and git's dates where a commit gave a note another one."""
    touched = {file.path: file for file in changes.touched}
    if dates.git.last:
        touched |= _redated(catalogue, dates, touched.keys())
    for path, file in sorted(touched.items()):
        (head,) = catalogue.heads([catalogue.note_id(path)])
        catalogue.touch(file, dates.of(file, head.properties), indexed_ns=now_ns)


def _redated(catalogue: Catalogue, dates: Dating, known: Iterable[str]) -> dict[str, File]:
    """Notes dated by git or by their file's time, whose last commit is another one now."""
    return {
        stored.file.path: stored.file
        for stored in catalogue.stored_notes()
        if (was := stored.dates.date or Date(-inf, "mtime")).source in ("git", "mtime")
        and stored.file.path not in known
        and dates.git.last.get(stored.file.path, was.at) != was.at
    }


# --- Links ---


def resolve_links(catalogue: Catalogue, progress: Progress) -> int:
    """Find what every link that needs it means; returns how many changed their meaning."""
    unresolved = catalogue.links_to_resolve()
    first = next(unresolved, None)
    if first is None:
        return catalogue.set_targets(())  # drops the names that no link uses
    progress.step("resolving links")
    resolver = Resolver(catalogue.names(), catalogue.anchors)
    every = chain([first], unresolved)
    return catalogue.set_targets((id_, resolver.resolve(path, link)) for id_, path, link in every)


# --- The report ---


def _report(pending: NoteChanges, unread: Sequence[Skipped]) -> Report:
    changes, missed = pending.changes, {skip.path for skip in unread}
    return Report(
        added=sum(file.path not in missed for file in changes.added),
        changed=sum(file.path not in missed for file in changes.changed),
        moved=sum(file.path not in missed for _, file in changes.moved),
        touched=len(changes.touched),
        removed=len(changes.removed),
        recut=sum(file.path not in missed for file in pending.to_rechunk),
        unchanged=changes.unchanged,
        kept=len(changes.kept),
        skipped=tuple(
            sorted(
                (*pending.walked.skipped, *pending.changes.unreadable, *unread),
                key=lambda skip: skip.path,
            )
        ),
        warnings=(*pending.walked.warnings, *pending.dates.warnings),
    )


def remember_run(catalogue: Catalogue, report: Report) -> None:
    """Store what the run did, for `status`."""
    run = asdict(report) | {"ended": time.time()}
    del run["skipped"]
    catalogue.set_facts(last_run=run)


# --- Dates ---


@dataclass(frozen=True, slots=True)
class Dating:
    """The sources of dates in one vault; `git_head` names the commit that git's were read at."""

    daily: Daily = field(default_factory=Daily)
    git: GitDates = field(default_factory=GitDates)
    git_head: str = ""
    warnings: tuple[str, ...] = ()

    def of(self, file: File, properties: Mapping[str, Any]) -> Dates:
        """The dates of one note."""
        last, first = self.git.last.get(file.path), self.git.first.get(file.path)
        return Dates(
            date=date_of(file.path, properties, mtime_ns=file.mtime_ns, git=last, daily=self.daily),
            created=created_of(
                file.path, properties, mtime_ns=file.mtime_ns, git=first, daily=self.daily
            ),
            modified=modified_of(properties, mtime_ns=file.mtime_ns, git=last),
        )


def dating(root: Path, config: Config, *, last_head: str, anything_new: bool) -> Dating:
    """Gather the sources; git is run only where a note needs it or a commit was made since."""
    daily, warnings = read_daily_notes(root)
    now = head(root) if config.parse.git_dates else ""
    ask_git = bool(now) and (anything_new or now != last_head)
    git = git_dates(root) if ask_git else GitDates()
    return Dating(daily, git, now if ask_git else last_head, tuple(warnings))


# --- Unusable files: binary ones, and those that failed ---


def _without_unusable(walked: Walked, notes: Container[str], skip_of: Unusable) -> Walked:
    """The walk, with the files that are known to be unusable among the skipped ones.

    A path that is a note in the catalogue stays, whatever the file is now.
    """
    skipped = {
        file.path: skip
        for file in walked.files
        if file.path not in notes and (skip := skip_of(file.path, file))
    }
    files = tuple(file for file in walked.files if file.path not in skipped)
    return replace(walked, files=files, skipped=(*walked.skipped, *skipped.values()))


def _remember_unusable(
    catalogue: Catalogue, pending: NoteChanges, skipped: Iterable[Skipped]
) -> None:
    """Store which files no run can use until they change, unless they may be changing now."""
    paths = {skip.path for skip in skipped if skip.reason in (BINARY, FAILED)}
    statuses = {
        file.path: status_of(file)
        for file in pending.found.files
        if file.path in paths and file.mtime_ns < pending.now_ns - TICK_NS
    }
    only, before = pending.found.only, catalogue.facts
    if only is not None and before.unusable_recipe == pending.recipe:
        others = before.unusable.items()
        statuses |= {path: was for path, was in others if path in paths and path not in only}
    catalogue.set_facts(unusable=statuses, unusable_recipe=pending.recipe if statuses else "")
