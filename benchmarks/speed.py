"""How fast and how large, and how that grows with the vault.

    python -m benchmarks.speed                              1,000 notes, static tier
    python -m benchmarks.speed --sizes 1000,5000,0 --tier full     0 is all 14,593 notes
    python -m benchmarks.speed --vectors 1000000            vectors alone, made by jitter

Each step is a `ragvault` command in a process of its own (process.py), so that seconds and memory
are what a user would see: the first index, an index with nothing to do, one after an edit, a search
that answers by itself (cold) and one that a watcher answers (warm). `in process` is the search of
an index that is open, without the start of a program. Vectors are real ones, moved aside by noise:
recall on random vectors means nothing. Without RAGVAULT_BENCH_DATA the sample vault is measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import corpora, process, record
from benchmarks.vectors import Matrix, Shelf, unit
from ragvault.config import Vector

EDIT = "\n\nA line that was added by hand, about nothing in particular.\n"
# Searches of an index that is open, in a fresh process: milliseconds each.
OPEN = """
import json, sys
from datetime import datetime, timezone
from ragvault.search import Asked, search
from ragvault.vault import Vault
now, times = datetime.now(timezone.utc), []
with Vault.open(sys.argv[1]).reading() as index:
    for query in json.loads(sys.argv[2]) * int(sys.argv[3]):
        times.append(search(Asked(query, now), index).took_ms)
print(json.dumps(times[len(json.loads(sys.argv[2])):]))
"""


def grown(size: int, tier: str, runs: int, models: Path | None) -> dict[str, Any]:
    """One vault of so many notes, from nothing to a warm search."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        root, environ = _vault(size, folder), process.environ_of(folder / "home", models)
        index = [process.RAGVAULT, "index", str(root), "--tier", tier, "--json"]
        first, again = process.run(index, environ), process.run(index, environ)
        _edit(root)
        edited = process.run(index, environ)
        times, memory = _opened(root, environ, runs)
        cold = process.searches(root, environ, runs)
        with process.watcher(root, {**environ, "RAGVAULT_WATCH__TIER": tier}):
            warm = process.searches(root, environ, runs)
        kept = folder / "home" / "vaults"  # models are not of one vault
        disk = sum(path.stat().st_size for path in kept.rglob("*") if path.is_file())
        return {
            "notes": json.loads(first.out)["added"],
            "tier": tier,
            "index_s": round(first.seconds, 2),
            "index_mb": round(first.megabytes),
            "again_s": round(again.seconds, 2),
            "edit_s": round(edited.seconds, 2),
            "search_ms": round(median(times), 1),
            "search_p95_ms": round(float(np.percentile(times, 95)), 1),
            "search_mb": round(memory),
            "cold_ms": round(1000 * median(each.seconds for each in cold)),
            "warm_ms": round(1000 * median(each.seconds for each in warm)),
            "disk_mb": round(disk / 1e6, 1),
        }


def _vault(size: int, folder: Path) -> Path:
    """A copy, since an edit is made in it."""
    root = folder / "notes"
    if corpora.available():
        made = process.vault_of(size, folder)
        return made if size else Path(shutil.copytree(made, root))
    return Path(shutil.copytree(corpora.HERE.parent / "sample_vault", root))


def _edit(root: Path) -> None:
    path = sorted(root.rglob("*.md"))[0]
    path.write_text(path.read_text("utf-8") + EDIT, "utf-8")


def _opened(root: Path, environ: dict[str, str], runs: int) -> tuple[list[float], float]:
    """Milliseconds of searches of an open index, without the first round, and its memory."""
    asked = json.dumps(process.QUERIES)
    ran = process.run([sys.executable, "-c", OPEN, str(root), asked, str(runs + 1)], environ)
    return json.loads(ran.out), ran.megabytes


def many_vectors(count: int, queries: int = 100) -> dict[str, Any]:
    """So many passage vectors: how long they take to write, and to search, and what is missed."""
    real = _real_vectors()
    chance = np.random.default_rng(2)
    noise = 0.6 / np.sqrt(real.shape[1])  # a cosine of about 0.86 to the passage it is made of
    copies = -(-count // len(real))
    made = [unit(real + chance.normal(0, noise, real.shape)) for _ in range(copies)]
    vectors = np.concatenate(made)[:count]
    asked = unit(vectors[chance.integers(0, count, queries)] + chance.normal(0, noise, 384))
    shelf = Shelf(vectors)
    with tempfile.TemporaryDirectory() as folder:
        index = shelf.create(Path(folder), Vector())
        began = time.perf_counter()
        shelf.fill(index)
        wrote = time.perf_counter() - began
        times, found = _timed(partial(index.search, limit=10), asked)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    truth = [np.argpartition(-(vectors @ query), 10)[:10].tolist() for query in asked]
    shared = [len({*a} & {*b}) / 10 for a, b in zip(found, truth, strict=True)]
    return {
        "vectors": count,
        "real": len(real),
        "write_s": round(wrote, 1),
        "search_ms": round(median(times), 1),
        "search_p95_ms": round(float(np.percentile(times, 95)), 1),
        "recall@10": round(float(np.mean(shared)), 4),
        "disk_mb": round(size / 1e6),
    }


def _timed(search: Any, queries: Matrix) -> tuple[list[float], list[list[int]]]:
    times, found = [], []
    for query in queries:
        began = time.perf_counter()
        ids, _ = search(query)
        times.append(1000 * (time.perf_counter() - began))
        found.append(ids.tolist())
    return times, found


def _real_vectors() -> Matrix:
    """Passages of real notes, as the default model sees them, from indexes that are there."""
    names = corpora.JUDGED if corpora.available() else ("sample",)
    found = []
    for name in names:
        with corpora.corpus(name).index().catalogue() as catalogue:
            rows = catalogue.chunk_vectors(catalogue.fact("full"), catalogue.chunk_ids())
        found.append(rows[~np.isnan(rows[:, 0])])
    return unit(np.concatenate(found))


def table(rows: Sequence[dict[str, Any]]) -> str:
    head = list(rows[0])
    lines = [f"| {' | '.join(head)} |", f"|{'---:|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row.values()))} |" for row in rows)])


def main(arguments: Sequence[str] | None = None) -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--sizes", default="1000", help="numbers of notes; 0 is all of them")
    asked.add_argument("--tier", default="static", choices=("keyword", "static", "full"))
    asked.add_argument("--runs", type=int, default=10)
    asked.add_argument("--models", type=Path, help="a folder that has the models already")
    asked.add_argument("--vectors", type=int, default=0, help="so many vectors alone instead")
    args = asked.parse_args(arguments)
    if args.vectors:
        row = many_vectors(args.vectors)
        print(table([row]))
        record.save("vectors", [row])
        return
    if not corpora.available():
        print("RAGVAULT_BENCH_DATA is not set: the sample vault is measured", file=sys.stderr)
    sizes = [int(size) for size in args.sizes.split(",")] if corpora.available() else [0]
    models = args.models or _models()
    rows = [grown(size, args.tier, args.runs, models) for size in sizes]
    print(table(rows))
    name = "speed" if corpora.available() else "speed-sample"
    record.save(f"{name}-{args.tier}", rows)


def _models() -> Path | None:
    """The models that other benchmarks keep, rather than fetching them again."""
    shelf = record.home() / "models"
    return shelf if shelf.is_dir() else None


if __name__ == "__main__":
    main()
