"""A whole `ragvault search`, from the keyboard to the last byte, in every way it can be answered.

    python -m benchmarks.process --notes 2000                        part of the large corpus
    python -m benchmarks.process --vault ~/copy --home ~/.rv         a vault and its index
    python -m benchmarks.process --notes 0 --home /tmp/h --edits 10  all 14,593 notes
    python -m benchmarks.process … --peer qmd="qmd search -n 5"      and another program beside it

One run measures wall time and peak memory of processes that answer by themselves ("cold": a warm
file cache), of the search that starts a resident process, of later ones, which it answers, and of
another program that gets the same query. They take turns, so that a busy machine slows all of them.
Then, with a watcher: its searches, the steps of both ways, its memory, its CPU while nothing
happens. With --home an index that is there is
used as it is; without it one is made in a temporary folder. With --edits a note is written into the
vault, edited and removed in the end: how long until a search finds each edit. Stored as `process`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import data, record
from ragvault.service.protocol import ask_watcher

PYTHON = sys.executable
RAGVAULT = str(Path(PYTHON).with_name("ragvault"))
QUERIES = (
    "how do I centre an element vertically",
    "abort a fetch request",
    "difference between let and var",
    "web workers and shared memory",
    "secure cookies",
)
# The steps of a search that answers by itself, each timed in a fresh process.
STEPS = """
import time; marks = [("", time.perf_counter())]
def mark(name): marks.append((name, time.perf_counter()))
import ragvault.cli.main; mark("import the command line")
import ragvault.cli.search, ragvault.vault, ragvault.cli.results
mark("import the read path")
import sys; from ragvault.cli.start import this_caller
from ragvault.vault import Vault
vault = Vault.open(sys.argv[1]); mark("settings and vault")
index = vault.corpus(); mark("open catalogue and indexes")
tier = index.facts.tier
if tier != "keyword":
    index.embed_query(sys.argv[2], "query"); mark(f"load the model, embed the query ({tier})")
