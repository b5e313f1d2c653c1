"""Stamps: which commit of the catalogue tantivy's two indexes reflect, and whether they are whole.

Tantivy lists its segments itself, in meta.json. The stamp beside them holds the revision, and each
file as it was at the last commit, so that damage is met on opening and not in an answer. It does
not hold the list: tantivy merges segments when it likes. But it counts the documents, which no
merge changes: a list that lost a segment, or what was removed of one, is met by the next writer.
"""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ragvault.index import keyword_shelf
from ragvault.index.keyword_reached import MANIFEST
from ragvault.index.keyword_shelf import FileEntry, Manifest, SegmentEntry
from ragvault.ports import CacheBroken

LEVELS = ("note", "passage")
META = "meta.json"
TRIES = 10  # to read a stamp whose files a writer merges away meanwhile


class _Deletes(msgspec.Struct):
    num_deleted_docs: int
    opstamp: int


class Listed(msgspec.Struct):
    """A segment as tantivy lists it."""

    segment_id: str
    max_doc: int
    deletes: _Deletes | None = None

    @property
    def name(self) -> str:
        """What the names of its files begin with."""
        return self.segment_id.replace("-", "")

    @property
    def removed(self) -> int:
        """How many of its documents were removed."""
        return self.deletes.num_deleted_docs if self.deletes else 0


class _Meta(msgspec.Struct):
    segments: list[Listed]


class Stamps:
    """The stamp of one folder."""

    def __init__(self, folder: Path, made_by: str) -> None:
        self._folder, self._made_by = folder, made_by
        self._lists = [str(folder / MANIFEST)]
        self._lists += [str(folder / level / META) for level in LEVELS]
        self._known: _Known | None = None

    def read(self) -> Manifest:
        """The last commit's, with every file checked that an index still uses.

        Every search asks: where nothing has changed since, a look at each file is all it takes.
        """
        lists = [_bytes(path) for path in self._lists]
        if self._known is None or not self._known.holds(lists):
            stamp = self._checked()
            used = self._in_use(stamp, self._used())
            files = [(str(path), entry) for path, entry in used]
            self._known = _Known(lists, stamp, files)
        return self._known.stamp

    def _checked(self) -> Manifest:
        for _ in range(TRIES):
            used = self._used()
            stamp = keyword_shelf.read(self._folder, self._made_by)
            if stamp is None:
                return Manifest(0, self._made_by)
            try:
                self._check(stamp, used)
                return stamp
            except CacheBroken:
                # Damage, or a writer that merged the file away between our two looks?
                if self._used() == used:
                    raise
        raise CacheBroken("its files change faster than they can be read")

    def verify(self) -> None:
        """Raise CacheBroken unless every byte is what it was at the last commit. For the writer."""
        stamp = self.read()
        self._check(stamp, self._used(), thorough=True)
        for segment in stamp.segments:
            if segment.documents and segment.documents != self._documents():
                raise CacheBroken(f"{META} lists other documents than were written")

    def write(self, revision: int, old: Manifest) -> None:
        """Stamp what is in the folder now."""
        entry = SegmentEntry("tantivy", self._files(old), self._documents())
        keyword_shelf.write(self._folder, Manifest(revision, self._made_by, [entry]))

    def segments(self, level: str) -> list[Listed]:
        """Tantivy's own list of an index's segments."""
        try:
            body = (self._folder / level / META).read_bytes()
            return msgspec.json.decode(body, type=_Meta).segments
        except FileNotFoundError:
            return []
        except (ValueError, msgspec.MsgspecError) as error:
            raise CacheBroken(f"{META} cannot be read ({error})") from error

    def _documents(self) -> dict[str, int]:
        """How many documents each index has, without those that were removed."""
        return {
            level: sum(each.max_doc - each.removed for each in self.segments(level))
            for level in LEVELS
        }

    def _check(self, stamp: Manifest, used: set[str], *, thorough: bool = False) -> None:
        for path, entry in self._in_use(stamp, used):
            keyword_shelf.check_file(path, entry, thorough=thorough)

    def _in_use(self, stamp: Manifest, used: set[str]) -> list[tuple[Path, FileEntry]]:
        """The files that tantivy still lists, as they were at the last commit."""
        return [
            (self._folder / name, entry)
            for segment in stamp.segments
            for name, entry in segment.files.items()
            if _is_used(Path(name).name, used)
        ]

    def _used(self) -> set[str]:
        """The first halves of the names of all files in use, and those that list what is removed.

        A commit that removes more writes a list of its own, before there is a stamp that knows it.
        """
        used = set()
        for segment in (each for level in LEVELS for each in self.segments(level)):
            opstamp = segment.deletes.opstamp if segment.deletes else None
            used |= {segment.name, f"{segment.name}.{opstamp}.del"}
        return used

    def _files(self, old: Manifest) -> dict[str, FileEntry]:
        """Every file of both indexes, read again only where it has changed."""
        known = {name: entry for part in old.segments for name, entry in part.files.items()}
        files = {}
        for path in sorted(self._folder.glob("*/*")):
            path.chmod(0o600)  # tantivy asks only the umask
            if path.suffix not in (".json", ".lock"):
                name = path.relative_to(self._folder).as_posix()
                files[name] = keyword_shelf.file_entry(path, known.get(name))
        return files


class _Known(NamedTuple):
    """What was read, and the files it vouches for."""

    lists: Sequence[bytes]
    stamp: Manifest
    files: Sequence[tuple[str, FileEntry]]

    def holds(self, lists: Sequence[bytes]) -> bool:
        """Whether the lists say the same and each file has its size and time."""
        return lists == self.lists and all(_looks_alike(path, entry) for path, entry in self.files)


def _is_used(name: str, used: Container[str]) -> bool:
    return name in used if name.endswith(".del") else name.partition(".")[0] in used


def _looks_alike(path: str, entry: FileEntry) -> bool:
    try:
        found = os.stat(path)  # noqa: PTH116 - forty of them in every search
    except OSError:
        return False
    return (found.st_size, found.st_mtime_ns) == (entry.size, entry.mtime_ns)


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return file.read()
    except OSError:
        return b""
