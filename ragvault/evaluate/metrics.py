"""How good a ranking is, as the contract defines it.

    mrr@10      1 / rank of the first relevant note, 0 if none is in the first ten
    success@1   whether the first note is relevant
    p@3 p@5     the share of relevant notes among the first three, the first five
    recall@10   the share of the relevant notes that are in the first ten
    ndcg@10     gain 2^grade - 1, discounted by log2(rank + 1), over the best possible order

A note counts at the rank of its best passage. It is relevant from grade 2 on: grade 1 means that
the judge hesitated, and only ndcg@10 uses it.

The returned sections are also scored as context for a reader. RAGAS asks a language model whether
a section is useful; here the judgements say it. A section is useful if its note is relevant and,
where the judge named a heading, the section is below that heading or contains it.

    context_precision   the mean of precision@k over the ranks k that have a useful section
    context_recall      the share of the judged (note, heading) pairs that some section covers

Plain values in and out; nothing here searches.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import fsum, log2
from typing import TypeVar

from ragvault.candidate import Candidate
from ragvault.evaluate.questions import Judged, Question

Note = TypeVar("Note", bound=Hashable)
Scores = dict[str, float]

RELEVANT = 2
METRICS = ("mrr@10", "success@1", "p@3", "p@5", "ndcg@10", "recall@10")
CONTEXT = ("context_precision", "context_recall")


def score(
    ranking: Sequence[Note], grades: Mapping[Note, int], *, relevant: int = RELEVANT
) -> Scores:
    """Every metric that is defined for one question.

    `ranking` has the note of each passage, best first. Without a note of grade `relevant` only
    ndcg@10 is defined, and without a grade above 0 nothing is: 0 would blame the ranking.
    """
    notes = unique_notes(ranking)
    wanted = {note for note, grade in grades.items() if grade >= relevant}
    scores: Scores = {}
    if wanted:
        scores["mrr@10"] = reciprocal_rank(notes, wanted, 10)
        scores["success@1"] = precision(notes, wanted, 1)
        scores["p@3"] = precision(notes, wanted, 3)
        scores["p@5"] = precision(notes, wanted, 5)
        scores["recall@10"] = recall(notes, wanted, 10)
    if any(grade > 0 for grade in grades.values()):
        scores["ndcg@10"] = ndcg(notes, grades, 10)
    return scores


def average(scores: Iterable[Scores]) -> Scores:
    """The mean of each metric over the questions that have it, in the order of METRICS."""
    gathered: dict[str, list[float]] = {name: [] for name in (*METRICS, *CONTEXT)}
    for each in scores:
        for name, value in each.items():
            gathered[name].append(value)
    return {name: fsum(values) / len(values) for name, values in gathered.items() if values}


def unique_notes(ranking: Iterable[Note]) -> list[Note]:
    """Each note once, at the rank of its best passage."""
    return list(dict.fromkeys(ranking))


def reciprocal_rank(notes: Sequence[Note], wanted: Collection[Note], k: int) -> float:
    ranks = (rank for rank, note in enumerate(notes[:k], 1) if note in wanted)
    first = next(ranks, None)
    return 1 / first if first else 0.0


def precision(notes: Sequence[Note], wanted: Collection[Note], k: int) -> float:
    """Always divided by k: a short list is not a precise one."""
    return sum(note in wanted for note in notes[:k]) / k


def recall(notes: Sequence[Note], wanted: Collection[Note], k: int) -> float:
    return sum(note in wanted for note in notes[:k]) / len(wanted)


def ndcg(notes: Sequence[Note], grades: Mapping[Note, int], k: int) -> float:
    found = _dcg([grades.get(note, 0) for note in notes[:k]])
    return found / _dcg(sorted(grades.values(), reverse=True)[:k])


def _dcg(grades: Iterable[int]) -> float:
    # A negative grade means "worse than nothing"; like trec_eval we give it no gain.
    return fsum((2 ** max(grade, 0) - 1) / log2(rank + 1) for rank, grade in enumerate(grades, 1))


# --- Sections as context ---


def context_scores(
    sections: Sequence[Candidate], question: Question, *, relevant: int = RELEVANT
) -> Scores:
    """Both context metrics of the returned sections; none if no note is relevant."""
    wanted = [each for each in question.relevant if each.grade >= relevant]
    if not wanted:
        return {}
    covered = [[_covers(section, each) for each in wanted] for section in sections]
    recalled = sum(map(any, zip(*covered, strict=True))) / len(wanted) if covered else 0.0
    return {
        "context_precision": context_precision([any(row) for row in covered]),
        "context_recall": recalled,
    }


def context_precision(useful: Sequence[bool]) -> float:
    """The mean of precision@k over the ranks that have something useful; 0 if none does."""
    found = 0
    shares = []
    for rank, yes in enumerate(useful, 1):
        if yes:
            found += 1
            shares.append(found / rank)
    return sum(shares) / len(shares) if shares else 0.0


def _covers(section: Candidate, wanted: Judged) -> bool:
    if section.note.path != wanted.note:
        return False
    heading = _normal(wanted.heading)
    return not heading or heading in map(
        _normal, (*section.headings, *_headings_inside(section.text))
    )


def _headings_inside(text: str) -> list[str]:
    """The headings in the text of a section; a short section may contain several."""
    lines = text.split("\n")
    underlined = [above for above, line in pairwise(lines) if _is_underline(line)]
    return [line for line in lines if line.startswith("#")] + underlined


def _is_underline(line: str) -> bool:
    return len(line) > 1 and set(line.rstrip()) in ({"="}, {"-"})


def _normal(heading: str) -> str:
    return " ".join(heading.strip("# \t").casefold().split())
