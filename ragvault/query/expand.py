"""Expand: terms of the vault's own vocabulary that are near to the query are searched for too.

Which terms are near enough is a setting. A fixed cosine means something else for every model:
with bge-small most pairs of unrelated words are above 0.5. So the other way is a percentile: near
is what only so few pairs of the vocabulary itself are. A term weighs less than a word of the
query, and a query that names something exactly is left as it is.

The caller brings the vocabulary, its vectors and the query's; nothing here embeds or reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragvault.config_query import Expand
from ragvault.plan import Expansion, QueryPlan
from ragvault.types import AllOf, AnyOf, Sought, Words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE = 1000  # terms compared with each other: half a million pairs tell the 99.9th percentile


def expand(
    plan: QueryPlan,
    terms: Sequence[str],
    matrix: NDArray[np.float32],
    query: NDArray[np.float32],
    settings: Expand,
    *,
    floor: float | None = None,
) -> QueryPlan:
    """The plan with the nearest terms added, or the plan itself.

    One unit row of `matrix` is one term; `query` is the plan's text, embedded. `floor` saves
    working out `floor_of` for every query.
    """
    if settings.method == "off" or not plan.expandable or plan.sought is None or not len(terms):
        return plan
    floor = floor_of(matrix, settings) if floor is None else floor
    found = tuple(_nearest(plan.text, terms, matrix @ query, floor, settings))
    if not found:
        return plan
    return plan.expanded(found, _with_terms(plan.sought, found), settings.embed)


def floor_of(matrix: NDArray[np.float32], settings: Expand) -> float:
    """The cosine a term must have to be near, by the setting's method."""
    import numpy as np

    if settings.method == "similarity" or len(matrix) < 2:
        return settings.similarity
    step = max(1, len(matrix) // SAMPLE)
    some = matrix[::step][:SAMPLE]  # evenly spaced: the same for the same vocabulary
    pairs = (some @ some.T)[np.triu_indices(len(some), k=1)]
    return float(np.quantile(pairs, settings.percentile))


def _nearest(
    text: str,
    terms: Sequence[str],
    cosines: NDArray[np.float32],
    floor: float,
    settings: Expand,
) -> list[Expansion]:
    """The best terms that are not in the query already; equally near ones by name."""
    own = set(text.casefold().split())
    near = [i for i in (cosines >= floor).nonzero()[0].tolist() if terms[i].casefold() not in own]
    best = sorted(near, key=lambda i: (-float(cosines[i]), terms[i]))[: settings.terms]
    return [Expansion(terms[i], float(cosines[i]), settings.weight) for i in best]


def _with_terms(sought: Sought, found: Sequence[Expansion]) -> Sought:
    """The terms beside what is wanted; what must or must not be there stays as it is."""
    more = tuple(Words(each.term, weight=each.weight) for each in found)
    if isinstance(sought, AllOf):
        wanted, *required = sought.parts
        return AllOf((AnyOf((wanted, *more)), *required))
    return AnyOf((sought, *more))
