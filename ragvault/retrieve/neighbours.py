"""Neighbours: the graph leg. Notes that links join to the best hits of the other legs.

A neighbour enters as the section a link names, otherwise as its passage nearest to the query. It is
ranked by the hit that led to it, and never brings what the filter excludes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ragvault.candidate import Hit
from ragvault.index.graph import Edge, Unit
from ragvault.index.graph_neighbours import Neighbour, neighbours


class Links(Protocol):
    """What is asked of the catalogue here."""

    def edges_of(self, notes: Sequence[int]) -> list[Edge]: ...

    def lists(self) -> Mapping[Unit, float]: ...

    def passages_of(self, units: Sequence[Unit]) -> list[list[int]]: ...


def graph_hits(
    links: Links,
    seeds: Mapping[int, int],
    nearest: Callable[[Sequence[Sequence[int]]], Sequence[int | None]],
    *,
    depth: int,
    limit: int,
) -> list[Hit]:
    """One hit for each neighbour of the seed notes, best first; those not permitted take no place.

    `seeds` are notes with the best rank any leg gave them. `nearest` chooses one passage of each
    neighbour's, or none; many at once, since each question to the catalogue has its price.
    """
    found = neighbours(_around(links, list(seeds), depth), seeds, depth, links.lists())
    kept: list[tuple[Neighbour, int]] = []
    for first in range(0, len(found), limit):
        some = found[first : first + limit]
        chosen = nearest(links.passages_of([(each.note, each.section) for each in some]))
        pairs = zip(some, chosen, strict=True)
        kept += [(each, passage) for each, passage in pairs if passage is not None]
        if len(kept) >= limit:
            break
    best = enumerate(kept[:limit], 1)
    return [Hit(passage, rank, 1.0 / each.rank) for rank, (each, passage) in best]


def _around(links: Links, seeds: Sequence[int], depth: int) -> list[Edge]:
    edges = links.edges_of(seeds)
    for _ in range(depth - 1):
        reached = {note for edge in edges for note in (edge.source, edge.target)}
        edges = links.edges_of(sorted(reached))
    return edges
