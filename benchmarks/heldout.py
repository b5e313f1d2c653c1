"""The default on questions that its settings were not chosen on.

    python -m benchmarks.heldout                       every corpus left out in turn
    python -m benchmarks.heldout --corpora obsidian-tasks,jackyzha0-garden,ir/cranfield

The default's weights were chosen on the questions that its quality is reported on. Here each corpus
is left out in turn and answered with weights that are best for the others: of a grid of weights,
the mean of those whose mean nDCG@10 on the others is within NEAR of the best, because differences
that small are chance. Weights are chosen by the sum of evidence alone, in numpy, which is fast;
answers go through every stage. `benchmarks.confidence --fit` does the same for the confidence.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from typing import Any

import numpy as np
from msgspec.structs import replace

from benchmarks import corpora, quality, record
from benchmarks.corpora import Corpus
from ragvault.candidate import Candidate, cosine_evidence, key
from ragvault.config.ranking import Fuse
from ragvault.evaluate import report
from ragvault.evaluate.metrics import score
from ragvault.evaluate.run import Replay, ScoredAnswer
from ragvault.evaluate.tune import Values, with_values
from ragvault.plan import LEGS
from ragvault.rank.fuse import cosine

COLLECTIONS = ("ir/cranfield", "ir/cacm", "ir/med")
CHOICES = {
    "fuse.k": (60, 100, 150),
    "fuse.exponent": (1.0, 1.25, 1.5, 2.0),
    "fuse.weights.keyword": (0.6, 0.8, 1.0, 1.3),
    "fuse.weights.graph": (0.1, 0.2, 0.3),
    "fuse.keyword.coverage": (0.4, 0.6, 0.8),  # `note` has the rest
}
NEAR = 0.002
PARTS = ("coverage", "passage", "note", "title")


class Left:
    """A corpus that is searched once and then ranked with many weights."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        index = corpus.vault().corpus()
        self.config = index.config
        self.replay = Replay(corpus.questions, index, corpora.NOW, corpus.relevant)
        traced = self.replay.traces(self.config)
        self._known = [
            (question, *known(found.candidates, found.context.unrelated))
            for question, found, _ in traced
        ]

    def mean(self, values: Values) -> float:
        """nDCG@10 of fusion alone."""
        config, scores = with_values(self.config, values).fuse, []
        for question, evidence, notes in self._known:
            order = np.argsort(-summed(evidence, config), kind="stable")
            ranked = [notes[at] for at in order if notes[at] not in question.without]
            scores.append(score(ranked, question.grades, relevant=self.corpus.relevant))
        found = [each["ndcg@10"] for each in scores if "ndcg@10" in each]
        return sum(found) / len(found)

    def answers(self, values: Values) -> list[ScoredAnswer]:
        """Through every stage, with ids that no other corpus has."""
        found = self.replay.answers(with_values(self.config, values))
        name = self.corpus.name
        return [
            changed(a, question=replace(a.question, id=f"{name}:{a.question.id}")) for a in found
        ]


def known(candidates: Sequence[Candidate], unrelated: float) -> tuple[Any, list[str]]:
    """What the legs know of each candidate, and its note.

    Columns: evidence of vector, PARTS, and the other legs; ranks of LEGS (infinite: not found);
    exact; the note; and its place among equal scores.
    """
    places = {each.id: at for at, each in enumerate(sorted(candidates, key=lambda c: key(c, 0.0)))}
    rows = [
        [
            cosine_evidence(cosine(each), unrelated),
            *(each.evidence.get(name, 0.0) for name in PARTS),
            *(each.evidence.get(name, 1.0) for name in ("name", "code", "graph")),
            *(each.ranks.get(leg, np.inf) for leg in LEGS),
            bool(each.exact),
            each.note.id,
            places[each.id],
        ]
        for each in candidates
    ]
    return np.array(rows).reshape(-1, 16), [each.note.path for each in candidates]