from ragvault.search import search
from ragvault.types import SearchRequest
from datetime import datetime
response = search(SearchRequest(sys.argv[2], datetime.now().astimezone()), index)
mark("search, rank, check files"); index.close(); mark("close")
import json; print(json.dumps([(n, b - a) for (_, a), (n, b) in zip(marks, marks[1:])]))
print(json.dumps("networkx" in sys.modules))
"""


NOTE = "ragvault-benchmark.md"
PAUSE = 0.02  # seconds between two searches for an edit
PATIENCE = 60.0  # seconds in which an edit must be found at all


class Ran(NamedTuple):
    """One process."""

    seconds: float
    megabytes: float
    out: bytes


# A process begins with the memory of the one that started it, so a small one starts it.
LAUNCH = """
import os, sys, time
began = time.perf_counter()
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
seconds = time.perf_counter() - began
code = os.waitstatus_to_exitcode(status)
sys.stderr.write(f"\\n{seconds} {usage.ru_maxrss / 1024} {code}")
"""


def run(command: Sequence[str], environ: dict[str, str]) -> Ran:
    """Run to its end; memory is the most the process ever had."""
    launch = [PYTHON, "-S", "-E", "-c", LAUNCH, *command]
    ended = subprocess.run(launch, env=environ, capture_output=True, check=True)
    seconds, megabytes, code = ended.stderr.splitlines()[-1].split()
    if int(code) not in (0, 1):
        raise SystemExit(f"{command} ended with {int(code)}: {ended.stderr.decode()}")
    return Ran(float(seconds), float(megabytes), ended.stdout)


def searches(root: Path, environ: dict[str, str], runs: int) -> list[Ran]:
    """One unmeasured, so that files are in memory, and then `runs`."""
    return [run(_search(root, turn), environ) for turn in range(runs + 1)][1:]


def _search(root: Path, turn: int, *more: str) -> list[str]:
    query = QUERIES[turn % len(QUERIES)]
    return [RAGVAULT, "search", query, "--vault", str(root), "-n", "5", *more]


COLD, FIRST, LATER = "search alone", "search that starts a resident process", "later searches"


def in_turns(
    root: Path, environ: dict[str, str], runs: int, peers: Mapping[str, Sequence[str]]
) -> dict[str, list[Ran]]:
    """Searches of every kind, one after the other, `runs` times; the first turn is not counted."""
    found: dict[str, list[Ran]] = {}
    for turn in range(runs + 1):
        turns = [
            (COLD, _search(root, turn, "--no-resident")),
            (FIRST, _search(root, turn)),
            (LATER, _search(root, turn + 1)),
            (LATER, _search(root, turn + 2)),
        ]
        query = QUERIES[turn % len(QUERIES)]
        turns += [(name, [*command, query]) for name, command in peers.items()]
        for name, command in turns:
            ran = run(command, environ)
            if turn:
                found.setdefault(name, []).append(ran)
        stop(environ)
    return found


def stop(environ: dict[str, str]) -> None:
    subprocess.run([RAGVAULT, "watch", "--stop", "-q"], env=environ, check=True)


def ratios(found: Mapping[str, Sequence[Ran]], peers: Iterable[str]) -> dict[str, float]:
    """The bounds that are promised, as ratios of medians of one run."""
    seconds = {name: median(ran.seconds for ran in rans) for name, rans in found.items()}
    later = {f"later / {name}": seconds[LATER] / seconds[name] for name in peers}
    return {"first / alone": seconds[FIRST] / seconds[COLD], **later}


@contextmanager
def watcher(root: Path, environ: dict[str, str]) -> Iterator[int]:
    """A watcher that has caught up; gives its process id."""
    subprocess.run([RAGVAULT, "watch", "--daemon", "-q", str(root)], env=environ, check=True)
    try:
        while True:
            status = run([RAGVAULT, "watch", "--status", "--json"], environ).out
            state = json.loads(status)
            if not any(vault["waiting"] for vault in state["vaults"]):
                break
            time.sleep(0.5)
        yield state["pid"]
    finally:
        stop(environ)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(
        int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")
    )


def where_cold(root: Path, environ: dict[str, str], runs: int) -> list[tuple[str, float]]:
    """Milliseconds of each step of a search that answers by itself; the median of `runs`."""
    bare = median(run([PYTHON, "-c", "pass"], environ).seconds for _ in range(runs))
    found: dict[str, list[float]] = {}
    for turn in range(runs):
        query = QUERIES[turn % len(QUERIES)]
        out = run([PYTHON, "-c", STEPS, str(root), query], environ).out.splitlines()
        for name, seconds in json.loads(out[0]):
            found.setdefault(name, []).append(seconds)
        if json.loads(out[1]):
            print("NetworkX was imported by a search", file=sys.stderr)
    return [("start Python", bare * 1000)] + [(n, median(s) * 1000) for n, s in found.items()]


def where_warm(root: Path, environ: dict[str, str], runs: int) -> list[tuple[str, float]]:
    bare = median(run([PYTHON, "-c", "pass"], environ).seconds for _ in range(runs))
    client = "import ragvault.cli.start, ragvault.service.protocol"
    loaded = median(run([PYTHON, "-c", client], environ).seconds for _ in range(runs))
    whole = searches(root, environ, runs)
    took = [
        json.loads(run(_search(root, turn, "--json"), environ).out)["took_ms"]
        for turn in range(runs)
    ]
    total, search = median(ran.seconds for ran in whole) * 1000, median(took)
    rest = total - loaded * 1000 - search
    return [
        ("start Python", bare * 1000),
        ("import the client", (loaded - bare) * 1000),
        ("the search itself, in the watcher", search),
        ("settings, freshness, rendering, socket, writing", rest),
    ]


def edited_notes(root: Path, environ: dict[str, str], count: int) -> list[float]:
    """Seconds from each edit to the first answer that has it; the watcher of `environ` runs."""
    with benchmark_note(root) as note:
        _found(root, note, environ, _edit(note))  # not counted: the first one loads models
        return [_found(root, note, environ, _edit(note)) for _ in range(count)]


@contextmanager
def benchmark_note(root: Path) -> Iterator[Path]:
    note = root / NOTE
    if note.exists():
        raise SystemExit(f"{note} is there already; remove it if it was left by a benchmark")
    try:
        yield note
    finally:
        note.unlink(missing_ok=True)


def _edit(note: Path) -> str:
    word = f"edited{time.time_ns()}"
    note.write_text(f"# Edited\n\nA sentence, and a word that stands nowhere else: {word}\n")
    return word


def _found(root: Path, note: Path, environ: dict[str, str], word: str) -> float:
    """Ask until the note is found by its word; a moment's rest between two edits."""
    began = time.perf_counter()
    args = ["search", f'"{word}"', "--vault", str(root), "--format", "paths"]
    ours = {
        key: value for key, value in environ.items() if key.startswith(("RAGVAULT", "HOME", "XDG"))
    }
    while time.perf_counter() - began < PATIENCE:
        around = {"cwd": str(root), "environ": ours, "now": time.time(), "zone": 0}
        folder = os.path.join(environ["RAGVAULT_HOME"], "run")  # noqa: PTH118
        answer = ask_watcher(folder, {"op": "search", "args": args, "around": around})
        if note.name in answer["out"]:
            seconds = time.perf_counter() - began
            time.sleep(1.0)
            return seconds
        time.sleep(PAUSE)
    raise SystemExit(f"an edit was not found within {PATIENCE:.0f} s")


