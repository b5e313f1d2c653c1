"""Caches: which keyword and vector index is current, and where it lies.

    <index folder>/caches/keyword-3/            a Whoosh or tantivy index, in its own files
    <index folder>/caches/vector-bge-small-1/   one FAISS file

A rebuild is made in a folder with the next number while the current one answers; `set_cache`
switches in one transaction, and `sweep` deletes what no row names any more. A row also has the
size and the checksum of every file, so that damage is noticed before anything is added to it.
Nothing here knows what an engine's files hold.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from sqlite3 import Connection
from typing import NamedTuple

from ragvault.ports import CacheBroken
from ragvault.store.private import discard, make_folder

FOLDER = "caches"
KEYWORD = "keyword"
_LOCKS = re.compile(r"lock$", re.IGNORECASE)  # an engine's own lock files, which come and go
_CHUNK = 1 << 20


class Cache(NamedTuple):
    """One row: the current index of this name.

    `recipe` is a fingerprint of everything it was made with: with other settings it is rebuilt.
    `revision` is the catalogue's revision it reflects, `upto` the last vector it has taken in.
    """

    name: str  # KEYWORD, or vector_cache(model)
    number: int
    engine: str
    recipe: str
    revision: int
    upto: int = 0
    files: Mapping[str, tuple[int, int, int]] = {}  # size, mtime_ns, checksum


def vector_cache(model: str) -> str:
    """The name of the cache of a model's vectors."""
    return f"vector {model}"


def place(folder: Path, cache: Cache) -> Path:
    """The folder that a cache lies in."""
    slug = re.sub(r"[^\w.@-]+", "-", cache.name)
    return folder / FOLDER / f"{slug}-{cache.number}"


# --- Rows ---

_COLUMNS = "name, number, engine, recipe, revision, upto, files"


def cache(db: Connection, name: str) -> Cache | None:
    row = db.execute(f"SELECT {_COLUMNS} FROM caches WHERE name = ?", (name,)).fetchone()
    return _cache(row) if row else None


def caches(db: Connection) -> list[Cache]:
    return [_cache(row) for row in db.execute(f"SELECT {_COLUMNS} FROM caches ORDER BY name")]


def set_cache(db: Connection, given: Cache) -> None:
    row = (*given[:6], json.dumps(given.files))
    db.execute(f"INSERT OR REPLACE INTO caches ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def drop_cache(db: Connection, name: str) -> None:
    db.execute("DELETE FROM caches WHERE name = ?", (name,))


def _cache(row: tuple[str, int, str, str, int, int, str]) -> Cache:
    files = {path: (size, mtime, sum_) for path, (size, mtime, sum_) in json.loads(row[6]).items()}
    return Cache(*row[:6], files)


# --- Folders; for the holder of the writer's lock ---


def next_place(folder: Path, cache: Cache) -> tuple[Cache, Path]:
    """The cache with the next number that no folder has, and that folder, empty."""
    if not (folder / FOLDER).is_dir():  # something else may be in its place
        discard(folder / FOLDER)
    number = cache.number
    while True:
        number += 1
        numbered = cache._replace(number=number)
        home = place(folder, numbered)
        if not home.exists():
            make_folder(folder / FOLDER)
            make_folder(home)
            return numbered, home


def sweep(folder: Path, current: list[Cache]) -> None:
    """Delete every cache that is not current. What somebody has open stays readable for them."""
    named = {place(folder, cache) for cache in current}
    home = folder / FOLDER
    for found in home.iterdir() if home.is_dir() else ():
        if found not in named:
            discard(found)


def with_files(home: Path, cache: Cache) -> Cache:
    """The cache with the checksums of its files; only those that changed are read."""
    found: dict[str, tuple[int, int, int]] = {}
    for name, path in _files(home):
        stat = path.stat()
        known = cache.files.get(name)
        if known and known[:2] == (stat.st_size, stat.st_mtime_ns):
            found[name] = known
        else:
            found[name] = stat.st_size, stat.st_mtime_ns, _checksum(path)
    return cache._replace(files=found)


def check(home: Path, cache: Cache, *, thorough: bool = True) -> None:
    """Raise CacheBroken unless every file of a cache is as it was recorded.

    Unless it is to be `thorough`, a file of the same size and time counts as the same. Files that
    a killed writer left beside them are no damage: the engine knows nothing of them.
    """
    for name, (size, mtime, checksum) in cache.files.items():
        path = home / name
        try:
            stat = path.stat()
            if not thorough and (stat.st_size, stat.st_mtime_ns) == (size, mtime):
                continue
            if stat.st_size != size or _checksum(path) != checksum:
                raise CacheBroken(f"{name} is damaged")
        except OSError as error:
            raise CacheBroken(f"{name} cannot be read ({error.strerror})") from error


def _files(home: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(home.rglob("*")):
        if path.is_file() and not _LOCKS.search(path.name):
            yield path.relative_to(home).as_posix(), path


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found = zlib.crc32(chunk, found)
    return found
