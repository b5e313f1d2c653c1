"""Caches: which keyword and vector indexes are current, and where they are.

    <index folder>/caches/keyword-3/            a Whoosh or tantivy index, in its own files
    <index folder>/caches/vector-bge-small-1/   one FAISS file

A rebuild is made in a folder with the next number while the current cache is still used; then one
transaction switches. Nothing here knows the format of an engine's files: an engine that cannot open
them says so, and the cache is rebuilt. Only the holder of the writer's lock changes caches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from ragvault.errors import refusals
from ragvault.store.database import Database, reading, writing
from ragvault.store.files import discard, make_folder

FOLDER = "caches"
KEYWORD = "keyword"


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


def vector_cache(model: str) -> str:
    """The name of the cache of a model's vectors."""
    return f"vector {model}"


class Caches(Database):
    """The table of current caches, and their folders."""

    @reading
    def caches(self) -> dict[str, Cache]:
        """Every current cache, by name."""
        query = f"SELECT {', '.join(Cache._fields)} FROM caches ORDER BY name"
        return {row[0]: Cache(*row) for row in self._db.execute(query)}

    def cache(self, name: str) -> Cache | None:
        """The current cache of this name."""
        return self.caches().get(name)

    @writing
    def set_cache(self, cache: Cache) -> None:
        """Make a cache the current one of its name."""
        self._db.execute("INSERT OR REPLACE INTO caches VALUES (?, ?, ?, ?, ?, ?)", cache)

    @writing
    def drop_cache(self, name: str) -> None:
        """Let no cache of this name be current."""
        self._db.execute("DELETE FROM caches WHERE name = ?", (name,))

    def cache_folder(self, cache: Cache) -> Path:
        """The folder of a cache."""
        slug = re.sub(r"[^\w.@-]+", "-", cache.name)
        return self.folder / FOLDER / f"{slug}-{cache.number}"

    def rebuild_cache(self, wanted: Cache, build: Callable[[Path], None]) -> None:
        """Have `build` fill a new folder, then switch to it; the current cache is used until then.

        The number of `wanted` is chosen here. When `build` raises, nothing has changed.
        """
        current = self.cache(wanted.name)
        new = wanted._replace(number=current.number + 1 if current else 1)
        while self.cache_folder(new).exists():
            new = new._replace(number=new.number + 1)
        home = self.cache_folder(new)
        if not home.parent.is_dir():  # something else may be in its place
            discard(home.parent)
        make_folder(home.parent)
        make_folder(home)
        with ExitStack() as after_failure:
            after_failure.callback(discard, home)
            with refusals(self.folder):
                build(home)
            self.set_cache(new)
            after_failure.pop_all()
        if current:
            discard(self.cache_folder(current))

    def sweep_caches(self) -> None:
        """Delete every cache that is not current, such as one that a killed rebuild left.

        A file that somebody has open stays readable for them.
        """
        current = {self.cache_folder(cache) for cache in self.caches().values()}
        home = self.folder / FOLDER
        for found in home.iterdir() if home.is_dir() else ():
            if found not in current:
                discard(found)
