"""Several vaults answer one query: their answers become one list.

Each vault keeps its own order. At every place stands the vault whose next result is the surest:
confidence is measured on one scale everywhere, while a score orders one answer only. Without
confidence (a profile may leave it out) the vaults take turns. Ties go to the better rank, then to
the vault that was named first. Lists by date become one list by date. Limit and budget then hold
for the whole list, and the budget for all that is written of it where that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from ragvault.candidate import Candidate, Context, Ranked
from ragvault.config.settings import Config
from ragvault.rank.budget import budget, counter, fitting
from ragvault.rank.limit import wanted
from ragvault.search import Response

Result = tuple[int, Candidate]  # and the number of the answer it is of
Writing = Callable[[Sequence[Result]], str]


class Merged(NamedTuple):
    """One list: which answer each result is of, how many were left out, and what is to be said."""

    results: tuple[Result, ...]
    left_out: int
    said: tuple[str, ...] = ()


def merge(
    responses: Sequence[Response],
    config: Config,
    limit: int | None,
    count_tokens: Callable[[str], int] | None = None,
    written: Writing | None = None,
) -> Merged:
    """The results of some answers in one order, as many as are wanted and fit.

    `written` is the text that some results become: a citation takes tokens too.
    """
    if len(responses) == 1 and written is None:
        (only,) = responses
        return Merged(tuple((0, each) for each in only.results), left_out(only), only.said)
    # Before the budget, which is for all of them together.
    listed = len(responses) > 1 and all(response.plan.listing for response in responses)
    join = by_date if listed else interleaved
    order = join([response.stages[-2].ranked.kept for response in responses])
    context = Context(settings=config, limit=limit, count_tokens=count_tokens)
    first = order[: wanted(context)] if config.limit.enabled else order
    fits = _fitting(first, context, written)
    kept = [(of, each) for (of, _), each in zip(first, fits.kept, strict=False)]
    unlisted = sum(len(response.stages[-2].ranked.removed) for response in responses)
    said = [line for response in responses for line in _said(response)]
    return Merged(
        tuple(kept),
        unlisted + len(order) - len(kept),
        tuple(dict.fromkeys((*said, *fits.said))),
    )


def _fitting(results: Sequence[Result], context: Context, written: Writing | None) -> Ranked:
    candidates = [each for _, each in results]
    if written is None:
        return budget(candidates, context)
    count = counter(context)

    def size(some: Sequence[Candidate]) -> int:
        pairs = zip(results, some, strict=False)  # a part that is cut stands where the whole was
        return count(written([(of, each) for (of, _), each in pairs]))

    return fitting(candidates, context, size)


def interleaved(answers: Sequence[Sequence[Candidate]]) -> list[Result]:
    """Every result, with the number of its answer; what was asked for by its very name first."""
    order: list[Result] = []
    at = [0] * len(answers)

    def place(of: int) -> tuple[bool, float, int]:
        head = answers[of][at[of]]
        return not head.lifted, -(head.confidence or 0.0), at[of]

    while waiting := [of for of, results in enumerate(answers) if at[of] < len(results)]:
        of = min(waiting, key=place)
        order.append((of, answers[of][at[of]]))
        at[of] += 1
    return order


def by_date(answers: Sequence[Sequence[Candidate]]) -> list[Result]:
    """The same of lists: newest first, what is as old in the order it has; what was named first."""
    each = [(of, result) for of, results in enumerate(answers) for result in results]
    return sorted(each, key=lambda pair: (not pair[1].exact, -_date(pair[1])))


def _date(result: Candidate) -> float:
    return result.note.date.at if result.note.date else -inf


def left_out(response: Response) -> int:
    """How many results limit and budget did not take."""
    return sum(len(stage.ranked.removed) for stage in response.stages[-2:])


def _said(response: Response) -> list[str]:
    """What an answer says, but for its own budget."""
    return [line for line in response.said if line not in response.stages[-1].ranked.said]
