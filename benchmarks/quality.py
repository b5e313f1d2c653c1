"""How good the answers are, on judged questions about real vaults, profile by profile.

    RAGVAULT_BENCH_DATA=… python -m benchmarks.quality [--profiles A,B|all] [--set key=value …]

Each vault is indexed once with the real models, into a folder that later runs use again
(RAGVAULT_BENCH_HOME, by default below the temporary folder). Every profile answers every question
through the real read path; single legs are profiles of one leg. Kinds are pooled over the vaults,
and the difference to the first profile comes with a paired bootstrap interval.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from benchmarks import data
from ragvault import profiles
from ragvault.engines import Engines
from ragvault.evaluate.metrics import Scores, average, score
from ragvault.evaluate.questions import Question, read_questions
from ragvault.opened import Opened
from ragvault.search import Asked, search
from ragvault.vault import Vault

VAULTS = ("obsidian-tasks", "jackyzha0-garden")
NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)  # one clock for all runs
LEGS = {
    "vector-only": ('retrieve.legs=["vector"]',),
    "keyword-only": ('retrieve.legs=["keyword"]', 'retrieve.fill="off"'),
}
PLAIN = ("boost.enabled=false", "dedup.enabled=false", "limit.n=30")
SHOWN = ("ndcg@10", "mrr@10", "success@1", "p@3", "recall@10")


@dataclass(frozen=True, slots=True)
class Answered:
    """One question as one profile answered it."""

    vault: str
    question: Question
    scores: Scores
    confidence: float


def indexed(name: str) -> Vault:
    """A vault with all its vectors; indexed on the first run, brought up to date on later ones."""
    home = os.environ.get("RAGVAULT_BENCH_HOME") or str(
        Path(tempfile.gettempdir(), "ragvault-bench")
    )
    os.environ["RAGVAULT_HOME"] = home
    vault = Vault.open(data.folder("vaults", name))
    vault.index()
    return vault


def answers(name: str, profile: str, flags: Sequence[str]) -> Iterator[Answered]:
    """Every judged question of a vault, answered by a profile."""
    root = data.folder("vaults", name)
    wanted = [*flags, *LEGS.get(profile, ())]
    loaded = profiles.load(root, flags=[*_named(profile), *wanted])
    questions = read_questions(data.folder("questions", f"{name}.jsonl"))
    vault = Vault.open(root)
    with Opened(vault.catalogue(), Engines(vault.folder, loaded)) as index:
        for question in questions:
            response = search(Asked(question.query, NOW, limit=30), index)
            ranking = [each.note.path for each in response.results]
            sure = max((each.confidence or 0.0 for each in response.results[:1]), default=0.0)
            yield Answered(name, question, score(ranking, question.grades), sure)


def _named(profile: str) -> list[str]:
    return [] if profile in LEGS else [f"search.profile={profile}"]


def interval(ours: Sequence[float], theirs: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the mean difference, by paired bootstrap."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    chance = random.Random(seed)
    means = sorted(
        sum(chance.choices(differences, k=len(differences))) / len(differences) for _ in range(2000)
    )
    return means[49], means[1949]


def compare(names: Sequence[str], flags: Sequence[str]) -> dict[str, list[Answered]]:
    return {
        name: [each for vault in VAULTS for each in answers(vault, name, flags)] for name in names
    }


def table(results: dict[str, list[Answered]]) -> str:
    """One row a profile: pooled metrics, and the difference of nDCG to the first."""
    first = next(iter(results))
    lines = [
        f"| profile | {' | '.join(SHOWN)} | nDCG − {first} [95 %] |",
        f"|---|{'---:|' * (len(SHOWN) + 1)}",
    ]
    base = [each.scores.get("ndcg@10", 0.0) for each in _judged(results[first])]
    for name, answered in results.items():
        judged = _judged(answered)
        mean = average(each.scores for each in judged)
        own = [each.scores.get("ndcg@10", 0.0) for each in judged]
        low, high = interval(own, base)
        cells = " | ".join(f"{mean.get(metric, 0.0):.3f}" for metric in SHOWN)
        shift = sum(own) / len(own) - sum(base) / len(base)
        lines.append(f"| {name} | {cells} | {shift:+.3f} [{low:+.3f}, {high:+.3f}] |")
    return "\n".join(lines)


def by_kind(results: dict[str, list[Answered]]) -> str:
    """nDCG@10 of every kind of question, one column a profile."""
    kinds: dict[str, dict[str, list[Scores]]] = defaultdict(lambda: defaultdict(list))
    for name, answered in results.items():
        for each in _judged(answered):
            kinds[each.question.kind][name].append(each.scores)
    lines = [f"| kind | n | {' | '.join(results)} |", f"|---|---:|{'---:|' * len(results)}"]
    for kind, columns in kinds.items():
        means = [average(columns[name]).get("ndcg@10", 0.0) for name in results]
        count = len(columns[next(iter(results))])
        lines.append(f"| {kind} | {count} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return "\n".join(lines)


def held_back(results: dict[str, list[Answered]]) -> str:
    """How sure the first answer is: of questions that have one, and of those that have none."""
    lines = ["| profile | answerable: median confidence | unanswerable: median | below 0.5 |"]
    lines.append("|---|---:|---:|---:|")
    for name, answered in results.items():
        sure = sorted(each.confidence for each in _judged(answered))
        none = sorted(each.confidence for each in answered if not each.question.relevant)
        low = sum(value < 0.5 for value in none) / max(len(none), 1)
        lines.append(
            f"| {name} | {sure[len(sure) // 2]:.2f} | {none[len(none) // 2]:.2f} | {low:.0%} |"
        )
    return "\n".join(lines)


def _judged(answered: Sequence[Answered]) -> list[Answered]:
    return [each for each in answered if each.question.relevant]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--profiles", default="default", help="names, or all")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    chosen = parser.parse_args()
    for name in VAULTS:
        indexed(name)
    names = profiles.names() if chosen.profiles == "all" else chosen.profiles.split(",")
    results = compare([*names, *(leg for leg in LEGS if leg not in names)], chosen.set)
    print(table(results), by_kind(results), held_back(results), sep="\n\n")


if __name__ == "__main__":
    main()
