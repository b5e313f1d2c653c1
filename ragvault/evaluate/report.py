"""The numbers of many answers, and the difference between two rankings.

    overall_and_kinds         answers become the numbers of the contract, overall and by kind
    difference, comparison    one ranking against another on the same questions

Reports are plain dictionaries: programs read them as JSON and people as tables. A number that no
question can determine is absent, because 0 would blame the ranking.

A difference has a 95 % interval by paired bootstrap: questions are drawn with replacement, both
answers of a question together, because an easy question is easy for both rankings. If few questions
changed, percentiles are too narrow at one end, so an end is never nearer than that of Student's
interval. The same seed draws the same questions, so two runs print the same interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING, Any

from ragvault.evaluate.metrics import average
from ragvault.evaluate.run import ScoredAnswer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

METRIC = "ndcg@10"
DRAWS = 4000  # the ends of an interval then differ by a tenth of its width between seeds
# Smaller losses are not listed. For comparison: a grade 3 note falling from rank 2 to 3 is 0.13.
MIN_LOSS = 0.01
PERCENTILES = (50, 90, 95, 99)
Summary = dict[str, Any]


def overall_and_kinds(answers: Sequence[ScoredAnswer]) -> Summary:
    """`overall` and `kinds`, each with every metric, latency, tokens and answers held back."""
    kinds: dict[str, list[ScoredAnswer]] = {}
    for each in answers:
        kinds.setdefault(each.question.kind, []).append(each)
    return {
        "overall": summarize(answers),
        "kinds": {kind: summarize(of) for kind, of in sorted(kinds.items())},
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


def comparison(
    name: str, answers: Sequence[ScoredAnswer], against: str, base: Sequence[ScoredAnswer]
) -> Summary:
    """One ranking against the base: the difference and its interval, overall and by kind.

    `changed` counts the answers with another order; `regressions` are the questions that lost.
    """
    return {
        "name": name,
        "against": against,
        **asdict(difference(answers, base)),
        "kinds": {kind: asdict(each) for kind, each in by_kind(answers, base).items()},
        "changed": changed_orders(answers, base),
        "regressions": [asdict(each) for each in regressions(answers, base)],
    }


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


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better one ranking is than another in one metric, over `n` questions."""

    metric: str
    n: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Regression:
    """One question with a worse answer than before. Ranks are of its best note; 0 means absent."""

    id: str
    kind: str
    query: str
    before: float
    after: float
    rank_before: int
    rank_after: int


def difference(
    answers: Sequence[ScoredAnswer],
    base: Sequence[ScoredAnswer],
    metric: str = METRIC,
    *,
    seed: int = 0,
) -> Difference:
    """Answers minus those of the base; questions without the metric are left out."""
    pairs = _pairs(answers, base, metric)
    shifts = [ours.scores[metric] - theirs.scores[metric] for ours, theirs in pairs]
    low, high = bootstrap_interval(shifts, seed=seed)
    mean = sum(shifts) / len(shifts) if shifts else 0.0
    return Difference(metric, len(shifts), mean, low, high)


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


def regressions(
    answers: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer], metric: str = METRIC
) -> list[Regression]:
    """The questions with a worse answer, the worst first."""
    lost = [
        _regression(ours, theirs, metric)
        for ours, theirs in _pairs(answers, base, metric)
        if theirs.scores[metric] - ours.scores[metric] >= MIN_LOSS
    ]
    return sorted(lost, key=lambda each: (each.after - each.before, each.id))


def by_kind(
    answers: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer], metric: str = METRIC
) -> dict[str, Difference]:
    """The change of each kind of question, with its own interval; kinds in alphabetical order."""
    kinds: dict[str, list[ScoredAnswer]] = {}
    for ours, _ in _pairs(answers, base, metric):
        kinds.setdefault(ours.question.kind, []).append(ours)
    return {kind: difference(of, base, metric) for kind, of in sorted(kinds.items())}


def changed_orders(answers: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer]) -> int:
    """In how many questions the first ten notes differ, or their order, whatever the metric."""
    before = {each.question.id: each.notes[:10] for each in base}
    return sum(each.notes[:10] != before.get(each.question.id, ()) for each in answers)


def _pairs(
    answers: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer], metric: str
) -> list[tuple[ScoredAnswer, ScoredAnswer]]:
    """The two answers of each question for which both have the metric."""
    before: Mapping[str, ScoredAnswer] = {each.question.id: each for each in base}
    both = ((each, before[each.question.id]) for each in answers if each.question.id in before)
    return [(a, b) for a, b in both if metric in a.scores and metric in b.scores]


def _regression(ours: ScoredAnswer, theirs: ScoredAnswer, metric: str) -> Regression:
    asked = ours.question
    return Regression(
        asked.id,
        asked.kind,
        asked.query,
        theirs.scores[metric],
        ours.scores[metric],
        _rank(theirs),
        _rank(ours),
    )


def _rank(answer: ScoredAnswer) -> int:
    """The rank of the first of the best-judged notes; 0 if none is found."""
    grades = answer.question.grades
    best = {note for note, grade in grades.items() if grade == max(grades.values())}
    return next((rank for rank, note in enumerate(answer.notes, 1) if note in best), 0)
