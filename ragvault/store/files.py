"""Private files: folders only their owner can enter, files that are whole or absent.

An index repeats what the notes say, so it is protected like them: folders are 0700 and files 0600,
whatever the umask. Nothing here knows what the files contain.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from ragvault.errors import refusals


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, 0700; take away the rights of others on it.

    A parent that exists already is left as it is: it is not ours.
    """
    with refusals(folder):
        missing = [above for above in (folder, *folder.parents) if not above.exists()]
        for above in reversed(missing):
            above.mkdir(mode=0o700, exist_ok=True)
        _close_to_others(folder)


def make_file(path: Path) -> None:
    """Create an empty file, 0600; an existing one keeps its contents and loses other readers.

    An existing file is not opened: closing it would drop every lock that SQLite has on it in this
    process, and then another process could delete the journal under us.
    """
    with refusals(path.parent):
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _close_to_others(path)


def close_files(folder: Path) -> None:
    """Take the files of a folder from others: an engine makes them with the umask's rights."""
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mode & 0o177:
                path.chmod(0o600)


def replace_file(path: Path, contents: bytes) -> None:
    """Replace a file in one step: a reader sees the old contents or the new."""
    with refusals(path.parent):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def discard(path: Path) -> None:
    """Delete a file or a folder as far as possible; never raises."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def file_size(path: Path) -> int:
    """Bytes; 0 for a file that is gone: SQLite deletes a journal when its last user closes."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _close_to_others(path: Path) -> None:
    """Take rights from others; give none to the owner, who may have made it read-only."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        path.chmod(mode & 0o700)
