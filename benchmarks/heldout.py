"""The default on questions that its weights were not chosen on.

    python -m benchmarks.heldout                       every corpus left out in turn
    python -m benchmarks.heldout --corpora obsidian-tasks,jackyzha0-garden,ir/cranfield

One rule chooses weights. Of a grid, it takes all settings that are not worse than the best one
beyond the 95 % interval of the difference: chance decides among those. It chooses the one nearest
to their mean. Every corpus counts the same. Here each corpus is left out in turn, and answered with
the weights that the rule chooses on the others; two sets of questions about one vault are left out
together. The last line says whether the default is among the settings that chance decides among.

Weights are chosen by fusion alone, in numpy, which is fast; answers go through every stage.
`benchmarks.confidence --fit` does the same for the confidence.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

import numpy as np

from benchmarks import corpora, quality, record
from benchmarks.corpora import Corpus
from ragvault.candidate import Candidate, Context, key
from ragvault.config.settings import Fuse
from ragvault.evaluate import report
from ragvault.evaluate.report import ScoredAnswer, score
from ragvault.evaluate.run import with_values
from ragvault.evaluate.tune import Values
from ragvault.plan import LEGS
from ragvault.rank.fuse import leg_evidence

CORPORA = (
    *corpora.JUDGED,
    "garden-typed",
    *("ir/cranfield", "ir/cacm", "ir/med"),
    *("ir/mtrag-fiqa-pool@2500", "ir/mtrag-clapnq-pool@2500"),
)
CHOICES = {
    "fuse.weights.name": (1.0, 1.25, 1.5, 1.75, 2.0),
    "fuse.weights.keyword": (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3),
    "fuse.weights.graph": (0.1, 0.2, 0.3),
}
CERTAIN = 1.96  # standard errors: the 95 % interval of a difference


class Left:
    """A corpus that is searched once and then ranked with many weights."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.replay = corpus.replay()
        self.config = self.replay.config
        self._known = [
            (found.question, *known(found.candidates, found.context))
            for found, _ in self.replay.traces()
        ]

    def scores(self, values: Values) -> list[float]:
        """nDCG@10 of each judged question, by fusion alone."""
        config, scores = with_values(self.config, values).fuse, []
        for question, evidence, notes in self._known:
            order = np.argsort(-summed(evidence, config), kind="stable")
            ranked = [notes[at] for at in order if notes[at] not in question.without]
            scores.append(score(ranked, question.grades))
        return [each["ndcg@10"] for each in scores if "ndcg@10" in each]

    def answers(self, values: Values) -> list[ScoredAnswer]:
        """Through every stage, with ids that no other corpus has."""
        found = self.replay.answers(with_values(self.config, values))
        return quality.with_own_ids(self.corpus, self.corpus.scored(found))


def known(candidates: Sequence[Candidate], ctx: Context) -> tuple[Any, list[str]]:
    """What the legs know of each candidate, and its note.

    Columns: evidence of LEGS; ranks of LEGS (infinite: not found); exact; the note; and its place
    among equal scores.
    """
    places = {each.id: at for at, each in enumerate(sorted(candidates, key=lambda c: key(c, 0.0)))}
    rows = [
        [
            *(leg_evidence(each, leg, ctx) for leg in LEGS),
            *(each.ranks.get(leg, np.inf) for leg in LEGS),
            bool(each.exact),
            each.note.id,
            places[each.id],
        ]
        for each in candidates
    ]
    return np.array(rows).reshape(-1, 2 * len(LEGS) + 3), [each.note.path for each in candidates]


def summed(known: Any, settings: Fuse) -> Any:
    """The score that `fuse` makes of them, exact hits first (a test compares both)."""
    evidence, ranks = np.split(known.T[: 2 * len(LEGS)], 2)
    scores = {
        leg: getattr(settings.weights, leg) * own**settings.exponent / (settings.k + rank)
        for leg, own, rank in zip(LEGS, evidence, ranks, strict=True)
    }
    total = sum(scores.values())
    exact, note, place = known.T[2 * len(LEGS) :]
    # A name counts for the best passage of a note alone.
    order = np.lexsort((place, -total))
    best = np.zeros(len(known), bool)
    best[order[np.unique(note[order], return_index=True)[1]]] = True
    return total - np.where(best, 0.0, scores["name"]) + 10 * exact


