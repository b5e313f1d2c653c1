"""Boost: what is known of a note, whatever the query.

Each boost is one Term that multiplies the score or adds to it (boosts.py has their formulas).
Unbounded, they are what the seeds describe: a hub with ten backlinks passes from rank 61 of a flat
RRF list over an unlinked rank 1. Bounded, a result rises at most `max_rise` ranks by them, and
nothing passes an exact title, alias or quoted phrase. Last, a note that another one replaces gives
way to it; what moves up thereby was not boosted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import inf, nextafter

from ragvault.candidate import Candidate, Context, Ranked, Term, best_first, key, total
from ragvault.rank.boosts import boosts


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
        _give_way(order, terms, scores)
    return Ranked(tuple(best_first(map(_boosted, order, scores, terms))))


def _boosted(candidate: Candidate, score: float, terms: list[Term]) -> Candidate:
    return candidate.placed("boost", score, terms) if terms else candidate


def _bound(order: list[Candidate], terms: list[list[Term]], scores: list[float], most: int) -> None:
    """Hold back those that would rise too far: just below the one they may not pass."""
    above = (-inf, "", 0, 0)
    for at in _allowed_order(order, scores, most):
        here = key(order[at], scores[at])
        if here < above:
            held = nextafter(-above[0], -inf)
            why = f"rises at most {most} ranks, and passes no exact hit"
            terms[at].append(Term("bound", held - scores[at], why=why))
            scores[at] = held
            here = key(order[at], held)
        above = here


def _allowed_order(order: Sequence[Candidate], scores: Sequence[float], most: int) -> list[int]:
    """For each place the best of those that may stand there."""
    waiting: list[tuple[tuple[float, str, int, int], int]] = []
    placed: list[int] = []
    entered, barrier = 0, -1  # an exact hit that has no place yet: nobody enters behind it
    while len(placed) < len(order):
        while entered < len(order) and entered <= len(placed) + most and barrier < 0:
            heappush(waiting, (key(order[entered], scores[entered]), entered))
            barrier = entered if order[entered].exact else -1
            entered += 1
        at = heappop(waiting)[1]
        barrier = -1 if at == barrier else barrier
        placed.append(at)
    return placed


def _give_way(order: list[Candidate], terms: list[list[Term]], scores: list[float]) -> None:
    """Put passages of a note that was replaced behind the best passage of a note replacing it."""
    # What was asked for by its name is not held back.
    replaced = {c.note.id: c.note.superseded_by for c in order if c.note.superseded_by}
    for note in _oldest_last(replaced):
        best = max(
            (s for s, c in zip(scores, order, strict=True) if c.note.id in replaced[note]),
            default=inf,
        )
        passages = [at for at, c in enumerate(order) if c.note.id == note and not c.exact]
        for at in sorted(passages, key=lambda i: key(order[i], scores[i])):
            if scores[at] >= best:
                best = nextafter(best, -inf)
                terms[at].append(Term("superseded", best - scores[at], why="a newer note is found"))
                scores[at] = best


def _oldest_last(replaced: Mapping[int, Sequence[int]]) -> list[int]:
    """Successors before the notes they replace; notes that replace each other stay as they are."""
    done: list[int] = []
    rings: set[int] = set()

    def visit(note: int, path: tuple[int, ...]) -> None:
        if note in path:
            rings.update(path[path.index(note) :])
        elif note in replaced and note not in done:
            for successor in sorted(replaced[note]):
                visit(successor, (*path, note))
            if note not in done:
                done.append(note)

    for note in sorted(replaced):
        visit(note, ())
    return [note for note in done if note not in rings]
