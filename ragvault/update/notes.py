"""Notes: the catalogue follows the vault.

    walk -> diff -> read, parse, chunk -> store -> look links up

Each note is stored in one transaction, and a link waits in the catalogue until it is looked up:
whenever this is stopped, the next run goes on from there and ends with the same catalogue. Nothing
is read that size and time vouch for, and the vault is only ever read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

from ragvault.config.settings import Config
from ragvault.errors import VaultEmptied
from ragvault.notes.dates import Daily, created_of, date_of, modified_of, read_daily_notes
from ragvault.notes.diff import TICK_NS, Changes, Known, diff
from ragvault.notes.git_dates import GitDates, git_dates, head
from ragvault.notes.read import BINARY, Read, digest
from ragvault.notes.resolve import Resolver
from ragvault.notes.walk import Walked, walk
from ragvault.store.catalogue import Catalogue
from ragvault.store.notes import IndexedFile
from ragvault.types import Date, File, Skipped
from ragvault.update.freshness import recipe
from ragvault.update.prepare import Prepared, cut, prepare_all

# What is being done ("" is nothing but a chance to stop), how many are done, of how many.
Tell = Callable[[str, int, int], None]
Look = Callable[[], Walked]  # what a walk finds, by whoever need not walk to know
T = TypeVar("T")
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
    embedded: int = 0  # passages that had no vector
    remade: tuple[str, ...] = ()  # caches that were made again: keyword, code, vectors
    communities_due: bool = False  # enough links changed since communities were computed
    tier: str = ""  # the best that every passage can be searched by
    seconds: float = 0.0
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    @property
    def anything(self) -> bool:
        """Whether the index is another than before."""
        return bool(self.added or self.changed or self.moved or self.removed or self.recut)


def follow_notes(
    root: Path,
    catalogue: Catalogue,
    config: Config,
    tell: Tell = lambda *_: None,
    look: Look | None = None,
    meanwhile: Callable[[], None] = lambda: None,
    *,
    allow_empty: bool = False,
) -> Report:
    """Bring the catalogue up to date with the vault. The caller holds the writer's lock.

    `meanwhile` is called whenever some notes more are stored, and may read the catalogue. Raises
    VaultEmptied where that would remove every note, unless that is allowed.
    """
    began, now_ns = time.perf_counter(), time.time_ns()
    tell("looking for notes", 0, 0)
    found = look() if look else walk(root, config.walk)
    seen, how = catalogue.files(), recipe(config)
    walked = without_binaries(catalogue, found, seen, how)
    changes = _compare(root, seen, walked, config)
    if not found.files and len(changes.removed) == len(seen) > 0 and not allow_empty:
        raise VaultEmptied(root, len(seen))
    stale = _stale(seen, changes, how)
    dates = _dating(root, catalogue, config, bool(changes))

    def told(what: str, done: int, total: int) -> None:
        tell(what, done, total)
        meanwhile()

    unread = _store(root, catalogue, changes, config, dates, told)
    _recut(catalogue, stale, config, told)
    _touch(catalogue, changes, dates, now_ns)
    for path in changes.removed:
        catalogue.remove(path)
    links = look_links_up(catalogue, tell)

    report = _report(changes, walked, dates, unread, len(stale), links)
    report.seconds = time.perf_counter() - began
    if list(report.skipped) != catalogue.skipped():
        catalogue.set_skipped(report.skipped)
    remember_binaries(catalogue, found.files, report.skipped, how, now_ns)
    catalogue.set_git_head(dates.git_head)
    return report


def _compare(
    root: Path, seen: Mapping[str, IndexedFile], walked: Walked, config: Config
) -> Changes:
    known = {
        path: Known(file.size, file.mtime_ns, file.digest, file.indexed_ns)
        for path, file in seen.items()
    }
    return diff(known, walked, lambda file: digest(root, file, config.walk.max_bytes))


def _stale(seen: Mapping[str, IndexedFile], changes: Changes, wanted: str) -> list[str]:
    """Notes that were cut by other settings and are not about to be read anyway."""
    gone = {*changes.removed, *(move.old for move in changes.moved)}
    gone.update(file.path for file in changes.changed)
    return sorted(path for path, file in seen.items() if file.recipe != wanted and path not in gone)


def _dating(root: Path, catalogue: Catalogue, config: Config, anything_new: bool) -> Dating:
    return dating(root, config, last_head=catalogue.git_head, anything_new=anything_new)


class _Source(NamedTuple):
    file: File
    was: str | None


def _store(
    root: Path, catalogue: Catalogue, changes: Changes, config: Config, dates: Dating, tell: Tell
) -> list[Skipped]:
    """Read what is new, and store each note as it comes; returns what could not be read."""
    sources = [_Source(file, None) for file in (*changes.added, *changes.changed)]
    sources += [_Source(move.file, move.old) for move in changes.moved]
    sources.sort(key=lambda source: source.file.path)
    prepared = prepare_all(root, [source.file for source in sources], config)
    skipped: list[Skipped] = []
    done = 0
    for some in _in_batches(zip(sources, prepared, strict=True)):
        with catalogue.batch():
            for source, found in some:
                if isinstance(found, Skipped):
                    skipped.append(found)
                else:
                    when = dates.of(found.file, found.note.properties)
                    _put(catalogue, found, config, when, source.was)
        done += len(some)
        tell("reading notes", done, len(sources))
    return skipped


def _put(
    catalogue: Catalogue, found: Prepared, config: Config, when: Dates, was: str | None = None
) -> None:
    catalogue.put(
        found.note,
        found.file,
        found.digest,
        indexed_ns=found.read_ns,
        recipe=recipe(config),
        sections=found.sections,
        passages=found.passages,
        hashes=found.hashes,
        was=was,
        **when,
    )


def _recut(catalogue: Catalogue, stale: Sequence[str], config: Config, tell: Tell) -> None:
    """Cut notes again by other settings, from the text that is stored; they keep their dates."""
    done = 0
    for some in _in_batches(stale):
        with catalogue.batch():
            for path in some:
                note, stored = catalogue.note(path), catalogue.stored(path)
                text = Read(stored.file, stored.digest, note.text, note.encoding, ())
                when = Dates(date=stored.date, created=stored.created, modified=stored.modified)
                _put(catalogue, cut(text, config, stored.indexed_ns), config, when)
        done += len(some)
        tell("cutting notes anew", done, len(stale))


def _touch(catalogue: Catalogue, changes: Changes, dates: Dating, now_ns: int) -> None:
    """Take over new times, and git's dates where a commit gave a note another one."""
    touched = {file.path: file for file in changes.touched}
    if dates.git.last:
        touched |= _redated(catalogue, dates, touched.keys())
    for path, file in sorted(touched.items()):
        properties = catalogue.note(path).properties
        catalogue.touch(file, indexed_ns=now_ns, **dates.of(file, properties))


