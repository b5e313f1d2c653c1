"""How a vector index writes: segments, logs, and the manifest that makes them count.

A writer only makes files; what is asked for, and when, is decided in vector.py. Until `publish`
nothing that it wrote is named anywhere, and an interrupted run leaves only what the next one sweeps
away.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ragvault.config.settings import Vector
from ragvault.index import vector_files as files
from ragvault.index import vector_log, vector_segment
from ragvault.index.vector_state import Part, State, sorted_rows
from ragvault.ports import FetchVectors

Rows = Mapping[int, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Limits:
    """When something becomes something else; tests make them small."""

    log_bytes: int = 2_400_000  # becomes a segment of a quarter of that: an edit writes < 1 MB
    full: int = 10_000  # rows of a segment while search is exact: 4 MB at 384 dimensions
    full_in_lists: int = 65_536  # rows of one with lists: larger ones need a smaller share probed
    small: int = 4  # so many segments less than half full are worth merging
    rotten: float = 0.25  # a segment with more dead rows than this share is written again


@dataclass(slots=True)
class Edits:
    """What has been asked for since the last commit."""

    added: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)  # whatever they were before, they are not now
    spilled: list[Part] = field(default_factory=list)  # more additions than memory should hold

    def touch(self, ids: NDArray[np.int64]) -> None:
        self.touched.update(ids.tolist())
        ascending = np.sort(ids)
        self.spilled = [part.without(part.rows_of(ascending)) for part in self.spilled]


class Writer:
    """Makes the files of one index."""

    def __init__(self, folder: Path, dim: int, fetch: FetchVectors, settings: Vector) -> None:
        self._folder, self._dim, self._fetch, self._settings = folder, dim, fetch, settings
        self._pieces: dict[int, files.SegmentPiece] = {}
        self._number = 0

    def follow(self, manifest: files.Manifest) -> None:
        """Number files after those of this manifest."""
        self._number = max(self._number, manifest.next)

    def segment(self, rows: Rows) -> list[Part]:
        """These rows as a new segment; no rows make none."""
        return [self._segment(*sorted_rows(rows), in_lists=False)] if rows else []

    def rewritten(self, parts: Sequence[Part], *, in_lists: bool = False) -> list[Part]:
        """What still counts in these parts as one, from the catalogue's vectors: no error adds up.

        What the catalogue no longer knows is left out.
        """
        ids = np.sort(np.concatenate([part.ids for part in parts]))
        vectors = self._fetch(ids) if len(ids) else np.empty((0, self._dim), np.float32)
        known = ~np.isnan(vectors).any(axis=1)
        if not known.any():
            return []
        return [self._segment(ids[known], vectors[known], in_lists=in_lists)]

    def _segment(
        self, ids: NDArray[np.int64], vectors: NDArray[np.float32], *, in_lists: bool
    ) -> Part:
        threads, number = self._settings.threads, self._new_number()
        contents, error = vector_segment.build(ids, vectors, in_lists=in_lists, threads=threads)
        path = files.segment_path(self._folder, number)
        crc = files.write_file(path, contents)
        self._pieces[number] = files.SegmentPiece(number, len(contents), crc, error)
        return Part(vector_segment.load(path, number, error, self._dim))

    def append(self, log: files.Piece, records: bytes) -> files.Piece:
        """The log as it is with these records at its end."""
        if records:
            files.append(files.log_path(self._folder, log.number), log.size, records)
        return files.Piece(log.number, log.size + len(records), zlib.crc32(records, log.crc))

    def new_log(self, parts: Iterable[Part], tail: Rows) -> files.Piece:
        """A log that says no more than which rows are dead and what is in no segment."""
        number = self._new_number()
        struck = [vector_log.struck(part.segment.number, part.dead()) for part in parts]
        records = b"".join([*struck, vector_log.added(tail)])
        crc = files.write_file(files.log_path(self._folder, number), records)
        return files.Piece(number, len(records), crc)

    def publish(
        self,
        before: State,
        *,
        revision: int,
        parts: Iterable[Part],
        tail: Rows,
        log: files.Piece,
        spared: Iterable[Part] = (),
    ) -> State:
        """Make this the index, all at once. `spared` are segments of a commit to come."""
        parts = tuple(part for part in parts if part.live)
        known = {piece.number: piece for piece in before.manifest.segments} | self._pieces
        segments = tuple(known[part.segment.number] for part in parts)
        manifest = replace(
            before.manifest, revision=revision, next=self._number, log=log, segments=segments
        )
        files.write_manifest(self._folder, manifest)
        numbers = {part.segment.number for part in spared}
        self._pieces = {n: piece for n, piece in self._pieces.items() if n in numbers}
        files.sweep(self._folder, manifest, numbers)
        return State(manifest, parts, tail)

    def _new_number(self) -> int:
        number, self._number = self._number, self._number + 1
        return number


def due(state: State, full: int, limits: Limits) -> list[Part]:
    """The parts that are best written again as one, or none."""
    small = sorted((part for part in state.parts if 2 * part.live < full), key=lambda p: p.live)
    if len(small) >= limits.small:
        total = np.cumsum([part.live for part in small])
        return small[: max(2, int(np.searchsorted(total, full, side="right")))]
    healthy = 1 - limits.rotten
    return [p for p in state.parts if p.live < healthy * len(p.segment.ids)][:1]
