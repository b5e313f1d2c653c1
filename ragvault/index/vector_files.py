"""The files of a vector index: what is written, and how a reader knows that it is whole.

    manifest.json        which files there are, how long each is, and its checksum
    segment-000012.faiss passages that no longer change, in FAISS's own format
    log-000013.bin       what changed since, appended

Only the manifest is ever replaced, and it is never mapped; every other name is used once. So a
commit is one rename, a reader keeps what it has open, and a file that is shorter or other than
the manifest says is known to be broken before a byte of it is believed.

Nothing here knows what a vector is.
"""

from __future__ import annotations

import mmap
import os
import shutil
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from ragvault.errors import IndexUnusable, refused
from ragvault.ports import CacheBroken

FORMAT = 1
MANIFEST = "manifest.json"


class Piece(msgspec.Struct, frozen=True):
    """A file as it was when it was committed; what a log has beyond that is not yet true."""

    number: int
    size: int  # bytes
    crc: int


class SegmentPiece(Piece, frozen=True):
    """`error`: how far, at most, a stored vector is from the true one."""

    error: float


class Manifest(msgspec.Struct, frozen=True):
    """`revision` is the catalogue's: what is in these files is what was true then."""

    format: int
    model: str
    dim: int
    revision: int
    next: int  # the number that the next file gets
    log: Piece
    segments: tuple[SegmentPiece, ...] = ()


class _Format(msgspec.Struct):
    format: int


def segment_path(folder: Path, number: int) -> Path:
    return folder / f"segment-{number:06}.faiss"


def log_path(folder: Path, number: int) -> Path:
    return folder / f"log-{number:06}.bin"


def make_folder(folder: Path) -> None:
    """For its owner alone; one that is there is left as it is, and anything else makes room."""
    try:
        for each in (folder.parent, folder):  # parents=True would leave those above open to others
            if each.is_file() or (each.is_symlink() and not each.exists()):
                each.unlink()
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (folder / MANIFEST).is_dir():
            shutil.rmtree(folder / MANIFEST)
    except OSError as error:
        raise _unusable(folder, error) from error


def read_manifest(folder: Path) -> Manifest:
    """What the folder says it holds. Raises CacheBroken when it does not say it clearly."""
    try:
        body, _, crc = (folder / MANIFEST).read_bytes().partition(b"\n")
    except OSError as error:
        raise CacheBroken(f"it has no manifest to read: {error.strerror}") from error
    if crc != _crc_line(body):
        raise CacheBroken("its manifest is damaged")
    try:
        made = msgspec.json.decode(body, type=_Format).format
        if made != FORMAT:
            raise CacheBroken(f"the vectors have format {made}; this ragvault reads {FORMAT}")
        return msgspec.json.decode(body, type=Manifest)
    except msgspec.MsgspecError as error:
        raise CacheBroken(f"its manifest cannot be understood: {error}") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """The commit: before it nothing has happened, after it everything has."""
    body = msgspec.json.encode(manifest)
    waiting = folder / f"{MANIFEST}.new"
    write_file(waiting, body + b"\n" + _crc_line(body))
    try:
        replace(waiting, folder / MANIFEST)
        _sync_folder(folder)
    except OSError as error:
        raise _unusable(folder, error) from error


def write_file(path: Path, contents: bytes) -> int:
    """A private file, on the disk when this returns. Returns its checksum."""
    append(path, 0, contents)
    return zlib.crc32(contents)


def append(path: Path, size: int, contents: bytes) -> None:
    """Cut a file to `size` bytes and go on from there: an interrupted commit leaves nothing."""
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR | BINARY, 0o600), "r+b") as file:
            file.truncate(size)
            file.seek(size)
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unusable(path.parent, error) from error


def check(path: Path, piece: Piece) -> None:
    """Raises CacheBroken unless the file is what was committed; FileNotFoundError if it is gone."""
    if path.stat().st_size != piece.size:
        raise CacheBroken(f"{path.name} has another length than when it was written")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        if zlib.crc32(mapped) != piece.crc:
            raise CacheBroken(f"{path.name} is damaged")


def read_log(path: Path, piece: Piece) -> bytes:
    """The committed part of a log; the same exceptions as `check`."""
    with path.open("rb") as file:
        contents = file.read(piece.size)
    if len(contents) != piece.size or zlib.crc32(contents) != piece.crc:
        raise CacheBroken(f"{path.name} is damaged")
    return contents


def sweep(folder: Path, manifest: Manifest, spared: Iterable[int] = ()) -> None:
    """Delete what neither the manifest names nor `spared`, the segments of a commit to come.

    What another process still has mapped (Windows) goes another time.
    """
    segments = (*(piece.number for piece in manifest.segments), *spared)
    named = {log_path(folder, manifest.log.number), *(segment_path(folder, n) for n in segments)}
    for path in _ours(folder):
        if path not in named:
            with suppress(OSError):
                path.unlink()


def free_number(folder: Path) -> int:
    """Higher than any number in use: a name that somebody may have mapped is not written to."""
    numbers = (path.stem.rpartition("-")[2] for path in _ours(folder))
    return 1 + max((int(number) for number in numbers if number.isdigit()), default=0)


def _ours(folder: Path) -> Iterable[Path]:
    return [*folder.glob("segment-*.faiss"), *folder.glob("log-*.bin")]


def _crc_line(body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body)


def replace(source: Path, target: Path) -> None:
    """Windows refuses while someone reads the old file, which takes them a millisecond."""
    for _ in range(50):
        with suppress(PermissionError):
            source.replace(target)
            return
        time.sleep(0.02)
    source.replace(target)


def _sync_folder(folder: Path) -> None:
    """A rename is on the disk when its folder is. Windows cannot open folders and needs not."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _unusable(folder: Path, error: OSError) -> IndexUnusable:
    return refused(folder, error)


BINARY = getattr(os, "O_BINARY", 0)  # Windows would write a newline as two bytes
