"""Small vectors that behave like real ones, and a naive catalogue of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragvault.config.settings import Vector
from ragvault.index.vector import FaissVectors, write_file
from ragvault.ports import VectorChanges, VectorFileRow

DIM = 16
WORDS = ["bread", "salt", "rye", "oven", "crust", "flour", "water", "time", "heat", "steam", "fold"]
MODEL = "words"


def vector_of(text: str, dim: int = DIM) -> NDArray[np.float32]:
    """Texts that share words are near each other; a text without words has a vector too."""
    vector = np.full(dim, 1e-3)
    for word in text.split():
        seed = np.random.default_rng(zlib.crc32(word.encode()))
        vector += seed.standard_normal(dim)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def vectors_of(texts: Iterable[str], dim: int = DIM) -> NDArray[np.float32]:
    return np.stack([vector_of(text, dim) for text in texts])


class Shelf:
    """The catalogue's vectors of one model, in dicts; keeps the promises of ports.VectorSource."""

    model = MODEL

    def __init__(self, dim: int = DIM) -> None:
        self.dim = dim
        self.rows: dict[int, NDArray[np.float32]] = {}
        self.revision = self.upto = self.horizon = 0
        self.added: dict[int, int] = {}  # passage: the revision it came with
        self.removed: dict[int, int] = {}
        self.numbers: dict[int, int] = {}  # passage: the number of its vector
        self.row: VectorFileRow | None = None
        self.read = 0

    # --- What happens to a catalogue ---

    def add(self, passages: Iterable[int]) -> None:
        """Passages without vectors."""
        self.revision += 1
        self.added.update(dict.fromkeys(passages, self.revision))

    def embed(self, rows: Mapping[int, NDArray[np.float32]]) -> None:
        for passage, row in rows.items():
            self.upto += 1
            self.rows[passage], self.numbers[passage] = row, self.upto

    def put(self, rows: Mapping[int, NDArray[np.float32]]) -> None:
        self.add(rows)
        self.embed(rows)

    def remove(self, passages: Iterable[int]) -> None:
        self.revision += 1
        for passage in passages:
            if self.added.pop(passage, None):
                self.removed[passage] = self.revision
                self.rows.pop(passage, None)

    def forget_removals(self) -> None:
        self.removed, self.horizon = {}, self.revision

    def write(self, home: Path, settings: Vector | None = None) -> None:
        """A new file, in a folder of its own."""
        folder = home / str(len(list(home.iterdir())) if home.exists() else 0)
        folder.mkdir(parents=True, mode=0o700)
        write_file(folder, self.ids(), self.fetch, self.dim, settings or Vector())
        self.row = VectorFileRow(folder, self.revision, self.upto)

    # --- What an index asks of it ---

    def ids(self) -> NDArray[np.int64]:
        return np.array(sorted(self.rows), np.int64)

    def file(self) -> VectorFileRow | None:
        return self.row

    def moment(self) -> tuple[int, int]:
        return self.revision, self.upto

    def since(self, revision: int, upto: int) -> VectorChanges:
        new = [i for i in sorted(self.rows) if self.added[i] > revision or self.numbers[i] > upto]
        ids = np.array(new, np.int64)
        return VectorChanges(ids, self.fetch(ids), *self.moment())

    def gone(self, ids: NDArray[np.int64], revision: int) -> NDArray[np.bool_]:
        if revision < self.horizon:
            return ~np.isin(ids, list(self.added))
        return np.isin(ids, [i for i, at in self.removed.items() if at > revision])

    def fetch(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        self.read += len(ids)
        unknown = np.full(self.dim, np.nan, np.float32)
        rows = [self.rows.get(passage, unknown) for passage in ids.tolist()]
        return np.array(rows, np.float32).reshape(len(rows), self.dim)

    def close(self) -> None:
        pass


def brute_force(
    rows: Mapping[int, NDArray[np.float32]], query: NDArray[np.float32], limit: int
) -> list[tuple[int, float]]:
    """Every cosine, sorted: what an exact search must equal to the last bit."""
    wide = query.astype(np.float64)
    scores = {i: float((row.astype(np.float64) * wide).sum()) for i, row in rows.items()}
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


def in_file(home: Path, rows: Mapping[int, NDArray[np.float32]], settings: Vector | None = None):
    """A shelf with these rows, all of them in a file, and its index."""
    shelf = Shelf(len(next(iter(rows.values()))))
    shelf.put(rows)
    shelf.write(home, settings)
    index = FaissVectors(shelf, settings)
    assert index.tail == 0
    return shelf, index


def in_tail(rows: Mapping[int, NDArray[np.float32]]):
    """The same without a file."""
    shelf = Shelf(len(next(iter(rows.values()))))
    shelf.put(rows)
    return shelf, FaissVectors(shelf)


def rows_of(count, first=0, dim=DIM):
    """Passages of three words each; every seventh says the same as the one before it."""
    texts = [f"{WORDS[i % 11]} {WORDS[i % 5]} {i - (i % 7 == 0)}" for i in range(count)]
    return dict(enumerate(vectors_of(texts, dim), first))


def found(index, query, limit=10, allowed=None):
    allowed = None if allowed is None else np.array(sorted(allowed), np.int64)
    ids, scores = index.search(query, limit=limit, allowed=allowed)
    return list(zip(ids.tolist(), scores.tolist(), strict=True))
