"""Install a model that is missing: try each source, verify every byte, move it into place.

    ensure             the installed build, else pull
    pull               install it, also in place of a damaged copy
    unlisted_folder    the folder of a model that the registry does not list, fetched if needed

One process at a time installs a model: a second one waits and then finds it there. A build is
staged in `.incoming` and renamed into place when its last byte is verified, so a killed install
leaves nothing that could be read, and the next one cleans up.

A model that the registry does not list is a folder of the user's (`/path`, `~/path`, `./path`),
which is only read, or a hub id (`OWNER/NAME`), whose newest revision is fetched once into
<models>/hub/OWNER--NAME. Its hashes are not known beforehand, so the user has to trust it. Even so,
only safetensors, JSON and vocabularies are fetched or accepted, never a pickle; weights from the
hub must have the hash that the hub states; and the full name includes a hash of every file, so
vectors of a model that changed are never mixed with older ones.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ragvault.errors import ModelUnavailable, ModelUnusable
from ragvault.models import weights
from ragvault.models.download import (
    SourceError,
    copy_from_folder,
    download_file,
    fetch_from_source,
    hub_address,
    read_hub_json,
)
from ragvault.models.registry import Build, Model, ModelSource
from ragvault.ports import NoProgress, Progress

_OFFLINE = "not tried, because of offline mode"
# Older models have their vocabulary in a text file or, for sentencepiece, a .model.
_ACCEPTED = (".safetensors", ".json", ".txt", ".model")
_PICKLES = ("*.bin", "*.pt", "*.pkl", "*.pickle", "*.ckpt")
_HUB_ID = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")
_PATH = re.compile(r"^(~?[/\\]|~[\w.-]*[/\\]|\.{1,2}([/\\]|$)|[A-Za-z]:[/\\])")


@dataclass(frozen=True)
class InstallOptions:
    """`offline` forbids every download; `folders` are tried before the registry's sources."""

    offline: bool = False
    folders: Sequence[Path] = ()
    reporter: Progress = field(default_factory=NoProgress)


def ensure(
    model: Model, builds: Sequence[Build], models_dir: Path, options: InstallOptions
) -> Build:
    """One of these builds, installed now if none is yet. Raises ModelUnavailable."""
    return weights.installed(builds, models_dir) or pull(model, builds, models_dir, options)


def pull(model: Model, builds: Sequence[Build], models_dir: Path, options: InstallOptions) -> Build:
    """One of these builds, installed and every byte verified. Raises ModelUnavailable."""
    try:
        with install_lock(model.name, models_dir, options.reporter):
            present = weights.installed(builds, models_dir)
            if present and not weights.faults(present, models_dir):
                return present
            return _install(model, builds, models_dir, options)
    except OSError as error:
        why = f"{error.filename or models_dir}: {error.strerror or error}"
        fix = f"check free space and permissions of {models_dir}"
        raise ModelUnusable(model.name, why, fix=fix) from error


def _install(
    model: Model, builds: Sequence[Build], models_dir: Path, options: InstallOptions
) -> Build:
    failures = []
    for attempt in _attempts(model, builds, options):
        failure = _failure(attempt, models_dir, options)
        if not failure:
            folder = weights.build_folder(attempt.build, models_dir)
            options.reporter.info(f"installed {model.name} in {folder}")
            return attempt.build
        failures.append((attempt.label, failure))
        if not options.offline:
            options.reporter.info(f"{attempt.label} failed: {failure}")
    raise ModelUnavailable(model.name, failures)


def _failure(attempt: _Attempt, models_dir: Path, options: InstallOptions) -> str:
    """Install this way. Returns why it failed, or an empty string."""
    try:
        with _staging(attempt.build.model.name, models_dir) as staging:
            attempt.fetch(staging, options)
            _move_into_place(attempt.build, staging, models_dir)
    except SourceError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class _Attempt:
    """One way to get one build: from a source of the registry, or from a local folder."""

    build: Build
    source: ModelSource | None = None
    folder: Path = Path()

    @property
    def label(self) -> str:
        return str(self.source or f"folder {self.folder}")

    def fetch(self, staging: Path, options: InstallOptions) -> None:
        if self.source is None:
            copy_from_folder(self.build, self.folder, staging)
            return
        if options.offline:
            raise SourceError(_OFFLINE)
        size = f"{self.source.bytes / 1e6:.1f} MB"
        options.reporter.info(f"fetching {self.build.model.name} from {self.source} ({size})")
        try:
            fetch_from_source(self.source, staging, options.reporter)
        finally:
            options.reporter.download_ended()


def _attempts(model: Model, builds: Sequence[Build], options: InstallOptions) -> Iterator[_Attempt]:
    for folder in options.folders:
        for build in builds:
            yield _Attempt(build, folder=folder)
    wanted = {build.full_name for build in builds}
    for source in model.sources:
        build = model.build_of(source)
        if build.full_name in wanted:
            yield _Attempt(build, source)


