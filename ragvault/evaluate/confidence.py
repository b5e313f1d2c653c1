"""Fit the confidence to judged questions: which evidence means how likely an answer.

    shown_evidence   the evidence of the first results of each question, and whether a judge agrees
    fit_curve        the S-curve that fits them best, by logistic regression
    brier            the mean square of confidence minus truth; lower is better
    fit_confidence   fit on one half of the questions, judged on the other

Evidence is measured from what unrelated texts have by the same embedding model, so the default
curve holds for models it was not fitted on. This fits it to one vault, its model and its questions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from ragvault.config.settings import Config
from ragvault.errors import UsageError
from ragvault.evaluate.metrics import RELEVANT
from ragvault.evaluate.questions import Question
from ragvault.evaluate.run import Replay
from ragvault.evaluate.tune import halves
from ragvault.rank.calibrate import evidence_parts, sigmoid
from ragvault.rank.pipeline import outcome_of

FIRST = 3  # results of each question that count
MIN_RESULTS = 60  # on each half; with fewer, a curve says little
STEPS = 50  # of Newton's method; it needs about ten
PRIOR = 0.01  # pulls the steepness to 0, so that results that can be told apart have a curve too


class Shown(NamedTuple):
    """One result: the sum of its evidence, whether it is right, and the id of its question."""

    evidence: float
    right: bool
    question: str


class Curve(NamedTuple):
    """The evidence that means 0.5, and how fast the confidence changes around it."""

    threshold: float
    steepness: float

    def confidence(self, evidence: float) -> float:
        return sigmoid(evidence, self.threshold, self.steepness)


def shown_evidence(replay: Replay, config: Config, relevant: int = RELEVANT) -> list[Shown]:
    """The first results of each question. A query that is an exact name needs no curve."""
    found = []
    for question, prepared, stages in replay.traces(config):
        if prepared.plan.listing:
            continue
        ranked = outcome_of("boost", stages).kept
        parts = zip(ranked, evidence_parts(ranked, prepared.context), strict=True)
        evidence = {each.id: sum(of.values()) for each, of in parts}
        for each in outcome_of("budget", stages).kept[:FIRST]:
            if not each.exact:
                right = question.grades.get(each.note.path, 0) >= relevant
                found.append(Shown(evidence[each.id], right, question.id))
    return found


def fit_curve(shown: Sequence[Shown]) -> Curve:
    """The curve with the highest likelihood, and at least a little steep."""
    slope, offset = 1.0, 0.0
    for _ in range(STEPS):
        # Gradient and Hessian of the negative log likelihood, with a small prior on the slope.
        gradient = [PRIOR * slope, 0.0]
        hessian = [PRIOR, 0.0, 1e-9]
        for each in shown:
            p = sigmoid(slope * each.evidence, -offset, 1.0)
            error, spread = p - each.right, p * (1 - p)
            gradient[0] += error * each.evidence
            gradient[1] += error
            hessian[0] += spread * each.evidence**2
            hessian[1] += spread * each.evidence
            hessian[2] += spread
        det = hessian[0] * hessian[2] - hessian[1] ** 2
        if det <= 0:
            break
        slope -= (hessian[2] * gradient[0] - hessian[1] * gradient[1]) / det
        offset -= (hessian[0] * gradient[1] - hessian[1] * gradient[0]) / det
    steepness = min(max(slope, 0.5), 50.0)
    return Curve(min(max(-offset / steepness, 0.0), 5.0), steepness)


def brier(shown: Sequence[Shown], curve: Curve) -> float:
    """The mean square of confidence minus truth."""
    errors = [(curve.confidence(each.evidence) - each.right) ** 2 for each in shown]
    return sum(errors) / max(len(errors), 1)


def default_curve(config: Config) -> Curve:
    """The curve of these settings."""
    return Curve(config.calibrate.evidence.threshold, config.calibrate.evidence.steepness)


def fit_confidence(
    questions: Sequence[Question], replay: Replay, config: Config, *, seed: int = 0
) -> dict[str, Any]:
    """A receipt of the fit: accepted if it is better on questions that it has not seen.

    The curve that is kept is fitted on all of them. Raises UsageError if there are too few.
    """
    if config.calibrate.source != "evidence":
        raise UsageError(
            "this profile takes its confidence from scores, not from evidence",
            fix='choose another profile, or set calibrate.source = "evidence"',
        )
    shown, (first, second) = shown_evidence(replay, config), halves(questions, seed)
    fitted_on, judged_on = (
        _of(shown, {questions[place].id for place in half}) for half in (first, second)
    )
    if min(len(fitted_on), len(judged_on)) < MIN_RESULTS:
        raise UsageError(
            f"{len(questions)} questions are too few to fit a confidence",
            fix=f"judge at least {2 * MIN_RESULTS // FIRST} questions, some of them unanswerable",
        )
    before, now = default_curve(config), fit_curve(fitted_on)
    costs = brier(judged_on, before), brier(judged_on, now)
    kept = fit_curve(shown)
    settings = {
        "calibrate.evidence.threshold": [before.threshold, round(kept.threshold, 3)],
        "calibrate.evidence.steepness": [before.steepness, round(kept.steepness, 2)],
    }
    better = costs[1] < costs[0]
    return {
        "seed": seed,
        "accepted": better,
        "refusal": "" if better else "the curve in use is as good on questions it has not seen",
        "settings": settings,
        "judged": {"metric": "brier", "n": len(judged_on), "before": costs[0], "after": costs[1]},
    }


def _of(shown: Iterable[Shown], ids: Collection[str]) -> list[Shown]:
    return [each for each in shown if each.question in ids]
