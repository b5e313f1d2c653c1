"""The graph of links between notes: backlinks, lists of links, communities, and shortest paths.

    backlinks       how many notes link to a note
    list weights    a link of a list ("Index", "Related") weighs less than a link in a text
    ties            how closely notes are linked, list weights included
    communities     groups of notes that link to each other, by NetworkX
    neighbours      notes a few links away from hits, in every search
    shortest path   how two notes are connected, by NetworkX

Everything is made from plain rows, one for each link, in any order. It becomes plain dicts and rows
that the catalogue stores: a search reads those and never imports NetworkX. The graph in NetworkX
has paths as nodes. Notes and links are added in the order of paths, never of ids, so an index that
grew by edits has the same communities as a new one.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragvault.errors import EngineMissing
from ragvault.ports import Neighbour
from ragvault.text.markup import WIKILINK

if TYPE_CHECKING:
    import networkx as nx

EdgeKind = Literal["link", "embed", "alias", "property"]
Unit = tuple[int, "int | None"]  # a note and one of its sections; None is the whole note

# An alias is a guess at what was meant, so it ties notes half as closely as a link.
KIND_WEIGHT: Mapping[str, float] = {"alias": 0.5}


class Edge(NamedTuple):
    """One link. Sections are ordinals; the target's is None when the link names no heading."""

    source: int
    target: int
    kind: EdgeKind = "link"
    source_section: int | None = None
    target_section: int | None = None


@dataclass(frozen=True, slots=True)
class BacklinkCount:
    """How many other notes link here, and by how many links."""

    notes: int
    links: int


def backlinks(edges: Iterable[Edge]) -> dict[int, BacklinkCount]:
    """By note; one that no other note links to is absent. A link to oneself counts nowhere."""
    links: Counter[int] = Counter()
    sources: dict[int, set[int]] = defaultdict(set)
    for edge in between_notes(edges):
        links[edge.target] += 1
        sources[edge.target].add(edge.source)
    return {note: BacklinkCount(len(sources[note]), links[note]) for note in sorted(links)}


# --- Lists of links ---

LIST_SHARE = 0.5  # a section is a list if this share of its lines is there for their links
LIST_LINKS = 5  # all links of a list together weigh as much as this many links in text
_LINK = re.compile(rf"!?{WIKILINK}|!?\[[^\[\]\n]*\]\([^()\n]*\)")
_ITEM = re.compile(r"[\s>]*(?:[-*+]|\d+[.)]|\|)\s+(?:\[.\]\s+)?[*_=~]*")
_WORD = re.compile(r"\w+")


def link_share(text: str) -> float:
    """The share of a text's lines that are there for their links, 0 to 1.

    Such a line is a list item that begins with a link, whatever it says about it, or has more
    words inside links than outside. Headings and empty lines do not count.
    """
    lines = [line for line in text.splitlines() if _WORD.search(line) and line[:1] != "#"]
    return sum(map(_is_for_links, lines)) / len(lines) if lines else 0.0


def _is_for_links(line: str) -> bool:
    item = _ITEM.match(line)
    if item and _LINK.match(line, item.end()):
        return True
    inside = sum(len(_WORD.findall(found)) for found in _LINK.findall(line))
    return inside > 0 and inside >= len(_WORD.findall(_LINK.sub(" ", line)))


def list_weights(edges: Iterable[Edge], shares: Mapping[Unit, float]) -> dict[Unit, float]:
    """The weight, below 1, of each link of a list; what is no list is absent.

    `shares` has the link_share of notes and of sections. A list hands out the weight of
    LIST_LINKS links, divided among the notes it links to.
    """
    targets: dict[Unit, set[int]] = defaultdict(set)
    for edge in between_notes(edges):
        for unit in _units(edge):
            targets[unit].add(edge.target)
    return {
        unit: LIST_LINKS / len(targets[unit])
        for unit in sorted(targets, key=unit_order)
        if shares.get(unit, 0.0) >= LIST_SHARE and len(targets[unit]) > LIST_LINKS
    }


def weight_of(edge: Edge, lists: Mapping[Unit, float]) -> float:
    """What a link says: 1, or less when it is a guess or one of a list."""
    source = edge.source
    damped = min(lists.get((source, None), 1.0), lists.get((source, edge.source_section), 1.0))
    return damped * KIND_WEIGHT.get(edge.kind, 1.0)


def between_notes(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Without the links of a note into itself, which say nothing about others."""
    return (edge for edge in edges if edge.source != edge.target)


def _units(edge: Edge) -> set[Unit]:
    return {(edge.source, None), (edge.source, edge.source_section)}


def unit_order(unit: Unit) -> tuple[int, int]:
    """To sort by: the whole note before its sections."""
    return unit[0], -1 if unit[1] is None else unit[1]


# --- Neighbours: in both directions, best first ---


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


# --- The graph in NetworkX ---

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

RESOLUTION = 1.0  # of Louvain: above 1, more and smaller communities
SEED = 0  # the same links give the same communities


def communities(ties: Ties, paths: Mapping[int, str]) -> list[set[str]]:
    """Groups of notes, by path, that link each other more than others. Raises EngineMissing.

    The same ties and paths always give the same groups.
    """
    if not ties:
        return []
    graph = link_graph(ties, paths)
    from networkx import community

    found = community.louvain_communities(graph, resolution=_pad(graph, RESOLUTION), seed=SEED)
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


def stamp(ties: Ties, paths: Mapping[int, str]) -> int:
    """Changes when communities may have. Of paths only the order counts: most renames keep it."""
    order = sorted({note for pair in ties for note in pair}, key=lambda note: paths[note])
    known = RESOLUTION, SEED, sorted(ties.items()), order
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
