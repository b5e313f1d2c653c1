"""The link graph in NetworkX: communities, and how two notes are connected.

The graph is a DiGraph of paths. Notes and links are added in the order of their paths, never of
their ids, so an index that grew by edits has the communities of one made from scratch.

NetworkX is imported where a graph is built, and only there: searches read what the catalogue
stores of all this.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from ragvault.config.settings import Graph
from ragvault.errors import EngineMissing
from ragvault.index.graph import Edge, Unit, between_notes, weight_of

if TYPE_CHECKING:
    import networkx as nx

Ties = Mapping[tuple[int, int], int]  # (source, target) -> weight

LINK = 64  # the weight of a plain link: whole numbers, so that sums are exact
PADDING = ""  # a node that is no note
GRAIN = 256  # the resolution is rounded to this part of 1


def ties(edges: Iterable[Edge], lists: Mapping[Unit, float]) -> dict[tuple[int, int], int]:
    """How closely notes are tied to those they link to. Linking twice counts once."""
    found: dict[tuple[int, int], int] = {}
    for edge in between_notes(edges):
        pair, weight = (edge.source, edge.target), round(LINK * weight_of(edge, lists))
        found[pair] = max(found.get(pair, 1), weight)
    return dict(sorted(found.items()))


def link_graph(ties: Ties, paths: Mapping[int, str]) -> nx.DiGraph[str]:
    """The graph of all ties, by path. Raises EngineMissing."""
    demand_networkx()
    import networkx as nx

    links = sorted((paths[source], paths[target], ties[source, target]) for source, target in ties)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(sorted({note for link in links for note in link[:2]}))
    graph.add_weighted_edges_from(links)
    return graph


def demand_networkx() -> None:
    """Raises EngineMissing where NetworkX cannot be imported."""
    try:
        import networkx as _  # noqa: F401
    except ImportError as error:
        raise EngineMissing("the graph of links", "networkx", str(error)) from error


# --- Communities ---


def communities(ties: Ties, paths: Mapping[int, str], settings: Graph) -> list[set[str]]:
    """Groups of notes, by path, that link each other more than others. Raises EngineMissing.

    The same ties, paths and settings always give the same groups.
    """
    if not ties:
        return []
    graph = link_graph(ties, paths)
    from networkx import community

    found = community.louvain_communities(
        graph, resolution=_pad(graph, settings.resolution), seed=settings.seed
    )
    return [group for group in found if PADDING not in group]


def _pad(graph: nx.DiGraph[str], resolution: float) -> float:
    """Make the total weight a power of two; returns the resolution that makes up for it.

    NetworkX up to 3.6 divides by the total. Two notes that gain nothing by changing places can then
    seem to gain 1e-17, for ever: whole weights and `threshold` do not help (its issue 8739). With a
    power of two, and a resolution of few digits, nothing is rounded, and a move that gains nothing
    is seen as one. The weight that is missing is a link of one more node to itself, which no
    note is tied to.
    """
    total = int(graph.size(weight="weight"))
    whole = 1 << total.bit_length()
    graph.add_edge(PADDING, PADDING, weight=whole - total)
    return max(1, round(resolution * whole / total * GRAIN)) / GRAIN


def numbered(
    found: Iterable[set[str]], paths: Mapping[int, str], previous: Mapping[int, int]
) -> dict[int, int]:
    """The number of each note's community, by note.

    A community keeps the number that most of its members had; the largest overlap chooses first.
    """
    ids = {path: note for note, path in paths.items()}
    groups = [sorted(ids[path] for path in group) for group in sorted(found, key=min)]
    overlaps: Counter[tuple[int, int]] = Counter()
    for place, members in enumerate(groups):
        overlaps.update((place, previous[note]) for note in members if note in previous)
    numbers: dict[int, int] = {}
    taken: set[int] = set()
    for (place, number), _ in sorted(overlaps.items(), key=lambda pair: (-pair[1], pair[0])):
        if place not in numbers and number not in taken:
            numbers[place] = number
            taken.add(number)
    fresh = count(max(previous.values(), default=0) + 1)
    for place in range(len(groups)):
        if place not in numbers:
            numbers[place] = next(fresh)
    return {note: numbers[place] for place, members in enumerate(groups) for note in members}


def majority(ties: Ties, known: Mapping[int, int]) -> dict[int, int]:
    """The communities of all tied notes until they are computed again.

    Known ones stay. A new note takes the one it is tied to most (of equals, the lowest number),
    and so does a note that is tied to such a note. Without any known neighbour it has none.
    """
    near: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for (source, target), weight in ties.items():
        near[source][target] += weight
        near[target][source] += weight
    found = {note: known[note] for note in near if note in known}
    while new := _joining(near, found):
        found |= new
    return found


def _joining(near: Mapping[int, Mapping[int, int]], found: Mapping[int, int]) -> dict[int, int]:
    new: dict[int, int] = {}
    for note in near.keys() - found.keys():
        votes: Counter[int] = Counter()
        for other, weight in near[note].items():
            if other in found:
                votes[found[other]] += weight
        if votes:
            new[note] = min(votes, key=lambda number: (-votes[number], number))
    return new


def stamp(ties: Ties, paths: Mapping[int, str], settings: Graph) -> int:
    """Changes when communities may have. Of paths only the order counts: most renames keep it."""
    order = sorted({note for pair in ties for note in pair}, key=lambda note: paths[note])
    known = settings.resolution, settings.seed, sorted(ties.items()), order
    return zlib.crc32(repr(known).encode())


def share_changed(before: Ties, now: Ties) -> float:
    """Which part of the ties there were is another now, from 0; 1 where there were none."""
    changed = sum(before.get(pair) != now.get(pair) for pair in before.keys() | now.keys())
    return changed / len(before) if before else float(bool(changed))


# --- Paths ---


def shortest_path(graph: nx.DiGraph[str], start: str, end: str) -> Sequence[str]:
    """The notes from one to another over the fewest links; empty where no links connect them.

    Links are followed in both directions. Of equally short paths one with the fewest links
    followed backwards is chosen, always the same one.
    """
    demand_networkx()
    import networkx as nx

    forward = len(graph)  # more than the backward steps of any path, each of which costs 1 more
    both: nx.DiGraph[str] = nx.DiGraph()
    both.add_edges_from(graph.edges, cost=forward)
    back = ((target, source) for source, target in graph.edges if not both.has_edge(target, source))
    both.add_edges_from(list(back), cost=forward + 1)
    try:
        path: list[str] = nx.shortest_path(both, start, end, weight="cost")
    except (nx.NetworkXNoPath, nx.NodeNotFound):
        return []
    return path
