"""The numbers of one answer, of many, and the difference between two rankings.

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

A difference has a 95 % interval by paired bootstrap: questions are drawn with replacement, both
answers of a question together, because an easy question is easy for both rankings. If few questions
changed, percentiles are too narrow at one end, so an end is never nearer than that of Student's
interval. The same seed draws the same questions, so two runs print the same interval.

Plain values in and out; nothing here searches. Reports are plain dictionaries: programs read them
as JSON and people as tables. A number that no question can determine is absent, because 0 would
blame the ranking.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import fsum, log2, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ragvault.candidate import Candidate
from ragvault.evaluate.questions import Judged, Question

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Note = TypeVar("Note", bound=Hashable)
Scores = dict[str, float]
Summary = dict[str, Any]

RELEVANT = 2
METRICS = ("mrr@10", "success@1", "p@3", "p@5", "ndcg@10", "recall@10")
CONTEXT = ("context_precision", "context_recall")
METRIC = "ndcg@10"  # in which rankings are compared
FIRST = 10  # notes: an order is another one if these differ
DRAWS = 4000  # the ends of an interval then differ by a tenth of its width between seeds
# Smaller losses are not listed. For comparison: a grade 3 note falling from rank 2 to 3 is 0.13.
MIN_LOSS = 0.01
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One question and the scores of its answer. `notes` are the notes found, best first.

    `confidence` is that of the first result, None if it has none. `refused` says why the query
    could not be asked; `failed` names the legs that failed.
    """

    question: Question
    scores: Scores
    notes: tuple[str, ...] = ()
    confidence: float | None = None
    held_back: bool = True
    tokens: int = 0
    took_ms: float = 0.0
    failed: tuple[str, ...] = ()
    refused: str = ""


# --- One ranking ---


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
        scores = {
            "mrr@10": reciprocal_rank(notes, wanted, 10),
            "success@1": precision(notes, wanted, 1),
            "p@3": precision(notes, wanted, 3),
            "p@5": precision(notes, wanted, 5),
            "recall@10": recall(notes, wanted, 10),
        }
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


def context_scores(sections: Sequence[Candidate], question: Question) -> Scores:
    """Both context metrics of the returned sections; none if no note is relevant."""
    wanted = [each for each in question.relevant if each.grade >= RELEVANT]
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
    return _mean(shares)


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


# --- Many answers ---


def overall_and_kinds(answers: Sequence[ScoredAnswer]) -> Summary:
    """`overall` and `kinds`, each with every metric, latency, tokens and answers held back."""
    return {
        "overall": summarize(answers),
        "kinds": {kind: summarize(of) for kind, of in by_kind(answers).items()},
        "failed": sorted({leg for each in answers for leg in each.failed}),
        "refused": {each.question.id: each.refused for each in answers if each.refused},
    }


def summarize(answers: Sequence[ScoredAnswer]) -> Summary:
    """All numbers of these answers."""
    judged = [each for each in answers if each.question.relevant]
    without = [each for each in answers if not each.question.relevant]
    numbers: Summary = {"n": len(answers), **average(each.scores for each in judged)}
    numbers["tokens"] = round(_mean([each.tokens for each in answers]), 1)
    numbers["latency_ms"] = percentiles([each.took_ms for each in answers])
    if judged:
        numbers["held_back_answerable"] = _mean([each.held_back for each in judged])
    if without:
        held = _mean([each.held_back for each in without])
        numbers["unanswerable"] = {"n": len(without), "held_back": held}
    return numbers