@contextmanager
def install_lock(name: str, models_dir: Path, reporter: Progress) -> Iterator[None]:
    """Let only one process install this model. The lock ends with its owner, even a killed one."""
    from filelock import FileLock, Timeout  # 40 ms that a search without a download is spared

    locks = models_dir / ".locks"
    models_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    locks.mkdir(mode=0o700, exist_ok=True)
    lock = FileLock(locks / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        reporter.info(f"another process is fetching {name}; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _staging(name: str, models_dir: Path) -> Iterator[Path]:
    """An empty folder on the same file system, deleted afterwards whatever happens."""
    folder = models_dir / ".incoming" / name
    # We hold the lock, so anything here was left by an install that was killed.
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move_into_place(build: Build, staging: Path, models_dir: Path) -> None:
    """Verify what the source put into staging/files, and rename the folder into place."""
    files = staging / "files"
    for file, expected in build.files.items():
        found = weights.file_sha256(files / file)
        if found != expected:
            raise SourceError(f"{file} has SHA-256 {found}, expected {expected}")
    target = weights.build_folder(build, models_dir)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if target.exists():
        # A damaged copy: it is moved away in one step, so no reader meets half of it.
        target.replace(staging / "damaged")
    files.replace(target)


# --- Models that the registry does not list ---


def is_path(name: str) -> bool:
    """Whether a name is a folder. A bare `a/b` is a hub id, even if such a folder exists: what is
    loaded must not depend on the current folder."""
    return bool(_PATH.match(name))


def is_hub_id(name: str) -> bool:
    return bool(_HUB_ID.fullmatch(name))


def unlisted_folder(name: str, models_dir: Path, options: InstallOptions) -> Path:
    """The folder of this model, fetched if needed. Raises ModelUnavailable or ModelUnusable."""
    if is_path(name):
        folder = Path(name).expanduser()
        if not folder.is_dir():
            raise ModelUnusable(name, "there is no such folder", fix="check the path")
        return folder
    folder = models_dir / "hub" / name.replace("/", "--")
    return folder if folder.is_dir() else _pull_hub_id(name, folder, models_dir, options)


def unlisted_full_name(name: str, folder: Path) -> str:
    """The name its vectors are stored under. Raises ModelUnusable if its weights are not safe."""
    _refuse_pickles(name, folder)
    digest = hashlib.sha256()
    # Not .txt: a folder may hold a log or a licence, which do not affect the vectors.
    files = (p for p in folder.rglob("*") if p.suffix in _ACCEPTED or p.name == "vocab.txt")
    for path in sorted(path for path in files if path.is_file()):
        relative = path.relative_to(folder).as_posix()
        digest.update(f"{relative}\0{weights.file_sha256(path)}\0".encode())
    return f"{name}@{digest.hexdigest()[:12]}"


def _refuse_pickles(name: str, folder: Path) -> None:
    if not any(folder.rglob("*.safetensors")):
        raise ModelUnusable(
            name,
            f"{folder} has no .safetensors, and ragvault opens no other format",
            fix="save the model again with safe_serialization=True, or choose another",
        )
    for pattern in _PICKLES:
        for path in folder.rglob(pattern):
            if not any(path.parent.glob("*.safetensors")):
                why = f"{path} is a pickle, which could run code, with no .safetensors beside it"
                raise ModelUnusable(name, why, fix="save that part again as safetensors")


def _pull_hub_id(name: str, folder: Path, models_dir: Path, options: InstallOptions) -> Path:
    if options.offline:
        raise ModelUnavailable(name, [(f"hub {name}", _OFFLINE)])
    lock = folder.name
    with (
        install_lock(lock, models_dir, options.reporter),
        _staging(lock, models_dir) as staging,
    ):
        if folder.is_dir():
            return folder
        try:
            options.reporter.info(f"fetching {name} from the hub")
            _download_repository(name, staging / "files", options.reporter)
        except SourceError as error:
            raise ModelUnavailable(name, [(f"hub {name}", str(error))]) from error
        finally:
            options.reporter.download_ended()
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (staging / "files").replace(folder)
    return folder


def _download_repository(name: str, files: Path, reporter: Progress) -> None:
    listing = read_hub_json(hub_address(f"api/models/{name}/revision/main?blobs=true"))
    entries = [entry for entry in listing.get("siblings", []) if _is_accepted(entry)]
    total, done = sum(int(entry.get("size") or 0) for entry in entries), 0
    for entry in entries:
        path = entry["rfilename"]
        address = hub_address(f"{name}/resolve/{listing['sha']}/{quote(path)}")
        done = download_file(address, files / path, done, total, reporter)
        _check_download(files / path, entry)


def _is_accepted(entry: dict[str, Any]) -> bool:
    path = str(entry.get("rfilename", ""))
    inside = not path.startswith(("onnx/", "openvino/", "/")) and ".." not in path.split("/")
    return inside and path.endswith(_ACCEPTED)


def _check_download(path: Path, entry: dict[str, Any]) -> None:
    expected = (entry.get("lfs") or {}).get("sha256")
    if expected and weights.file_sha256(path) != expected:
        raise SourceError(f"{path.name} does not have the hash that the hub states ({expected})")
    if path.suffix == ".json":
        try:
            json.loads(path.read_bytes())
        except ValueError as error:
            raise SourceError(f"{path.name} is not JSON ({error})") from error
