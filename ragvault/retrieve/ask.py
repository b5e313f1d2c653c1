"""Ask: every leg at once, each with a deadline.

A leg that fails or is late is named and left out. While the last ones are waited for, what will be
wanted of the others' hits is read: searching for vectors takes one core, and leaves the other idle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from typing import Protocol

from ragvault.plan import QueryPlan
from ragvault.ports import Allowed, CacheBroken
from ragvault.retrieve.legs import Found

Clock = Callable[[], float]


class Leg(Protocol):
    """Knows its own index and nothing of the other legs."""

    @property
    def name(self) -> str:
        """Lower case, one word: the key in config, in `ranks` and in --explain."""
        ...

    def search(self, plan: QueryPlan, limit: int, allowed: Allowed) -> Found:
        """Best first, at most `limit`, no passage twice. Any error fails this leg alone."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """How one leg ran: seconds by the clock, and why it failed, if it did."""

    leg: str
    start: float
    end: float
    hits: int = 0
    failed: str = ""


Answer = tuple[Run, "Found | None"]


def ask(
    plan: QueryPlan,
    legs: Sequence[Leg],
    limits: Mapping[str, int],
    allowed: Mapping[str, Allowed],
    expect: Callable[[Collection[int]], None],
    *,
    pool: Executor,
    seconds: Mapping[str, float],
    clock: Clock,
) -> list[Answer]:
    """What each leg brought, in the order of the legs, whichever was first.

    `seconds` are each leg's own; `expect` is told of hits while there are legs to wait for.
    """
    began = clock()
    under_way = {
        pool.submit(_one, leg, plan, limits[leg.name], allowed[leg.name], clock): leg.name
        for leg in legs
    }
    until = {future: began + seconds[name] for future, name in under_way.items()}
    late = _wait(until, expect, clock)
    return [
        (Run(name, began, clock(), failed=f"no answer within {seconds[name]:g} s"), None)
        if future in late
        else future.result()
        for future, name in under_way.items()
    ]


def _wait(
    until: Mapping[Future[Answer], float], expect: Callable[[Collection[int]], None], clock: Clock
) -> set[Future[Answer]]:
    """Those that have not answered when their time is up."""
    waiting, late = set(until), set()
    while waiting:
        first = min(until[future] for future in waiting)
        done, waiting = wait(waiting, max(0.0, first - clock()), FIRST_COMPLETED)
        if not done:
            late |= {future for future in waiting if until[future] <= first}
            waiting -= late
        elif waiting:
            expect({hit.passage for each in done if (new := each.result()[1]) for hit in new.hits})
    for future in late:
        future.cancel()  # one that has not begun need not
    return late


def _one(leg: Leg, plan: QueryPlan, limit: int, allowed: Allowed, clock: Clock) -> Answer:
    start = clock()
    try:
        found = leg.search(plan, limit, allowed)
    except CacheBroken as broken:
        return Run(leg.name, start, clock(), failed=f"{broken}; run: {broken.fix}"), None
    except Exception as error:  # a leg that cannot answer must not cost the search
        return Run(leg.name, start, clock(), failed=f"{type(error).__name__}: {error}"), None
    return Run(leg.name, start, clock(), len(found.hits)), found
