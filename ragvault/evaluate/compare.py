"""Two rankings on the same questions: is the difference real, and whom does it hurt?

A difference comes with its 95 % interval by paired bootstrap: questions are drawn again with
replacement, both answers of a question together, because an easy question is easy for both. Where
few questions changed, percentiles are too narrow at one end, so an end is never nearer than that of
Student's interval. The same seed draws the same questions, so two runs print the same interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING

from ragvault.evaluate.answers import Answer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

METRIC = "ndcg@10"
DRAWS = 4000  # the ends of an interval then differ by a tenth of its width between seeds
# A loss that is listed: a note of grade 3 that falls from rank 2 to 3 is 0.13, and this is noise.
LEAST = 0.01


@dataclass(frozen=True, slots=True)
class Difference:
    """What one ranking has over another in one metric, over `n` questions."""

    metric: str
    n: int
    mean: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Regression:
    """One question that is answered worse than before. Ranks are of its best note, 0 is absent."""

    id: str
    kind: str
    query: str
    before: float
    after: float
    rank_before: int
    rank_after: int


def difference(
    answers: Sequence[Answer], base: Sequence[Answer], metric: str = METRIC, *, seed: int = 0
) -> Difference:
    """Answers against those of the base; questions that tell nothing of the metric are left out."""
    pairs = _pairs(answers, base, metric)
    shifts = [ours.scores[metric] - theirs.scores[metric] for ours, theirs in pairs]
    low, high = interval(shifts, seed=seed)
    mean = sum(shifts) / len(shifts) if shifts else 0.0
    return Difference(metric, len(shifts), mean, low, high)


def interval(shifts: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the mean of paired differences."""
    import numpy as np

    if not shifts:
        return 0.0, 0.0
    values = np.asarray(shifts, float)
    low, high = np.percentile(values[_draws(len(shifts), seed)].mean(axis=1), (2.5, 97.5))
    reach = _student(len(shifts)) * values.std() / sqrt(max(len(shifts) - 1, 1))
    return float(min(low, values.mean() - reach)), float(max(high, values.mean() + reach))


def _student(count: int) -> float:
    """Student's t that 2.5 % lie above, from the normal by Cornish and Fisher."""
    free, z = max(count - 1, 1), 1.959964
    return z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)


@lru_cache(maxsize=4)
def _draws(count: int, seed: int) -> NDArray[np.int32]:
    """Which questions each draw takes."""
    import numpy as np

    chance = np.random.default_rng(seed)
    return chance.integers(0, count, (DRAWS, count), dtype=np.int32)


def regressions(
    answers: Sequence[Answer], base: Sequence[Answer], metric: str = METRIC
) -> list[Regression]:
    """The questions that lost, the worst first."""
    lost = [
        _regression(ours, theirs, metric)
        for ours, theirs in _pairs(answers, base, metric)
        if theirs.scores[metric] - ours.scores[metric] >= LEAST
    ]
    return sorted(lost, key=lambda each: (each.after - each.before, each.id))


def by_kind(
    answers: Sequence[Answer], base: Sequence[Answer], metric: str = METRIC
) -> dict[str, float]:
    """What each kind of question gained, by its name."""
    shifts: dict[str, list[float]] = {}
    for ours, theirs in _pairs(answers, base, metric):
        shift = ours.scores[metric] - theirs.scores[metric]
        shifts.setdefault(ours.question.kind, []).append(shift)
    return {kind: sum(of) / len(of) for kind, of in shifts.items()}


def _pairs(
    answers: Sequence[Answer], base: Sequence[Answer], metric: str
) -> list[tuple[Answer, Answer]]:
    """The two answers of each question that both tell the metric of."""
    before: Mapping[str, Answer] = {each.question.id: each for each in base}
    both = ((each, before[each.question.id]) for each in answers if each.question.id in before)
    return [(a, b) for a, b in both if metric in a.scores and metric in b.scores]


def _regression(ours: Answer, theirs: Answer, metric: str) -> Regression:
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


def _rank(answer: Answer) -> int:
    """Where the first of the best-judged notes stands; 0 where none is found."""
    grades = answer.question.grades
    best = {note for note, grade in grades.items() if grade == max(grades.values())}
    return next((rank for rank, note in enumerate(answer.notes, 1) if note in best), 0)