def row(name: str, ran: Sequence[Ran]) -> dict[str, Any]:
    """A row of the table."""
    seconds = [round(each.seconds, 4) for each in ran]
    return {"process": name, "seconds": seconds, "peak_mb": max(each.megabytes for each in ran)}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| | median s | best s | worst s | peak MB |", "|---|---:|---:|---:|---:|"]
    for each in rows:
        seconds = each["seconds"]
        lines.append(
            f"| {each['process']} | {median(seconds):.3f} | {min(seconds):.3f} "
            f"| {max(seconds):.3f} | {each['peak_mb']:.0f} |"
        )
    return "\n".join(lines)


def steps(name: str, rows: Sequence[tuple[str, float]]) -> str:
    return "\n".join([f"\n| {name} | ms |", "|---|---:|", *(f"| {n} | {v:.0f} |" for n, v in rows)])


def environ_of(home: Path, models: Path | None) -> dict[str, str]:
    """Of this shell, with this home; without CI, under which no resident process is started."""
    ours = ("RAGVAULT_", "CI")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    more = {"RAGVAULT_MODELS__FOLDER": str(models)} if models else {}
    return {**kept, **more, "RAGVAULT_HOME": str(home)}


def measure(
    root: Path,
    environ: dict[str, str],
    tier: str,
    runs: int,
    idle: float,
    edits: int,
    peers: Mapping[str, Sequence[str]],
) -> None:
    command = [RAGVAULT, "index", str(root), "--tier", tier]
    subprocess.run(command, env=environ, check=True, stdout=sys.stderr)
    stop(environ)
    turns, cold_steps = in_turns(root, environ, runs, peers), where_cold(root, environ, runs)
    with watcher(root, environ) as pid:
        warm, warm_steps = searches(root, environ, runs), where_warm(root, environ, runs)
        before = cpu_seconds(pid)
        time.sleep(idle)
        share = (cpu_seconds(pid) - before) / idle
        edited = edited_notes(root, environ, edits) if edits else []
        held = peak_megabytes(pid)
    rows = [row(name, ran) for name, ran in turns.items()]
    rows.append(row("search with a watcher", warm))
    if edits:
        after = [Ran(seconds, held, b"") for seconds in edited]
        rows.append(row("edit until found; memory of the watcher", after))
    print(table(rows))
    compared = ratios(turns, peers)
    print("\n" + "\n".join(f"{name}: {value:.2f}" for name, value in compared.items()))
    print(steps("steps of a search alone", cold_steps))
    print(steps("steps with a watcher", warm_steps))
    print(f"\nthe watcher: at most {held:.0f} MB; idle {share:.2%} of a core over {idle:.0f} s")
    where = {"cold_ms": dict(cold_steps), "warm_ms": dict(warm_steps)}
    more = {"tier": tier, "watcher_mb": held, "idle_share": share, "ratios": compared}
    record.save("process", rows, **where, **more)


def vault_parser(description: str | None) -> argparse.ArgumentParser:
    """The options that say which vault is indexed, where, and how far."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=2000, help="of the large corpus; 0 is all")
    parser.add_argument("--vault", type=Path, help="a vault of your own instead")
    parser.add_argument("--home", type=Path, help="a RAGVAULT_HOME that is kept")
    parser.add_argument("--models", type=Path, help="a folder that has the models already")
    parser.add_argument("--tier", default="full", choices=("keyword", "static", "full"))
    return parser


def main() -> None:
    parser = vault_parser(__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--idle", type=float, default=30.0, help="seconds to watch it do nothing")
    parser.add_argument("--edits", type=int, default=0, help="of a note that is written for it")
    parser.add_argument("--peer", metavar="NAME=COMMAND", help="gets the query as its last word")
    args = parser.parse_args()
    name, _, command = (args.peer or "").partition("=")
    peers = {name: shlex.split(command)} if name else {}
    more = (args.tier, args.runs, args.idle, args.edits, peers)
    with tempfile.TemporaryDirectory() as folder:
        root = args.vault or data.part(args.notes, Path(folder, "notes"))
        home = args.home or Path(folder) / "home"
        measure(root, environ_of(home, args.models), *more)


if __name__ == "__main__":
    main()