# --- The rule ---


def tried() -> list[dict[str, float]]:
    """Every setting of the grid."""
    return [
        dict(zip(CHOICES, values, strict=True)) for values in itertools.product(*CHOICES.values())
    ]


def chosen(settings: Sequence[Values], scores: Sequence[Any]) -> Values:
    """Of the settings that chance decides among, the one nearest to their mean."""
    near = near_best(settings, scores)
    middle = {name: float(np.mean([each[name] for each in near])) for name in CHOICES}

    def distance(each: Values) -> float:
        return fsum(((each[name] - at) / CHOICES[name][-1]) ** 2 for name, at in middle.items())

    return min(near, key=distance)


def near_best(settings: Sequence[Values], scores: Sequence[Any]) -> list[Values]:
    """The settings that are not worse than the best one beyond the interval.

    `scores` has a table for each corpus: a row for each setting, a column for each question.
    """
    means = np.mean([of.mean(axis=1) for of in scores], axis=0)
    best = int(means.argmax())
    return [
        each
        for at, each in enumerate(settings)
        if means[best] - means[at] <= CERTAIN * _error([of[at] - of[best] for of in scores])
    ]


def _error(differences: Sequence[Any]) -> float:
    """The standard error of the mean of the corpora's mean differences."""
    variances = (np.var(of, ddof=1) / len(of) if len(of) > 1 else 0.0 for of in differences)
    return float(np.sqrt(fsum(variances))) / len(differences)


# --- Every corpus left out in turn ---


def weights(some: Sequence[Left], settings: Sequence[Values]) -> list[dict[str, Any]]:
    """One row per corpus: weights chosen without it, the default, and the better leg.

    The last row has all questions, with the weights that are chosen on all corpora.
    """
    scores = [np.array([each.scores(values) for values in settings]) for each in some]
    found: list[dict[str, Any]] = []
    every: dict[str, list[ScoredAnswer]] = {"chosen": [], "default": [], "leg": []}
    for left in some:
        print(
            f"{left.corpus.name}: answering with weights chosen on the others",
            file=sys.stderr,
            flush=True,
        )
        others = [
            of
            for of, other in zip(scores, some, strict=True)
            if other.corpus.root != left.corpus.root
        ]
        values = chosen(settings, others)
        answers_by = {
            "chosen": left.answers(values),
            "default": left.answers({}),
            "leg": _better_leg(left.corpus),
        }
        found.append(_row(left.corpus.name, answers_by) | {"values": values})
        every = {name: [*answers, *answers_by[name]] for name, answers in every.items()}
    on_all = {
        "values": chosen(settings, scores),
        "default_is_near": default_of(some[0]) in near_best(settings, scores),
    }
    return [*found, _row("all", every) | on_all]


def default_of(left: Left) -> dict[str, float]:
    """The weights of the default that the rule chooses."""
    weights = left.config.fuse.weights
    return {name: getattr(weights, name.rpartition(".")[2]) for name in CHOICES}


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
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--limit", type=int, default=0, help="questions of a BEIR collection")
    args = parser.parse_args(arguments)
    some = [corpora.corpus(name, args.limit) for name in args.corpora.split(",")]
    if len({each.root for each in some}) < 2:
        parser.error("weights are chosen on other vaults: name corpora of at least two")
    for corpus in some:
        corpus.index()
    left = [Left(corpus) for corpus in some]
    about = {"corpora": {each.name: len(each.questions) for each in some}}
    found = weights(left, tried())
    print(table(found), flush=True)
    on_all = ", ".join(f"{name} {value:g}" for name, value in found[-1]["values"].items())
    near = "not worse beyond the interval" if found[-1]["default_is_near"] else "worse"
    print(f"chosen on all: {on_all}; the default is {near}", flush=True)
    record.save("heldout", found, **about)


if __name__ == "__main__":
    main()
