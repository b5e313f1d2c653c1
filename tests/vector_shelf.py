"""Small vectors that behave like real ones: words hashed into numbers, never random directions."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ragvault.index.vector import FaissIndex
from ragvault.index.vector_write import Limits

DIM = 16
WORDS = ["bread", "salt", "rye", "oven", "crust", "flour", "water", "time", "heat", "steam", "fold"]


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
    """A catalogue's vectors by id: what a vector index is checked against."""

    def __init__(self, dim: int = DIM) -> None:
        self.dim = dim
        self.rows: dict[int, NDArray[np.float32]] = {}
        self.read = 0

    def put(self, rows: Mapping[int, NDArray[np.float32]]) -> None:
        self.rows.update(rows)

    def fetch(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        self.read += len(ids)
        unknown = np.full(self.dim, np.nan, np.float32)
        rows = [self.rows.get(passage, unknown) for passage in ids.tolist()]
        return np.array(rows, np.float32).reshape(len(rows), self.dim)


def brute_force(
    rows: Mapping[int, NDArray[np.float32]], query: NDArray[np.float32], limit: int
) -> list[tuple[int, float]]:
    """Every cosine, sorted: what an exact search must equal to the last bit."""
    wide = query.astype(np.float64)
    scores = {i: float((row.astype(np.float64) * wide).sum()) for i, row in rows.items()}
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


TINY = Limits(log_bytes=1500, full=24, full_in_lists=48, small=3)
MODEL = "words"


def create(folder, shelf, *, limits=TINY, config=None):
    return FaissIndex.create(
        folder, model=MODEL, dim=shelf.dim, fetch=shelf.fetch, limits=limits, settings=config
    )


def reopen(folder, shelf, *, limits=TINY, config=None):
    return FaissIndex.open(
        folder, model=MODEL, dim=shelf.dim, fetch=shelf.fetch, limits=limits, settings=config
    )


def fill(index, shelf, rows, revision=1):
    """Put rows on the shelf and into the index, and commit."""
    shelf.put(rows)
    if rows:
        index.add(list(rows), np.stack(list(rows.values())))
    index.commit(revision)


def rows_of(count, first=0, dim=DIM):
    """Passages of three words each; every seventh says the same as the one before it."""
    texts = [f"{WORDS[i % 11]} {WORDS[i % 5]} {i - (i % 7 == 0)}" for i in range(count)]
    return dict(enumerate(vectors_of(texts, dim), first))


def found(index, query, limit=10, allowed=None):
    ids, scores = index.search(query, limit=limit, allowed=allowed)
    return list(zip(ids.tolist(), scores.tolist(), strict=True))
