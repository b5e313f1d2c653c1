"""The write path on a large vault: how long until it can be searched, and what a change costs.

    python -m benchmarks.writing [--notes 1000] [--engine tantivy]   static tier, from nothing
    python -m benchmarks.writing size [--notes 1000]                 both tiers on disk, by part
    python -m benchmarks.writing first --qmd QMD [--turns 3]         beside keyword indexing by qmd
    python -m benchmarks.writing full [--passages 2000]              beside bare embedding
    python -m benchmarks.writing changes [--changed 2000]            many notes change at once

Every index run is its own process and reports its own times. Memory is the peak of the process and
its children together, and CPU their sum, which a busy machine hardly changes; seconds are wall
time. The models are those of RAGVAULT_HOME. For `size`, vectors are made by hash and have the size
of the transformer's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import data
from ragvault.config import folders

# What is timed: (where it is called from, its name, what it is called here).
STEPS = (
    ("ragvault.ingest", "update_catalogue", "read, parse, chunk, store"),
    ("ragvault.ingest", "resolve_links", "  of it: resolve links"),
    ("ragvault.update.keyword", "update_keyword", "keyword"),
    ("ragvault.ingest", "embed_all", "embed"),
    ("ragvault.update.vectors", "update_vectors", "vectors"),
    ("ragvault.ingest", "build_vocabulary", "vocabulary"),
    ("ragvault.update.graph.LinkGraph", "update", "links"),
    ("ragvault.update.graph.LinkGraph", "update_communities", "communities"),
    ("ragvault.ingest", "compact_if_due", "compact"),
)
PARAGRAPH = "\n\nA paragraph about a zeppelinwright that was added a moment ago.\n"


def static(notes: int, engine: str) -> None:
    """From nothing to hybrid answers of the static tier, then one changed note."""
    with scene(notes) as (root, home):
        flag = f"keyword.engine={engine}"
        first = run(root, home, flag, "static")
        size = bytes_of(root)
        print(f"{first['notes']:,} notes, {first['passages']:,} passages, {size / 1e6:.1f} MB")
        print(f"{engine}, static tier: {_line(first)}")
        for name, (wall, cpu) in first["steps"].items():
            print(f"  {name:28} {wall:7.1f} s {cpu:7.1f} s of CPU in its thread")
        print(f"  searchable by keyword after {first['keyword']:.1f} s")
        _sizes(home, size)
        print(f"nothing changed: {_line(run(root, home, flag, 'static'))}")
        note = changed(root)
        change = run(root, home, flag, "static")
        print(f"{note.name} changed, process start to end: {_line(change)}")
        print(f"  searchable by keyword {change['searchable']:.1f} s after process start")
        print(f"  {change['wrote'] / 1e6:.2f} MB written; index: {_opened(root, home, flag)}")
        note.unlink()
        gone = run(root, home, flag, "static")
        print(f"{note.name} deleted: {_line(gone)}, {gone['wrote'] / 1e6:.2f} MB written")


def first(notes: int, qmd: str, turns: int) -> None:
    """From nothing to hybrid answers, by turns with qmd, from nothing to keyword answers.

    `qmd` is its command, such as "node …/@tobilu/qmd/dist/cli/qmd.js".
    """
    ratios = []
    with scene(notes) as (root, home):
        for _ in range(turns):
            shutil.rmtree(home / "vaults", ignore_errors=True)
            theirs = _qmd_index(qmd, root)
            ours = run(root, home, "keyword.engine=tantivy", "static")
            if math.isnan(ours["hybrid"]):
                raise SystemExit(
                    "no hybrid answers: the static model is missing; run first: "
                    "ragvault models pull"
                )
            ratios.append((ours["hybrid"] / theirs[0], ours["cpu"] / theirs[1]))
            print(
                f"qmd {theirs[0]:.1f} s, {theirs[1]:.1f} s of CPU; hybrid answers after "
                f"{ours['hybrid']:.1f} s, {ours['cpu']:.1f} s of CPU; x {ratios[-1][0]:.2f}, "
                f"CPU x {ratios[-1][1]:.2f}, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    wall, cpu = (statistics.median(each) for each in zip(*ratios, strict=True))
    print(f"median: first hybrid answer / qmd's keyword indexing x {wall:.2f}, CPU x {cpu:.2f}")


def _qmd_index(qmd: str, root: Path) -> tuple[float, float]:
    """Seconds and CPU seconds of a keyword index by qmd, in a home of its own."""
    with tempfile.TemporaryDirectory() as home:
        places = {
            "HOME": home,
            "XDG_CACHE_HOME": f"{home}/cache",
            "XDG_CONFIG_HOME": f"{home}/config",
        }
        command = [*shlex.split(qmd), "collection", "add", str(root), "--name", "notes"]
        began, cpu = time.perf_counter(), _cpu()
        quiet = subprocess.DEVNULL
        subprocess.run(
            command, check=True, env={**os.environ, **places}, stdout=quiet, stderr=quiet
        )
        return time.perf_counter() - began, _cpu() - cpu


def changes(notes: int, count: int, engine: str) -> None:
    """Many notes change at once: keyword updates meanwhile, or only at the end."""
    with scene(notes) as (root, home):
        flag = f"keyword.engine={engine}"
        run(root, home, flag, "static")
        for note in _spread(sorted(root.rglob("*.md")), count):
            with note.open("a", encoding="utf-8") as file:
                file.write(PARAGRAPH)
        indexed = home.with_name("indexed")
        (home / "vaults").rename(indexed)
        for how in ("static", "keyword last"):
            shutil.rmtree(home / "vaults", ignore_errors=True)
            shutil.copytree(indexed, home / "vaults")
            done = run(root, home, flag, how)
            order = "keyword meanwhile" if how == "static" else how
            print(f"{count:,} changed, {order}: {_line(done)}")
            print(f"  a changed note cannot be found for {done['missed']:.1f} s at most")


def both(notes: int) -> None:
    """What lies on disk when every passage has been read by the transformer too."""
    with scene(notes) as (root, home):
        run(root, home, "keyword.engine=whoosh", "static")
        half = run(root, home, "keyword.engine=whoosh", "half")
        print(f"on the way, with vectors of both tiers: {_line(half)}")
        _sizes(home, bytes_of(root))
        done = run(root, home, "keyword.engine=whoosh", "stand-in")
        print(f"full tier: {_line(done)}")
        _sizes(home, bytes_of(root))
        changed(root)
        change = run(root, home, "keyword.engine=whoosh", "stand-in")
        print(f"one changed note: {_line(change)}, {change['wrote'] / 1e6:.2f} MB written")


def full(passages: int) -> None:
    """An index of so many passages with the transformer, beside embedding the same texts alone."""
    with scene(0, passages) as (root, home):
        for turn in range(2):
            shutil.rmtree(home / "vaults", ignore_errors=True)
            done = run(root, home, "keyword.engine=whoosh", "bare" if turn else "bare first")
            ratio, cpu = done["index"] / done["bare"], done["index_cpu"] / done["bare_cpu"]
            print(
                f"{done['passages']:,} passages: index {done['index']:.1f} s, bare "
                f"{done['bare']:.1f} s, x {ratio:.3f}; CPU x {cpu:.3f}"
            )


# --- One run, in a process of its own ---


def one(root: Path, flag: str, how: str) -> None:
    """Index once and print the measurements as JSON."""
    from ragvault.cli.start import collect_garbage_less_often
    from ragvault.update.workers import idle_workers
    from ragvault.vault import Vault

    collect_garbage_less_often()  # as every command is
    vault = Vault.open(root, flags=[flag])
    steps, reporter, followed = Steps(), TimedLines(), Followed()
    result: dict[str, Any] = {"steps": steps.spent}
    if how == "bare first":
        result |= _bare(vault)
    began, cpu = time.perf_counter(), _cpu()
    if how in ("half", "stand-in"):
        _stand_in(stops=how == "half")
    else:
        steps.watch()
        followed.watch(meanwhile=how != "keyword last")
    with suppress(KeyboardInterrupt):
        tier = "static" if how in ("static", "keyword last") else "full"
        vault.index(tier, progress=reporter)  # type: ignore[arg-type]
    seconds = time.perf_counter() - began
    while idle_workers:  # the CPU time of a process counts when it has ended
        idle_workers.pop().end()
    result |= {"index": seconds, "index_cpu": _cpu() - cpu}
    if how == "bare":
        result |= _bare(vault)
    with vault.catalogue() as catalogue:
        counts = catalogue.counts()
    result |= {
        "notes": counts.notes,
        "passages": counts.passages,
        "missed": followed.longest(began),
        "keyword": reporter.since(began, "keyword search."),
        "ready": reporter.since(began, "quick semantic search."),
        "clock": time.time() - (time.perf_counter() - began),
        "wrote": _written(),
        "cpu": _cpu(),
    }
    print(json.dumps(result))


class TimedLines:
    """A reporter that stores every line with its time."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []

    def info(self, line: str) -> None:
        self.lines.append((time.perf_counter(), line))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from ragvault.ports import Progress

        return getattr(Progress(), name)  # type: ignore[no-any-return]

    def since(self, began: float, what: str) -> float:
        """Seconds until this was reported. NaN if it never was: then no ratio can be made of it."""
        return next((at - began for at, line in self.lines if line.endswith(what)), math.nan)


