"""How fast texts become vectors, beside the bare runtime, and how long the first one takes.

    RAGVAULT_BENCH_DATA=… python -m benchmarks.embed [--passages 2000] [--model NAME]

The bare runtime is onnxruntime in the same process on the same texts: tokenised beforehand, sorted
by length, padded no more than each batch needs, with the best of several batch sizes and thread
counts. Both run in turns on slices of the passages, so that load slows both alike.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import numpy as np

from benchmarks import data
from ragvault.cli.console import LineProgress
from ragvault.config import folders
from ragvault.config.settings import Models
from ragvault.models import registry
from ragvault.models.load import load_options, open_embedder
from ragvault.models.onnx import cpu_cores

SLICE = 250
# (threads of one run, runs at once, texts of one run)
WAYS = [(0, 1, 1), (0, 1, 8), (0, 1, 32), (1, 0, 1), (1, 0, 8), (1, 0, 32)]
COLD = """
import time
begun = time.perf_counter()
from ragvault.config.settings import Models
from ragvault.models.load import load_options, open_embedder
from ragvault.ports import Progress
options = load_options(Models(), Progress(), offline=True)
open_embedder({name!r}, options).embed(["a question"], "query")
print(time.perf_counter() - begun)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=2000)
    parser.add_argument("--model", default=Models().embedder)
    args = parser.parse_args()
    texts = data.passages(args.passages)
    embedder = open_embedder(args.model, load_options(Models(), LineProgress()))
    embedder.embed(texts[:8], "passage")

    if registry.find_model(args.model)[0].engine == "onnx":
        _compare(lambda part: embedder.embed(part, "passage"), Bare(args.model), texts)
    else:
        spent = _timed(lambda: embedder.embed(texts, "passage"))
        print(f"ragvault  {len(texts) / spent:8.1f} passages/s")
    queries = [_timed(lambda t=t: embedder.embed([t], "query")) for t in _questions(texts)]
    print(f"query     {1e3 * median(queries):8.1f} ms (median of {len(queries)}, warm)")
    print(f"cold      {_cold(args.model):8.2f} s from process start to the first query vector")


class Bare:
    """onnxruntime and nothing else."""

    def __init__(self, name: str) -> None:
        from tokenizers import Tokenizer

        model, builds = registry.find_model(name)
        shelf = folders.models_dir()
        build = registry.installed(builds, shelf)
        assert build is not None
        self._weights = registry.read_verified(build, "model.onnx", shelf)
        self._tokenizer = Tokenizer.from_buffer(
            registry.read_verified(build, "tokenizer.json", shelf)
        )
        self._tokenizer.enable_truncation(model.max_tokens)
        self._tokenizer.no_padding()
        self._sessions: dict[int, Any] = {}

    def prepared(self, texts: Sequence[str], batch: int) -> list[dict[str, np.ndarray]]:
        """Batches in ideal order, longest first; a text of several windows is several rows."""
        read = self._tokenizer.encode_batch(list(texts))
        rows = [window.ids for each in read for window in (each, *each.overflowing)]
        rows.sort(key=len, reverse=True)
        return [_padded(rows[at : at + batch]) for at in range(0, len(rows), batch)]

    def vectors(self, texts: Sequence[str], batch: int) -> np.ndarray:
        """One row a text, in the order of `prepared`: the first token's, of length one."""
        session = self._session(cpu_cores())
        states = [session.run(None, feed)[0][:, 0] for feed in self.prepared(texts, batch)]
        rows = np.concatenate(states)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def run(self, batches: list[dict[str, np.ndarray]], threads: int, at_once: int) -> None:
        session = self._session(threads or cpu_cores())
        with ThreadPoolExecutor(at_once or cpu_cores()) as pool:
            for _ in pool.map(lambda feed: session.run(None, feed), batches):
                pass

    def _session(self, threads: int) -> Any:
        import onnxruntime

        if threads not in self._sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            self._sessions[threads] = onnxruntime.InferenceSession(
                self._weights, options, providers=["CPUExecutionProvider"]
            )
        return self._sessions[threads]


def _compare(ours: Callable[[Sequence[str]], Any], bare: Bare, texts: Sequence[str]) -> None:
    way = _best_way(bare, texts[: SLICE // 2])
    mine = theirs = 0.0
    for at in range(0, len(texts), SLICE):
        part = texts[at : at + SLICE]
        batches = bare.prepared(part, way[2])
        mine += _timed(lambda part=part: ours(part))
        theirs += _timed(lambda batches=batches: bare.run(batches, *way[:2]))
    print(f"ragvault  {len(texts) / mine:8.1f} passages/s")
    print(f"bare      {len(texts) / theirs:8.1f} passages/s with {_words(way)}")
    print(f"ratio     {theirs / mine:8.2f}")


def _best_way(bare: Bare, texts: Sequence[str]) -> tuple[int, int, int]:
    """The fastest of WAYS on a few texts, each tried twice."""
    spent = {}
    for way in WAYS:
        batches = bare.prepared(texts, way[2])
        bare.run(batches[:1], *way[:2])
        spent[way] = min(_timed(lambda b=batches, w=way: bare.run(b, *w[:2])) for _ in range(2))
        print(f"          {len(texts) / spent[way]:8.1f} passages/s bare, {_words(way)}")
    return min(spent, key=lambda way: spent[way])


def _padded(rows: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for at, row in enumerate(rows):
        ids[at, : len(row)], mask[at, : len(row)] = row, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def _words(way: tuple[int, int, int]) -> str:
    threads, at_once = (each or cpu_cores() for each in way[:2])
    return f"batches of {way[2]}, {at_once} at once on {threads} threads each"


def _questions(texts: Sequence[str]) -> list[str]:
    return [" ".join(text.split()[:10]) for text in texts[:50]]


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _cold(name: str) -> float:
    """The best of five fresh processes, Python's own start included."""
    command = [sys.executable, "-c", COLD.format(name=name)]
    return min(
        _timed(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(5)
    )


if __name__ == "__main__":
    main()
