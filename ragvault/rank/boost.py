"""Boost: what is known of a note, whatever the query.

Each boost is one Term that multiplies the score or adds to it (boosts.py has their formulas).
Unbounded, they are what the seeds describe: a hub with ten backlinks passes from rank 61 of a flat
RRF list over an unlinked rank 1. Bounded, a result rises at most `max_rise` ranks by them, and
nothing passes an exact title, alias or quoted phrase. Last, a note that another one replaces gives
way to it (succession.py); what moves up thereby was not boosted.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf, nextafter

from ragvault.candidate import Candidate, Context, Key, Ranked, Term, best_first, key, total
from ragvault.rank.boosts import boosts
from ragvault.rank.succession import give_way


def boost(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Raise and lower candidates by what is known of their notes."""
    settings = ctx.settings.boost
    if not settings.enabled:
        return Ranked(tuple(candidates))
    order = best_first(candidates)
    terms = boosts(order, ctx)
    scores = [total(c.score, t) for c, t in zip(order, terms, strict=True)]
    if settings.bounded:
        _bound(order, terms, scores, settings.max_rise)
    if settings.superseded.enabled:
        inherits = settings.superseded.place == "replaced"
        give_way(order, terms, scores, inherits=inherits)
    return Ranked(tuple(best_first(map(_boosted, order, scores, terms))))


def _boosted(candidate: Candidate, score: float, terms: list[Term]) -> Candidate:
    return candidate.placed("boost", score, terms) if terms else candidate


def _bound(order: list[Candidate], terms: list[list[Term]], scores: list[float], most: int) -> None:
    """Hold back those that would rise too far: just below the one they may not pass."""
    above = (-inf, "", 0, 0)
    keys = [key(each, score) for each, score in zip(order, scores, strict=True)]
    for at in _allowed_order(order, keys, most):
        here = keys[at]
        if here < above:
            held = nextafter(-above[0], -inf)
            why = f"rises at most {most} ranks, and passes no exact hit"
            terms[at].append(Term("bound", held - scores[at], why=why))
            scores[at] = held
            here = key(order[at], held)
        above = here


def _allowed_order(order: Sequence[Candidate], keys: Sequence[Key], most: int) -> list[int]:
    """For each place the best of those that may stand there."""
    waiting: list[tuple[Key, int]] = []
    placed: list[int] = []
    entered, barrier = 0, -1  # an exact hit that has no place yet: nobody enters behind it
    while len(placed) < len(order):
        while entered < len(order) and entered <= len(placed) + most and barrier < 0:
            heappush(waiting, (keys[entered], entered))
            barrier = entered if order[entered].exact else -1
            entered += 1
        at = heappop(waiting)[1]
        barrier = -1 if at == barrier else barrier
        placed.append(at)
    return placed
