"""Several vaults answer one query: their answers become one list.

Each vault keeps its own order. At every place stands the vault whose next result is the surest:
confidence is measured on one scale everywhere, while a score orders one answer only. Without
confidence (a profile may leave it out) the vaults take turns. Ties go to the better rank, then to
the vault that was named first. Limit and budget then hold for the whole list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ragvault.candidate import Candidate, Context
from ragvault.config import Config
from ragvault.rank.budget import budget
from ragvault.rank.limit import wanted
from ragvault.search import Response


class Merged(NamedTuple):
    """One list: which answer each result is of, how many were left out, and what is to be said."""

    results: tuple[tuple[int, Candidate], ...]
    left_out: int
    said: tuple[str, ...] = ()


def merge(
    responses: Sequence[Response],
    config: Config,
    limit: int | None,
    count_tokens: Callable[[str], int] | None = None,
) -> Merged:
    """The results of some answers in one order, as many as are wanted and fit."""
    if len(responses) == 1:
        (only,) = responses
        return Merged(tuple((0, each) for each in only.results), left_out(only), only.said)
    # Before the budget, which is for all of them together.
    order = interleaved([response.stages[-2].ranked.kept for response in responses])
    context = Context(settings=config, limit=limit, count_tokens=count_tokens)
    first = order[: wanted(context)] if config.limit.enabled else order
    fitting = budget([each for _, each in first], context)
    kept = [(of, each) for (of, _), each in zip(first, fitting.kept, strict=False)]
    unlisted = sum(len(response.stages[-2].ranked.removed) for response in responses)
    said = [line for response in responses for line in _said(response)]
    return Merged(
        tuple(kept),
        unlisted + len(order) - len(kept),
        tuple(dict.fromkeys((*said, *fitting.said))),
    )


def interleaved(answers: Sequence[Sequence[Candidate]]) -> list[tuple[int, Candidate]]:
    """Every result, with the number of its answer."""
    order: list[tuple[int, Candidate]] = []
    at = [0] * len(answers)
    while waiting := [of for of, results in enumerate(answers) if at[of] < len(results)]:
        of = min(waiting, key=lambda each: (-(answers[each][at[each]].confidence or 0.0), at[each]))
        order.append((of, answers[of][at[of]]))
        at[of] += 1
    return order


def left_out(response: Response) -> int:
    """How many results limit and budget did not take."""
    return sum(len(stage.ranked.removed) for stage in response.stages[-2:])


def _said(response: Response) -> list[str]:
    """What an answer says, but for its own budget."""
    return [line for line in response.said if line not in response.stages[-1].ranked.said]
