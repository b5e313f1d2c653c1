"""Merge: the results of several vaults become one list.

Each vault keeps its own order. The next place goes to the vault whose next result has the highest
confidence: confidence can be compared between vaults, a score cannot. Without confidence (a profile
may turn calibration off) the vaults take turns. Ties go to the better rank, then to the vault that
was named first. Lists by date become one list by date. Limit and budget then apply to the merged
list; if the caller knows the text that will be written, the budget covers all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from ragvault.candidate import Candidate, Context, Ranked
from ragvault.config.settings import Config
from ragvault.rank.budget import budget, fit_budget, token_counter
from ragvault.rank.limit import result_count
from ragvault.search import Response

MergedResult = tuple[int, Candidate]  # the position of its response, and the result
TextOf = Callable[[Sequence[MergedResult]], str]


class Merged(NamedTuple):
    """One list of results, how many limit and budget left out, and warnings for the reader."""

    results: tuple[MergedResult, ...]
    left_out: int
    warnings: tuple[str, ...] = ()


def merge_responses(
    responses: Sequence[Response],
    config: Config,
    limit: int | None,
    count_tokens: Callable[[str], int] | None = None,
    text_of: TextOf | None = None,
) -> Merged:
    """The results of all responses in one order, cut to the limit and the budget.

    `text_of` gives the text that results will be written as; then citations count as tokens too.
    """
    if len(responses) == 1 and text_of is None:
        (only,) = responses
        return Merged(tuple((0, each) for each in only.results), left_out(only), only.said)
    # As they were before the budget, which applies to all vaults together.
    listed = len(responses) > 1 and all(response.plan.listing for response in responses)
    join = by_date if listed else interleaved
    order = join([response.stage("limit").kept for response in responses])
    context = Context(settings=config, limit=limit, count_tokens=count_tokens)
    first = order[: result_count(context)] if config.limit.enabled else order
    fits = _fitting(first, context, text_of)
    kept = [(of, each) for (of, _), each in zip(first, fits.kept, strict=False)]
    unlisted = sum(len(response.stage("limit").removed) for response in responses)
    warnings = [line for response in responses for line in _warnings(response)]
    return Merged(
        tuple(kept),
        unlisted + len(order) - len(kept),
        tuple(dict.fromkeys((*warnings, *fits.said))),
    )


def _fitting(results: Sequence[MergedResult], context: Context, text_of: TextOf | None) -> Ranked:
    candidates = [each for _, each in results]
    if text_of is None:
        return budget(candidates, context)
    count = token_counter(context)

    def size(some: Sequence[Candidate]) -> int:
        pairs = zip(results, some, strict=False)  # a result that is cut keeps its place
        return count(text_of([(of, each) for (of, _), each in pairs]))

    return fit_budget(candidates, context, size)


def interleaved(answers: Sequence[Sequence[Candidate]]) -> list[MergedResult]:
    """All results by confidence; those whose exact name was asked for come first."""
    order: list[MergedResult] = []
    at = [0] * len(answers)

    def place(of: int) -> tuple[bool, float, int]:
        head = answers[of][at[of]]
        return not head.lifted, -(head.confidence or 0.0), at[of]

    while waiting := [of for of, results in enumerate(answers) if at[of] < len(results)]:
        of = min(waiting, key=place)
        order.append((of, answers[of][at[of]]))
        at[of] += 1
    return order


def by_date(answers: Sequence[Sequence[Candidate]]) -> list[MergedResult]:
    """All results, newest first, equal dates in their given order; exact names come first."""
    each = [(of, result) for of, results in enumerate(answers) for result in results]
    return sorted(each, key=lambda pair: (not pair[1].exact, -_date(pair[1])))


def _date(result: Candidate) -> float:
    return result.note.date.at if result.note.date else -inf


def left_out(response: Response) -> int:
    """How many results limit and budget left out."""
    return sum(len(response.stage(name).removed) for name in ("limit", "budget"))


def _warnings(response: Response) -> list[str]:
    """The warnings of one response, without those of its own budget."""
    return [line for line in response.said if line not in response.stage("budget").said]
