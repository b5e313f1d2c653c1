"""Neighbours: notes a few links away from hits, in both directions, best first.

Plain rows in, plain rows out: this runs in every search, on the links of a handful of notes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from ragvault.index.graph import Edge, EdgeKind, Unit, between_notes, weight_of
from ragvault.ports import Neighbour


def neighbours(
    edges: Iterable[Edge],
    seeds: Mapping[int, int],
    depth: int = 1,
    lists: Mapping[Unit, float] | None = None,
    *,
    of_each_other: bool = False,
) -> list[Neighbour]:
    """Notes at most `depth` links from the seeds, which have ranks.

    With `of_each_other`, a seed that another seed links is a neighbour too; otherwise none is.
    Nearer ones come first, then by rank, by `shared`, and by id. `edges` need only contain the
    links of the seeds, and for more depth those of the notes between.
    """
    links = _by_note(edges)
    frontier = {note: (float(rank), note) for note, rank in seeds.items()}
    known: set[int] = set() if of_each_other else set(frontier)
    found: list[Neighbour] = []
    for steps in range(1, depth + 1):
        level = [_best(note, ways, steps) for note, ways in _ways(links, frontier, known, lists)]
        found += sorted(level, key=lambda n: (n.rank, -n.shared, n.note))
        frontier = {n.note: (n.rank, n.seed) for n in level}
        known |= frontier.keys() | seeds.keys()
        if not frontier:
            break
    return found


class _Way(NamedTuple):
    """One link to a neighbour. Ways are compared in this order, the best being the least."""

    rank: float
    direction: Literal["in", "out"]
    kind: EdgeKind
    no_section: bool
    section: int
    seed: int
    origin: int


def _ways(
    links: Mapping[int, Sequence[Edge]],
    frontier: Mapping[int, tuple[float, int]],
    known: set[int],
    lists: Mapping[Unit, float] | None,
) -> Iterator[tuple[int, list[_Way]]]:
    ways: dict[int, list[_Way]] = defaultdict(list)
    for origin, (rank, seed) in frontier.items():
        for edge in links.get(origin, ()):
            out = edge.source == origin
            note = edge.target if out else edge.source
            if note not in known:
                section = edge.target_section if out else edge.source_section
                ways[note].append(
                    _Way(
                        rank / weight_of(edge, lists or {}),
                        "out" if out else "in",
                        edge.kind,
                        section is None,
                        section or 0,
                        seed,
                        origin,
                    )
                )
    yield from ways.items()


def _best(note: int, ways: Sequence[_Way], steps: int) -> Neighbour:
    # Rank first; a link that points into this note says more than one inside it.
    way = min(ways, key=lambda way: (way.rank, way.direction == "in", *way[2:]))
    shared = len({way.origin for way in ways})
    section = None if way.no_section else way.section
    return Neighbour(note, way.rank, shared, steps, way.seed, way.kind, way.direction, section)


def _by_note(edges: Iterable[Edge]) -> dict[int, list[Edge]]:
    links: dict[int, list[Edge]] = defaultdict(list)
    for edge in between_notes(edges):
        links[edge.source].append(edge)
        links[edge.target].append(edge)
    return links
