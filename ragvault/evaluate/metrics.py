"""How good a ranking is, as the contract defines it.

    mrr@10      1 / rank of the first relevant note, 0 when there is none in the first ten
    success@1   whether the first note is relevant
    p@3 p@5     the share of the first three, of the first five, that is relevant
    recall@10   the share of the relevant notes that is in the first ten
    ndcg@10     gain 2^grade - 1, discounted by log2(rank + 1), over the best possible order

A note counts where its best passage stands. A note is relevant from grade 2 on: grade 1 is what a
judge hesitated about, and only ndcg@10 uses it. Plain numbers in and out; nothing here searches.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from math import fsum, log2
from typing import TypeVar

Note = TypeVar("Note", bound=Hashable)
Scores = dict[str, float]

RELEVANT = 2
METRICS = ("mrr@10", "success@1", "p@3", "p@5", "ndcg@10", "recall@10")
CONTEXT = ("context_precision", "context_recall")  # context.py


def score(
    ranking: Sequence[Note], grades: Mapping[Note, int], *, relevant: int = RELEVANT
) -> Scores:
    """Every metric of one question that its judgements can tell.

    `ranking` names the note of each passage, best first. With no note of grade `relevant` only
    ndcg@10 is told, and with no grade above 0 nothing: 0 would blame the ranking for that.
    """
    notes = best_passages(ranking)
    wanted = {note for note, grade in grades.items() if grade >= relevant}
    told: Scores = {}
    if wanted:
        told["mrr@10"] = reciprocal_rank(notes, wanted, 10)
        told["success@1"] = precision(notes, wanted, 1)
        told["p@3"] = precision(notes, wanted, 3)
        told["p@5"] = precision(notes, wanted, 5)
        told["recall@10"] = recall(notes, wanted, 10)
    if any(grade > 0 for grade in grades.values()):
        told["ndcg@10"] = ndcg(notes, grades, 10)
    return told


def average(scores: Iterable[Scores]) -> Scores:
    """The mean of each metric over the questions that tell it, in the order of METRICS."""
    gathered: dict[str, list[float]] = {name: [] for name in (*METRICS, *CONTEXT)}
    for each in scores:
        for name, value in each.items():
            gathered[name].append(value)
    return {name: fsum(values) / len(values) for name, values in gathered.items() if values}


def best_passages(ranking: Iterable[Note]) -> list[Note]:
    """Each note once, where its best passage stands."""
    return list(dict.fromkeys(ranking))


def reciprocal_rank(notes: Sequence[Note], wanted: Collection[Note], k: int) -> float:
    ranks = (rank for rank, note in enumerate(notes[:k], 1) if note in wanted)
    first = next(ranks, None)
    return 1 / first if first else 0.0


def precision(notes: Sequence[Note], wanted: Collection[Note], k: int) -> float:
    """Of k, however few were found: a short answer is not a precise one."""
    return sum(note in wanted for note in notes[:k]) / k


def recall(notes: Sequence[Note], wanted: Collection[Note], k: int) -> float:
    return sum(note in wanted for note in notes[:k]) / len(wanted)


def ndcg(notes: Sequence[Note], grades: Mapping[Note, int], k: int) -> float:
    found = _dcg([grades.get(note, 0) for note in notes[:k]])
    return found / _dcg(sorted(grades.values(), reverse=True)[:k])


def _dcg(grades: Iterable[int]) -> float:
    # A negative grade is a judge's "worse than nothing"; like trec_eval we give it no gain.
    return fsum((2 ** max(grade, 0) - 1) / log2(rank + 1) for rank, grade in enumerate(grades, 1))
