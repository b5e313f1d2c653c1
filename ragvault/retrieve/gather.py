"""Gather: the legs run side by side, and what they found becomes candidates.

    legs in parallel, each with a deadline  ->  graph neighbours of their hits
    union by passage; every leg's rank and score kept; the scores a leg missed filled in
    recency and access as lists, where they are wanted

A leg that fails or is late is named and left out. The order in which legs answer does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nlargest
from itertools import chain, islice
from math import ceil
from typing import Protocol

import numpy as np

from ragvault.candidate import Candidate, Exact, PassageFacts
from ragvault.config.settings import Retrieve
from ragvault.index.ids import among
from ragvault.plan import KeywordNote, KeywordPassage, QueryPlan
from ragvault.ports import Allowed
from ragvault.retrieve.ask import Leg, Run, ask
from ragvault.retrieve.fill import fill, scored
from ragvault.retrieve.legs import NAMES, Found
from ragvault.retrieve.neighbours import Links, graph_hits

# Passages whose text is read with them, by what the vector leg brings: the stages look at three
# times as many as are wanted, which is 30 of 70.
SOON = 0.5
LEAST = 0.5  # seconds for scores of each other's hits, however late the legs were


class Library(Links, Protocol):
    """What is asked of the catalogue, in the thread that searches."""

    def expect(self, ids: Collection[int], *, vectors: bool = False) -> None:
        """These will be candidates: read what can be read now, while somebody else works.

        Their vectors too, where they will be compared with the query.
        """
        ...

    def candidates(self, ids: Sequence[int], soon: Sequence[int]) -> dict[int, PassageFacts]: ...

    def notes_of(self, ids: Sequence[int]) -> dict[int, int]: ...

    def exact(self, plan: QueryPlan, passage: PassageFacts) -> Exact: ...

    def words_of(
        self, passages: Sequence[PassageFacts]
    ) -> dict[int, tuple[KeywordPassage, KeywordNote]]:
        """What passages and their notes can be found by, by the passages' ids."""
        ...


