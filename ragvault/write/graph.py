"""Graph: what links say about each note, written into the catalogue.

Backlinks and lists of links are counted anew in every run in which links changed. Communities take
seconds in a large vault, so they are found again only when the ties between notes are others, or
the order of their paths.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ragvault.config import settings as config
from ragvault.index.graph import Edge, Unit, backlinks, between_notes, link_share, list_weights
from ragvault.store.catalogue import Catalogue
from ragvault.store.standing import Standing


def follow_links(catalogue: Catalogue, settings: config.Graph) -> int:
    """Bring every note's standing up to date; how many stand otherwise than before."""
    edges = [Edge(*row) for row in catalogue.link_rows()]  # type: ignore[arg-type]
    lists = list_weights(edges, _shares(catalogue, edges, settings.list_links), settings)
    groups, ties = _communities(catalogue, edges, lists, settings)
    linked = backlinks(edges)
    catalogue.set_lists(lists)
    changed = catalogue.set_standings(
        {
            note: Standing(
                linked[note].notes if note in linked else 0,
                linked[note].links if note in linked else 0,
                groups.get(note),
            )
            for note in sorted(linked.keys() | groups.keys())
        }
    )
    # Last: a run that is stopped before must find the communities again.
    catalogue.set_fact("communities", ties)
    return changed


def _shares(catalogue: Catalogue, edges: Sequence[Edge], at_least: int) -> dict[Unit, float]:
    """How much of each note and section is links, where it has enough of them to be a list."""
    targets: dict[Unit, set[int]] = defaultdict(set)
    for edge in between_notes(edges):
        targets[edge.source, None].add(edge.target)
        targets[edge.source, edge.source_section].add(edge.target)
    shares: dict[Unit, float] = {}
    for note, section in (unit for unit, found in targets.items() if len(found) > at_least):
        text = catalogue.unit_text(note, section)
        shares[note, section] = link_share(text)
    return shares


def _communities(
    catalogue: Catalogue, edges: Sequence[Edge], lists: dict[Unit, float], settings: config.Graph
) -> tuple[dict[int, int], str]:
    """The community of each note, and the stamp of the ties that it was found by."""
    from ragvault.index.graph_communities import communities, stamp

    before = {note: place.community for note, place in catalogue.standings().items()}
    known = {note: group for note, group in before.items() if group is not None}
    paths = dict(catalogue.notes_since(0))
    now = str(stamp(edges, settings, lists, paths))
    if now == catalogue.fact("communities"):
        return known, now
    return communities(edges, settings, lists=lists, names=paths, previous=known), now
