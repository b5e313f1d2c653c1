"""Expand: terms of the vault's own vocabulary that are near to the query are searched for too.

Which terms are near enough is a setting. A fixed cosine means something else for every model:
with bge-small most pairs of unrelated words are above 0.5. So the other way is a percentile: near
is what only so few pairs of the vocabulary itself are. A term weighs less than a word of the
query, and a query that names something exactly is left as it is.

The policy only: the caller knows the vocabulary, its vectors and the cosines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragvault.config.settings import Expand
from ragvault.plan import Expansion, QueryPlan
from ragvault.sought import AllOf, AnyOf, Sought, Words


def may_expand(plan: QueryPlan, settings: Expand) -> bool:
    """Are terms wanted at all? Asked first: finding them takes a look at the whole vocabulary."""
    return settings.method != "off" and plan.expandable and plan.sought is not None


def least_cosine(settings: Expand, usual: float) -> float:
    """How near a term must be; `usual` is the cosine at the setting's percentile of all pairs."""
    return settings.similarity if settings.method == "similarity" else usual


def expand(
    plan: QueryPlan, near: Iterable[tuple[str, float]], settings: Expand, *, least: float
) -> QueryPlan:
    """The plan with the nearest terms added, or the plan itself. `near` are terms and cosines."""
    if not may_expand(plan, settings) or plan.sought is None:
        return plan
    found = tuple(_best(plan, near, settings, least))
    if not found:
        return plan
    return plan.expanded(found, _with_terms(plan.sought, found), settings.embed)


def own_words(plan: QueryPlan) -> frozenset[str]:
    """The words of the query itself, which are no news; without what stands around them."""
    words = plan.text.casefold().split()
    return frozenset([*words, *(word.strip("\"'.,;:!?()[]{}") for word in words)])


def _best(
    plan: QueryPlan, near: Iterable[tuple[str, float]], settings: Expand, least: float
) -> list[Expansion]:
    own = own_words(plan)
    new = {term: cosine for term, cosine in near if term.casefold() not in own and cosine >= least}
    ordered = sorted(new.items(), key=lambda pair: (-pair[1], pair[0]))
    return [Expansion(term, cosine, settings.weight) for term, cosine in ordered[: settings.terms]]


def _with_terms(sought: Sought, found: Sequence[Expansion]) -> Sought:
    """The terms beside what is wanted; what must or must not be there stays as it is."""
    more = tuple(Words(each.term, weight=each.weight) for each in found)
    if isinstance(sought, AllOf):
        wanted, *required = sought.parts
        return AllOf((AnyOf((wanted, *more)), *required))
    return AnyOf((sought, *more))