def _redated(catalogue: Catalogue, dates: Dating, known: Iterable[str]) -> dict[str, File]:
    """Notes dated by git or by their file's time, whose last commit is another one now."""
    return {
        stored.file.path: stored.file
        for stored in catalogue.all_stored()
        if stored.date.source in ("git", "mtime")
        and stored.file.path not in known
        and dates.git.last.get(stored.file.path, stored.date.at) != stored.date.at
    }


def look_links_up(catalogue: Catalogue, tell: Tell = lambda *_: None) -> int:
    """Find what every waiting link means; how many changed their meaning."""
    waiting = catalogue.links_to_look_up()
    first = next(waiting, None)
    if first is None:
        return catalogue.set_targets(())  # names that no link uses are not kept for one
    tell("looking links up", 0, 0)
    names = (_Named(path, aliases) for path, _, aliases in catalogue.names())
    resolver = Resolver(names, lru_cache(maxsize=1000)(catalogue.anchors))
    every = chain([first], waiting)
    return catalogue.set_targets((id_, resolver.resolve(path, link)) for id_, path, link in every)


class _Named(NamedTuple):
    path: str
    aliases: tuple[str, ...]


def _report(
    changes: Changes, walked: Walked, dates: Dating, unread: list[Skipped], recut: int, links: int
) -> Report:
    missed = {skip.path for skip in unread}
    return Report(
        added=sum(file.path not in missed for file in changes.added),
        changed=sum(file.path not in missed for file in changes.changed),
        moved=sum(move.file.path not in missed for move in changes.moved),
        touched=len(changes.touched),
        removed=len(changes.removed),
        recut=recut,
        unchanged=changes.unchanged,
        kept=len(changes.kept),
        links=links,
        skipped=tuple(
            sorted(
                (*walked.skipped, *changes.unreadable, *unread),
                key=lambda skip: skip.path,
            )
        ),
        warnings=(*walked.warnings, *dates.warnings),
    )


def remember(catalogue: Catalogue, report: Report) -> None:
    """Keep what the run did, for `status`."""
    run = asdict(report) | {"ended": time.time()}
    del run["skipped"]
    catalogue.set_last_run(run)


def _in_batches(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while some := list(islice(rest, COMMIT_EVERY)):
        yield some


# --- Dates ---


class Dates(TypedDict):
    """The dates of a note, as the catalogue takes them."""

    date: Date
    created: float
    modified: float


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


# --- Files that hold no text ---


def without_binaries(
    catalogue: Catalogue, walked: Walked, notes: Container[str], recipe: str
) -> Walked:
    """The walk, with the files that are known to hold no text among the skipped ones.

    A path that is a note in the catalogue stays, whatever the file is now.
    """
    known = catalogue.binary_files()
    if known.get("recipe") != recipe:
        return walked
    stats = known["files"]
    told = {skip.path: skip for skip in catalogue.skipped() if skip.reason == BINARY}
    found = {
        file.path
        for file in walked.files
        if file.path in told
        and file.path not in notes
        and stats.get(file.path) == [file.size, file.mtime_ns]
    }
    if not found:
        return walked
    files = tuple(file for file in walked.files if file.path not in found)
    return replace(
        walked, files=files, skipped=(*walked.skipped, *(told[path] for path in sorted(found)))
    )


def remember_binaries(
    catalogue: Catalogue,
    files: Iterable[File],
    skipped: Iterable[Skipped],
    recipe: str,
    now_ns: int,
) -> None:
    """Keep what was read in vain; `now_ns` is the clock before anything was."""
    binary = {skip.path for skip in skipped if skip.reason == BINARY}
    stats = {
        file.path: [file.size, file.mtime_ns]
        for file in files
        if file.path in binary and file.mtime_ns < now_ns - TICK_NS
    }
    catalogue.set_binary_files({"recipe": recipe, "files": stats} if stats else {})
