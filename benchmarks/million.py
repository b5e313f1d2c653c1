"""A million passage vectors, made of real ones: how long they take to write and to search.

Real passages are moved aside by noise until there are enough, since recall on random vectors means
nothing. The vectors are made in place and handed over in slabs, so memory is theirs (1.5 GB for a
million) and the index's. `python -m benchmarks.speed --vectors 1000000` calls it.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import corpora
from benchmarks.vectors import Matrix, Shelf, unit
from ragvault.config.settings import Vector

NOISE = 0.6  # times the length of a vector: a cosine of about 0.86 to the passage it is made of
BEST = 10


def many_vectors(count: int, names: Sequence[str], queries: int = 100) -> dict[str, Any]:
    """So many vectors, and queries beside them; what is missed is counted against all of them."""
    real = real_vectors(names)
    vectors = jittered(real, count)
    asked = _aside(vectors, queries)
    before = _memory()
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(vectors)
        began = time.perf_counter()
        shelf.write(Path(folder), Vector())
        wrote = time.perf_counter() - began
        index = shelf.open(Vector())
        index.search(asked[0], limit=BEST)  # files are read on the first one
        times, found = _timed(partial(index.search, limit=BEST), asked)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    truth = [np.argpartition(-(vectors @ query), BEST)[:BEST].tolist() for query in asked]
    shared = [len({*a} & {*b}) / BEST for a, b in zip(found, truth, strict=True)]
    return {
        "vectors": count,
        "made of": len(real),
        "write_s": round(wrote, 1),
        "search_ms": round(median(times), 1),
        "search_p95_ms": round(float(np.percentile(times, 95)), 1),
        f"recall@{BEST}": round(float(np.mean(shared)), 4),
        "disk_mb": round(size / 1e6),
        "vectors_mb": round(vectors.nbytes / 1e6),
        "memory_more_mb": round(max(0.0, _memory() - before)),
    }


def jittered(real: Matrix, count: int) -> Matrix:
    """So many vectors near real ones, in one block that is filled slab by slab."""
    chance = np.random.default_rng(2)
    made = np.empty((count, real.shape[1]), np.float32)
    for first in range(0, count, len(real)):
        slab = made[first : first + len(real)]
        noise = chance.standard_normal(slab.shape, np.float32) * _spread(real)
        slab[:] = unit(real[: len(slab)] + noise)
    return made


def _spread(vectors: Matrix) -> np.float32:
    return np.float32(NOISE / np.sqrt(vectors.shape[1]))


def _aside(vectors: Matrix, count: int) -> Matrix:
    """Queries: vectors of the collection, each moved aside by noise of its own."""
    chance = np.random.default_rng(3)
    some = vectors[chance.integers(0, len(vectors), count)]
    return unit(some + chance.standard_normal(some.shape, np.float32) * _spread(vectors))


def _timed(search: Any, queries: Matrix) -> tuple[list[float], list[list[int]]]:
    times, found = [], []
    for query in queries:
        began = time.perf_counter()
        ids, _ = search(query)
        times.append(1000 * (time.perf_counter() - began))
        found.append(ids.tolist())
    return times, found


def _memory() -> float:
    """The most this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def real_vectors(names: Sequence[str]) -> Matrix:
    """Passages of real notes, as the default model sees them, from indexes that are kept."""
    found = []
    for name in names:
        with corpora.corpus(name).index().catalogue() as catalogue:
            rows = catalogue.passage_vectors(catalogue.tier_model("full"), catalogue.passage_ids())
        found.append(rows[~np.isnan(rows[:, 0])])
    return unit(np.concatenate(found))
