"""The models folder: what is there, and reading it with every byte verified.

    <models>/NAME/BUILD/FILES     one finished build; a folder that is there is complete
    <models>/.incoming/NAME/      what a pull is working on; never read
    <models>/.locks/NAME          held by the pull of that model

A file is hashed each time it is read, and the very bytes that were hashed are what the engine
gets: 34 MB take about 35 ms, and there is no moment between the check and the use. Nothing here
downloads anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ragvault.errors import ModelUnusable
from ragvault.models.registry import Build

_PIECE = 1 << 20


def folder_of(build: Build, shelf: Path) -> Path:
    """Where this build lies, or would lie."""
    return shelf / build.folder


def installed(builds: Iterable[Build], shelf: Path) -> Build | None:
    """The first of these builds that is here; its bytes are checked when they are read."""
    return next((build for build in builds if folder_of(build, shelf).is_dir()), None)


def read(build: Build, file: str, shelf: Path) -> bytes:
    """The bytes of one file, which are those the registry names; else raises ModelUnusable."""
    path = folder_of(build, shelf) / file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelUnusable(build.model.name, f"{path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != build.files[file]:
        raise ModelUnusable(build.model.name, f"{path} was changed after it was verified")
    return content


def faults(build: Build, shelf: Path) -> list[str]:
    """What is wrong with an installed build, a sentence a file; nothing when all of it is right."""
    wrong = [said for file in build.files if (said := _fault(build, file, shelf))]
    return wrong + [f"{path} does not belong there" for path in _strangers(build, shelf)]


def require_sound(build: Build, shelf: Path) -> Path:
    """The folder of a build whose every file was just verified, for engines that open paths."""
    found = faults(build, shelf)
    if found:
        raise ModelUnusable(build.model.name, "; ".join(found))
    return folder_of(build, shelf)


def digest(path: Path) -> str:
    """The SHA-256 of a file of any size."""
    seen = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            seen.update(piece)
    return seen.hexdigest()


def _fault(build: Build, file: str, shelf: Path) -> str:
    path = folder_of(build, shelf) / file
    try:
        found = digest(path)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    if found != build.files[file]:
        return f"{path} has SHA-256 {found[:12]}… where {build.files[file][:12]}… is named"
    return ""


def _strangers(build: Build, shelf: Path) -> list[Path]:
    """Files beside the named ones: an engine that opens a folder might read them too."""
    folder = folder_of(build, shelf)
    known = {folder / file for file in build.files}
    return sorted(path for path in folder.rglob("*") if not path.is_dir() and path not in known)
