"""Lists that do not depend on the query: how recent a note is, how often it was opened.

Ranks are dense: notes of the same day (UTC), or opened equally often, share one. A note without a
date stands behind all that have one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite

from msgspec.structs import replace

from ragvault.candidate import Candidate

DAY = 86_400.0  # seconds


def with_lists(candidates: Sequence[Candidate], wanted: Sequence[str]) -> list[Candidate]:
    """The candidates with their rank in each wanted list."""
    ranked = list(candidates)
    for name in wanted:
        ranked = _ranked(ranked, name, _VALUES[name])
    return ranked


def _ranked(
    candidates: Sequence[Candidate], name: str, value: Callable[[Candidate], float]
) -> list[Candidate]:
    values = [value(each) for each in candidates]
    rank = {value: place for place, value in enumerate(sorted(set(values), reverse=True), 1)}
    return [
        replace(
            each,
            ranks={**each.ranks, name: rank[value]},
            scores={**each.scores, name: value} if isfinite(value) else each.scores,
        )
        for each, value in zip(candidates, values, strict=True)
    ]


def _day(candidate: Candidate) -> float:
    date = candidate.note.date
    return date.at // DAY * DAY if date else -inf


_VALUES: dict[str, Callable[[Candidate], float]] = {
    "recency": _day,
    "access": lambda candidate: float(candidate.note.access),
}