@dataclass(slots=True)
class Gathered:
    """The candidates, and how they were found."""

    candidates: list[Candidate] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    tiers: dict[int, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    trouble: dict[str, str] = field(default_factory=dict)  # legs that answered, but not wholly
    crowded: bool = False  # more notes have the query in a name than were looked at


def gather(
    plan: QueryPlan,
    legs: Sequence[Leg],
    library: Library,
    settings: Retrieve,
    *,
    allowed: Mapping[str, Allowed],
    depth: int,
    pool: Executor,
    seconds: Mapping[str, float],
    clock: Callable[[], float] = time.perf_counter,
) -> Gathered:
    """Ask every leg, each for so many seconds, and bring together what they found."""
    began = clock()
    gathered = Gathered()
    limits = {leg.name: getattr(settings, leg.name) for leg in legs}
    compared = settings.fill != "off" and {"vector"} & limits.keys() & set(settings.fill_legs)
    expect = partial(library.expect, vectors=bool(compared))
    answers = ask(plan, legs, limits, allowed, expect, pool=pool, seconds=seconds, clock=clock)
    gathered.runs = [run for run, _ in answers]
    found = {run.leg: answer for run, answer in answers if answer is not None}
    gathered.crowded = any(len(answer.also) >= NAMES for answer in found.values())
    if settings.window and settings.outside == "drop":
        found = {leg: _within(answer, allowed["vector"]) for leg, answer in found.items()}
    if "graph" in settings.legs and settings.graph:
        found["graph"] = _graph(found, library, settings, depth, allowed, clock, gathered)
    left = max(LEAST, began + settings.seconds - clock())
    fill(
        found,
        settings.fill,
        settings.fill_legs,
        gathered.trouble,
        pool,
        left,
        library.expect,
    )
    gathered.candidates = _candidates(plan, found, library, ceil(SOON * settings.vector))
    for answer in found.values():
        gathered.tiers.update(answer.tiers)
        gathered.said += answer.said
    gathered.runs = [
        replace(run, start=run.start - began, end=run.end - began) for run in gathered.runs
    ]
    return gathered


def _graph(
    found: Mapping[str, Found],
    library: Library,
    settings: Retrieve,
    depth: int,
    allowed: Mapping[str, Allowed],
    clock: Callable[[], float],
    gathered: Gathered,
) -> Found:
    start = clock()
    seeds = _seeds(found, library, settings.seeds)
    vector = found.get("vector", Found())

    def nearest(groups: Sequence[Sequence[int]]) -> list[int | None]:
        inside = _permitted(chain.from_iterable(groups), allowed["graph"])
        choices = [[passage for passage in ids if passage in inside] for ids in groups]
        unsure = sorted({passage for ids in choices if len(ids) > 1 for passage in ids})
        known = {
            hit.passage: hit.score
            for hit in scored(vector, unsure, "vector", gathered.trouble).hits
        }
        return [_nearest(ids, known) for ids in choices]

    hits = graph_hits(library, seeds, nearest, depth=depth, limit=settings.graph)
    gathered.runs.append(Run("graph", start, clock(), len(hits)))
    return Found(tuple(hits))


def _within(answer: Found, window: Allowed) -> Found:
    """What lies in the window. A list is as long as it is, and what it loses leaves a gap."""
    inside = _permitted((*(hit.passage for hit in answer.hits), *answer.also), window)
    return replace(
        answer,
        hits=tuple(hit for hit in answer.hits if hit.passage in inside),
        also=tuple(passage for passage in answer.also if passage in inside),
    )


def _permitted(passages: Iterable[int], allowed: Allowed) -> set[int]:
    """Those of some passages that may be returned."""
    ids = np.array(list(passages), np.int64)
    return set((ids if allowed is None else ids[among(ids, allowed)]).tolist())


def _nearest(passages: Sequence[int], cosines: Mapping[int, float]) -> int | None:
    """The one nearest to the query; the first where none can be compared."""
    known = [passage for passage in passages if passage in cosines]
    if known:
        return min(known, key=lambda passage: (-cosines[passage], passage))
    return passages[0] if passages else None


def _seeds(found: Mapping[str, Found], library: Library, most: int) -> dict[int, int]:
    """The notes of the best hits, each with its best rank in any leg.

    By that rank, then by how many legs agree.
    """
    ranks: dict[int, list[int]] = {}
    for answer in found.values():
        for hit in answer.hits:
            ranks.setdefault(hit.passage, []).append(hit.rank)
    order = sorted(ranks, key=lambda passage: (min(ranks[passage]), -len(ranks[passage]), passage))
    seeds: dict[int, int] = {}
    while order and len(seeds) < most:
        few, order = order[: 2 * most], order[2 * most :]
        notes = library.notes_of(few)
        for passage in few:
            if passage in notes:
                seeds.setdefault(notes[passage], min(ranks[passage]))
    return dict(islice(seeds.items(), most))


def _candidates(
    plan: QueryPlan, found: Mapping[str, Found], library: Library, count: int
) -> list[Candidate]:
    ranks: dict[int, dict[str, int]] = {}
    for leg, answer in found.items():
        for hit in answer.hits:
            ranks.setdefault(hit.passage, {})[leg] = hit.rank
        for passage in answer.also:
            ranks.setdefault(passage, {})
    scores: dict[int, dict[str, float]] = {passage: {} for passage in ranks}
    evidence: dict[int, dict[str, float]] = {passage: {} for passage in ranks}
    for leg, answer in found.items():
        for hit in (*answer.more, *answer.hits):
            scores[hit.passage][leg] = hit.score
        for passage in ranks.keys() & answer.evidence.keys():
            evidence[passage].update(answer.evidence[passage])
    worded = [passage for passage in ranks if "passage" in evidence[passage]]
    soon = list(ranks) if plan.phrases else worded + _nearest_first(scores, count)
    passages = library.candidates(sorted(ranks), soon)
    keyword = found.get("keyword", Found())
    if keyword.coverage is not None:
        texts = library.words_of([passages[passage] for passage in worded if passage in passages])
        for passage, (own, note) in texts.items():
            evidence[passage]["coverage"] = keyword.coverage(own, note)
    return [
        Candidate(
            facts, ranks[passage], scores[passage], evidence[passage], library.exact(plan, facts)
        )
        for passage, facts in sorted(passages.items())
    ]


def _nearest_first(scores: Mapping[int, Mapping[str, float]], count: int) -> list[int]:
    """The passages that look best before anything is ranked. Another one is read when it is."""
    cosines = {passage: of_legs.get("vector", 0.0) for passage, of_legs in scores.items()}
    return nlargest(count, cosines, key=cosines.__getitem__)
