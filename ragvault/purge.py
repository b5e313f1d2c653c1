"""Purge: everything ragvault has written on this machine, found and deleted.

    indexes    the index folders of the data folder, each by its own name, and which is the default
    models     weights
    cache      the log of the watcher
    runtime    its lock, its record and its socket
    settings   config.toml and the copies that `config init --force` kept

Only what ragvault makes is named, never a whole folder that somebody chose: RAGVAULT_HOME or
paths.data may hold other things, a vault among them. A folder of ours goes when it is empty. What
RAGVAULT_CONFIG names is the user's own file and stays. Of a link only the link goes: a folder of
models that somebody has linked here is likely to be used from elsewhere. Nothing is ever written to
or deleted in a vault.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragvault.config import folders
from ragvault.errors import IndexUnusable, RagvaultError
from ragvault.store import layout
from ragvault.store.lock import WriterLock

# As layout.index_folder names them: another folder in there is not ours.
_INDEX = re.compile(r"[a-z0-9-]+-[0-9a-f]{8}")
_LOG = re.compile(r"watch\.log(\.\d+)?")
_RUNNING = re.compile(r"watch\.(lock|sock|json)|\.watch\.json\..+")


class InsideVault(RagvaultError):
    """Something to be deleted holds a vault, or lies in one."""

    exit_code = 2

    def __init__(self, path: Path, root: Path) -> None:
        super().__init__(
            f"{path} and the vault {root} lie in each other, so nothing was deleted",
            fix="delete by hand what is not yours there",
        )


@dataclass(frozen=True, slots=True)
class Written:
    """One file or folder that ragvault made."""

    what: str
    path: Path
    bytes: int


def written(data: Path, environ: Mapping[str, str] | None = None) -> list[Written]:
    """Everything there is; `data` is the data folder. Raises InsideVault."""
    vaults = layout.known_vaults(data)
    found = [
        *_named("index", _indexes(data)),
        *_named("default", [data / "vaults" / layout.DEFAULT]),
        *_named("models", _models(folders.models_dir(environ))),
        *_named("cache", _matching(folders.cache_dir(environ), _LOG)),
        *_named("runtime", _matching(folders.runtime_dir(environ), _RUNNING)),
        *_named("settings", _settings(environ)),
    ]
    for each in found:
        for vault in vaults:
            _apart(each.path, vault.root)
    return found


def delete(found: Iterable[Written], data: Path, environ: Mapping[str, str] | None = None) -> None:
    """Delete it all. Raises IndexLocked while an index is being written; then nothing is gone."""
    found = list(found)
    locks = [WriterLock(each.path, "ragvault purge") for each in found if each.what == "index"]
    held: list[WriterLock] = []
    try:
        for lock in locks:
            lock.acquire()
            held.append(lock)
    finally:
        # A folder cannot be deleted everywhere while a file in it is open.
        for lock in held:
            lock.release()
    for each in found:
        _delete(each.path)
    for folder in _ours(data, environ):
        with suppress(OSError):
            folder.rmdir()  # only where nothing else is in it


def _indexes(data: Path) -> Iterator[Path]:
    folder = data / "vaults"
    for each in sorted(folder.iterdir()) if folder.is_dir() else ():
        if _INDEX.fullmatch(each.name) and _is_index(each):
            yield each


def _is_index(folder: Path) -> bool:
    names = (layout.VAULT, layout.CATALOGUE, "writer.lock")
    return not folder.is_symlink() and any((folder / name).is_file() for name in names)


def _models(shelf: Path) -> Iterator[Path]:
    from ragvault.models.registry import known_models

    if shelf.is_symlink():
        yield shelf
        return
    ours = (*known_models(), "hub", ".incoming", ".locks")
    yield from (shelf / name for name in ours)


def _settings(environ: Mapping[str, str] | None) -> Iterator[Path]:
    path = folders.user_file({**_environ(environ), "RAGVAULT_CONFIG": ""})
    yield path
    yield from _matching(path.parent, re.compile(re.escape(path.name) + r"\.\d+"))


def _matching(folder: Path, name: re.Pattern[str]) -> list[Path]:
    """The files of a folder that have a name of ours."""
    within = folder.iterdir() if folder.is_dir() else ()
    return sorted(each for each in within if name.fullmatch(each.name))


def _environ(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    import os

    return os.environ if environ is None else environ


def _named(what: str, paths: Iterable[Path]) -> Iterator[Written]:
    for path in paths:
        if path.is_symlink() or path.exists():
            yield Written(what, path, _size(path))


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
    return sum(each.lstat().st_size for each in files if not each.is_dir() or each.is_symlink())


def _apart(path: Path, root: Path) -> None:
    real, vault = path.resolve(), root.resolve()
    if vault.is_relative_to(real) or real.is_relative_to(vault):
        raise InsideVault(path, root)


def _delete(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise IndexUnusable(path, error.strerror or str(error), fix=f"delete {path}") from error


def _ours(data: Path, environ: Mapping[str, str] | None) -> Iterator[Path]:
    """Folders that may be empty now, the inner ones first."""
    yield data / "vaults"
    yield folders.runtime_dir(environ)  # which may lie in the cache
    yield folders.cache_dir(environ)
    yield folders.models_dir(environ)
    yield data
    yield folders.models_dir(environ).parent
    yield folders.user_file({**_environ(environ), "RAGVAULT_CONFIG": ""}).parent
