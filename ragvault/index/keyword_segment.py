"""Segment: a part of a keyword index that is written once and then only read.

Three files, made with Whoosh's codec:

    .trm   Whoosh's ordered hash of (field, term) -> where its block is
    .pst   the blocks: documents, counts and places of one term as rows of 16-bit numbers
    .npz   ids and lengths of the documents

Whoosh's own postings are pickled tuples, 128 to a block, and are walked one by one in Python. A
block here is one read and no loop, so that terms are scored as arrays. A segment knows nothing of
scores, and not which of its documents were removed since.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from whoosh.codec import base
from whoosh.codec.whoosh3 import W3Codec, W3Segment
from whoosh.fields import TEXT
from whoosh.filedb.filestore import FileStorage
from whoosh.reading import TermNotFound

from ragvault.ports import CacheBroken

if TYPE_CHECKING:
    from numpy.typing import NDArray

INDEX = "keyword"  # the first half of every file name
LIMIT = 0xFFFF  # documents of a segment and places of a passage: they are 16-bit numbers
SQUEEZED = 512  # bytes from which deflating pays: it halves the postings of a large vault
_SIZES = Struct("<IIII")
# numpy reads the heads of columns by Python's parser, which in some releases counts how deep it is
# for all threads together: one of eight readers met "AST constructor recursion depth mismatch".
_PARSING = threading.Lock()
EXTENSIONS = (".trm", ".pst", ".npz")

Columns = dict[str, "NDArray[np.int64]"]


@dataclass(frozen=True, slots=True)
class Block:
    """The documents of one segment that hold one term, in order, how often, and where."""

    docs: NDArray[np.uint16]
    counts: NDArray[np.uint16]
    places: NDArray[np.uint16]  # those of the first document, then those of the second, ...

    def pack(self) -> bytes:
        """As it stands in the file: sizes, then documents and counts, then places."""
        steps = self.docs.copy()
        steps[1:] -= self.docs[:-1]
        head = _squeeze(np.concatenate((steps, self.counts)))
        tail = _squeeze(self.places)
        return _SIZES.pack(len(self.docs), len(self.places), len(head), len(tail)) + head + tail

    @classmethod
    def read(cls, get: Callable[[int, int], bytes], start: int, places: bool) -> Block:
        """`get` gives so many bytes of a file from a place; scoring does not need the places."""
        docs, many, head, tail = _SIZES.unpack(get(start, _SIZES.size))
        start += _SIZES.size
        rows = _unsqueeze(get(start, head), 2 * docs)
        where = _unsqueeze(get(start + head, tail), many) if places else rows[:0]
        return cls(np.cumsum(rows[:docs], dtype=np.uint16), rows[docs:], where)

    def kept(self, renumber: NDArray[np.int64]) -> Block:
        """Only the documents that have a new number, under that number; -1 is none."""
        numbers = renumber[self.docs]
        keep = numbers >= 0
        return Block(
            numbers[keep].astype("<u2"),
            self.counts[keep],
            self.places[np.repeat(keep, self.counts)],
        )


def _squeeze(numbers: NDArray[np.uint16]) -> bytes:
    """Small: low bytes first, then high ones, and deflated where that pays."""
    data = numbers.tobytes()
    if len(data) < SQUEEZED:
        return data
    halves = np.frombuffer(data, dtype=np.uint8).reshape(-1, 2).T.tobytes()
    squeezed = zlib.compress(halves, 1)
    return squeezed if len(squeezed) < len(data) else data


def _unsqueeze(data: bytes, count: int) -> NDArray[np.uint16]:
    if len(data) == 2 * count:
        return np.frombuffer(data, dtype="<u2")
    halves = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(2, count)
    return np.ascontiguousarray(halves.T).reshape(-1).view("<u2")


class _BlockWriter(base.PostingsWriter):  # type: ignore[misc]
    """Takes a whole block where Whoosh gives one posting: `id_` is how many documents it holds."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def start_postings(self, format_: object, terminfo: Any) -> None:
        self._info, self._start = terminfo, self._file.tell()

    def add_posting(self, id_: int, weight: float, vbytes: bytes, length: object = None) -> None:
        self._info._df, self._info._weight = id_, weight
        self._file.write(vbytes)

    def finish_postings(self) -> Any:
        self._info.set_extent(self._start, self._file.tell() - self._start)
        return self._info

    def written(self) -> bool:
        return bool(self._file.tell() > self._start)


class _Codec(W3Codec):  # type: ignore[misc]
    """Whoosh's codec with blocks in place of its postings."""

    def postings_writer(self, dbfile: Any, byteids: bool = False) -> _BlockWriter:
        return _BlockWriter(dbfile)

    def postings_reader(
        self, dbfile: Any, terminfo: Any, format_: object, term: object = None, scorer: Any = None
    ) -> Block:
        return Block.read(dbfile.get, terminfo.extent()[0], places=scorer is not None)


