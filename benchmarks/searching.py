"""How long a warm search takes on the large corpus, leg by leg and stage by stage.

    RAGVAULT_BENCH_DATA=… python -m benchmarks.searching [--notes 1000,14593] [--engine whoosh]

The corpus is indexed to the full tier, but with vectors made from the hash of each text, because
embedding would take hours. Queries are really embedded, by the default model (downloaded on the
first run). So times are those of a real search, while its vector hits are random;
benchmarks.quality measures quality. Without reranking. Indexes are stored in RAGVAULT_BENCH_HOME.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import data, record
from ragvault.cli.start import collect_garbage_less_often
from ragvault.config.load import load_settings
from ragvault.corpus import LocalCorpus
from ragvault.engines import Engines
from ragvault.ingest import ingest
from ragvault.models.load import same_model
from ragvault.ports import Embedder, Role
from ragvault.rank.pipeline import run_stages
from ragvault.retrieve.gather import retrieve
from ragvault.search import ranking_context, search, stages_of, understand_query
from ragvault.store import layout
from ragvault.store.files import WriterLock
from ragvault.types import SearchRequest
from ragvault.update.prepare import text_key
from ragvault.vault import Vault

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)
QUERIES, WARM = 100, 10
Times = dict[str, list[float]]


class Hashed:
    """An embedder for passages whose vectors are made from the hash of a text."""

    def __init__(self, real: Embedder) -> None:
        self.name, self.dim, self.max_tokens = real.name, real.dim, real.max_tokens

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        rows = np.empty((len(texts), self.dim), np.float32)
        for at, text in enumerate(texts):
            seed = int.from_bytes(text_key(text)[:8], "little")
            rows[at] = np.random.default_rng(seed).standard_normal(self.dim, np.float32)
        unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


class Quick(Engines):
    """Engines that do not wait for a transformer."""

    def embedder(self, name: str, *, offline: bool = False) -> Embedder:
        real = super().embedder(name, offline=offline)
        return Hashed(real) if same_model(real.name, self.config.models.embedder) else real


def part_of_corpus(notes: int) -> Path:
    """So many notes of the large corpus as a vault that stays between runs."""
    return data.part(notes, Path(tempfile.gettempdir(), "ragvault-bench", f"notes-{notes}"))


def indexed(root: Path, flags: Sequence[str]) -> LocalCorpus:
    vault = Vault.open(root, flags=flags)
    layout.register_vault(vault.root, vault.folder.parent.parent)
    with WriterLock(vault.folder, "benchmark"), vault.catalogue(write=True) as catalogue:
        ingest(vault.root, catalogue, Quick(vault.folder, vault.settings))
    return LocalCorpus(
        vault.root, vault.catalogue(), Engines(vault.folder, load_settings(root, flags=flags))
    )


def queries(index: LocalCorpus, count: int) -> list[str]:
    """Two to eight words in a row, from passages all over the corpus: some rare, some common."""
    chance = random.Random(1)
    ids = sorted(chance.sample(index.catalogue.passage_ids().tolist(), count))
    found = []
    for passage in index.catalogue.passage_texts(ids):
        words = [word for word in passage.text.split() if word.isalpha()] or ["canvas"]
        length = chance.randint(2, 8)
        start = chance.randint(0, max(0, len(words) - length))
        found.append(" ".join(words[start : start + length]))
    return found


def measured(index: LocalCorpus, asked: Sequence[str]) -> Times:
    """Milliseconds of each search: all of it, each leg, and the stages after retrieval."""
    times: Times = defaultdict(list)
    for query in asked[:WARM]:
        search(SearchRequest(query, NOW), index)
    for query in asked:
        response = search(SearchRequest(query, NOW), index)
        times["search"].append(response.took_ms)
        for run in response.runs:
            times[run.leg].append(1000 * (run.end - run.start))
    for query in asked:
        request = SearchRequest(query, NOW)
        with index.snapshot():
            plan = understand_query(request, index, {})
            found = retrieve(plan, request, index).candidates
            context = ranking_context(plan, found, request, index, {})
            began = time.perf_counter()
            run_stages(found, context, stages_of(plan))
            times["stages"].append(1000 * (time.perf_counter() - began))
    times["embed"] = list(_embedding(index, asked))
    return {part: found for part, found in times.items() if found}


def _embedding(index: LocalCorpus, asked: Sequence[str]) -> Iterator[float]:
    if index.facts.tier == "keyword":
        return
    for query in asked:
        began = time.perf_counter()
        index.embed_query(query, "query")
        yield 1000 * (time.perf_counter() - began)


def table(results: dict[int, Times]) -> str:
    """One row a part, p50 and p95 for each size."""
    parts = dict.fromkeys(part for times in results.values() for part in times)
    sizes = " | ".join(f"{notes:,} notes p50 | p95" for notes in results)
    lines = [f"| ms | {sizes} |", f"|---|{'---:|' * (2 * len(results))}"]
    for part in parts:
        cells = " | ".join(
            f"{np.percentile(times[part], 50):.1f} | {np.percentile(times[part], 95):.1f}"
            for times in results.values()
        )
        lines.append(f"| {part} | {cells} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--notes", default="1000,14593", help="sizes of the vault")
    parser.add_argument("--engine", default="whoosh", choices=["whoosh", "tantivy"])
    parser.add_argument("--queries", type=int, default=QUERIES)
    chosen = parser.parse_args(arguments)
    collect_garbage_less_often()  # as a watcher is
    os.environ["RAGVAULT_HOME"] = str(record.home())
    results = {}
    for notes in map(int, chosen.notes.split(",")):
        with indexed(part_of_corpus(notes), [f"keyword.engine={chosen.engine}"]) as index:
            results[notes] = measured(index, queries(index, chosen.queries))
            count = len(index.catalogue.passage_ids())
            print(f"{notes:,} notes, {count:,} passages, {chosen.engine}", flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
