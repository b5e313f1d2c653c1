"""Links: the links of one note, in both directions, as the catalogue has resolved them.

    outgoing    means one note
    ambiguous   means one note, and could have meant others
    broken      means no note
    waiting     not looked up yet: an indexing run was stopped
    incoming    links of other notes that mean this one

Each link of the note is in exactly one of the first four. `link_path` says over which links two
notes are connected. Loads no model and opens no cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from ragvault.answer.note_lookup import find_note
from ragvault.store.catalogue import Catalogue
from ragvault.text.printable import Encodable
from ragvault.types import Link, Target


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A link of the note. `note` is the one it means, None for a broken one.

    `heading_found` is False where that note has no heading or block of the name after the `#`.
    """

    line: int
    target: str  # as written
    kind: str  # link, embed or property
    note: str | None = None
    via: str | None = None
    heading_found: bool = True
    others: tuple[str, ...] = ()


class LinkOf(Struct, frozen=True, omit_defaults=True):
    """A link in another note than the one asked about, or on a path between notes.

    `gone`: the file that contains it no longer exists. `to` is the note that a link of a path
    means.
    """

    note: str
    line: int
    target: str  # as written
    kind: str  # link, embed or property
    gone: bool | None = None
    to: str | None = None


@dataclass(frozen=True, slots=True)
class Links(Encodable):
    """All links of one note."""

    note: str
    outgoing: tuple[Outgoing, ...]
    incoming: tuple[LinkOf, ...]
    broken: tuple[Outgoing, ...]
    ambiguous: tuple[Outgoing, ...]
    waiting: tuple[Outgoing, ...]

    def __repr__(self) -> str:
        out, into = len(self.outgoing) + len(self.ambiguous), len(self.incoming)
        return f"<Links of {self.note}: {out} out, {into} in, {len(self.broken)} broken>"

    def __bool__(self) -> bool:
        lists = (self.outgoing, self.incoming, self.broken, self.ambiguous, self.waiting)
        return any(lists)


@dataclass(frozen=True, slots=True)
class Step:
    """From one note of a path to the next. `links` has every link between the two.

    `direction` is `out` where the first links to the second, `in` where it is linked from there,
    `both` where each links to the other. `gone` says that the second's file is no longer there.
    """

    note: str
    to: str
    direction: str
    links: tuple[LinkOf, ...]
    gone: bool = False


@dataclass(frozen=True, slots=True)
class LinkPath(Encodable):
    """How two notes are connected; without `notes` they are not."""

    note: str
    to: str
    notes: tuple[str, ...]
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        return f"<LinkPath {' - '.join(self.notes) or f'none from {self.note} to {self.to}'}>"


def links(root: Path, catalogue: Catalogue, named: str) -> Links:
    """The links of the note that is meant. Raises UsageError."""
    path = find_note(root, catalogue, named)
    own = [(_status(target), _outgoing(link, target)) for link, target in catalogue.outgoing(path)]
    return Links(
        note=path,
        outgoing=_of("resolved", own),
        incoming=tuple(_incoming(root, catalogue, *each) for each in catalogue.incoming(path)),
        broken=_of("unresolved", own),
        ambiguous=_of("ambiguous", own),
        waiting=_of("waiting", own),
    )


def link_path(root: Path, catalogue: Catalogue, named: str, other: str) -> LinkPath:
    """The shortest way from a note to another, over links in both directions.

    Raises UsageError, and EngineMissing without NetworkX.
    """
    from ragvault.index.graph import link_graph, shortest_path

    start, end = find_note(root, catalogue, named), find_note(root, catalogue, other)
    ties = dict.fromkeys(catalogue.linked_notes(), 1)
    graph = link_graph(ties, dict(catalogue.notes_since(0)))
    notes = (start,) if start == end else tuple(shortest_path(graph, start, end))
    steps = tuple(_step(root, catalogue, *pair) for pair in pairwise(notes))
    return LinkPath(start, end, notes, steps)


def _step(root: Path, catalogue: Catalogue, note: str, to: str) -> Step:
    out, back = _links_between(catalogue, note, to), _links_between(catalogue, to, note)
    direction = "both" if out and back else "out" if out else "in"
    return Step(note, to, direction, (*out, *back), is_deleted(root, catalogue, to))


def _links_between(catalogue: Catalogue, note: str, to: str) -> list[LinkOf]:
    return [
        LinkOf(note, link.line, spelling(link), link.kind, to=to)
        for link, target in catalogue.outgoing(note)
        if target is not None and target.path == to
    ]


def is_deleted(root: Path, catalogue: Catalogue, path: str) -> bool:
    """Whether a note's file is no longer in its vault; a vault that is not here says nothing."""
    return root.is_dir() and not (root / catalogue.stored(path).file.disk).is_file()


def spelling(link: Link) -> str:
    """What a link points at, as it is written: `Note#Heading`."""
    return "#".join([link.target, *link.anchor])


def _status(target: Target | None) -> str:
    return target.status if target else "waiting"


def _of(status: str, own: Sequence[tuple[str, Outgoing]]) -> tuple[Outgoing, ...]:
    return tuple(link for found, link in own if found == status)


def _outgoing(link: Link, target: Target | None) -> Outgoing:
    if target is None:
        return Outgoing(link.line, spelling(link), link.kind)
    return Outgoing(
        link.line,
        spelling(link),
        link.kind,
        target.path,
        target.via,
        target.anchor_found,
        target.others,
    )


def _incoming(root: Path, catalogue: Catalogue, path: str, link: Link, target: Target) -> LinkOf:
    gone = is_deleted(root, catalogue, path)
    return LinkOf(path, link.line, spelling(link), link.kind, gone)