def write(
    folder: Path, blocks: Iterable[tuple[str, str, Block]], columns: Columns, fields: list[str]
) -> str:
    """Write a segment and return its name. `blocks` come sorted by field and by term's bytes."""
    storage = FileStorage(str(folder))
    # A name of our own: Whoosh draws one from `random`, which a program may have seeded.
    segment = W3Segment(_Codec(), INDEX, segid=uuid4().hex)
    writer = segment.codec().field_writer(storage, segment)
    kind = TEXT()
    for field in fields:  # all of them, so that a field has the same number in every segment
        writer.start_field(field, kind)
        writer.finish_field()
    current = ""
    for field, term, block in blocks:
        if field != current:
            writer.start_field(field, kind)
            current = field
        writer.start_term(term.encode())
        writer.add(len(block.docs), float(len(block.places)), block.pack(), 0)
        writer.finish_term()
    writer.close()
    name: str = segment.segment_id()
    with (folder / f"{name}.npz").open("wb") as file:
        narrow: dict[str, Any] = {key: _narrow(column) for key, column in columns.items()}
        np.savez(file, **narrow)
    for path in paths(folder, name):
        path.chmod(0o600)
        _to_disk(path)
    return name


def _to_disk(path: Path) -> None:
    """Before a manifest names it: after a power cut the name would be of an empty file."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def _narrow(column: NDArray[np.int64]) -> NDArray[Any]:
    """The same numbers in as few bytes as they need."""
    return column.astype(np.min_scalar_type(int(column.max()))) if len(column) else column


def paths(folder: Path, name: str) -> list[Path]:
    """The files of a segment."""
    return [folder / f"{name}{extension}" for extension in EXTENSIONS]


def load_columns(folder: Path, name: str) -> Columns:
    """Ids and lengths of a segment's documents."""
    with _PARSING, np.load(folder / f"{name}.npz", allow_pickle=False) as columns:
        return {key: columns[key].astype(np.int64) for key in columns.files}


class _Files(FileStorage):  # type: ignore[misc]
    """Knows what it opened: Whoosh leaves the first file open when a sweep took the second.

    A search looks hundreds of terms up, a few bytes each: where the system can read at a place, no
    buffer of 8 kB is filled for them.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._opened: list[Any] = []

    def open_file(self, name: str, *args: Any, **kwargs: Any) -> Any:
        file = super().open_file(name, *args, **kwargs)
        self._opened.append(file)
        if hasattr(os, "pread"):  # not on Windows
            file.get = partial(_read_at, file.file.fileno())
        return file

    def close_all(self) -> None:
        for file in self._opened:
            file.close()


def _read_at(file: int, place: int, size: int) -> bytes:
    return os.pread(file, size, place)


class Segment:
    """A segment open for reading. Any thread may ask."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self._folder = name, folder
        self.columns = load_columns(folder, name)
        segment = W3Segment(_Codec(), INDEX, segid=name.partition("_")[2])
        files = _Files(str(folder))
        try:
            self._terms = segment.codec().terms_reader(files, segment)
        except BaseException:
            files.close_all()
            raise
        self._lock = threading.Lock()  # Whoosh's files keep a position

    def block(self, field: str, term: str, *, places: bool = True) -> Block | None:
        """Who holds a term, and where if that is asked for."""
        # Whoosh hands the scorer through to the codec, which has no other use for it.
        scorer = self if places else None
        with self._reading():
            found: Block = self._terms.matcher(field, term.encode(), None, scorer=scorer)
            return found
        return None

    def holders(self, field: str, term: str) -> int:
        """How many hold a term, without reading who."""
        with self._reading():
            return int(self._terms.doc_frequency(field, term.encode()))
        return 0

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """One at a time. A term that is not there ends the block; damage is said by its name."""
        try:
            with self._lock:
                yield
        except (KeyError, TermNotFound):
            return
        except Exception as error:  # whatever Whoosh and zlib make of a damaged file
            raise CacheBroken(f"{self.name} cannot be read ({error})") from error

    def blocks(self) -> Iterator[tuple[str, str, Block]]:
        """Everything, sorted by field and by the term's bytes, in one pass over the files.

        Looking 37,000 terms up one by one took a third of the time of writing them again.
        """
        with self._reading():
            data = (self._folder / f"{self.name}.pst").read_bytes()

            def get(start: int, size: int) -> bytes:
                return data[start : start + size]

            for (field, term), info in self._terms.items():
                yield field, term.decode(), Block.read(get, info.extent()[0], places=True)

    def terms_from(self, field: str, prefix: str) -> Iterator[str]:
        """The terms of a field that begin with a prefix."""
        found: list[str] = []
        with self._reading():
            found = [term.decode() for _, term in self._within(field, prefix.encode())]
        yield from found

    def counted(self, field: str) -> dict[str, int]:
        """Every term of a field, and how many hold it."""
        counts: dict[str, int] = {}
        with self._reading():
            for (name, term), info in self._terms.items_from(field, b""):
                if name != field:
                    break
                counts[term.decode()] = info.doc_frequency()
        return counts

    def _within(self, field: str, prefix: bytes) -> Iterator[tuple[str, bytes]]:
        for name, term in self._terms.terms_from(field, prefix):
            if name != field or not term.startswith(prefix):
                return
            yield name, term

    def close(self) -> None:
        """Let go of the files. A second time does nothing."""
        terms, self._terms = self._terms, None
        if terms is not None:
            terms.close()

    def __del__(self) -> None:
        # The last search that used it may end long after a commit has replaced it.
        if hasattr(self, "_terms"):
            self.close()