def summed(known: Any, settings: Fuse) -> Any:
    """The score that `fuse` makes of them, exact hits first (a test compares both)."""
    vector, *parts, name, code, graph = known.T[:8]
    shares = [getattr(settings.keyword, name) for name in PARTS]
    words = sum(share * part for share, part in zip(shares, parts, strict=True)) / (
        sum(shares) or 1
    )
    ranks = dict(zip(LEGS, known.T[8:13], strict=True))
    evidence = {"name": name, "vector": vector, "keyword": words, "code": code, "graph": graph}
    scores = {
        leg: getattr(settings.weights, leg) * evidence[leg] ** settings.exponent
        / (settings.k + rank)
        for leg, rank in ranks.items()
    }  # fmt: skip
    total = sum(scores.values())
    exact, note, place = known.T[13:]
    # A name counts for the best passage of a note alone.
    order = np.lexsort((place, -total))
    best = np.zeros(len(known), bool)
    best[order[np.unique(note[order], return_index=True)[1]]] = True
    return total - np.where(best, 0.0, scores["name"]) + 10 * exact


def tried() -> list[dict[str, float]]:
    """Every setting of the grid."""
    grid = [
        dict(zip(CHOICES, values, strict=True)) for values in itertools.product(*CHOICES.values())
    ]
    return [each | {"fuse.keyword.note": 1 - each["fuse.keyword.coverage"]} for each in grid]


def weights(some: Sequence[Left], settings: Sequence[Values]) -> list[dict[str, Any]]:
    """One row per corpus: weights chosen without it, the default, and the better leg."""
    means = {each.corpus.name: [each.mean(values) for values in settings] for each in some}
    found: list[dict[str, Any]] = []
    every: dict[str, list[ScoredAnswer]] = {"chosen": [], "default": [], "leg": []}
    for left in some:
        print(
            f"{left.corpus.name}: answering with weights chosen on the others",
            file=sys.stderr,
            flush=True,
        )
        others = [of for name, of in means.items() if name != left.corpus.name]
        values = chosen(settings, np.mean(others, axis=0))
        answers_by = {
            "chosen": left.answers(values),
            "default": left.answers({}),
            "leg": _better_leg(left.corpus),
        }
        found.append(_row(left.corpus.name, answers_by) | {"values": values})
        every = {name: [*answers, *answers_by[name]] for name, answers in every.items()}
    return [*found, _row("all", every)]


def chosen(settings: Sequence[Values], scores: Any) -> dict[str, float]:
    """The mean of the settings that score about as well as the best one."""
    near = [
        each for each, score in zip(settings, scores, strict=True) if score >= max(scores) - NEAR
    ]
    means = {name: float(np.mean([each[name] for each in near])) for name in near[0]}
    return means | {"fuse.k": round(means["fuse.k"])}


def _better_leg(corpus: Corpus) -> list[ScoredAnswer]:
    found = quality.compare([corpus], list(quality.LEGS), ())
    return max(found.values(), key=lambda answers: report.summarize(answers)["ndcg@10"])


def _row(name: str, answers_by: Mapping[str, Sequence[ScoredAnswer]]) -> dict[str, Any]:
    def against(other: str) -> dict[str, Any]:
        kept = report.comparison("", answers_by["chosen"], "", answers_by[other])
        return {key: kept[key] for key in ("n", "mean", "low", "high")}

    means = {key: report.summarize(answers) for key, answers in answers_by.items()}
    return {
        "corpus": name,
        **{key: {m: of[m] for m in ("ndcg@10", "mrr@10")} for key, of in means.items()},
        "over_leg": against("leg"),
        "over_default": against("default"),
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| left out | chosen on the others: nDCG@10, MRR@10 | default | better leg "
        "| chosen − leg [95 %] | chosen − default [95 %] |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        means = [f"{row[k]['ndcg@10']:.3f}, {row[k]['mrr@10']:.3f}" for k in ("chosen", "default")]
        shifts = [
            f"{d['mean']:+.3f} [{d['low']:+.3f}, {d['high']:+.3f}]"
            for d in (row["over_leg"], row["over_default"])
        ]
        cells = [row["corpus"], *means, f"{row['leg']['ndcg@10']:.3f}", *shifts]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpora", default=",".join((*corpora.JUDGED, *COLLECTIONS)))
    parser.add_argument("--limit", type=int, default=0, help="questions of a BEIR collection")
    args = parser.parse_args(arguments)
    some = [corpora.corpus(name, args.limit) for name in args.corpora.split(",")]
    for corpus in some:
        corpus.index()
    left = [Left(corpus) for corpus in some]
    about = {"corpora": {each.name: len(each.questions) for each in some}}
    found = weights(left, tried())
    print(table(found), flush=True)
    record.save("heldout", found, **about)


if __name__ == "__main__":
    main()
