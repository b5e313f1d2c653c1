"""The graph of links between notes: who is linked, who belongs together, who is next.

    graph.py             edges; backlinks; what the links of a list ("Index", "Related") weigh
    graph_networkx.py    the graph in NetworkX: communities, and paths between notes
    graph_neighbours.py  notes a few links away from hits, best first

Everything is made from plain rows, one a link, and comes out as plain dicts and rows that the
catalogue keeps: a search reads those and never imports NetworkX. The order in which rows arrive
does not matter. Nothing here knows a path, a title or a file.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ragvault.config.settings import Graph
from ragvault.text.wikilinks import WIKILINK

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
class Backlinks:
    """How many other notes link here, and by how many links."""

    notes: int
    links: int


def backlinks(edges: Iterable[Edge]) -> dict[int, Backlinks]:
    """By note; one that no other note links to is absent. A link to oneself counts nowhere."""
    links: Counter[int] = Counter()
    sources: dict[int, set[int]] = defaultdict(set)
    for edge in between_notes(edges):
        links[edge.target] += 1
        sources[edge.target].add(edge.source)
    return {note: Backlinks(len(sources[note]), links[note]) for note in sorted(links)}


# --- Lists of links ---

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


def list_weights(
    edges: Iterable[Edge], shares: Mapping[Unit, float], settings: Graph
) -> dict[Unit, float]:
    """The weight, below 1, of each link of a list; what is no list is absent.

    `shares` has the link_share of notes and of sections. A list hands out the weight of
    `list_links` links, divided among the notes it links to.
    """
    targets: dict[Unit, set[int]] = defaultdict(set)
    for edge in between_notes(edges):
        for unit in _units(edge):
            targets[unit].add(edge.target)
    return {
        unit: settings.list_links / len(targets[unit])
        for unit in sorted(targets, key=unit_order)
        if shares.get(unit, 0.0) >= settings.list_share and len(targets[unit]) > settings.list_links
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
