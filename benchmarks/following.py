"""From the last byte of an edit to the answer that has it, and where the time between them goes.

    python -m benchmarks.following --vault ~/copy-of-notes --home ~/.rv --edits 5
    python -m benchmarks.process --notes 0 --home /tmp/h --edits 10     with the times of a search

A note of its own is written into the vault, edited and removed in the end. A watcher runs; it is
asked for a word that only the last edit has, over its socket as `ragvault search` asks, until the
answer names the note. The steps are those of the same work in one process, without a watcher; they
are kept as `following`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import record
from benchmarks.process import environ_of, steps, watcher

NAME = "ragvault-benchmark.md"
PAUSE = 0.02  # seconds between two questions
PATIENCE = 60.0  # seconds in which an edit must be found at all
# What the watcher does with an edit, in a process of its own; each step as long as it takes alone.
STEPS = """
import json, sys, time
from pathlib import Path
import ragvault.ingest as ingest
from ragvault.models.load import ModelPool
from ragvault.ports import NoProgress
from ragvault.service.vault_watcher import VaultWatcher
from ragvault.vault import Vault

NAMES = {"_walk": "look for what changed", "update_catalogue": "the same, compare, read, store",
         "refresh_keyword": "keyword, searchable",
         "refresh_vectors": "vectors", "update_graph": "links",
         "reached_tier": "is all of it there", "compact_if_due": "compact",
         "remember_run": "remember"}
took = {}
def timed(name, work):
    def call(*args, **named):
        began = time.perf_counter()
        try:
            return work(*args, **named)
        finally:
            took[NAMES[name]] = took.get(NAMES[name], 0) + time.perf_counter() - began
    return call
for name in NAMES:
    of_caches = dict.fromkeys(("update_graph", "reached_tier"), ingest._Caches)
    at = {"_walk": VaultWatcher, **of_caches}.get(name, ingest)
    setattr(at, name, timed(name, getattr(at, name)))

root, edits = Path(sys.argv[1]), int(sys.argv[2])
note = root / sys.argv[3]
watched = VaultWatcher(Vault.open(root), NoProgress(), ModelPool())
watched.listen()
try:
    watched.update(lambda: False)
    rows = []
    for number in range(edits + 1):
        note.write_text(f"# Edited\\n\\nstep{time.time_ns()}\\n")
        time.sleep(0.5)
        took.clear()
        began = time.perf_counter()
        watched.update(lambda: False)
        rows.append({**took, "all": time.perf_counter() - began})
finally:
    note.unlink(missing_ok=True)
    watched.update(lambda: False)
    watched.stop_listening()
print(json.dumps(rows[1:]))
"""


def edits(root: Path, environ: dict[str, str], count: int) -> list[float]:
    """Seconds from each edit to the first answer that has it; the watcher of `environ` runs."""
    with note_of_its_own(root) as note:
        first = [_found(root, note, environ, _edit(note))]
        return [_found(root, note, environ, _edit(note)) for _ in range(count)] if first else []


@contextmanager
def note_of_its_own(root: Path) -> Iterator[Path]:
    note = root / NAME
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
    from ragvault.service.client import ask_watcher

    began = time.perf_counter()
    args = ["search", f'"{word}"', "--vault", str(root), "--format", "paths"]
    ours = {key: value for key, value in environ.items() if key.startswith(("RAGVAULT", "HOME"))}
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


def where(root: Path, environ: dict[str, str], count: int) -> list[tuple[str, float]]:
    """Milliseconds of each step of taking an edit in, after `watch.debounce`."""
    with note_of_its_own(root):
        command = [sys.executable, "-c", STEPS, str(root), str(count), NAME]
        told = subprocess.run(command, env=environ, check=True, capture_output=True).stdout
    rows: list[dict[str, float]] = json.loads(told)
    return [(name, median(row.get(name, 0) for row in rows) * 1000) for name in rows[0]]


def told(seconds: Sequence[float]) -> str:
    return (
        f"\nedit to searchable, {len(seconds)} edits: median {median(seconds):.2f} s, "
        f"best {min(seconds):.2f} s, worst {max(seconds):.2f} s"
    )


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Without the empty line that sets it apart on a screen."""
    named = [(row["step"], row["ms"]) for row in rows]
    return steps("taking an edit in, after the debounce", named).lstrip("\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--vault", type=Path, required=True, help="a copy: a note is written to it")
    parser.add_argument("--home", type=Path, required=True, help="a RAGVAULT_HOME with its index")
    parser.add_argument("--models", type=Path, help="a folder that has the models already")
    parser.add_argument("--edits", type=int, default=5)
    asked = parser.parse_args()
    environ = environ_of(asked.home, asked.models)
    rows = where(asked.vault, environ, asked.edits)
    with watcher(asked.vault, environ):
        seconds = edits(asked.vault, environ, asked.edits)
    print(told(seconds))
    kept = [{"step": step, "ms": round(ms, 1)} for step, ms in rows]
    print(f"\n{table(kept)}")
    record.save("following", kept, edit_seconds=[round(each, 3) for each in seconds])


if __name__ == "__main__":
    main()
