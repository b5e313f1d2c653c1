"""Caches: which keyword and vector indexes are current, and where they are.

    <index folder>/caches/keyword-3/            a Whoosh or tantivy index, in its own files
    <index folder>/caches/vector-bge-small-1/   one FAISS file

A rebuild is made in a folder with the next number while the current cache is still used; then one
transaction switches. A row also has the size and the checksum of every file, so that damage is
noticed before anything is added to it. Nothing here knows the format of an engine's files. Only the
holder of the writer's lock changes caches.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ragvault.errors import refused
from ragvault.ports import CacheBroken
from ragvault.store.database import Database, reading, writing
from ragvault.store.files import discard, make_folder

FOLDER = "caches"
KEYWORD = "keyword"
_LOCKS = re.compile(r"lock$", re.IGNORECASE)  # an engine's own lock files
_BLOCK = 1 << 20


class Cache(NamedTuple):
    """One row: the current index of this name.

    `recipe` is a fingerprint of everything it was built with; under other settings it is rebuilt.
    `revision` is the catalogue's revision that it reflects, `upto` the last vector it includes.
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


class Caches(Database):
    """The table of current caches, and their folders."""

    @reading
    def cache(self, name: str) -> Cache | None:
        """The current cache of this name."""
        query = f"SELECT {_COLUMNS} FROM caches WHERE name = ?"
        row = self._db.execute(query, (name,)).fetchone()
        return _to_cache(row) if row else None

    @reading
    def caches(self) -> list[Cache]:
        """Every current cache, by name."""
        query = f"SELECT {_COLUMNS} FROM caches ORDER BY name"
        return [_to_cache(row) for row in self._db.execute(query)]

    @writing
    def set_cache(self, cache: Cache) -> None:
        """Make a cache the current one of its name."""
        row = (*cache[:6], json.dumps(cache.files))
        statement = f"INSERT OR REPLACE INTO caches ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        self._db.execute(statement, row)

    @writing
    def drop_cache(self, name: str) -> None:
        """Let no cache of this name be current."""
        self._db.execute("DELETE FROM caches WHERE name = ?", (name,))

    def cache_folder(self, cache: Cache) -> Path:
        """The folder of a cache."""
        slug = re.sub(r"[^\w.@-]+", "-", cache.name)
        return self.folder / FOLDER / f"{slug}-{cache.number}"

    def rebuild_cache(self, wanted: Cache, build: Callable[[Path], None]) -> Cache:
        """Have `build` fill a new folder, then switch to it; the current cache is used until then.

        The number of `wanted` is chosen here. When `build` raises, nothing has changed.
        """
        current = self.cache(wanted.name)
        numbered = self._next_number(wanted._replace(number=current.number if current else 0))
        home = self.cache_folder(numbered)
        try:
            build(home)
            finished = _with_files(home, numbered)
            self.set_cache(finished)
        except OSError as error:
            discard(home)
            raise refused(self.folder, error) from error
        except BaseException:
            discard(home)
            raise
        if current:
            discard(self.cache_folder(current))
        return finished

    def _next_number(self, cache: Cache) -> Cache:
        """The cache with the next number that has no folder; makes that folder."""
        if not (self.folder / FOLDER).is_dir():  # something else may be in its place
            discard(self.folder / FOLDER)
        numbered = cache._replace(number=cache.number + 1)
        while self.cache_folder(numbered).exists():
            numbered = numbered._replace(number=numbered.number + 1)
        make_folder(self.folder / FOLDER)
        make_folder(self.cache_folder(numbered))
        return numbered

    def stamp_cache(self, cache: Cache) -> Cache:
        """Record the revision and the files of a cache after an update in place."""
        stamped = _with_files(self.cache_folder(cache), cache)
        self.set_cache(stamped)
        return stamped

    def check_cache(self, cache: Cache, *, thorough: bool = True) -> None:
        """Raise CacheBroken unless every file of a cache is as it was recorded.

        Unless `thorough`, a file of the recorded size and time counts as unchanged. Files that a
        killed writer left beside them are not damage: the engine ignores them.
        """
        for name, (size, mtime, checksum) in cache.files.items():
            path = self.cache_folder(cache) / name
            try:
                stat = path.stat()
                if not thorough and (stat.st_size, stat.st_mtime_ns) == (size, mtime):
                    continue
                if stat.st_size != size or _checksum(path) != checksum:
                    raise CacheBroken(f"{name} is damaged")
            except OSError as error:
                raise CacheBroken(f"{name} cannot be read ({error.strerror})") from error

    def sweep_caches(self) -> None:
        """Delete every cache that is not current, such as one that a killed rebuild left.

        A file that somebody has open stays readable for them.
        """
        current = {self.cache_folder(cache) for cache in self.caches()}
        home = self.folder / FOLDER
        for found in home.iterdir() if home.is_dir() else ():
            if found not in current:
                discard(found)


_COLUMNS = "name, number, engine, recipe, revision, upto, files"


def _to_cache(row: tuple[str, int, str, str, int, int, str]) -> Cache:
    files = {path: (size, mtime, sum_) for path, (size, mtime, sum_) in json.loads(row[6]).items()}
    return Cache(*row[:6], files)


def _with_files(home: Path, cache: Cache) -> Cache:
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


def _files(home: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(home.rglob("*")):
        if path.is_file() and not _LOCKS.search(path.name):
            yield path.relative_to(home).as_posix(), path


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found = zlib.crc32(block, found)
    return found
