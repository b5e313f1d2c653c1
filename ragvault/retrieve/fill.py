"""Fill: every candidate gets the true score of each leg that missed it, where that can be had.

So that nothing is lost for being outside of one list. Which legs are asked is a setting: one that
ends after fifty, and says nothing of the rest, is left as it is. A leg that cannot tell those
scores keeps its hits: what is wrong with it is noted, and costs no search.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import Executor
from concurrent.futures import TimeoutError as Late
from dataclasses import replace
from typing import Literal

from ragvault.candidate import Hit
from ragvault.retrieve.legs import Found

Trouble = dict[str, str]


def fill(
    found: dict[str, Found],
    how: Literal["score", "rank", "off"],
    legs: Collection[str],
    trouble: Trouble,
    pool: Executor,
    seconds: float,
    expect: Callable[[Collection[int]], None] = lambda _: None,
) -> None:
    """Ask these legs for what the others found; with "rank" that also gets a place in their lists.

    `expect` is told of all passages while the legs are at work.
    """
    if how == "off":
        return
    every = {hit.passage for answer in found.values() for hit in answer.hits}
    every.update(passage for answer in found.values() for passage in answer.also)
    missing = {
        leg: _missing(every, answer) if leg in legs else []
        for leg, answer in found.items()
        if answer.score_of is not None
    }
    more = _side_by_side(found, missing, trouble, pool, seconds, lambda: expect(every))
    for leg, told in more.items():
        answer = found[leg]
        found[leg] = replace(
            answer,
            hits=_ranked(answer.hits, told.hits) if how == "rank" else answer.hits,
            more=told.hits,
            evidence={**told.evidence, **answer.evidence},
            tiers={**told.tiers, **answer.tiers},
        )


def _side_by_side(
    found: Mapping[str, Found],
    missing: Mapping[str, Sequence[int]],
    trouble: Trouble,
    pool: Executor,
    seconds: float,
    meanwhile: Callable[[], None],
) -> dict[str, Found]:
    """What each leg tells. The first is asked here, in the thread and the moment of the search."""
    said: dict[str, Trouble] = {leg: {} for leg in missing}
    asked = {
        leg: pool.submit(scored, found[leg], ids, leg, said[leg])
        for leg, ids in list(missing.items())[1:]
    }
    more = {leg: scored(found[leg], ids, leg, said[leg]) for leg, ids in list(missing.items())[:1]}
    meanwhile()
    for leg, waiting in asked.items():
        try:
            more[leg] = waiting.result(timeout=seconds)
        except Late:  # noqa: PERF203 - three turns at most
            waiting.cancel()
            said[leg] = {leg: f"no scores of what other legs found within {seconds:.2g} s"}
    for each in said.values():
        trouble.update(each)
    return more


def _missing(every: Set[int], answer: Found) -> list[int]:
    return sorted(every - {hit.passage for hit in answer.hits})


def scored(answer: Found, ids: Sequence[int], leg: str, trouble: Trouble) -> Found:
    """The true scores of some passages; nothing where they cannot be had."""
    if not ids or answer.score_of is None:
        return Found()
    try:
        return answer.score_of(ids)
    except Exception as error:  # an index that breaks after it has answered
        trouble[leg] = f"{type(error).__name__}: {error}"
        return Found()


def _ranked(hits: Sequence[Hit], more: Sequence[Hit]) -> tuple[Hit, ...]:
    """All of them in one list, by score; equal scores share a rank."""
    scores = sorted({hit.score for hit in (*hits, *more)}, reverse=True)
    rank = {score: place for place, score in enumerate(scores, 1)}
    order = sorted((*hits, *more), key=lambda hit: (-hit.score, hit.passage))
    return tuple(Hit(hit.passage, rank[hit.score], hit.score) for hit in order)