class Followed:
    """When each keyword update ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def watch(self, *, meanwhile: bool) -> None:
        keyword = import_module("ragvault.update.keyword")
        if not meanwhile:
            keyword.EVERY = float("inf")
        real = keyword.update_keyword

        def follow(*args: Any, **options: Any) -> Any:
            try:
                return real(*args, **options)
            finally:
                self.ends.append(time.perf_counter())

        keyword.update_keyword = follow

    def longest(self, began: float) -> float:
        return max((b - a for a, b in pairwise([began, *self.ends])), default=0.0)


class Steps:
    """Wall time and thread CPU of each step."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    def watch(self) -> None:
        for where, name, what in STEPS:
            module, _, owner = where.rpartition(".")
            holder = (
                getattr(import_module(module), owner)
                if owner[0].isupper()
                else import_module(where)
            )
            setattr(holder, name, self._timed(getattr(holder, name), what))

    def _timed(self, work: Callable[..., Any], what: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            began, cpu = time.perf_counter(), time.thread_time()
            try:
                return work(*arguments, **options)
            finally:
                spent = self.spent.setdefault(what, [0.0, 0.0])
                spent[0] += time.perf_counter() - began
                spent[1] += time.thread_time() - cpu

        return timed


def _stand_in(stops: bool) -> None:
    """Replace the transformer by vectors made by hash, of the same size."""
    from benchmarks.searching import Hashed
    from ragvault.engines import Engines
    from ragvault.models.load import same_model

    real = Engines.embedder

    def embedder(self: Engines, name: str, **options: Any) -> Any:
        made = real(self, name, **options)
        return Hashed(made) if same_model(made.name, self.config.models.embedder) else made

    Engines.embedder = embedder  # type: ignore[method-assign, assignment]
    if stops:  # just before the rough vectors go
        ingest = import_module("ragvault.ingest")

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        ingest._Caches._drop_static = stop


def _bare(vault: Any) -> dict[str, float]:
    """The same texts, each once, through the same model and nothing else."""
    from ragvault.notes.walk import walk
    from ragvault.update.prepare import Prepared, embedding_text, prepare

    config = vault.settings.config
    files = walk(vault.root, config.walk).files
    found = (prepare(vault.root, file, config) for file in files)
    made = (each for each in found if isinstance(each, Prepared))
    texts = {embedding_text(passage): None for each in made for passage in each.passages}
    embedder = vault.engines().embedder(config.models.embedder)
    ordered = sorted(texts, key=len, reverse=True)
    embedder.embed(ordered[-8:], "passage")
    began, cpu = time.perf_counter(), _cpu()
    embedder.embed(ordered, "passage")
    return {"bare": time.perf_counter() - began, "bare_cpu": _cpu() - cpu}


def _cpu() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _written() -> int:
    """Bytes this process has handed to the system for writing; Linux counts them."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


# --- Around it ---


@contextmanager
def scene(notes: int, passages: int = 0, corpus: Path | None = None) -> Iterator[tuple[Path, Path]]:
    """A vault of so many notes of the corpus (0: all), and an empty home with the models."""
    corpus = corpus or data.scale()
    with tempfile.TemporaryDirectory() as work:
        home, root = Path(work, "home"), Path(work, "vault")
        home.mkdir()
        (home / "models").symlink_to(folders.models_dir().resolve())
        every = sorted(corpus.rglob("*.md"))
        size = notes or (max(1, passages // 8) if passages else len(every))
        for note in _spread(every, size):
            copy = root / note.relative_to(corpus)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(note, copy)
        yield root, home


def run(root: Path, home: Path, flag: str, how: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.writing", "one", str(root), flag, how]
    environ = {**os.environ, "RAGVAULT_HOME": str(home)}
    began, clock = time.perf_counter(), time.time()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as running:
        memory = Memory(running.pid)
        output = running.communicate()[0]
        memory.end()
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    result: dict[str, Any] = json.loads(output) | {"memory": memory.most / 1e6}
    result["searchable"] = (
        result["clock"] + result["keyword"] - clock
    )  # two processes share no other
    result["hybrid"] = result["clock"] + result["ready"] - clock
    return result | {"seconds": time.perf_counter() - began}


class Memory(threading.Thread):
    """Peak memory of a process and its children in bytes, sampled five times a second.

    Shared memory is divided among the processes that share it.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.most, self._ended = pid, 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            self.most = max(self.most, sum(map(_held, _family(self.pid))))

    def end(self) -> None:
        self._ended.set()
        self.join()


def _family(pid: int) -> list[int]:
    """A process and all its descendants."""
    try:
        own = Path(f"/proc/{pid}/task").glob("*/children")
        started = [int(child) for task in own for child in task.read_text().split()]
    except OSError:
        return []
    return [pid, *(each for child in started for each in _family(child))]


def _held(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _line(run: dict[str, Any]) -> str:
    return f"{run['seconds']:.1f} s, {run['cpu']:.1f} s of CPU, {run['memory']:,.0f} MB of memory"


def _spread(every: list[Path], count: int) -> list[Path]:
    return every[:: max(1, len(every) // count)][:count]


def changed(root: Path) -> Path:
    """One note of middling size gets another paragraph."""
    every = sorted(root.rglob("*.md"), key=lambda path: path.stat().st_size)
    note = every[len(every) // 2]
    with note.open("a", encoding="utf-8") as file:
        file.write(PARAGRAPH)
    return note


OPENING = """
import sys, time
from ragvault.search import search
from ragvault.types import SearchRequest
from ragvault.vault import Vault
vault = Vault.open(sys.argv[1], flags=[sys.argv[2]])
began = time.perf_counter()
opened = vault.corpus()
print(time.perf_counter() - began)
print("zeppelinwright" in vault.search("zeppelinwright").results[0].passage)
"""


def _opened(root: Path, home: Path, flag: str) -> str:
    """How long opening takes when everything is imported, and whether the change is found."""
    environ = {**os.environ, "RAGVAULT_HOME": str(home)}
    command = [sys.executable, "-c", OPENING, str(root), flag]
    seconds, found = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=environ
    ).stdout.split()
    return f"opened in {1000 * float(seconds):.0f} ms, finds the change: {found}"


def _sizes(home: Path, markdown: int) -> None:
    index = next((home / "vaults").iterdir())
    parts = {path.name: bytes_of(path) for path in sorted(index.iterdir())}
    total = sum(parts.values())
    print(f"  on disk {total / 1e6:.1f} MB, {total / markdown:.2f} x the Markdown:")
    for name, size in sorted(parts.items(), key=lambda part: -part[1]):
        if size > total / 1000:
            print(f"    {name:24} {size / 1e6:8.1f} MB {size / markdown:6.2f} x")


def bytes_of(path: Path) -> int:
    inside = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in inside if each.is_file())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "what",
        nargs="?",
        choices=["static", "first", "size", "full", "changes", "one"],
        default="static",
    )
    parser.add_argument("run", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--notes", type=int, default=0, help="0 is all of them")
    parser.add_argument("--changed", type=int, default=2000)
    parser.add_argument("--passages", type=int, default=2000)
    parser.add_argument("--qmd", default="qmd", help="the command that runs qmd")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--engine", choices=["whoosh", "tantivy"], default="whoosh")
    args = parser.parse_args(arguments)
    if args.what == "one":
        one(Path(args.run[0]), args.run[1], args.run[2])
    elif args.what == "first":
        first(args.notes, args.qmd, args.turns)
    elif args.what == "size":
        both(args.notes)
    elif args.what == "full":
        full(args.passages)
    elif args.what == "changes":
        changes(args.notes, args.changed, args.engine)
    else:
        static(args.notes, args.engine)


if __name__ == "__main__":
    main()
