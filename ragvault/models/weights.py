"""The models folder: which builds are installed, and reading them with every byte verified.

    <models>/NAME/BUILD/FILES     one complete build; it is renamed into place when finished
    <models>/.incoming/NAME/      where an install works; never read
    <models>/.locks/NAME          held while that model is being installed

A file is hashed each time it is read, and the engine gets the same bytes that were hashed, so the
file cannot change between check and use. 34 MB take about 35 ms. This module downloads nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ragvault.errors import ModelUnusable
from ragvault.models.registry import Build

_BLOCK = 1 << 20


def build_folder(build: Build, models_dir: Path) -> Path:
    """Where this build is installed, or would be."""
    return models_dir / build.folder


def installed(builds: Iterable[Build], models_dir: Path) -> Build | None:
    """The first of these builds that is installed. Its bytes are verified when they are read."""
    return next((build for build in builds if build_folder(build, models_dir).is_dir()), None)


def read_verified(build: Build, file: str, models_dir: Path) -> bytes:
    """The bytes of one file. Raises ModelUnusable if they do not have the registry's hash."""
    path = build_folder(build, models_dir) / file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelUnusable(build.model.name, f"{path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != build.files[file]:
        raise ModelUnusable(build.model.name, f"{path} was changed after it was verified")
    return content


def faults(build: Build, models_dir: Path) -> list[str]:
    """What is wrong with an installed build, one line per file; empty if nothing is."""
    wrong = [fault for file in build.files if (fault := _fault(build, file, models_dir))]
    return wrong + [f"{path} does not belong there" for path in _extra_files(build, models_dir)]


def verified_folder(build: Build, models_dir: Path) -> Path:
    """The folder of a build, all files verified just now, for engines that open paths."""
    found = faults(build, models_dir)
    if found:
        raise ModelUnusable(build.model.name, "; ".join(found))
    return build_folder(build, models_dir)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file of any size."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _fault(build: Build, file: str, models_dir: Path) -> str:
    path = build_folder(build, models_dir) / file
    try:
        found = file_sha256(path)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    if found != build.files[file]:
        return f"{path} has SHA-256 {found[:12]}…, expected {build.files[file][:12]}…"
    return ""


def _extra_files(build: Build, models_dir: Path) -> list[Path]:
    """Files that the registry does not list: an engine that opens a folder might read them too."""
    folder = build_folder(build, models_dir)
    known = {folder / file for file in build.files}
    return sorted(path for path in folder.rglob("*") if not path.is_dir() and path not in known)
