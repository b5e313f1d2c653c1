"""Related: notes near a note, and why.

    links       it links to them or they to it, directly or, for half as much, through one between
    community   links join them with the same notes
    meaning     their passages are near to the mean of its passages

Links and meaning are ranked lists, fused by rank as a search fuses its legs: a note near in both
comes before one that is near in one. A community has no order, so it adds the same to each of its
notes, and less than any rank does. The vectors are those that are stored: no model is
loaded. Pure but for the catalogue and the vector index that are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragvault.index.graph_neighbours import Neighbour, neighbours
from ragvault.linked import is_gone
from ragvault.named import find_note
from ragvault.store.catalogue import Catalogue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragvault.engines import Engines
    from ragvault.index.graph import Edge

K = 60  # of reciprocal rank fusion, as in a search
DEPTH = 2  # links away: a note both lead to says that two notes share a topic
BETWEEN = 0.5  # what a link through another note weighs: as the graph leg of a search does
PASSAGES = 200  # nearest passages that are looked at for the nearest notes
NOTES = 20  # nearest notes by meaning: with more, every note of a small vault would be near
# What sharing a community adds. The 20th note by meaning earns 1/80: always more.
COMMUNITY = 0.2 / (K + 1)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a note is near: `links`, `community` or `meaning`, in words, with a number for each.

    The number is how many links away it is, how many notes the community has, or the cosine.
    """

    by: str
    value: float
    why: str


@dataclass(frozen=True, slots=True)
class Near:
    """A note near the one that was asked for; `score` orders this list only."""

    rank: int
    note: str
    title: str
    score: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Related:
    """What is near to a note, best first, and what could not be asked."""

    note: str
    related: tuple[Near, ...]
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Found:
    score: float = 0.0
    reasons: list[Reason] = field(default_factory=list)


def related(
    root: Path, catalogue: Catalogue, engines: Engines, named: str, limit: int = 10
) -> Related:
    """The notes nearest to the one that is meant. Raises UsageError."""
    path = find_note(root, sorted(catalogue.files()), named)
    own = catalogue.note_id(path)
    found: dict[int, _Found] = {}
    joined = _by_links(catalogue, own)
    _rank(found, {note: reason for note, reason in joined.items() if reason.value == 1})
    _rank(found, {note: reason for note, reason in joined.items() if reason.value > 1}, BETWEEN)
    near, warnings = _by_meaning(catalogue, engines, own)
    _rank(found, near)
    _add(found, _by_community(catalogue, own), COMMUNITY)
    order = sorted(found, key=lambda note: (-found[note].score, note))
    return Related(path, tuple(_shown(root, catalogue, order, found, limit)), warnings)


def _rank(found: dict[int, _Found], reasons: Mapping[int, Reason], weight: float = 1.0) -> None:
    """A list, best first, adds weight / (K + rank)."""
    for rank, (note, reason) in enumerate(reasons.items(), 1):
        _add(found, {note: reason}, weight / (K + rank))


def _add(found: dict[int, _Found], reasons: Mapping[int, Reason], score: float) -> None:
    for note, reason in reasons.items():
        entry = found.setdefault(note, _Found())
        entry.score += score
        entry.reasons.append(reason)


def _by_links(catalogue: Catalogue, own: int) -> dict[int, Reason]:
    edges = _edges(catalogue, [own])
    between = sorted({note for edge in edges for note in edge[:2]})
    lists: Any = catalogue.link_lists()
    found = neighbours(_edges(catalogue, between), {own: 1}, DEPTH, lists)
    direct = {each.note for each in found if each.steps == 1}
    both = {edge.source for edge in edges} & {edge.target for edge in edges}
    return {each.note: _link_reason(each, each.note in both & direct) for each in found}


def _edges(catalogue: Catalogue, notes: Sequence[int]) -> list[Edge]:
    from ragvault.index.graph import Edge

    return [Edge(*row) for row in catalogue.link_rows_of(notes)]  # type: ignore[arg-type]


def _link_reason(each: Neighbour, mutual: bool) -> Reason:
    if each.steps > 1:
        times = f"{each.shared} notes" if each.shared > 1 else "a note"
        return Reason("links", each.steps, f"joined by {times} between them")
    ways = {"out": "this note links to it", "in": "it links to this note"}
    return Reason("links", 1, "they link to each other" if mutual else ways[each.direction])


def _by_community(catalogue: Catalogue, own: int) -> dict[int, Reason]:
    stats = catalogue.link_stats()
    mine = stats[own].community if own in stats else None
    if mine is None:
        return {}
    members = [note for note, place in stats.items() if place.community == mine]
    reason = Reason("community", len(members), f"in the same community of {len(members):,} notes")
    return {note: reason for note in members if note != own}


def _by_meaning(
    catalogue: Catalogue, engines: Engines, own: int
) -> tuple[dict[int, Reason], tuple[str, ...]]:
    """The nearest notes by the best model that knows this one."""
    from ragvault.errors import EngineMissing
    from ragvault.ports import CacheBroken

    ids, dims = catalogue.chunk_ids_of(own), catalogue.model_dims()
    for model in engines.models(catalogue):
        mean = _mean(catalogue, model, ids) if model in dims else None
        if mean is None:
            continue
        try:
            vectors = engines.vectors(model, dims[model], catalogue)
        except (CacheBroken, EngineMissing) as broken:
            return {}, (f"meaning was not asked: {broken}; run: {broken.fix}",)
        try:
            nearest, cosines = vectors.search(mean, limit=PASSAGES, without=_sorted(ids))
            return _meanings(catalogue, nearest.tolist(), cosines.tolist()), ()
        finally:
            vectors.close()
    return {}, ("meaning was not asked: this note has no vectors; run: ragvault index",)


def _mean(catalogue: Catalogue, model: str, ids: Sequence[int]) -> NDArray[np.float32] | None:
    """What the note is about as a whole, as a unit vector; None without vectors of this model."""
    import numpy as np

    rows = catalogue.chunk_vectors(model, np.array(ids, np.int64))
    known = rows[~np.isnan(rows).any(axis=1)]
    length = float(np.linalg.norm(known.sum(axis=0))) if len(known) else 0.0
    if not length:
        return None
    mean: NDArray[np.float32] = (known.sum(axis=0) / length).astype(np.float32)
    return mean


def _sorted(ids: Sequence[int]) -> NDArray[np.int64]:
    import numpy as np

    return np.array(sorted(ids), np.int64)


def _meanings(
    catalogue: Catalogue, nearest: Sequence[int], cosines: Sequence[float]
) -> dict[int, Reason]:
    """Each note once, by its nearest passage, best first."""
    passages = catalogue.passages(nearest)
    found: dict[int, Reason] = {}
    for chunk, cosine in zip(nearest, cosines, strict=True):
        if chunk in passages and passages[chunk].note_id not in found:
            where = " > ".join(passages[chunk].chunk.headings)
            line = passages[chunk].chunk.lines[0]
            said = f"nearest at line {line}" + (f", {where}" if where else "")
            found[passages[chunk].note_id] = Reason("meaning", cosine, said)
        if len(found) == NOTES:
            break
    return found


def _shown(
    root: Path, catalogue: Catalogue, order: Iterable[int], found: dict[int, _Found], limit: int
) -> Iterable[Near]:
    rank = 0
    for note in order:
        facts = catalogue.facts([note])
        if not facts or is_gone(root, catalogue, facts[0].path):
            continue
        rank += 1
        each = found[note]
        yield Near(rank, facts[0].path, facts[0].title, each.score, tuple(each.reasons))
        if rank == limit:
            return
