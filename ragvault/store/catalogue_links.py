"""Links of the catalogue: they wait until they are looked up, and say how each note stands.

How they are kept is in links.py, what follows from them in standing.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ragvault.store import links, read, standing
from ragvault.store.door import Door
from ragvault.store.links import Dangling, Edge, LinkId
from ragvault.store.standing import LinkRow, Standing
from ragvault.types import Heading, Link, Target


class Links(Door):
    """What can be asked and told about links."""

    def names(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """(path, stem, aliases) of every note: all that is needed to look links up."""
        return self._read(read.names)

    def anchors(self, path: str) -> tuple[tuple[Heading, ...], dict[str, int]]:
        """The headings of a note, and its blocks with their offsets."""
        return self._read(read.anchors, path)

    def links_to_look_up(self) -> Iterator[tuple[LinkId, str, Link]]:
        """Every link whose meaning is not known or may have changed, with its note's path."""
        for note_id in self._read(links.notes_waiting):
            yield from self._read(links.waiting, note_id)

    def set_targets(self, targets: Iterable[tuple[LinkId, Target]]) -> int:
        """Store what ALL links of `links_to_look_up` mean, in one transaction; how many changed.

        One revision when any did. The targets may be made while they are stored.
        """
        return self._write(links.set_targets, targets)

    def outgoing(self, path: str) -> list[tuple[Link, Target | None]]:
        """The links of a note; no target where one is not looked up yet."""
        return self._read(links.outgoing, path)

    def incoming(self, path: str) -> list[tuple[str, Link, Target]]:
        """The links that mean a note, with the path of the note each stands in."""
        return self._read(links.incoming, path)

    def dangling(self) -> list[Dangling]:
        """Links that mean no note, or that could mean several, by path and line."""
        return self._read(links.dangling)

    def edges(self) -> list[Edge]:
        """Every pair of notes that links join."""
        return self._read(links.edges)

    def link_rows(self) -> list[LinkRow]:
        """Every link that means a note, with the sections it leads from and to."""
        return self._read(standing.edges)

    def link_rows_of(self, notes: Iterable[int]) -> list[LinkRow]:
        """The links from and to these notes."""
        return self._read(standing.edges_of, notes)

    def standings(self, notes: Iterable[int] | None = None) -> dict[int, Standing]:
        """How notes stand among the others; one that no link touches is absent."""
        if notes is None:
            return self._read(standing.all_standings)
        return self._read(standing.standings, notes)

    def set_standings(self, wanted: Mapping[int, Standing]) -> int:
        """Replace what is kept of every note's standing; how many differ from before."""
        return self._write(standing.set_standings, wanted)

    def lists(self) -> dict[tuple[int, int | None], float]:
        """What one link of each list of links weighs, by note and section."""
        return self._read(standing.lists)

    def set_lists(self, wanted: Mapping[tuple[int, int | None], float]) -> None:
        self._write(standing.set_lists, wanted)

    def ties(self) -> dict[tuple[int, int], int]:
        """How closely notes were tied when communities were last computed."""
        return self._read(standing.ties)

    def set_ties(self, wanted: Mapping[tuple[int, int], int]) -> None:
        self._write(standing.set_ties, wanted)
