"""Neighbours: the graph leg. Notes that links join to the best hits of the other legs.

A neighbour enters as the section a link names, otherwise as its passage nearest to the query. It is
ranked by the hit that led to it, and never brings what the filter excludes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Protocol

from ragvault.candidate import Hit
from ragvault.index.graph import Edge, Unit
from ragvault.index.graph_neighbours import Neighbour, neighbours


class Links(Protocol):
    """What is asked of the catalogue here."""

    def edges_of(self, notes: Sequence[int]) -> list[Edge]: ...

    def lists(self) -> Mapping[Unit, float]: ...

    def passage_ids(self, note: int, section: int | None) -> list[int]: ...


def graph_hits(
    links: Links,
    seeds: Mapping[int, int],
    nearest: Callable[[Sequence[int]], int | None],
    *,
    depth: int,
    limit: int,
) -> list[Hit]:
    """One hit for each neighbour of the seed notes, best first; those not permitted take no place.

    `seeds` are notes with the best rank any leg gave them.
    """
    found = neighbours(_around(links, list(seeds), depth), seeds, depth, links.lists())
    entering = ((each, _chunk(links, each, nearest)) for each in found)
    kept = islice(((each, chunk) for each, chunk in entering if chunk is not None), limit)
    return [Hit(chunk, rank, 1.0 / each.rank) for rank, (each, chunk) in enumerate(kept, 1)]


def _around(links: Links, seeds: Sequence[int], depth: int) -> list[Edge]:
    edges = links.edges_of(seeds)
    for _ in range(depth - 1):
        reached = {note for edge in edges for note in (edge.source, edge.target)}
        edges = links.edges_of(sorted(reached))
    return edges


def _chunk(
    links: Links, each: Neighbour, nearest: Callable[[Sequence[int]], int | None]
) -> int | None:
    return nearest(links.passage_ids(each.note, each.section))
