"""What one commit of a vector index holds, opened: the thing that a search looks at.

A state never changes. A writer makes the next one beside it, so a search that has begun goes on
with what it began with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragvault.index import vector_files as files
from ragvault.index import vector_log, vector_segment
from ragvault.index.vector_segment import Segment
from ragvault.ports import Allowed, CacheBroken


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A segment and which of its rows still count; None is all of them."""

    segment: Segment
    alive: NDArray[np.bool_] | None = None

    @property
    def live(self) -> int:
        alive = self.alive
        return len(self.segment.ids) if alive is None else int(np.count_nonzero(alive))

    @property
    def ids(self) -> NDArray[np.int64]:
        return self.segment.ids if self.alive is None else self.segment.ids[self.alive]

    def dead(self) -> NDArray[np.int64]:
        """Rows that no longer count."""
        return np.empty(0, np.int64) if self.alive is None else np.flatnonzero(~self.alive)

    def without(self, rows: NDArray[np.integer]) -> Part:
        """Strike out rows."""
        if not len(rows):
            return self
        alive = np.ones(len(self.segment.ids), bool) if self.alive is None else self.alive.copy()
        alive[rows] = False
        return Part(self.segment, alive)

    def rows_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where those of the ids stand that still count here; ids ascend."""
        own = self.segment.ids
        at = np.searchsorted(own, ids)
        at[at == len(own)] = 0
        rows = at[own[at] == ids] if len(own) else at[:0]
        return rows if self.alive is None else rows[self.alive[rows]]

    def keep(self, allowed: Allowed) -> NDArray[np.bool_] | None:
        """Rows that count and are allowed; None is all of them."""
        if allowed is None:
            return self.alive
        permitted = permits(allowed, self.segment.ids)
        return permitted if self.alive is None else permitted & self.alive


@dataclass(frozen=True, eq=False)
class State:
    """A manifest and what it names. `tail` holds the passages that are only in the log."""

    manifest: files.Manifest
    parts: tuple[Part, ...] = ()
    tail: Mapping[int, NDArray[np.float32]] = field(default_factory=dict)

    @cached_property
    def searched(self) -> tuple[Part, ...]:
        """Every part a search looks at, the tail among them."""
        if not self.tail:
            return self.parts
        ids, vectors = sorted_rows(self.tail)
        return (*self.parts, Part(vector_segment.in_memory(ids, vectors)))

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """All passages, ascending."""
        ids = [part.ids for part in self.searched]
        return np.sort(np.concatenate(ids)) if ids else np.empty(0, np.int64)

    @cached_property
    def size(self) -> int:
        return len(self.tail) + sum(part.live for part in self.parts)


def load(folder: Path, previous: State | None = None) -> State:
    """Open the newest commit; segments that `previous` has open are not opened again.

    A writer may delete a file between our reading its name and our opening it. Then there is a
    newer manifest; when there is not, the file is simply missing.
    """
    manifest = files.read_manifest(folder)
    while previous is None or manifest != previous.manifest:
        try:
            return _open(folder, manifest, previous)
        except FileNotFoundError as error:  # noqa: PERF203 - each turn reads files
            tried, manifest = manifest, files.read_manifest(folder)
            if manifest == tried:
                raise CacheBroken(f"{error.filename} is missing") from error
    return previous


def settled(allowed: Allowed) -> Allowed:
    """The same permission, ready to be asked by one segment after another: its ids ascend."""
    if allowed is None or callable(allowed) or allowed.dtype == np.bool_:
        return allowed
    return np.sort(allowed).astype(np.int64, copy=False)


def permits(allowed: Allowed, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these ids, ascending, are allowed by a settled permission."""
    if allowed is None:
        return np.ones(len(ids), bool)
    if callable(allowed):
        return allowed(ids)
    if allowed.dtype == np.bool_:
        return _marked(ids, allowed)
    return _among(ids, allowed)


def _marked(ids: NDArray[np.int64], bitmap: NDArray[Any]) -> NDArray[np.bool_]:
    """Ids beyond the bitmap's end are not allowed."""
    mask = np.zeros(len(ids), bool)
    within = (ids >= 0) & (ids < len(bitmap))
    mask[within] = bitmap[ids[within]]
    return mask


def sorted_rows(
    rows: Mapping[int, NDArray[np.float32]],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Ids, ascending, and their vectors as one matrix."""
    ids = np.array(sorted(rows), np.int64)
    return ids, np.stack([rows[passage] for passage in ids.tolist()])


def _among(ids: NDArray[np.int64], allowed: NDArray[Any]) -> NDArray[np.bool_]:
    """Both ascend, and the shorter is looked up in the longer."""
    mask = np.zeros(len(ids), bool)
    if not len(ids) or not len(allowed):
        return mask
    if len(allowed) > len(ids):
        at = np.minimum(np.searchsorted(allowed, ids), len(allowed) - 1)
        mask[:] = allowed[at] == ids
    else:
        at = np.minimum(np.searchsorted(ids, allowed), len(ids) - 1)
        mask[at[ids[at] == allowed]] = True
    return mask


def _open(folder: Path, manifest: files.Manifest, previous: State | None) -> State:
    log = files.read_log(files.log_path(folder, manifest.log.number), manifest.log)
    replayed = vector_log.replay(log, manifest.dim)
    opened = {part.segment.number: part.segment for part in previous.parts} if previous else {}
    parts = []
    for piece in manifest.segments:
        segment = opened.get(piece.number) or _segment(folder, piece, manifest.dim)
        parts.append(_part(segment, replayed.dead.get(piece.number, ())))
    return State(manifest, tuple(parts), replayed.tail)


def _segment(folder: Path, piece: files.SegmentPiece, dim: int) -> Segment:
    path = files.segment_path(folder, piece.number)
    files.check(path, piece)
    return vector_segment.load(path, piece.number, piece.error, dim)


def _part(segment: Segment, dead: Sequence[NDArray[Any]]) -> Part:
    rows = np.concatenate(dead) if dead else np.empty(0, np.int64)
    if len(rows) and rows.max() >= len(segment.ids):
        raise CacheBroken("the log strikes out rows that its segment does not have")
    return Part(segment).without(rows)
