"""The catalogue: one SQLite file that is the truth about a vault.

    put, move, touch, remove     one file's change is one transaction and one revision
    note, sections, chunks, …    what was stored, as it was given
    links_to_look_up, …          links wait until they are looked up, across crashes
    chunks_since, …              how FAISS and Whoosh, its caches, catch up
    have, put_vectors, …         the embedding of every distinct text
    vocabulary, …                the words a vault is about, with theirs

These classes only name what can be asked; the modules beside them know how. They know no model, no
index and no Markdown. Here is what changes and its history; catalogue_notes.py, _links.py,
_ranking.py and _vectors.py have the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragvault.store import caches, history, read, write
from ragvault.store.caches import Cache
from ragvault.store.catalogue_links import Links
from ragvault.store.catalogue_notes import Notes
from ragvault.store.catalogue_ranking import Ranking
from ragvault.store.catalogue_vectors import Vectors
from ragvault.store.history import ChunkRef
from ragvault.store.private import discard
from ragvault.store.write import Cut, Stamp
from ragvault.types import Chunk, Date, File, Note, Section, Skipped


class Catalogue(Notes, Links, Ranking, Vectors):
    """An open catalogue: `with Catalogue.open(folder) as catalogue`."""

    # Changes: each is one transaction, and the first four are one revision each.

    def put(
        self,
        note: Note,
        file: File,
        digest: bytes,
        *,
        date: Date,
        created: float,
        modified: float,
        indexed_ns: int,
        recipe: str,
        sections: Sequence[Section],
        chunks: Sequence[Chunk],
        hashes: Sequence[bytes],
        was: str | None = None,
    ) -> int:
        """Store a note that was read in place of what its path (or its old path `was`) held.

        `indexed_ns` is the clock before the file was read. Passages whose text did not change
        keep their ids. Returns the note's id.
        """
        if note.path != file.path:
            raise ValueError(f"note {note.path} of file {file.path}")
        stamp = Stamp(file, date, created, modified, indexed_ns)
        cut = Cut(recipe, sections, chunks, hashes)
        return self._change(write.put, note, digest, stamp, cut, was)

    def move(
        self, old: str, file: File, *, date: Date, created: float, modified: float, indexed_ns: int
    ) -> int:
        """Give a note another path and nothing else: no id changes, nothing is embedded.

        For a note whose title is not its file name; otherwise `put(…, was=old)`.
        """
        stamp = Stamp(file, date, created, modified, indexed_ns)
        return self._change(write.move, old, stamp)

    def touch(
        self, file: File, *, date: Date, created: float, modified: float, indexed_ns: int
    ) -> int:
        """Take over the stat and the dates of a file whose contents are the same."""
        return self._change(write.touch, Stamp(file, date, created, modified, indexed_ns))

    def remove(self, path: str) -> bool:
        """Delete a note; False, and no revision, when there is none at that path."""
        return self._read(read.is_stored, path) and self._change(write.remove, path)

    def set_skipped(self, found: Iterable[Skipped]) -> None:
        """Replace the list of files that were not indexed."""
        self._write(read.set_skipped, found)

    def set_last_run(self, run: Mapping[str, Any]) -> None:
        """Keep what an indexing run has to say about itself, for `counts`."""
        self._write(history.set_last_run, run)

    def fact(self, key: str) -> str:
        """Something small that a step of the write path remembers; empty before it is set."""
        return str(self._read(history.fact, f"fact {key}") or "")

    def set_fact(self, key: str, value: str) -> None:
        self._write(history.set_fact, f"fact {key}", value)

    # History.

    @property
    def identity(self) -> str:
        """Tells this catalogue from one made again in its place."""
        return str(self._read(history.fact, "identity"))

    @property
    def revision(self) -> int:
        """How many changes were made since this catalogue was."""
        return self._read(history.revision)

    def can_catch_up(self, identity: str, since: int) -> bool:
        """Whether a cache of that stamp can be brought up to date instead of made again."""
        return self._read(history.can_catch_up, identity, since)

    def chunks_since(self, since: int) -> list[ChunkRef]:
        """Chunks added after a revision and still there."""
        return self._read(history.chunks_since, since)

    def removed_since(self, since: int) -> list[int]:
        """Ids of chunks removed after a revision."""
        return self._read(history.removed_since, since)

    def removed_notes_since(self, since: int) -> list[int]:
        """Ids of notes removed after a revision."""
        return self._read(history.removed_notes_since, since)

    def tombstones(self, since: int = 0) -> int:
        """How many passages and notes were removed after a revision, where that is remembered."""
        return self._read(history.tombstones, since)

    def notes_since(self, since: int) -> list[tuple[int, str]]:
        """(id, path) of notes put or moved after a revision."""
        return self._read(history.notes_since, since)

    def removed_before(self, when: float) -> int:
        """The revision up to which everything was removed before a moment."""
        return self._read(history.removed_before, when)

    def forget_tombstones(self, upto: int) -> None:
        """Drop the removals up to a revision that every cache has reached."""
        self._write(history.forget_tombstones, upto)

    # Caches: see caches.py. Only the holder of the writer's lock changes them.

    def cache(self, name: str) -> Cache | None:
        """The current cache of this name."""
        return self._read(caches.cache, name)

    def caches(self) -> list[Cache]:
        """Every current cache, by name."""
        return self._read(caches.caches)

    def cache_folder(self, cache: Cache) -> Path:
        """Where a cache lies."""
        return caches.place(self.folder, cache)

    def rebuild_cache(self, wanted: Cache, build: Callable[[Path], None]) -> Cache:
        """Have `build` fill a new folder, then switch to it; the current cache answers until then.

        The number of `wanted` is chosen here. When `build` raises, nothing has changed.
        """
        current = self.cache(wanted.name)
        last = wanted._replace(number=current.number if current else 0)
        numbered, home = caches.next_place(self.folder, last)
        try:
            build(home)
            finished = caches.with_files(home, numbered)
            self.set_cache(finished)
        except BaseException:
            discard(home)
            raise
        if current:
            discard(self.cache_folder(current))
        return finished

    def stamp_cache(self, cache: Cache) -> Cache:
        """Record what an update in place has reached, and what its files look like now."""
        stamped = caches.with_files(self.cache_folder(cache), cache)
        self.set_cache(stamped)
        return stamped

    def set_cache(self, cache: Cache) -> None:
        """Make a cache the current one of its name."""
        self._write(caches.set_cache, cache)

    def drop_cache(self, name: str) -> None:
        """Let no cache of this name be current."""
        self._write(caches.drop_cache, name)

    def check_cache(self, cache: Cache, *, thorough: bool = True) -> None:
        """Raise CacheBroken unless every file of a cache is as it was written."""
        caches.check(self.cache_folder(cache), cache, thorough=thorough)

    def sweep_caches(self) -> None:
        """Delete every cache that is not current, such as one a killed rebuild has left."""
        caches.sweep(self.folder, self.caches())
