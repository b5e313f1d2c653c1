"""Vector search and communities measured on the large corpus.

    python -m benchmarks.vectors exact [--passages 118000]   writing, opening, searching, an edit
    python -m benchmarks.vectors lists [--times 3]           recall and time of lists, by probe
    python -m benchmarks.vectors whole [--passages 118000]   whole numbers beside decoded ones
    python -m benchmarks.vectors links                       communities of the corpus's own links

Vectors are those of `--vectors FILE.npy` (unit rows of a real model), or those that `--model NAME`
makes of real passages, or TF-IDF of those brought down to 384 dimensions. `--times` makes more of
them by jitter: recall on random vectors means nothing. Queries are passages moved aside. Times are
the thread's own CPU time.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from ragvault.config.settings import Graph, Models, Vector
from ragvault.index import vector_faiss
from ragvault.index.graph import Edge
from ragvault.index.graph_communities import communities, stamp
from ragvault.index.vector import FaissIndex
from ragvault.models.load import load_options, open_embedder
from ragvault.models.progress import SilentReporter

DIM, WORDS, SAMPLE = 384, 4096, 8000
Matrix = NDArray[np.float32]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", choices=["exact", "lists", "whole", "links"], nargs="?", default="exact"
    )
    parser.add_argument("--passages", type=int, default=118_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--model", help="potion-base-8M, for one")
    options = parser.parse_args(arguments)
    if options.what == "links":
        return links()
    vectors = _vectors(options)[: options.passages]
    queries = _aside(vectors, options.queries, 0.03)
    if options.what == "exact":
        return exact(vectors, queries)
    if options.what == "whole":
        return whole(vectors, queries)
    return lists(vectors, queries, options.times)


def _vectors(options: argparse.Namespace) -> Matrix:
    if options.vectors:
        return unit(np.load(options.vectors))
    if options.model:
        embedder = open_embedder(
            options.model, load_options(Models(), SilentReporter(), offline=True)
        )
        return embedder.embed(list(islice(_passages(), options.passages)), "passage")
    return _from_words()


def exact(vectors: Matrix, queries: Matrix) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(vectors)
        index = shelf.create(Path(folder), Vector(exact_max=len(vectors)))
        print(f"write {_cpu(lambda: shelf.fill(index)):.2f} s, {_size(folder) / 1e6:.1f} MB")
        print(f"open {1000 * _cpu(lambda: shelf.open(Path(folder), Vector())):.0f} ms")
        for limit in (10, 50, 200):
            shelf.read = 0
            times = _times(queries, partial(index.search, limit=limit))
            mean = shelf.read / len(queries)
            print(f"best {limit}: {_spread(times)}, {mean:.0f} vectors read to prove it")
        some = np.random.default_rng(1).permutation(len(vectors))
        for share in (0.5, 0.001):
            mask = np.isin(np.arange(len(vectors)), some[: int(share * len(vectors))])
            times = _times(queries, partial(index.search, limit=50, allowed=mask))
            print(f"best 50 of {share:.1%}: {_spread(times)}")
        before = _sizes(folder)
        index.remove(range(8))
        index.add(range(len(vectors), len(vectors) + 8), vectors[:8])
        took = _cpu(lambda: index.commit(2))
        grown = sum(abs(size - before.get(name, 0)) for name, size in _sizes(folder).items())
        print(f"an edit of 8 passages: {1000 * took:.1f} ms, {grown / 1000:.1f} kB in files")


def whole(vectors: Matrix, queries: Matrix) -> None:
    """The same index, its codes compared as whole numbers and then as FAISS decodes them."""
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(vectors)
        index = shelf.create(Path(folder), Vector(exact_max=len(vectors)))
        shelf.fill(index)
        for how in ("whole numbers", "decoded"):
            shelf.read = 0
            times = _times(queries, partial(index.search, limit=100))
            read = shelf.read / len(queries)
            print(f"{len(vectors):,} passages, best 100, {how}: {_spread(times)}, {read:.0f} read")
            _decode(index)


def _decode(index: FaissIndex) -> None:
    """Leave the comparing to FAISS, which decodes."""
    kind = vector_faiss.load().ScalarQuantizer.QT_8bit
    parts = []
    for part in index._state.parts:
        part.segment.index.sq.qtype = kind
        parts.append(replace(part, segment=replace(part.segment, codes=None)))
    index._state = replace(index._state, parts=tuple(parts))


def lists(vectors: Matrix, queries: Matrix, times: int) -> None:
    jitter = np.random.default_rng(2)
    many = np.concatenate(
        [unit(vectors + jitter.normal(0, 0.01, vectors.shape)) for _ in range(times)]
    )
    shelf = Shelf(many)
    with tempfile.TemporaryDirectory() as folder:
        index = shelf.create(Path(folder), Vector(exact_max=len(many)))
        shelf.fill(index)
        truth = [index.search(query, limit=10)[0].tolist() for query in queries]
        spent = _times(queries, partial(index.search, limit=10))
        print(f"{len(many):,} passages, exact: {_spread(spent)}")
    with tempfile.TemporaryDirectory() as folder:
        index = shelf.create(Path(folder), Vector(exact_max=0))
        print(f"written in lists in {_cpu(lambda: shelf.fill(index)):.1f} s")
        for probe in (0.05, 0.1, 0.15, 0.25, 0.4):
            opened = shelf.open(Path(folder), Vector(exact_max=0, probe=probe))
            found = [opened.search(query, limit=10)[0].tolist() for query in queries]
            spent = _times(queries, partial(opened.search, limit=10))
            recall = np.mean([len({*a} & {*b}) / len(b) for a, b in zip(found, truth, strict=True)])
            print(f"probe {probe:.2f}: recall@10 {recall:.4f}, {_spread(spent)}")


def links() -> None:
    edges = list(_links_of_corpus())
    found: dict[int, int] = {}
    took = _cpu(lambda: found.update(communities(edges, Graph())))
    sizes = Counter(found.values()).most_common()
    print(f"{len(edges):,} links: {len(sizes)} communities of {len(found):,} notes in {took:.2f} s")
    print(f"stamp {_cpu(lambda: stamp(edges, Graph(), {})):.2f} s")


class Shelf:
    """Vectors by row, in place of a catalogue."""

    def __init__(self, vectors: Matrix) -> None:
        self._vectors, self.read = vectors, 0

    def fetch(self, ids: NDArray[np.int64]) -> Matrix:
        self.read += len(ids)
        return self._vectors[ids % len(self._vectors)]

    def create(self, folder: Path, settings: Vector) -> FaissIndex:
        dim = self._vectors.shape[1]
        return FaissIndex.create(folder, model="m", dim=dim, fetch=self.fetch, settings=settings)

    def open(self, folder: Path, settings: Vector) -> FaissIndex:
        dim = self._vectors.shape[1]
        return FaissIndex.open(folder, model="m", dim=dim, fetch=self.fetch, settings=settings)

    def fill(self, index: FaissIndex) -> None:
        for first in range(0, len(self._vectors), 2000):
            rows = self._vectors[first : first + 2000]
            index.add(range(first, first + len(rows)), rows)
        index.commit(1)
        while index.merge():
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


def _links_of_corpus() -> Iterator[Edge]:
    """The corpus links by address: its notes say theirs in `slug`."""
    notes: dict[str, int] = {}
    texts = []
    for path in sorted(data.scale().rglob("*.md")):
        text = path.read_text("utf-8", "replace")
        if slug := re.search(r"^slug: (\S+)$", text, re.MULTILINE):
            notes[slug[1].lower()] = len(notes)
            texts.append((len(notes) - 1, text))
    for note, text in texts:
        for address in re.findall(r"/en-US/docs/([^)#\s\"']+)", text):
            target = notes.get(address.strip("/").lower())
            if target is not None:
                yield Edge(note, target)


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


def _sizes(folder: str) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in Path(folder).iterdir()}


def _size(folder: str) -> int:
    return sum(_sizes(folder).values())


if __name__ == "__main__":
    main()
