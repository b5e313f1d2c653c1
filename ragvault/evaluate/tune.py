"""Tune: better weights for one vault, only with a receipt.

    split    the questions, kind by kind, into two halves
    search   weights on one half: one knob at a time, kept when the mean rises
    judge    on the other half: the lower end of the paired 95 % interval is above 0, no kind of
             question loses more than a point, and nonsense is held back as often as before

The halves never meet, so that luck on the first is no help on the second: on labels that were
shuffled nothing is changed in at least 95 of 100 runs (tests/test_tune.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ragvault.config.settings import Config
from ragvault.errors import UsageError
from ragvault.evaluate import report
from ragvault.evaluate.answers import Answer
from ragvault.evaluate.compare import METRIC, Difference, by_kind, difference
from ragvault.evaluate.metrics import average
from ragvault.evaluate.questions import Question
from ragvault.evaluate.space import Knob, Values, knobs, turned, value

LEAST = 20  # judged questions: half of fewer says nothing about either half
ROUNDS = 3
POINT = 0.01  # of a hundred
GAIN = 1e-4  # in the mean of the first half; less is rounding


class Ranking(Protocol):
    """Answers questions under any settings: a Rehearsal, or a simulation in a test."""

    def under(self, config: Config, only: Sequence[int] | None = None) -> list[Answer]: ...


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was tried and how it was judged. `changes` is setting -> (before, after)."""

    changes: Mapping[str, tuple[float, float]]
    seed: int
    searched: int  # questions of the first half
    tried: int  # rankings
    gain: float  # in the first half
    judged: Difference
    kinds: Mapping[str, float]
    before: report.Summary
    after: report.Summary
    refusal: str = ""

    @property
    def accepted(self) -> bool:
        return bool(self.changes) and not self.refusal


def tune(
    questions: Sequence[Question],
    ranking: Ranking,
    config: Config,
    *,
    seed: int = 0,
    fixed: Collection[str] = (),
    tell: Callable[[str], None] = lambda line: None,
) -> Tuning:
    """Search one half, judge on the other; `fixed` settings stay as they are.

    Raises UsageError where there is too little to go by.
    """
    check(questions, config)
    first, second = halves(questions, seed)
    free = [knob for knob in knobs(config) if knob.key not in fixed]
    values, gain, tried = _search(ranking, config, free, first, seed, tell)
    changes = {key: (value(config, key), number) for key, number in values.items()}
    base = ranking.under(config, second)
    now = ranking.under(turned(config, values), second) if values else base
    return Tuning(
        changes=changes,
        seed=seed,
        searched=len(first),
        tried=tried,
        gain=gain,
        judged=difference(now, base, seed=seed),
        kinds=by_kind(now, base),
        before=report.summary(base),
        after=report.summary(now),
        refusal=_refusal(now, base, seed) if values else "no other weights are better",
    )


def halves(questions: Sequence[Question], seed: int) -> tuple[list[int], list[int]]:
    """The places of the questions in two halves, with as much of each kind in both."""
    kinds: dict[str, list[int]] = {}
    for place, question in enumerate(questions):
        kinds.setdefault(question.kind, []).append(place)
    chance = random.Random(seed)
    first: list[int] = []
    second: list[int] = []
    for places in kinds.values():
        chance.shuffle(places)
        # Odd ones go where there are fewer, so that many small kinds do not fill one half.
        small, large = sorted((first, second), key=len)
        small += places[0::2]
        large += places[1::2]
    return sorted(first), sorted(second)


def _search(
    ranking: Ranking,
    config: Config,
    free: Sequence[Knob],
    places: Sequence[int],
    seed: int,
    tell: Callable[[str], None],
) -> tuple[Values, float, int]:
    """Turn one knob at a time while the mean rises: the values, what they gain, what was tried."""
    chance = random.Random(seed)
    start = best = _mean(ranking.under(config, places))
    values: dict[str, float] = {}
    tried = 0
    for _ in range(ROUNDS):
        before = best
        order = chance.sample(free, len(free))
        for knob in order:
            here = values.get(knob.key, value(config, knob.key))
            for number in knob.near(here):
                tried += 1
                mean = _mean(ranking.under(turned(config, {**values, knob.key: number}), places))
                if mean > best + GAIN:
                    best, values[knob.key] = mean, number
            tell(f"{knob.key}: {best:.4f} after {tried} rankings")
        if best == before:
            break
    kept = {key: number for key, number in values.items() if number != value(config, key)}
    return kept, best - start, tried


def _refusal(now: Sequence[Answer], base: Sequence[Answer], seed: int) -> str:
    """Why a change is not taken; empty when it is."""
    found = difference(now, base, seed=seed)
    if found.low <= 0:
        return (
            f"on the other half {METRIC} changes by {found.mean:+.3f}, and the interval "
            f"[{found.low:+.3f}, {found.high:+.3f}] does not leave out 0"
        )
    for kind, shift in sorted(by_kind(now, base).items(), key=lambda item: item[1]):
        if shift < -POINT:
            return f"questions of the kind {kind or '(none)'} lose {-shift:.3f}"
    lost = _held(base) - _held(now)
    return f"unanswerable questions are held back less often, by {lost:.0%}" if lost > POINT else ""


def _held(answers: Sequence[Answer]) -> float:
    held = [each.held_back for each in answers if not each.question.relevant]
    return sum(held) / len(held) if held else 1.0


def _mean(answers: Sequence[Answer]) -> float:
    return average(each.scores for each in answers).get(METRIC, 0.0)


def check(questions: Sequence[Question], config: Config) -> None:
    """Raises UsageError where there is too little to go by: before anything is asked."""
    judged = sum(any(each.grade > 0 for each in q.relevant) for q in questions)
    if judged < LEAST:
        raise UsageError(
            f"{judged} judged questions are too few to tell luck from gain; {LEAST} are the least",
            fix="judge more, or take the vault's own exam: ragvault eval --write FILE",
        )
    if not knobs(config):
        raise UsageError(
            f"fuse.method = {config.fuse.method!r} has no weights", fix="choose another profile"
        )


def receipt(tuning: Tuning, about: Mapping[str, Any]) -> dict[str, Any]:
    """All that is needed to believe a tuning, or to doubt it; numbers, and no word of a note."""
    return {
        **about,
        "seed": tuning.seed,
        "accepted": tuning.accepted,
        "refusal": tuning.refusal,
        "settings": {key: list(pair) for key, pair in tuning.changes.items()},
        "searched": {"n": tuning.searched, "rankings": tuning.tried, "gain": tuning.gain},
        "judged": {
            "metric": tuning.judged.metric,
            "n": tuning.judged.n,
            "mean": tuning.judged.mean,
            "low": tuning.judged.low,
            "high": tuning.judged.high,
            "kinds": dict(tuning.kinds),
        },
        "before": dict(tuning.before),
        "after": dict(tuning.after),
    }
