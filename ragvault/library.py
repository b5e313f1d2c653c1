"""Library: the catalogue as the read path asks it.

Turns ids into passages with the facts of their notes, and serves sections, vectors and neighbours
when a stage looks them up. Belongs to the thread that opened its catalogue.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from ragvault.candidate import Exact, NoteFacts, Passage, Stretch
from ragvault.index.graph import Edge, Unit
from ragvault.plan import QueryPlan
from ragvault.spans import Span, cut
from ragvault.store.access import Accesses
from ragvault.store.catalogue import Catalogue
from ragvault.store.keys import fold
from ragvault.store.standing import Standing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

V = TypeVar("V")
Whole = tuple[str, tuple[Span, ...]]
Reading = Callable[[Sequence[int]], Mapping[int, Whole]]
CHARACTERS = 4_000_000  # of notes, kept unpacked: as many as a thousand notes have
SECTIONS = 1 << 20  # more than any note has: a section's id is its note's times this, and its place


class Library:
    """Reads what a search needs, each thing once, for as long as the catalogue is the same."""

    def __init__(self, catalogue: Catalogue, accesses: Accesses) -> None:
        self._catalogue, self._accesses = catalogue, accesses
        self._version = catalogue.data_version
        self._closed = False
        self._facts: dict[int, NoteFacts] = {}
        self._bodies = Bodies(catalogue.bodies)
        self._names: dict[int, tuple[frozenset[str], frozenset[str]]] = {}  # its own, its aliases

    def close(self) -> None:
        """Read nothing more: the catalogue is closed."""
        self._closed = True

    def candidates(self, ids: Sequence[int], soon: Sequence[int] = ()) -> dict[int, Passage]:
        """The passages of these ids, with the facts of their notes; one that is gone is absent.

        What those of `soon` say is read at once, what others say when it is asked for.
        """
        found = self._catalogue.places(ids)
        facts = self._notes(sorted({place.note_id for place in found}))
        early = set(soon)
        self._bodies.fetch(place.note_id for place in found if place.id in early)
        said = self._catalogue.passages(soon, self._bodies) if soon else {}
        return {
            place.id: Passage(
                place.id,
                facts[place.note_id],
                place.ordinal,
                place.note_id * SECTIONS + place.section,
                place.headings,
                place.kind,
                said[place.id].chunk.text if place.id in said else Said(self.said, place.id),
                place.lines,
            )
            for place in found
            if place.note_id in facts
        }

    def said(self, id_: int) -> str:
        """What a passage says; nothing when it is gone since it was found, or the index closed."""
        if self._closed:
            return ""
        with self._catalogue.snapshot():
            as_found = self._catalogue.data_version == self._version
            found = self._catalogue.passages([id_], self._bodies if as_found else None)
        return found[id_].chunk.text if id_ in found else ""

    def notes_of(self, ids: Sequence[int]) -> dict[int, int]:
        """The note of each passage."""
        return self._catalogue.notes_of_chunks(ids)

    def exact(self, plan: QueryPlan, passage: Passage) -> Exact:
        """Whether the query is the very name of a passage's note, or a phrase that stands in it."""
        if plan.phrases:
            text = _plain(passage.text)
            return "phrase" if all(_folded(phrase) in text for phrase in plan.phrases) else ""
        asked, (own, aliases) = _folded(plan.text), self._names[passage.note.id]
        return "title" if asked and asked in own else "alias" if asked in aliases else ""

    def edges_of(self, notes: Sequence[int]) -> list[Edge]:
        return [Edge(*row) for row in self._catalogue.link_rows_of(notes)]  # type: ignore[arg-type]

    def lists(self) -> Mapping[Unit, float]:
        return self._lists

    def median_length(self) -> float:
        """Of the vault's notes, in characters."""
        return self._median_length

    @cached_property
    def _lists(self) -> Mapping[Unit, float]:
        return self._catalogue.lists()

    @cached_property
    def _median_length(self) -> float:
        return self._catalogue.median_length()

    @cached_property
    def _successors(self) -> Mapping[int, set[int]]:
        return self._catalogue.successors()

    def passage_ids(self, note: int, section: int | None) -> list[int]:
        return self._catalogue.chunk_ids_of(note, section)

    def sections(self) -> Mapping[int, Stretch]:
        """Every section by its id, read when it is asked for."""
        return Lazy(self._section)

    def stretches(self) -> Mapping[int, Stretch]:
        """Every passage by its id, with its neighbours, read when it is asked for."""
        return Lazy(self._passage)

    def vectors(self, model: str, ids: Sequence[int]) -> Mapping[int, Any]:
        """The vectors of some passages, read together when the first is asked for."""
        return LazyVectors(self._catalogue, model, ids)

    def _section(self, id_: int) -> Stretch | None:
        note, ordinal = divmod(id_, SECTIONS)
        try:
            text, excluded = self._bodies(note)
        except KeyError:
            return None
        sections = self._catalogue.sections_of(note)
        for place, section in enumerate(sections):
            if section.ordinal == ordinal:
                return Stretch(
                    id_,
                    cut(text, section.start, section.end, excluded),
                    section.lines,
                    section.headings,
                    id_ - 1 if place else None,
                    id_ + 1 if place + 1 < len(sections) else None,
                )
        return None

    def _passage(self, id_: int) -> Stretch | None:
        found = self._catalogue.passages([id_]).get(id_)
        if found is None:
            return None
        ids = self._catalogue.chunk_ids_of(found.note_id, None)
        at = ids.index(id_)
        return Stretch(
            id_,
            found.chunk.text,
            found.chunk.lines,
            found.chunk.headings,
            ids[at - 1] if at else None,
            ids[at + 1] if at + 1 < len(ids) else None,
        )

    def _notes(self, ids: Sequence[int]) -> dict[int, NoteFacts]:
        missing = [note for note in ids if note not in self._facts]
        standings = self._catalogue.standings(missing) if missing else {}
        for fact in self._catalogue.facts(missing) if missing else ():
            place = standings.get(fact.id, Standing())
            self._facts[fact.id] = NoteFacts(
                id=fact.id,
                path=fact.path,
                title=fact.title,
                date=fact.date,
                modified=fact.modified,
                linkers=place.linking_notes,
                links=place.linking_links,
                community=place.community,
                importance=fact.importance,
                access=self._accesses.count(fact.id),
                superseded_by=tuple(sorted(self._successors.get(fact.id, ()))),
            )
            stem = fact.path.rpartition("/")[2].rpartition(".")[0]
            own = frozenset((_plain(fact.title), _plain(stem)))
            self._names[fact.id] = own, frozenset(map(_plain, fact.aliases)) - {""}
        return {note: self._facts[note] for note in ids if note in self._facts}


