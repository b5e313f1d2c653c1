"""The log: what changed since the last segment was written, one record after another.

    A  count, ids, vectors     these passages are new, in full precision
    R  count, ids              these are no longer among the log's own passages
    D  segment, count, rows    these rows of a segment no longer count

Rows and not ids are struck out of segments, because an id that is replaced is in two places: dead
in an old segment and alive in a newer one. Records of a segment that has since been rewritten mean
nothing and are skipped. The manifest knows how long the log is and its checksum; the log does not.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragvault.ports import CacheBroken

_HEAD = struct.Struct("<cII")  # kind, segment, count
_IDS, _ROWS, _NUMBERS = np.dtype("<i8"), np.dtype("<u4"), np.dtype("<f4")


@dataclass(slots=True)
class Replayed:
    """What a log comes to: the passages in it, and the dead rows of each segment."""

    tail: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    dead: dict[int, list[NDArray[Any]]] = field(default_factory=dict)


def added(passages: Mapping[int, NDArray[np.float32]]) -> bytes:
    if not passages:
        return b""
    vectors = np.stack(list(passages.values())).astype(_NUMBERS)
    return _HEAD.pack(b"A", 0, len(passages)) + _ids(passages) + vectors.tobytes()


def removed(ids: Mapping[int, object] | set[int]) -> bytes:
    return _HEAD.pack(b"R", 0, len(ids)) + _ids(ids) if ids else b""


def struck(segment: int, rows: NDArray[np.int64]) -> bytes:
    if not len(rows):
        return b""
    return _HEAD.pack(b"D", segment, len(rows)) + rows.astype(_ROWS).tobytes()


def replay(contents: bytes, dim: int) -> Replayed:
    """Read a log from its beginning; its checksum has been found right."""
    state, reader = Replayed(), _Reader(contents)
    while reader.more():
        kind, segment, count = _HEAD.unpack(reader.take(_HEAD.size))
        if kind == b"D":
            state.dead.setdefault(segment, []).append(reader.array(_ROWS, count))
            continue
        ids = reader.array(_IDS, count).tolist()
        if kind == b"A":
            vectors = reader.array(_NUMBERS, count * dim).reshape(count, dim)
            state.tail.update(zip(ids, vectors.astype(np.float32, copy=False), strict=True))
        elif kind == b"R":
            for passage in ids:
                state.tail.pop(passage, None)
        else:
            raise CacheBroken(f"the log has a record of unknown kind {kind!r}")
    return state


class _Reader:
    def __init__(self, contents: bytes) -> None:
        self._contents, self._at = contents, 0

    def more(self) -> bool:
        return self._at < len(self._contents)

    def take(self, size: int) -> bytes:
        taken = self._contents[self._at : self._at + size]
        if len(taken) != size:
            raise CacheBroken("the log ends in the middle of a record")
        self._at += size
        return taken

    def array(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        return np.frombuffer(self.take(dtype.itemsize * count), dtype)


def _ids(ids: Mapping[int, object] | set[int]) -> bytes:
    return np.fromiter(ids, _IDS, len(ids)).tobytes()
