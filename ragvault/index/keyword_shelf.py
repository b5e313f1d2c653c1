"""Shelf: the folder of a keyword index, and the one file that says what is in it.

    manifest        revision, settings, and for each segment its files and its removed documents
    keyword_*.trm   segments (keyword_segment.py), never changed once written

A commit writes new segments and then replaces the manifest in one step: whoever reads sees the old
list or the new one. Files that no manifest names are what a killed writer left, and are deleted by
the next. Each file is listed with its size, its time and its checksum. A reader computes the
checksum again only where the time has changed, as git does, so that opening stays quick; a writer
does so for every file (`thorough`), because a disk that forgets a bit changes no time.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragvault.errors import refused
from ragvault.index.keyword_reached import MANIFEST
from ragvault.index.keyword_segment import INDEX, load_columns, paths
from ragvault.ports import CacheBroken

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1


class FileEntry(msgspec.Struct, frozen=True):
    """A file as it was when it was written."""

    size: int
    mtime_ns: int
    crc: int


class SegmentEntry(msgspec.Struct, frozen=True):
    """A segment: its files, and by level how many documents it has and which were removed."""

    name: str
    files: dict[str, FileEntry]
    documents: dict[str, int]
    removed: dict[str, bytes] = {}

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files.values())

    @property
    def living(self) -> int:
        """How many documents are left, of all levels."""
        return sum(int((~self.dead(level)).sum()) for level in self.documents)

    def dead(self, level: str) -> NDArray[np.bool_]:
        """Which documents of a level were removed."""
        import numpy as np

        count = self.documents[level]
        if level not in self.removed:
            return np.zeros(count, dtype=bool)
        bits = np.frombuffer(self.removed[level], dtype=np.uint8)
        return np.unpackbits(bits, count=count).astype(bool)


class Manifest(msgspec.Struct, frozen=True):
    """What an index consists of. `made_by` names everything that shapes its contents."""

    revision: int
    made_by: str
    segments: list[SegmentEntry] = []
    format: int = FORMAT


def read(folder: Path, made_by: str) -> Manifest | None:
    """The manifest, or None where there is no index yet. Raises CacheBroken on any doubt."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        return None
    crc, _, body = data.partition(b"\n")
    try:
        manifest = msgspec.json.decode(body, type=Manifest)
        intact = int(crc, 16) == zlib.crc32(body)
    except (ValueError, msgspec.DecodeError) as error:
        raise CacheBroken(f"its manifest cannot be read ({error})") from None
    if not intact:
        raise CacheBroken("its manifest is damaged")
    if manifest.format != FORMAT or manifest.made_by != made_by:
        raise CacheBroken("it was made with other settings or by another release")
    return manifest


def check(folder: Path, manifest: Manifest, *, thorough: bool = False) -> None:
    """Raise CacheBroken unless every file is what it was."""
    for segment in manifest.segments:
        for name, entry in segment.files.items():
            check_file(folder / name, entry, thorough=thorough)


def check_file(path: Path, entry: FileEntry, *, thorough: bool = False) -> None:
    """Raise CacheBroken unless a file is what it was."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise CacheBroken(f"{path.name} is missing") from None
    if found.st_size != entry.size:
        raise CacheBroken(f"{path.name} has another length")
    if (thorough or found.st_mtime_ns != entry.mtime_ns) and _crc(path) != entry.crc:
        raise CacheBroken(f"{path.name} is damaged")


def entry(folder: Path, name: str, documents: Mapping[str, int]) -> SegmentEntry:
    """A segment as it lies in the folder now."""
    files = {path.name: file_entry(path) for path in paths(folder, name)}
    return SegmentEntry(name, files, dict(documents))


def file_entry(path: Path, known: FileEntry | None = None) -> FileEntry:
    """A file as it is now; its checksum is taken from `known` where that is still true."""
    stat = path.stat()
    if known and (known.size, known.mtime_ns) == (stat.st_size, stat.st_mtime_ns):
        return known
    return FileEntry(stat.st_size, stat.st_mtime_ns, _crc(path))


def ids(folder: Path, name: str) -> dict[str, NDArray[np.int64]]:
    """The ids of a segment's documents, by level."""
    import numpy as np

    none = np.zeros(0, dtype=np.int64)
    columns = load_columns(folder, name)
    return {level: columns.get(f"{level}.id", none) for level in ("note", "passage")}


def without(segment: SegmentEntry, dead: Mapping[str, NDArray[np.bool_]]) -> SegmentEntry:
    """The same segment with these documents removed."""
    import numpy as np

    removed = {level: np.packbits(mask).tobytes() for level, mask in dead.items() if mask.any()}
    return msgspec.structs.replace(segment, removed=removed)


def write(folder: Path, manifest: Manifest) -> None:
    """Make this the truth in one step, then delete the files it does not name."""
    body = msgspec.json.encode(manifest)
    fresh = folder / f"{MANIFEST}.new"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
            file.write(b"%08x\n" % zlib.crc32(body) + body)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / MANIFEST)
    except OSError as error:
        raise refused(folder, error) from error
    sweep(folder, manifest)


def sweep(folder: Path, manifest: Manifest | None) -> None:
    """Delete what a killed writer or an older commit left. Readers keep what they have open."""
    named = {name for segment in manifest.segments for name in segment.files} if manifest else set()
    for path in folder.iterdir():
        if path.name.startswith(f"{INDEX}_") and path.name not in named:
            # Windows deletes nothing that a reader has open; the next commit does.
            with suppress(PermissionError):
                path.unlink(missing_ok=True)


def _crc(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            crc = zlib.crc32(block, crc)
    return crc
