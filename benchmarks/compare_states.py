"""Two states of the code compared: every search runs in both, so that load slows both alike.

    python -m benchmarks.compare_states COMMIT                       judged vaults, or the sample
    python -m benchmarks.compare_states COMMIT --notes 14593 …       the large corpus
    python -m benchmarks.compare_states COMMIT --limit 30            long answers

Each state runs in its own process (state_process.py), the older one from a checkout of COMMIT. Both
read the same index, so its format must be the same. The table has p50 and p95 of searches and of
the stages after retrieval, and the median difference query by query. Below it: how many answers are
equal to nine digits. The large corpus has vectors made by hash, as in benchmarks.searching.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import corpora, record, searching

HERE = Path(__file__).parent
ROUNDS, LARGE = 3, 150
Times = dict[str, dict[str, list[float]]]


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A temporary checkout of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(HERE.parent), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


class State:
    """One state of the code, warm and waiting for the number of a query."""

    def __init__(self, tree: Path, task: Mapping[str, Any]) -> None:
        # -I: modules here must not be taken for those of the standard library.
        command = [sys.executable, "-I", str(HERE / "state_process.py"), str(tree)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        if self._send(json.dumps(task)) != "ready":
            raise SystemExit(f"the state in {tree} did not start")

    def __call__(self, number: int) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._send(str(number)))
        return answer

    def _send(self, line: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        print(line, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def in_turns(states: Mapping[str, State], count: int) -> tuple[Times, int]:
    """Every query in every state, in random order; and how many answers are the same."""
    chance, same = random.Random(0), 0
    times: Times = {name: {"search": [], "stages": []} for name in states}
    for number in [*range(count)] * ROUNDS:
        answers = {}
        for name in chance.sample(list(states), len(states)):
            answers[name] = states[name](number)
            for part, kept in times[name].items():
                kept.append(answers[name][part])
        first, *others = (each["found"] for each in answers.values())
        same += all(each == first for each in others)
    return times, same


def table(times: Times, same: int) -> str:
    """One row per state; differences are to the first."""
    before = next(iter(times.values()))
    parts = list(before)
    head = "".join(f" {part} p50 | p95 | difference |" for part in parts)
    lines = [f"| ms |{head}", f"|---|{'---:|' * (3 * len(parts))}"]
    for name, kept in times.items():
        cells = [
            f"{np.percentile(kept[part], 50):.1f} | {np.percentile(kept[part], 95):.1f} | "
            f"{np.median(np.subtract(kept[part], before[part])):+.2f}"
            for part in parts
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    asked = len(before["search"])
    return "\n".join([*lines, "", f"{same} of {asked} answers are the same"])


def tasks(chosen: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """What to search: a name, and the task for each state (vault, flags and queries)."""
    if chosen.notes:
        root, flags = searching.part_of_corpus(chosen.notes), [f"keyword.engine={chosen.engine}"]
        os.environ["RAGVAULT_HOME"] = str(record.home())
        with searching.indexed(root, flags) as index:
            asked = searching.queries(index, LARGE)
        task = {"root": str(root), "flags": flags, "queries": asked}
        yield f"{chosen.notes:,} notes, {chosen.engine}", task
        return
    for name in corpora.JUDGED if corpora.available() else ("sample",):
        corpus = corpora.corpus(name)
        corpus.index()
        asked = [each.query for each in corpus.questions]
        yield name, {"root": str(corpus.root), "flags": [], "queries": asked}


def compared(tree: Path, commit: str, task: Mapping[str, Any]) -> str:
    states = {commit: State(tree, task), "now": State(HERE.parent, task)}
    try:
        return table(*in_turns(states, len(task["queries"])))
    finally:
        for state in states.values():
            state.close()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commit", help="the state to compare with")
    parser.add_argument("--notes", type=int, default=0, help="of the large corpus")
    parser.add_argument("--limit", type=int, help="results; by default as many as settings say")
    parser.add_argument("--engine", default="whoosh", choices=["whoosh", "tantivy"])
    chosen = parser.parse_args(arguments)
    with checkout(chosen.commit) as tree:
        for name, task in tasks(chosen):
            task["limit"] = chosen.limit
            print(f"{name}\n{compared(tree, chosen.commit, task)}\n", flush=True)


if __name__ == "__main__":
    main()