def by_kind(answers: Iterable[ScoredAnswer]) -> dict[str, list[ScoredAnswer]]:
    """The answers of each kind of question; kinds in alphabetical order."""
    kinds: dict[str, list[ScoredAnswer]] = {}
    for each in answers:
        kinds.setdefault(each.question.kind, []).append(each)
    return dict(sorted(kinds.items()))


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Percentiles by nearest rank, so that each is a measured value."""
    order = sorted(values)
    if not order:
        return {}
    last = len(order) - 1
    found = {f"p{p}": order[min(last, -(-p * len(order) // 100) - 1)] for p in PERCENTILES}
    return {name: round(value, 2) for name, value in (found | {"max": order[-1]}).items()}


def unknown_notes(answers: Sequence[ScoredAnswer], paths: Mapping[str, Any]) -> list[str]:
    """Judged notes that are not in the index, so no ranking could find them."""
    judged = {each.note for answer in answers for each in answer.question.relevant}
    return sorted(judged - paths.keys())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


# --- Two rankings ---


class Difference(NamedTuple):
    """How much better one ranking is than another in one metric, over `n` questions."""

    metric: str
    n: int
    mean: float
    low: float
    high: float


def comparison(
    name: str, answers: Sequence[ScoredAnswer], against: str, base: Sequence[ScoredAnswer]
) -> Summary:
    """One ranking against the base: the difference and its interval, overall and by kind.

    `changed` counts the answers with another order; `regressions` are the questions that lost.
    """
    return {
        "name": name,
        "against": against,
        **difference(answers, base)._asdict(),
        "kinds": {kind: of._asdict() for kind, of in kind_differences(answers, base).items()},
        "changed": sum(is_reordered(*pair) for pair in _pairs(answers, base)),
        "regressions": regressions(answers, base),
    }


def difference(
    answers: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer], *, seed: int = 0
) -> Difference:
    """Answers minus those of the base; questions without the metric are left out."""
    pairs = _judged_pairs(answers, base)
    shifts = [ours.scores[METRIC] - theirs.scores[METRIC] for ours, theirs in pairs]
    return Difference(METRIC, len(shifts), _mean(shifts), *bootstrap_interval(shifts, seed=seed))


def kind_differences(
    answers: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer]
) -> dict[str, Difference]:
    """The change of each kind of question, with its own interval; kinds in alphabetical order."""
    ours = by_kind(each for each, _ in _judged_pairs(answers, base))
    return {kind: difference(of, base) for kind, of in ours.items()}


def bootstrap_interval(shifts: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the mean of paired differences."""
    import numpy as np

    if not shifts:
        return 0.0, 0.0
    values = np.asarray(shifts, float)
    low, high = np.percentile(values[_draws(len(shifts), seed)].mean(axis=1), (2.5, 97.5))
    reach = _student(len(shifts)) * values.std() / sqrt(max(len(shifts) - 1, 1))
    return float(min(low, values.mean() - reach)), float(max(high, values.mean() + reach))


def _student(count: int) -> float:
    """Student's t with 2.5 % above it, from the normal by Cornish and Fisher."""
    free, z = max(count - 1, 1), 1.959964
    return z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)


@lru_cache(maxsize=4)
def _draws(count: int, seed: int) -> NDArray[np.int32]:
    """The questions of each draw."""
    import numpy as np

    chance = np.random.default_rng(seed)
    return chance.integers(0, count, (DRAWS, count), dtype=np.int32)


def regressions(answers: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer]) -> list[Summary]:
    """The questions with a worse answer, the worst first. Ranks are of the best note; 0: absent."""
    lost = [
        {
            "id": ours.question.id,
            "kind": ours.question.kind,
            "query": ours.question.query,
            "before": theirs.scores[METRIC],
            "after": ours.scores[METRIC],
            "rank_before": _rank(theirs),
            "rank_after": _rank(ours),
        }
        for ours, theirs in _judged_pairs(answers, base)
        if theirs.scores[METRIC] - ours.scores[METRIC] >= MIN_LOSS
    ]
    return sorted(lost, key=lambda each: (each["after"] - each["before"], each["id"]))


def is_reordered(answer: ScoredAnswer, base: ScoredAnswer) -> bool:
    """Whether the first notes differ, or their order, whatever the metric."""
    return answer.notes[:FIRST] != base.notes[:FIRST]


Pairs = list[tuple[ScoredAnswer, ScoredAnswer]]


def _pairs(answers: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer]) -> Pairs:
    """The two answers of each question."""
    before = {each.question.id: each for each in base}
    return [(each, before[each.question.id]) for each in answers if each.question.id in before]


def _judged_pairs(answers: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer]) -> Pairs:
    """The two answers of each question for which both have the metric."""
    pairs = _pairs(answers, base)
    return [pair for pair in pairs if all(METRIC in each.scores for each in pair)]


def _rank(answer: ScoredAnswer) -> int:
    """The rank of the first of the best-judged notes; 0 if none is found."""
    grades = answer.question.grades
    best = {note for note, grade in grades.items() if grade == max(grades.values())}
    return next((rank for rank, note in enumerate(answer.notes, 1) if note in best), 0)
