"""Related: notes near a note, and why.

    links       a link in either direction; through one other note it counts half
    community   both are in the same community of the link graph
    vector      their passages are near the mean vector of its passages

Links and vectors give ranked lists, which are fused by rank as in a search: a note in both lists
comes before a note in one. A community has no order, so it adds the same amount to each of its
notes, less than any rank does. Uses the stored vectors and loads no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ragvault.answer.links import is_deleted
from ragvault.answer.note_lookup import find_note
from ragvault.index.graph import neighbours
from ragvault.ports import Neighbour
from ragvault.store.catalogue import Catalogue
from ragvault.text.printable import Encodable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragvault.engines import Engines
    from ragvault.index.graph import Edge
    from ragvault.index.vector import FaissVectors

K = 60  # of reciprocal rank fusion, as in a search
DEPTH = 2  # links away: two notes that link to the same note share a topic
BETWEEN = 0.5  # weight of a link through another note, as in the graph leg of a search
PASSAGES = 200  # nearest passages that are read to find the nearest notes
NOTES = 20  # nearest notes by vector: with more, every note of a small vault would be near
# What a shared community adds: less than the 1/80 of the 20th note by vector.
COMMUNITY = 0.2 / (K + 1)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a note is near. `by` is links, community or vector; `why` is the reason in words.

    `value` is the number of links between them, the size of the community, or the cosine.
    """

    by: str
    value: float
    why: str


