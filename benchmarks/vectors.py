"""Vector search measured on the large corpus.

    python -m benchmarks.vectors exact [--passages 118000]   writing, opening, searching, a tail
    python -m benchmarks.vectors lists [--times 3]           recall and time of lists, by probe
    python -m benchmarks.vectors many --count 1000000        a million vectors; kept as `vectors`

For `many`, real passages of judged vaults are moved by noise until there are enough: recall on
random vectors means nothing. In the other two, vectors are those of `--vectors FILE.npy` (unit rows
of a real model), or those that `--model NAME` makes of real passages, or TF-IDF of those reduced to
384 dimensions. Queries are passages moved by noise. Times are the thread's own CPU time.
"""

from __future__ import annotations

import argparse
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import corpora, data, quality, record
from ragvault.config.settings import Models, Vector
from ragvault.index.vector import FaissVectors, write_file
from ragvault.models.load import load_options, open_embedder
from ragvault.ports import Progress, VectorChanges, VectorFileRow

DIM, WORDS, SAMPLE = 384, 4096, 8000
NOISE = 0.6  # times the length of a vector: a cosine of about 0.86 to the passage it is made of
BEST = 10
PROBES = (0.02, 0.05, 0.1, 0.15, 0.25)
Matrix = NDArray[np.float32]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["exact", "lists", "many"], nargs="?", default="exact")
    parser.add_argument("--passages", type=int, default=118_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--model", help="potion-base-8M, for one")
    parser.add_argument("--count", type=int, default=1_000_000, help="vectors, for `many`")
    parser.add_argument("--corpora", default="", help="whose vectors, for `many`")
    options = parser.parse_args(arguments)
    if options.what == "many":
        names = options.corpora.split(",") if options.corpora else quality.default_corpora()
        rows = [many_vectors(options.count, names)]
        print(table(rows))
        record.save("vectors", rows)
        return
    vectors = _vectors(options)[: options.passages]
    queries = _aside(vectors, options.queries, 0.03)
    if options.what == "exact":
        exact(vectors, queries)
    else:
        lists(vectors, queries, options.times)


def _vectors(options: argparse.Namespace) -> Matrix:
    if options.vectors:
        return unit(np.load(options.vectors))
    if options.model:
        embedder = open_embedder(options.model, load_options(Models(), Progress(), offline=True))
        return embedder.embed(list(islice(_passages(), options.passages)), "passage")
    return _from_words()


def exact(vectors: Matrix, queries: Matrix) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shelf, home = Shelf(vectors), Path(folder)
        print(
            f"write {_cpu(lambda: shelf.write(home, Vector())):.2f} s, {_size(home) / 1e6:.1f} MB"
        )
        before = _resident()
        print(f"open {1000 * _cpu(lambda: shelf.open(Vector())):.1f} ms")
        index = shelf.open(Vector())
        for limit in (10, 50, 200):
            shelf.read = 0
            times = _times(queries, partial(index.search, limit=limit))
            print(f"best {limit}: {_spread(times)}, {shelf.read / len(queries):.0f} vectors read")
        print(f"memory {_resident() - before:.0f} MB more, most of it the mapped file")
        some = np.random.default_rng(1).permutation(len(vectors))
        for share in (0.5, 0.001):
            allowed = np.sort(some[: int(share * len(vectors))])
            times = _times(queries, partial(index.search, limit=50, allowed=allowed))
            print(f"best 50 of {share:.1%}: {_spread(times)}")
        for tail in (2000, len(vectors) // 10):
            shelf.outside = tail
            shelf.write(home, Vector())
            took = _cpu(lambda: shelf.open(Vector()))
            index = shelf.open(Vector())
            times = _times(queries, partial(index.search, limit=50))
            print(f"{tail:,} in the tail: open {1000 * took:.0f} ms, best 50 {_spread(times)}")


def lists(vectors: Matrix, queries: Matrix, times: int) -> None:
    jitter = np.random.default_rng(2)
    many = np.concatenate(
        [unit(vectors + jitter.normal(0, 0.01, vectors.shape)) for _ in range(times)]
    )
    shelf = Shelf(many)
    with tempfile.TemporaryDirectory() as folder:
        shelf.write(Path(folder), Vector(exact_max=len(many)))
        index = shelf.open(Vector())
        truth = [index.search(query, limit=10)[0].tolist() for query in queries]
        spent = _times(queries, partial(index.search, limit=10))
        print(f"{len(many):,} passages, exact: {_spread(spent)}")
    with tempfile.TemporaryDirectory() as folder:
        took = _cpu(lambda: shelf.write(Path(folder), Vector(exact_max=0)))
        print(f"written in lists in {took:.1f} s")
        for probe in PROBES:
            opened = shelf.open(Vector(exact_max=0, probe=probe))
            found = [opened.search(query, limit=10)[0].tolist() for query in queries]
            spent = _times(queries, partial(opened.search, limit=10))
            recall = np.mean([len({*a} & {*b}) / len(b) for a, b in zip(found, truth, strict=True)])
            print(f"probe {probe:.2f}: recall@10 {recall:.4f}, {_spread(spent)}")


def many_vectors(count: int, names: Sequence[str], queries: int = 100) -> dict[str, Any]:
    """So many vectors, and queries beside them; what is missed is counted against all of them."""
    real = real_vectors(names)
    vectors = jittered(real, count)
    asked = _near(vectors, queries)
    before = _peak_memory()
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(vectors)
        began = time.perf_counter()
        shelf.write(Path(folder), Vector())
        wrote = time.perf_counter() - began
        index = shelf.open(Vector())
        index.search(asked[0], limit=BEST)  # files are read on the first one
        times, found = _answers(partial(index.search, limit=BEST), asked)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    truth = [np.argpartition(-(vectors @ query), BEST)[:BEST].tolist() for query in asked]
    shared = [len({*a} & {*b}) / BEST for a, b in zip(found, truth, strict=True)]
    return {
        "vectors": count,
        "made_of": len(real),
        "write_s": round(wrote, 1),
        "search_ms": round(median(times), 1),
        "search_p95_ms": round(float(np.percentile(times, 95)), 1),
        f"recall@{BEST}": round(float(np.mean(shared)), 4),
        "disk_mb": round(size / 1e6),
        "vectors_mb": round(vectors.nbytes / 1e6),
        "memory_more_mb": round(max(0.0, _peak_memory() - before)),
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    names = {
        "vectors": "vectors",
        "made_of": "made of",
        "write_s": "written, s",
        "search_ms": "search p50, ms",
        "search_p95_ms": "p95, ms",
        f"recall@{BEST}": f"recall@{BEST}",
        "disk_mb": "file, MB",
        "vectors_mb": "as float32, MB",
        "memory_more_mb": "more memory, MB",
    }
    lines = [f"| {' | '.join(names.values())} |", f"|{'---:|' * len(names)}"]
    lines += [f"| {' | '.join(f'{row[key]:,}' for key in names)} |" for row in rows]
    return "\n".join(lines)


def jittered(real: Matrix, count: int) -> Matrix:
    """So many vectors near real ones, in one block that is filled slab by slab."""
    chance = np.random.default_rng(2)
    made = np.empty((count, real.shape[1]), np.float32)
    for first in range(0, count, len(real)):
        slab = made[first : first + len(real)]
        noise = chance.standard_normal(slab.shape, np.float32) * _noise(real)
        slab[:] = unit(real[: len(slab)] + noise)
    return made


def _noise(vectors: Matrix) -> np.float32:
    return np.float32(NOISE / np.sqrt(vectors.shape[1]))


def _near(vectors: Matrix, count: int) -> Matrix:
    """Queries: vectors of the collection, each moved aside by noise of its own."""
    chance = np.random.default_rng(3)
    some = vectors[chance.integers(0, len(vectors), count)]
    return unit(some + chance.standard_normal(some.shape, np.float32) * _noise(vectors))


def _answers(search: Any, queries: Matrix) -> tuple[list[float], list[list[int]]]:
    times, found = [], []
    for query in queries:
        began = time.perf_counter()
        ids, _ = search(query)
        times.append(1000 * (time.perf_counter() - began))
        found.append(ids.tolist())
    return times, found


def _peak_memory() -> float:
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


class Shelf:
    """Vectors by row, in place of a catalogue: ports.VectorSource. The last may be in no file."""

    model = "m"

    def __init__(self, vectors: Matrix, outside: int = 0) -> None:
        self._vectors, self.read, self.outside = vectors, 0, outside
        self.dim = vectors.shape[1]
        self.row: VectorFileRow | None = None

    def write(self, folder: Path, settings: Vector) -> None:
        inside = len(self._vectors) - self.outside
        write_file(folder, np.arange(inside), self.fetch, self.dim, settings)
        self.row = VectorFileRow(folder, 1, inside)

    def open(self, settings: Vector) -> FaissVectors:
        return FaissVectors(self, settings)

    def file(self) -> VectorFileRow | None:
        return self.row

    def moment(self) -> tuple[int, int]:
        return 1, len(self._vectors)

    def since(self, revision: int, upto: int) -> VectorChanges:
        ids = np.arange(upto, len(self._vectors))
        return VectorChanges(ids, self._vectors[upto:], *self.moment())

    def gone(self, ids: NDArray[np.int64], revision: int) -> NDArray[np.bool_]:
        return np.zeros(len(ids), bool)

    def fetch(self, ids: NDArray[np.int64]) -> Matrix:
        self.read += len(ids)
        return self._vectors[ids]

    def close(self) -> None:
        pass


def _from_words() -> Matrix:
    """TF-IDF of the corpus's passages on its commonest words, on their main directions."""
    counted = [Counter(re.findall(r"[a-z][a-z0-9]+", text.lower())) for text in _passages()]
    df = Counter(word for words in counted for word in words)
    common = sorted((w for w in df if df[w] < len(counted) / 5), key=lambda w: (-df[w], w))[:WORDS]
    column = {word: i for i, word in enumerate(common)}
    idf = np.log(len(counted) / np.array([df[word] for word in common]))

    def rows(some: list[Counter[str]]) -> Matrix:
        matrix = np.zeros((len(some), len(common)), np.float32)
        for row, words in enumerate(some):
            for word in words.keys() & column.keys():
                matrix[row, column[word]] = (1 + np.log(words[word])) * idf[column[word]]
        return unit(matrix)

    sample = rows(counted[:: max(1, len(counted) // SAMPLE)])
    directions = np.linalg.eigh(sample.T @ sample)[1][:, -DIM:].astype(np.float32)
    parts = [rows(counted[i : i + 4000]) @ directions for i in range(0, len(counted), 4000)]
    return unit(np.concatenate(parts))


def _passages() -> Iterator[str]:
    for path in sorted(data.scale().rglob("*.md")):
        passage = ""
        for paragraph in re.split(r"\n\s*\n", path.read_text("utf-8", "replace")):
            if passage and len(passage) + len(paragraph) > 500:
                yield passage
                passage = ""
            passage += paragraph + "\n\n"
        yield passage


def unit(matrix: NDArray[np.floating]) -> Matrix:
    """Rows of length 1; an empty row points somewhere too."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    some = np.where(lengths < 1e-6, np.eye(1, matrix.shape[1]), matrix)
    return (some / np.where(lengths < 1e-6, 1, lengths)).astype(np.float32)


def _aside(vectors: Matrix, count: int, by: float) -> Matrix:
    random = np.random.default_rng(0)
    some = vectors[random.choice(len(vectors), count)]
    return unit(some + random.normal(0, by, some.shape))


def _cpu(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def _times(queries: Matrix, search: Callable[[Matrix], object]) -> list[float]:
    return [_cpu(partial(search, query)) for query in queries]


def _spread(times: list[float]) -> str:
    return f"p50 {1000 * np.median(times):.1f} ms, p95 {1000 * np.percentile(times, 95):.1f} ms"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _resident() -> float:
    """What this process has in memory, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    main()
