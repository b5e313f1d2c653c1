"""Speed and size, and how they grow with the vault: one row per size.

    python -m benchmarks.speed                                     1,000 notes, static tier
    python -m benchmarks.speed --sizes 1000,5000,0 --tier full     0 is all 14,593 notes

Indexing is measured by writing.py (from nothing, with nothing changed, after one edit), searches of
an open index by searching.py, and whole commands without and with a watcher by process.py. In the
full tier, vectors of passages are made by hash, because the transformer would take hours: `index_s`
is without it (benchmarks.embed has its speed); queries are really embedded. Without
RAGVAULT_BENCH_DATA the sample vault is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import corpora, process, record, searching, writing
from ragvault.vault import Vault

# How `writing` indexes for each tier.
HOW = {"static": "static", "full": "stand-in"}
LEGS = ("vector", "keyword", "code", "graph", "stages", "embed")
# Column -> what it is called in the table; the rest is in the JSON.
SHOWN = {
    "notes": "notes",
    "passages": "passages",
    "index_s": "first index, s",
    "index_mb": "memory, MB",
    "again_s": "nothing changed, s",
    "edit_s": "one note changed, s",
    "edit_wrote_mb": "written, MB",
    "disk_mb": "index, MB",
    "disk_x": "× Markdown",
    "search_ms": "search p50, ms",
    "search_p95_ms": "p95, ms",
    "stages_ms": "stages p50, ms",
    "cold_ms": "command without watcher, ms",
    "warm_ms": "with watcher, ms",
    "search_mb": "memory without watcher, MB",
}


def grown(size: int, tier: str, runs: int, queries: int) -> dict[str, Any]:
    """One vault of so many notes, from nothing to a warm search."""
    source = None if corpora.available() else corpora.HERE.parent / "sample_vault"
    with writing.scene(size, corpus=source) as (root, home), _at_home(home):
        written = _written(root, home, HOW[tier])
        with Vault.open(root).corpus() as index:
            count = min(queries, len(index.catalogue.passage_ids()))
            times = searching.measured(index, searching.queries(index, count))
        environ = process.environ_of(home, None) | {"RAGVAULT_WATCH__TIER": tier}
        cold = process.searches(root, environ | {"RAGVAULT_ALONE": "1"}, runs)
        with process.watcher(root, environ):
            warm = process.searches(root, environ, runs)
        return {"tier": tier, **written, **_searched(times), **_commands(cold, warm)}


def _written(root: Path, home: Path, how: str) -> dict[str, Any]:
    """What indexing takes, and what lies on disk after it."""
    flag = "keyword.engine=auto"
    first = writing.run(root, home, flag, how)
    disk, markdown = writing.bytes_of(home / "vaults"), writing.bytes_of(root)
    again = writing.run(root, home, flag, how)
    writing.changed(root)
    edit = writing.run(root, home, flag, how)
    return {
        "notes": first["notes"],
        "passages": first["passages"],
        "index_s": round(first["seconds"], 2),
        "index_cpu_s": round(first["cpu"], 2),
        "index_mb": round(first["memory"]),
        "again_s": round(again["seconds"], 2),
        "edit_s": round(edit["seconds"], 2),
        "edit_wrote_mb": round(edit["wrote"] / 1e6, 2),
        "disk_mb": round(disk / 1e6, 1),
        "disk_x": round(disk / markdown, 2),
    }


def _searched(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    columns = {"search_ms": _at(times["search"], 50), "search_p95_ms": _at(times["search"], 95)}
    return columns | {f"{leg}_ms": _at(times[leg], 50) for leg in LEGS if leg in times}


def _commands(cold: Sequence[process.Ran], warm: Sequence[process.Ran]) -> dict[str, float]:
    return {
        "cold_ms": round(1000 * median(each.seconds for each in cold)),
        "warm_ms": round(1000 * median(each.seconds for each in warm)),
        "search_mb": round(max(each.megabytes for each in cold)),
    }


def _at(times: Sequence[float], percentile: int) -> float:
    return round(float(np.percentile(times, percentile)), 1)


@contextmanager
def _at_home(home: Path) -> Iterator[None]:
    """Searches of this process use the index that was just made."""
    before = os.environ.get("RAGVAULT_HOME")
    os.environ["RAGVAULT_HOME"] = str(home)
    try:
        yield
    finally:
        os.environ.pop("RAGVAULT_HOME")
        os.environ.update({"RAGVAULT_HOME": before} if before is not None else {})


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    keys = [key for key in SHOWN if key in rows[0]]
    lines = [f"| {' | '.join(SHOWN[key] for key in keys)} |", f"|{'---:|' * len(keys)}"]
    return "\n".join(
        [*lines, *(f"| {' | '.join(_cell(row[key]) for key in keys)} |" for row in rows)]
    )


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="1000", help="numbers of notes; 0 is all of them")
    parser.add_argument("--tier", default="static", choices=list(HOW))
    parser.add_argument("--runs", type=int, default=10, help="whole commands, cold and warm")
    parser.add_argument("--queries", type=int, default=searching.QUERIES)
    args = parser.parse_args(arguments)
    os.environ["RAGVAULT_HOME"] = str(record.home())  # the models that benchmarks keep
    if not corpora.available():
        print("RAGVAULT_BENCH_DATA is not set: measuring the sample vault", file=sys.stderr)
    sizes = [int(size) for size in args.sizes.split(",")] if corpora.available() else [0]
    found = [grown(size, args.tier, args.runs, args.queries) for size in sizes]
    name = f"speed-{args.tier}" if corpora.available() else f"speed-sample-{args.tier}"
    print(table(found))
    record.save(name, found)


if __name__ == "__main__":
    main()
