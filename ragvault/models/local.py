"""A folder as a source: a copy of another machine's models folder, or just the files.

Nothing about the folder is believed: what is copied is verified like any download.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ragvault.models.failure import SourceError
from ragvault.models.registry import Build


def copy_from_folder(build: Build, folder: Path, room: Path) -> None:
    """Copy the files of this build into room/files. Raises SourceError when one is not there."""
    home = _home(build, folder.expanduser())
    if home is None:
        raise SourceError(f"it has no {' and '.join(build.files)}")
    for file in build.files:
        target = room / "files" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(home / file, target)
        except OSError as error:
            raise SourceError(f"{home / file}: {error.strerror or error}") from error


def _home(build: Build, folder: Path) -> Path | None:
    """The models folder itself, one model of it, one build of it, or a folder of bare files."""
    name, print_ = build.folder.split("/")
    places = (folder / build.folder, folder / print_, folder / name, folder)
    return next((place for place in places if _has_all(build, place)), None)


def _has_all(build: Build, place: Path) -> bool:
    return all((place / file).is_file() for file in build.files)