@dataclass(frozen=True, slots=True)
class Near(Encodable):
    """A related note; `score` orders this list only."""

    rank: int
    note: str
    title: str
    score: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Related(Encodable):
    """The notes near a note, best first, and warnings about what could not be used."""

    note: str
    related: tuple[Near, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Related to {self.note}: {len(self.related)} notes>"


# Notes, each with its score and the reasons for it.
_Found = dict[int, tuple[float, tuple[Reason, ...]]]


def related(
    root: Path, catalogue: Catalogue, engines: Engines, named: str, limit: int = 10
) -> Related:
    """The notes nearest to the one that `named` means. Raises UsageError."""
    path = find_note(root, catalogue, named)
    own = catalogue.note_id(path)
    found: _Found = {}
    joined = _by_links(catalogue, own)
    _rank(found, {note: reason for note, reason in joined.items() if reason.value == 1})
    _rank(found, {note: reason for note, reason in joined.items() if reason.value > 1}, BETWEEN)
    near, warnings = _by_vector(catalogue, engines, own)
    _rank(found, near)
    _add(found, _by_community(catalogue, own), COMMUNITY)
    order = sorted(found, key=lambda note: (-found[note][0], note))
    return Related(path, tuple(_shown(root, catalogue, order, found, limit)), warnings)


def _rank(found: _Found, reasons: Mapping[int, Reason], weight: float = 1.0) -> None:
    """Add weight / (K + rank) for each note of a list, best first."""
    for rank, (note, reason) in enumerate(reasons.items(), 1):
        _add(found, {note: reason}, weight / (K + rank))


def _add(found: _Found, reasons: Mapping[int, Reason], score: float) -> None:
    for note, reason in reasons.items():
        before, others = found.get(note, (0.0, ()))
        found[note] = before + score, (*others, reason)


def _by_links(catalogue: Catalogue, own: int) -> dict[int, Reason]:
    edges = _edges(catalogue, [own])
    direct = sorted({note for edge in edges for note in edge[:2]} - {own})
    further = _edges(catalogue, sorted({own, *direct}))
    lists: Any = catalogue.link_lists()
    both = {edge.source for edge in edges} & {edge.target for edge in edges}
    linked = {(edge.source, edge.target) for edge in further}
    names = {row.id: PurePosixPath(row.path).stem for row in catalogue.heads(direct)}
    reasons: dict[int, Reason] = {}
    for each in neighbours(further, {own: 1}, DEPTH, lists):
        if each.steps == 1:
            reasons[each.note] = _direct_reason(each, each.note in both)
        else:
            pairs = ((note, {(note, each.note), (each.note, note)}) for note in direct)
            between = [names[note] for note, ways in pairs if ways & linked]
            reasons[each.note] = _indirect_reason(each, between)
    return reasons


def _edges(catalogue: Catalogue, notes: Sequence[int]) -> list[Edge]:
    from ragvault.index.graph import Edge

    return [Edge(*row) for row in catalogue.link_rows(notes)]  # type: ignore[arg-type]


def _direct_reason(each: Neighbour, mutual: bool) -> Reason:
    ways = {"out": "this note links to it", "in": "it links to this note"}
    return Reason("links", 1, "they link to each other" if mutual else ways[each.direction])


def _indirect_reason(each: Neighbour, between: Sequence[str]) -> Reason:
    others = {1: "", 2: " and another note"}.get(len(between), f" and {len(between) - 1} others")
    return Reason("links", each.steps, f"linked via [[{between[0]}]]{others}")


def _by_community(catalogue: Catalogue, own: int) -> dict[int, Reason]:
    stats = catalogue.link_stats()
    mine = stats[own].community if own in stats else None
    if mine is None:
        return {}
    members = [note for note, place in stats.items() if place.community == mine]
    reason = Reason("community", len(members), f"same community ({len(members):,} notes)")
    return {note: reason for note in members if note != own}


def _by_vector(
    catalogue: Catalogue, engines: Engines, own: int
) -> tuple[dict[int, Reason], tuple[str, ...]]:
    """The nearest notes by the vectors of the tier that answers."""
    from ragvault.errors import EngineMissing
    from ragvault.ports import CacheBroken

    ids, answering = catalogue.passage_ids_of(own), engines.answering(catalogue)
    mean = _mean(catalogue, answering[1], ids) if answering else None
    if answering is None or mean is None:
        return {}, (f"vectors were not used: this note has none; run: {_fix(catalogue)}",)
    try:
        vectors = engines.vectors(*answering[1:], catalogue)
    except (CacheBroken, EngineMissing) as broken:
        return {}, (f"vectors were not used: {broken}; run: {broken.fix}",)
    try:
        nearest, cosines = vectors.search(mean, limit=PASSAGES, allowed=_others(vectors, ids))
        return _nearest_notes(catalogue, nearest.tolist(), cosines.tolist()), ()
    finally:
        vectors.close()


def _fix(catalogue: Catalogue) -> str:
    """The run that embeds: without a tier, an index made without vectors would stay so."""
    return "ragvault index" if catalogue.tier_model("static") else "ragvault index --tier static"


def _mean(catalogue: Catalogue, model: str, ids: Sequence[int]) -> NDArray[np.float32] | None:
    """The mean vector of a note, of length 1; None if this model has not embedded it."""
    import numpy as np

    rows = catalogue.passage_vectors(model, np.array(ids, np.int64))
    known = rows[~np.isnan(rows).any(axis=1)]
    length = float(np.linalg.norm(known.sum(axis=0))) if len(known) else 0.0
    if not length:
        return None
    mean: NDArray[np.float32] = (known.sum(axis=0) / length).astype(np.float32)
    return mean


def _others(vectors: FaissVectors, ids: Sequence[int]) -> NDArray[np.int64]:
    """Every passage but these, ascending."""
    import numpy as np

    return np.setdiff1d(vectors.ids(), np.array(ids, np.int64))


def _nearest_notes(
    catalogue: Catalogue, nearest: Sequence[int], cosines: Sequence[float]
) -> dict[int, Reason]:
    """Each note once, with its nearest passage, best first."""
    places = {place.id: place for place in catalogue.places(nearest)}
    found: dict[int, Reason] = {}
    for passage, cosine in zip(nearest, cosines, strict=True):
        if passage in places and places[passage].note_id not in found:
            where = " > ".join(places[passage].headings)
            why = f"nearest at line {places[passage].lines[0]}" + (f", {where}" if where else "")
            found[places[passage].note_id] = Reason("vector", cosine, why)
        if len(found) == NOTES:
            break
    return found


def _shown(
    root: Path, catalogue: Catalogue, order: Iterable[int], found: _Found, limit: int
) -> Iterable[Near]:
    rank = 0
    for note in order:
        rows = catalogue.heads([note])
        if not rows or is_deleted(root, catalogue, rows[0].path):
            continue
        rank += 1
        yield Near(rank, rows[0].path, rows[0].title, *found[note])
        if rank == limit:
            return
