"""The vector index: passages by meaning, in FAISS, always true and never rewritten whole.

    search   every segment is scanned by its 8-bit vectors, the best are scored by the catalogue's
    commit   what changed is appended to a log; a full log becomes a segment
    merge    small segments become a larger one, a bounded step at a time
    compact  segments and logs that hold removed passages are written again without them

Up to `vector.exact_max` passages the answer is exact. Above it, merged segments are kept in lists
(IVF), of which a search probes `vector.probe`.

It is a cache: it knows ids, vectors and a revision, and nothing of notes. When its files cannot be
trusted it raises CacheBroken and the caller makes it again from the catalogue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragvault.config.settings import Vector
from ragvault.index import vector_best, vector_log, vector_state
from ragvault.index import vector_files as files
from ragvault.index.ids import among
from ragvault.index.vector_state import Part, State
from ragvault.index.vector_write import Edits, Limits, Writer, due
from ragvault.ports import Allowed, CacheBroken, FetchVectors

Done = Callable[[], None]


class FaissIndex:
    """An open vector index; keeps the promises of ports.VectorIndex."""

    def __init__(
        self,
        folder: Path,
        state: State,
        fetch: FetchVectors,
        settings: Vector,
        limits: Limits,
        done: Done,
    ) -> None:
        self._folder, self._state, self._fetch, self._done = folder, state, fetch, done
        self._settings, self._limits = settings, limits
        self._edits = Edits()
        self._writer = Writer(folder, state.manifest.dim, fetch, settings)
        self._writer.follow(state.manifest)
        self._changing = threading.RLock()

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        model: str,
        dim: int,
        fetch: FetchVectors,
        settings: Vector | None = None,
        limits: Limits | None = None,
        done: Done = lambda: None,
    ) -> FaissIndex:
        """Open what is there; `done` is called when it is closed.

        Raises CacheBroken when it is missing, damaged or not of `model`.
        """
        state = vector_state.load(folder)
        _same_model(state, model, dim)
        return cls(folder, state, fetch, settings or Vector(), limits or Limits(), done)

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        model: str,
        dim: int,
        fetch: FetchVectors,
        settings: Vector | None = None,
        limits: Limits | None = None,
        done: Done = lambda: None,
    ) -> FaissIndex:
        """Begin an empty one, in place of whatever is in the folder."""
        files.make_folder(folder)
        number = files.free_number(folder)
        log = files.Piece(number, 0, files.write_file(files.log_path(folder, number), b""))
        manifest = files.Manifest(files.FORMAT, model, dim, 0, number + 1, log)
        files.write_manifest(folder, manifest)
        files.sweep(folder, manifest)
        return cls(folder, State(manifest), fetch, settings or Vector(), limits or Limits(), done)

    # --- Asking ---

    @property
    def model(self) -> str:
        return self._state.manifest.model

    @property
    def dim(self) -> int:
        return self._state.manifest.dim

    @property
    def revision(self) -> int:
        return self._state.manifest.revision

    @property
    def exact(self) -> bool:
        """Is an answer of now exact, or may it miss something?"""
        return not any(part.segment.lists for part in self._state.parts)

    def __len__(self) -> int:
        return self._state.size

    def ids(self) -> NDArray[np.int64]:
        return self._state.ids

    def search(
        self, query: NDArray[np.float32], *, limit: int, allowed: Allowed = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        state, settings = self._state, self._settings
        query = self._unit(query)[0]
        if limit < 1:
            return np.empty(0, np.int64), np.empty(0)
        scan = vector_best.Scan(
            state.searched, query, allowed, probe=settings.probe, threads=settings.threads
        )
        truth = vector_best.cosines(query, self._fetch)
        return vector_best.best(scan, truth, limit, len(state.searched))

    def scores_of(self, query: NDArray[np.float32], passages: ArrayLike) -> NDArray[np.float64]:
        ids = np.asarray(passages, np.int64)
        scores = np.full(len(ids), np.nan)
        here = among(ids, self._state.ids)
        if here.any():
            scores[here] = vector_best.cosines(self._unit(query)[0], self._fetch)(ids[here])
        return scores

    def vectors_of(self, passages: ArrayLike) -> NDArray[np.float32]:
        return self._fetch(np.asarray(passages, np.int64))

    def refresh(self) -> None:
        with self._changing:
            state = vector_state.load(self._folder, self._state)
            _same_model(state, self.model, self.dim)
            self._writer.follow(state.manifest)
            self._state = state

    # --- Changing ---

    def add(self, passages: ArrayLike, vectors: NDArray[np.float32]) -> None:
        with self._changing:
            ids = np.asarray(passages, np.int64)
            rows = self._unit(vectors)
            self._edits.touch(ids)
            self._edits.added.update(zip(ids.tolist(), rows, strict=True))
            if len(self._edits.added) >= self._limits.full:
                self._edits.spilled += self._writer.segment(self._edits.added)
                self._edits.added = {}

    def remove(self, passages: ArrayLike) -> None:
        with self._changing:
            ids = np.asarray(passages, np.int64)
            self._edits.touch(ids)
            for passage in ids.tolist():
                self._edits.added.pop(passage, None)

    def commit(self, revision: int) -> None:
        with self._changing:
            state, edits, writer = self._state, self._edits, self._writer
            touched = np.array(sorted(edits.touched), np.int64)
            struck = [part.rows_of(touched) for part in state.parts]
            gone = edits.touched & state.tail.keys()
            records = _records(state.parts, struck, edits, gone)
            parts = [part.without(rows) for part, rows in zip(state.parts, struck, strict=True)]
            parts += edits.spilled
            tail = {i: row for i, row in state.tail.items() if i not in gone} | edits.added
            log = state.manifest.log
            if log.size + len(records) <= self._limits.log_bytes:
                log = writer.append(log, records)
            else:
                parts, tail = parts + writer.segment(tail), {}
                log = writer.new_log(parts, tail)
            self._state = writer.publish(state, revision=revision, parts=parts, tail=tail, log=log)
            self._edits = Edits()

    def merge(self) -> bool:
        with self._changing:
            state, limits = self._state, self._limits
            many = state.size > self._settings.exact_max
            full = limits.full_in_lists if many else limits.full
            old = due(state, full, limits)
            if old:
                in_lists = many and 2 * sum(part.live for part in old) >= full
                new = self._writer.rewritten(old, in_lists=in_lists)
                self._publish([*(p for p in state.parts if p not in old), *new])
            return bool(old)

    def compact(self) -> None:
        with self._changing:
            state = self._state
            parts: list[Part] = []
            for part in state.parts:
                holed = len(part.dead()) > 0
                in_lists = part.segment.lists > 0
                parts += self._writer.rewritten([part], in_lists=in_lists) if holed else [part]
            self._publish(parts, self._writer.new_log([], state.tail))

    def close(self) -> None:
        with self._changing:
            self._edits = Edits()
            self._state = State(self._state.manifest)
        self._done()

    def _publish(self, parts: Iterable[Part], log: files.Piece | None = None) -> None:
        """The same passages in other files. What is not yet committed stays so."""
        state = self._state
        self._state = self._writer.publish(
            state,
            revision=state.manifest.revision,
            parts=parts,
            tail=state.tail,
            log=log or state.manifest.log,
            spared=self._edits.spilled,
        )

    def _unit(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rows of our own, checked: one vector that is no unit vector would spoil every answer."""
        rows = np.array(vectors, np.float32, ndmin=2, order="C")
        if rows.shape[1:] != (self.dim,):
            raise ValueError(f"vectors of {self.model} have {self.dim} numbers, not {rows.shape}")
        lengths = np.linalg.norm(rows, axis=1)
        if not np.all(np.abs(lengths - 1) < 0.01):
            raise ValueError("vectors must have length 1")
        return rows


def _same_model(state: State, model: str, dim: int) -> None:
    made = state.manifest
    if (made.model, made.dim) != (model, dim):
        raise CacheBroken(f"the vectors are of {made.model} ({made.dim}), not {model} ({dim})")


def _records(
    parts: Sequence[Part], struck: Sequence[NDArray[np.int64]], edits: Edits, gone: set[int]
) -> bytes:
    """What the log has to say of these edits."""
    old = [vector_log.struck(p.segment.number, r) for p, r in zip(parts, struck, strict=True)]
    new = [vector_log.struck(part.segment.number, part.dead()) for part in edits.spilled]
    return b"".join([*old, *new, vector_log.removed(gone), vector_log.added(edits.added)])
