"""The report: answers become the numbers of the contract, overall and for each kind of question.

Plain dictionaries, because they are the JSON that programs read and the tables that people read.
A number that no question can tell is absent: 0 would blame the ranking for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ragvault.evaluate.answers import Answer
from ragvault.evaluate.compare import by_kind, difference, regressions
from ragvault.evaluate.metrics import average

PERCENTILES = (50, 90, 95, 99)
Summary = dict[str, Any]


def report(answers: Sequence[Answer]) -> Summary:
    """`overall` and `kinds`, each with every metric, latency, tokens and what was held back."""
    kinds: dict[str, list[Answer]] = {}
    for each in answers:
        kinds.setdefault(each.question.kind, []).append(each)
    return {
        "overall": summary(answers),
        "kinds": {kind: summary(of) for kind, of in sorted(kinds.items())},
        "failed": sorted({leg for each in answers for leg in each.failed}),
        "refused": {each.question.id: each.refused for each in answers if each.refused},
    }


def summary(answers: Sequence[Answer]) -> Summary:
    """All numbers of some answers."""
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
    name: str, answers: Sequence[Answer], against: str, base: Sequence[Answer]
) -> Summary:
    """One ranking beside the base: the difference, its interval, and every question it cost."""
    return {
        "name": name,
        "against": against,
        **asdict(difference(answers, base)),
        "kinds": by_kind(answers, base),
        "regressions": [asdict(each) for each in regressions(answers, base)],
    }


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """By nearest rank: each is a value that was measured."""
    order = sorted(values)
    if not order:
        return {}
    last = len(order) - 1
    found = {f"p{p}": order[min(last, -(-p * len(order) // 100) - 1)] for p in PERCENTILES}
    return {name: round(value, 2) for name, value in (found | {"max": order[-1]}).items()}


def unknown_notes(answers: Sequence[Answer], paths: Mapping[str, Any]) -> list[str]:
    """Judged notes that the index does not have: no ranking could find them."""
    judged = {each.note for answer in answers for each in answer.question.relevant}
    return sorted(judged - paths.keys())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
