"""How many links resolve, and how fast a vault is read.

    python -m benchmarks.reading            everything
    python -m benchmarks.reading --links    link targets that resolve, vault by vault
    python -m benchmarks.reading --speed    the large corpus: first index, confirmation, growth

Each speed is measured in its own process, with the peak memory of all its processes together. Times
depend on the machine; how they grow with the number of notes does not.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import data
from ragvault.config.settings import Config, Links
from ragvault.ingest import update_catalogue
from ragvault.ports import Progress
from ragvault.store.catalogue import Catalogue

# What must resolve, in percent of the links to notes; the sources of the figures are the vaults.
WANTED = {
    "obsidian-tasks": 99.6,
    "jackyzha0-garden": 100.0,
    "quartz-docs": 91.0,
    "foam-docs": 85.0,
    "dendron-site": 86.0,
}
SIZES = (1000, 5000, 0)  # 0 is all of them


def links() -> None:
    """Per vault: how many links resolve, of both kinds together and of wikilinks alone."""
    print(
        f"{'vault':18} {'links':>6} {'resolve':>8} {'wikilinks':>10} {'resolve':>8} {'wanted':>7}"
    )
    for name, wanted in WANTED.items():
        found = Counter(_resolved(data.folder("vaults", name), name))
        every, wiki = _share(found, ("wiki", "markdown")), _share(found, ("wiki",))
        print(f"{name:18} {every[0]:6,} {every[1]:7.2f}% {wiki[0]:10,} {wiki[1]:7.2f}% {wanted:6}%")


def _resolved(root: Path, name: str) -> Iterator[tuple[str, bool]]:
    order = Links(order="label-first" if name == "dendron-site" else "target-first")
    with tempfile.TemporaryDirectory() as folder, Catalogue.open(Path(folder), True) as catalogue:
        update_catalogue(root, catalogue, Config(links=order), Progress())
        for path in catalogue.files():
            for link, target in catalogue.outgoing(path):
                yield link.form, bool(target and target.path)


def _share(found: Counter[tuple[str, bool]], forms: tuple[str, ...]) -> tuple[int, float]:
    good, bad = (sum(found[form, resolved] for form in forms) for resolved in (True, False))
    return good + bad, 100 * good / max(good + bad, 1)


def speed(sizes: Sequence[int] = SIZES) -> None:
    """First index and confirmation at several sizes, each in a process of its own."""
    head = ("notes", "MB", "index", "notes/s", "confirm", "memory", "on disk")
    print(" ".join(f"{word:>8}" for word in head))
    for size in sizes:
        with tempfile.TemporaryDirectory() as work:
            root = data.part(size, Path(work, "vault"))
            first = _run(root, Path(work, "index"))
            again = _run(root, Path(work, "index"))
            disk = sum(p.stat().st_size for p in Path(work, "index").rglob("*")) / 1e6
        rate = first["notes"] / first["seconds"]
        print(
            f"{first['notes']:8,} {first['mb']:8.1f} {first['seconds']:7.1f}s {rate:8,.0f} "
            f"{again['seconds']:7.2f}s {first['memory']:6.0f}MB {disk:6.0f}MB"
        )


def _run(root: Path, folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.reading", "--one", str(root), str(folder)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def one(root: Path, folder: Path) -> None:
    """One index run, as JSON: time, and memory of the process and its children."""
    with Catalogue.open(folder, True) as catalogue:
        began = time.perf_counter()
        update_catalogue(root, catalogue, Config(), Progress())
        seconds = time.perf_counter() - began
        notes = len(catalogue.files())
    own, largest = (
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    # An upper bound: the children are never all at their peak at once.
    used = own + largest * min(os.cpu_count() or 1, 8)
    size = sum(os.stat(path).st_size for path in root.rglob("*.md")) / 1e6  # noqa: PTH116
    print(json.dumps({"seconds": seconds, "notes": notes, "memory": used / 1024, "mb": size}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--links", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="notes; 0 is all")
    parser.add_argument("--one", nargs=2, metavar=("VAULT", "INDEX"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        one(Path(chosen.one[0]), Path(chosen.one[1]))
        return
    if chosen.links or not chosen.speed:
        links()
    if chosen.speed or not chosen.links:
        speed(chosen.sizes)


if __name__ == "__main__":
    main()
