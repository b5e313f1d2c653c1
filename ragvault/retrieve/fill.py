"""Fill: every candidate gets the true score of each leg that missed it, where that can be had.

So that nothing is lost for being outside of one list. A leg that cannot tell those scores keeps its
hits: what is wrong with it is noted, and costs no search.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from concurrent.futures import Executor
from dataclasses import replace
from typing import Literal

from ragvault.candidate import Hit
from ragvault.retrieve.legs import Found

Trouble = dict[str, str]


def fill(
    found: dict[str, Found],
    how: Literal["score", "rank", "off"],
    trouble: Trouble,
    pool: Executor,
) -> None:
    """Ask each leg for what the others found; with "rank" it also gets a place in its list."""
    if how == "off":
        return
    every = {hit.chunk for answer in found.values() for hit in answer.hits}
    every.update(chunk for answer in found.values() for chunk in answer.also)
    asked = {
        leg: pool.submit(scored, answer, _missing(every, answer), leg, trouble)
        for leg, answer in found.items()
        if answer.score_of is not None
    }
    for leg, waiting in asked.items():
        answer, more = found[leg], waiting.result()
        found[leg] = replace(
            answer,
            hits=_ranked(answer.hits, more.hits) if how == "rank" and more.hits else answer.hits,
            more=more.hits,
            evidence={**more.evidence, **answer.evidence},
            tiers={**more.tiers, **answer.tiers},
        )


def _missing(every: Set[int], answer: Found) -> list[int]:
    return sorted(every - {hit.chunk for hit in answer.hits})


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
    order = sorted((*hits, *more), key=lambda hit: (-hit.score, hit.chunk))
    return tuple(Hit(hit.chunk, rank[hit.score], hit.score) for hit in order)
