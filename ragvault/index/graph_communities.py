"""The graph as NetworkX has it, and communities: notes that link each other more than others.

Communities are found anew whenever links have changed, which `stamp` tells: the same links give
the same ones in every run, so an index that grew by edits answers as one made from scratch does.
Which note is asked first decides ties, so notes are asked in the order of their paths: their ids
tell when each was met, and are others in an index made from scratch.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING

from ragvault.config.settings import Graph
from ragvault.index.graph import Edge, Unit, between_notes, unit_order, weight_of
from ragvault.index.graph_louvain import louvain

if TYPE_CHECKING:
    import networkx as nx

LINK = 1000  # the weight of a plain link, a whole number so that sums are exact


def build(edges: Iterable[Edge]) -> nx.MultiDiGraph[int]:
    """The whole graph as NetworkX has it: directed, typed, one edge a link, sections as data."""
    import networkx as nx

    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    for edge in sorted(edges, key=_edge_order):
        graph.add_edge(
            edge.source,
            edge.target,
            kind=edge.kind,
            source_section=edge.source_section,
            target_section=edge.target_section,
        )
    return graph


def communities(
    edges: Iterable[Edge],
    settings: Graph,
    *,
    lists: Mapping[Unit, float] | None = None,
    names: Mapping[int, str] | None = None,
    previous: Mapping[int, int] | None = None,
) -> dict[int, int]:
    """The community of every note that links or is linked, by note.

    The same links and settings always give the same communities; with `names` (paths) even where
    the notes have other ids. `previous` only lends its numbers where members are mostly the same.
    """
    ties = _ties(edges, lists or {})
    notes = _in_order(ties, names)
    place = {note: i for i, note in enumerate(notes)}
    weights: list[dict[int, int]] = [{} for _ in notes]
    for one, other in sorted(ties, key=lambda pair: sorted((place[pair[0]], place[pair[1]]))):
        weights[place[one]][place[other]] = weights[place[other]][place[one]] = ties[one, other]
    found = louvain(weights, settings.resolution, settings.seed)
    return _numbered([{notes[i] for i in group} for group in found], previous or {})


def stamp(
    edges: Iterable[Edge],
    settings: Graph,
    lists: Mapping[Unit, float],
    names: Mapping[int, str] | None = None,
) -> int:
    """Changes when communities may have: kept beside them, it says whether to look again.

    Of names only the order counts: most renames leave a note between the same two others.
    """
    ties = _ties(edges, lists)
    known = settings.resolution, settings.seed, sorted(ties.items()), _in_order(ties, names)
    return zlib.crc32(repr(known).encode())


def _ties(edges: Iterable[Edge], lists: Mapping[Unit, float]) -> dict[tuple[int, int], int]:
    """How closely two notes are tied, in thousandths of a link.

    Linking twice says no more than once; linking back does.
    """
    ways: dict[tuple[int, int], int] = {}
    for edge in between_notes(edges):
        way, weight = (edge.source, edge.target), round(LINK * weight_of(edge, lists))
        ways[way] = max(ways.get(way, 1), weight)
    ties: dict[tuple[int, int], int] = {}
    for one, other in sorted(ways):
        pair = min(one, other), max(one, other)
        ties[pair] = ties.get(pair, 0) + ways[one, other]
    return ties


def _in_order(ties: Iterable[tuple[int, int]], names: Mapping[int, str] | None) -> list[int]:
    """The notes that are tied to another, by name and then by id."""
    named = names or {}
    return sorted({note for pair in ties for note in pair}, key=lambda n: (named.get(n, ""), n))


def _numbered(found: list[set[int]], previous: Mapping[int, int]) -> dict[int, int]:
    """Each takes the number that most of its members had; the largest overlap chooses first."""
    found = sorted(found, key=min)
    overlaps: Counter[tuple[int, int]] = Counter()
    for place, members in enumerate(found):
        overlaps.update((place, previous[note]) for note in members if note in previous)
    numbers: dict[int, int] = {}
    taken: set[int] = set()
    for (place, number), _ in sorted(overlaps.items(), key=lambda pair: (-pair[1], pair[0])):
        if place not in numbers and number not in taken:
            numbers[place] = number
            taken.add(number)
    fresh = count(max(previous.values(), default=0) + 1)
    for place in range(len(found)):
        if place not in numbers:
            numbers[place] = next(fresh)
    return {note: numbers[place] for place, members in enumerate(found) for note in sorted(members)}


def _edge_order(edge: Edge) -> tuple[int, int, str, int, int]:
    source, target = unit_order((0, edge.source_section)), unit_order((0, edge.target_section))
    return edge.source, edge.target, edge.kind, source[1], target[1]