class Said:
    """What a passage says, read when it is first asked for."""

    __slots__ = ("_id", "_read", "_text")

    def __init__(self, read: Callable[[int], str], id_: int) -> None:
        self._read, self._id = read, id_
        self._text: str | None = None

    def __call__(self) -> str:
        if self._text is None:
            self._text = self._read(self._id)
        return self._text


class Bodies:
    """The texts of notes, of which the last few million characters are kept unpacked."""

    def __init__(self, read: Reading, most: int = CHARACTERS) -> None:
        self._read, self._room = read, most
        self._kept: OrderedDict[int, Whole] = OrderedDict()

    def __call__(self, note: int) -> Whole:
        if note not in self._kept:
            body = self._read([note])[note]
            self._keep({note: body})
            return body  # it may be too long to be kept
        self._kept.move_to_end(note)
        return self._kept[note]

    def fetch(self, notes: Iterable[int]) -> None:
        """Read these in one go: they will be asked for."""
        self._keep(self._read([note for note in dict.fromkeys(notes) if note not in self._kept]))

    def _keep(self, bodies: Mapping[int, Whole]) -> None:
        self._kept.update(bodies)
        self._room -= sum(len(text) for text, _ in bodies.values())
        while self._room < 0:
            self._room += len(self._kept.popitem(last=False)[1][0])


class Lazy(Mapping[int, V]):
    """Values that are made when they are asked for; None is not there."""

    def __init__(self, make: Callable[[int], V | None]) -> None:
        self._make = make
        self._made: dict[int, V | None] = {}

    def __getitem__(self, key: int) -> V:
        if key not in self._made:
            self._made[key] = self._make(key)
        value = self._made[key]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[int]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class LazyVectors(Mapping[int, "NDArray[np.float32]"]):
    """Vectors of a fixed set of passages: some of them when they are fetched, else all at once."""

    def __init__(self, catalogue: Catalogue, model: str, ids: Sequence[int]) -> None:
        self._catalogue, self._model, self._ids = catalogue, model, list(ids)
        self._known: dict[int, NDArray[np.float32] | None] = {}  # None: it has no vector

    def fetch(self, ids: Sequence[int]) -> None:
        import numpy as np

        new = [id_ for id_ in ids if id_ not in self._known]
        matrix = self._catalogue.chunk_vectors(self._model, np.array(new, np.int64))
        for id_, row in zip(new, matrix, strict=True):
            self._known[id_] = None if np.isnan(row[0]) else row

    def __getitem__(self, key: int) -> NDArray[np.float32]:
        if key not in self._known:
            self.fetch(self._ids)
        found = self._known.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[int]:
        self.fetch(self._ids)
        return (id_ for id_ in self._ids if self._known[id_] is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _plain(text: str) -> str:
    return " ".join(fold(text).split())


_folded = lru_cache(maxsize=64)(_plain)  # of the query itself, which is compared with many
