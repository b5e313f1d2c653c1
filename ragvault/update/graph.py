"""Graph: backlinks, lists of links and communities of notes, written into the catalogue.

Backlinks and lists of links are counted in every run. Communities take seconds in a large vault and
change with small edits, so `index` computes them again when links changed, and a watcher when 1 %
of the links did, after the edits can be searched. Until then a new note has the community of most
of its neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import inf

from ragvault.index import graph
from ragvault.index.graph import (
    Edge,
    Ties,
    Unit,
    backlinks,
    between_notes,
    link_share,
    list_weights,
)
from ragvault.ports import Progress
from ragvault.store.catalogue import Catalogue
from ragvault.store.links import LinkStats
from ragvault.update.workers import Failure, end_idle_workers, run_job

REGROUP = 0.01  # of the links changed: a watcher computes communities again
MANY = 5_000  # ties: communities of fewer are found before a process has started
STEP = "computing communities"


class LinkGraph:
    """The links of a vault as they are now."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.edges = [Edge(*row) for row in catalogue.link_rows()]  # type: ignore[arg-type]
        shares = _shares(catalogue, self.edges)
        self.lists = list_weights(self.edges, shares)
        self.ties = graph.ties(self.edges, self.lists)
        self.paths = dict(catalogue.notes_since(0))

    def update(self) -> None:
        """Bring backlinks, lists and the communities of new notes up to date."""
        self.catalogue.set_link_lists(self.lists)
        self._store(graph.majority(self.ties, self._known()))

    @cached_property
    def stamp(self) -> str:
        return str(graph.stamp(self.ties, self.paths))

    def is_due(self, share: float) -> bool:
        """Whether at least this share of the links changed since communities were computed."""
        if self.stamp == self.catalogue.facts.communities:
            return False
        return graph.share_changed(self.catalogue.ties(), self.ties) >= share

    def update_communities(self, progress: Progress) -> None:
        """Compute all communities; `progress` may cancel it. Raises EngineMissing."""
        if self.ties:
            graph.demand_networkx()
        found = _communities(self.ties, self.paths, progress)
        self._store(graph.numbered(found, self.paths, self._known()))
        # Last: a run that is stopped before must compute them again.
        self.catalogue.set_ties(self.ties)
        self.catalogue.set_facts(communities=self.stamp)

    def _known(self) -> dict[int, int]:
        known = self.catalogue.link_stats().items()
        return {note: place.community for note, place in known if place.community is not None}

    def _store(self, groups: Mapping[int, int]) -> None:
        linked = backlinks(self.edges)
        self.catalogue.set_link_stats(
            {
                note: LinkStats(
                    linked[note].notes if note in linked else 0,
                    linked[note].links if note in linked else 0,
                    groups.get(note),
                )
                for note in linked.keys() | {note for pair in self.ties for note in pair}
            }
        )


def _shares(catalogue: Catalogue, edges: Sequence[Edge]) -> dict[Unit, float]:
    """How much of each note and section is links, where it has enough of them to be a list."""
    targets: dict[Unit, set[int]] = defaultdict(set)
    for edge in between_notes(edges):
        targets[edge.source, None].add(edge.target)
        targets[edge.source, edge.source_section].add(edge.target)
    shares: dict[Unit, float] = {}
    for note, section in (unit for unit, found in targets.items() if len(found) > graph.LIST_LINKS):
        text = catalogue.unit_text(note, section)
        shares[note, section] = link_share(text)
    return shares


def _communities(ties: Ties, paths: Mapping[int, str], progress: Progress) -> list[set[str]]:
    """Large graphs in a process of their own: searches go on meanwhile, and it can be cancelled."""
    progress.step(STEP)
    if len(ties) >= MANY:
        job = partial(graph.communities, ties, paths)
        found = run_job(job, inf, lambda: progress.step(STEP))
        end_idle_workers()  # the one that did it would keep its memory
        if not isinstance(found, Failure):
            return found
    return graph.communities(ties, paths)
