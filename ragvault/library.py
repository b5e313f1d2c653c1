"""Library: the catalogue as the read path asks it.

Turns ids into passages with the facts of their notes, and serves sections, vectors and neighbours
when a stage looks them up. Belongs to the thread that opened its catalogue.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from ragvault.candidate import Exact, NoteFacts, PassageFacts, Stretch
from ragvault.index.graph import Edge, Unit
from ragvault.index.keyword.fields import note_words
from ragvault.names import LENGTH, Names, names_in, names_of
from ragvault.plan import KeywordNote, KeywordPassage, QueryPlan
from ragvault.ports import FetchVectors
from ragvault.store.access import Accesses
from ragvault.store.catalogue import Catalogue
from ragvault.store.links import LinkStats
from ragvault.store.passages import PassagePlace
from ragvault.text.spans import Span, cut

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PLACES = 20_000  # of passages, kept from one search to the next: some 10 MB
SECTIONS = 1 << 20  # more than any note has: a section's id is its note's times this, and its place


class Library:
    """Reads what a search needs, each thing once, for as long as the catalogue is the same."""

    def __init__(self, catalogue: Catalogue, accesses: Accesses, vectors_of: FetchVectors) -> None:
        self._catalogue, self._accesses, self._vectors_of = catalogue, accesses, vectors_of
        self._version = catalogue.data_version
        self._closed = False
        self._facts: dict[int, NoteFacts] = {}
        self._places: dict[int, PassagePlace] = {}
        self._bodies = Bodies(catalogue.bodies)
        self._names = Names()
        self._note_words: dict[int, KeywordNote] = {}

    def close(self) -> None:
        """Read nothing more: the catalogue is closed."""
        self._closed = True

    def expect(self, ids: Collection[int], *, vectors: bool = False) -> None:
        """Read where these passages stand, what is known of their notes, and their vectors."""
        if len(self._places) > PLACES:
            self._places.clear()
        new = self._catalogue.places(sorted(id_ for id_ in ids if id_ not in self._places))
        self._places.update((place.id, place) for place in new)
        self._read_notes(place.note_id for place in new)
        if vectors:
            self._read_vectors(ids)

    def candidates(self, ids: Sequence[int], soon: Sequence[int] = ()) -> dict[int, PassageFacts]:
        """The passages of these ids, with the facts of their notes; one that is gone is absent.

        What those of `soon` say is read at once, what others say when it is asked for.
        """
        self.expect(ids)
        found = [self._places[id_] for id_ in ids if id_ in self._places]
        facts = self._facts
        early = set(soon)
        self._bodies.fetch(place.note_id for place in found if place.id in early)
        return {
            place.id: PassageFacts(
                place.id,
                facts[place.note_id],
                place.ordinal,
                place.note_id * SECTIONS + place.section,
                place.headings,
                place.kind,
                self._said(place) if place.id in early else Said(self.said, place.id),
                place.lines,
                place.subheadings,
            )
            for place in found
            if place.note_id in facts
        }

    def firsts(self, firsts: Mapping[int, int | None]) -> list[PassageFacts]:
        """One passage of each of these notes; None is a note without any, which says nothing."""
        empty = [note for note, passage in firsts.items() if passage is None]
        self._read_notes(empty)
        self._bodies.fetch(empty)
        known = self.candidates([passage for passage in firsts.values() if passage is not None])
        return [
            blank(self._facts[note], self._bodies(note)[0]) if passage is None else known[passage]
            for note, passage in firsts.items()
            if passage is None or passage in known
        ]

    def said(self, id_: int) -> str:
        """What a passage says; nothing when it is gone since it was found, or the index closed."""
        if self._closed:
            return ""
        with self._catalogue.snapshot():
            if self._catalogue.data_version == self._version and id_ in self._places:
                return self._said(self._places[id_])
            found = self._catalogue.passages([id_])
        return found[id_].passage.text if id_ in found else ""

    def _said(self, place: PassagePlace) -> str:
        return place.text(*self._bodies(place.note_id))

    def words_of(
        self, passages: Sequence[PassageFacts]
    ) -> dict[int, tuple[KeywordPassage, KeywordNote]]:
        """What passages and their notes can be found by, by the passages' ids."""
        new = {passage.note.id for passage in passages} - self._note_words.keys()
        if new:
            heads = self._catalogue.heads(sorted(new))
            self._note_words |= {head.id: note_words(head.id, head) for head in heads}
        return {
            passage.id: (
                KeywordPassage(
                    passage.id,
                    passage.note.id,
                    {"headers": passage.headings, "body": (passage.text,)},
                ),
                self._note_words[passage.note.id],
            )
            for passage in passages
            if passage.note.id in self._note_words
        }

    def notes_of(self, ids: Sequence[int]) -> dict[int, int]:
        """The note of each passage."""
        return self._catalogue.notes_of_passages(ids)

    def exact(self, plan: QueryPlan, passage: PassageFacts) -> Exact:
        """Whether the query is the very name of a passage's note, or a phrase that stands in it."""
        return self._names.exact(plan, passage)

    def is_called(self, note: int, query: str) -> bool:
        """Is the query, as it was typed or without its quotes, a name of this note?"""
        return self._names.has(note, query)

    def called(self, query: str) -> list[int]:
        """Every note that is called so, by a look at all of them: 6 ms for 15,000."""
        notes = self._catalogue.notes_maybe_named(query) if 0 < len(query) <= LENGTH else []
        return [note.id for note in notes if not names_in(query).isdisjoint(names_of(note))]

    def blank_called(self, query: str) -> list[int]:
        """Those of them that have no passage, so that no index has their names."""
        return [note for each in names_in(query) for note in self._blanks.get(each, ())]

    @cached_property
    def _blanks(self) -> Mapping[str, Sequence[int]]:
        """Notes without a passage by their names."""
        notes = self._catalogue.blank_notes()
        self._read_notes(notes)
        found: dict[str, list[int]] = {}
        for note in notes:
            for name in self._names.of(note):
                found.setdefault(name, []).append(note)
        return found

    def edges_of(self, notes: Sequence[int]) -> list[Edge]:
        return list(map(Edge._make, self._catalogue.link_rows_of(notes)))

    def lists(self) -> Mapping[Unit, float]:
        return self._lists

    def median_length(self) -> float:
        """Of the vault's notes, in characters."""
        return self._median_length

    @cached_property
    def _lists(self) -> Mapping[Unit, float]:
        return self._catalogue.link_lists()

    @cached_property
    def _median_length(self) -> float:
        return self._catalogue.median_length()

    @cached_property
    def _successors(self) -> Mapping[int, set[int]]:
        return self._catalogue.successors()

    def passage_ids(self, note: int) -> list[int]:
        return self._catalogue.passage_ids_of(note)

    def passages_of(self, units: Sequence[Unit]) -> list[list[int]]:
        """The passages of each note, or of the section of it that is named, in order."""
        found = self._catalogue.passage_ids_by_note([note for note, _ in units])
        return [
            [id_ for id_, own in found.get(note, ()) if section in (None, own)]
            for note, section in units
        ]

    def sections(self) -> Mapping[int, Stretch]:
        """Every section by its id, read when it is asked for."""
        return Lazy(self._section)

    def stretches(self) -> Mapping[int, Stretch]:
        """Every passage by its id, with its neighbours, read when it is asked for."""
        return Lazy(self._passage)

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Any]:
        """The vectors of some passages, read together when the first is asked for."""
        return LazyVectors(self._vectors_of, ids)

    def _read_vectors(self, ids: Collection[int]) -> None:
        """Those who read them keep what was read."""
        import numpy as np

        self._vectors_of(np.fromiter(ids, np.int64, len(ids)))

    def _section(self, id_: int) -> Stretch | None:
        note, ordinal = divmod(id_, SECTIONS)
        try:
            text, excluded = self._bodies(note)
        except KeyError:
            return None
        near = self._catalogue.sections_near(note, ordinal)
        if ordinal not in near:
            return None
        section = near[ordinal]
        return Stretch(
            id_,
            cut(text, section.start, section.end, excluded),
            section.lines,
            section.headings,
            id_ - 1 if ordinal - 1 in near else None,
            id_ + 1 if ordinal + 1 in near else None,
        )

    def _passage(self, id_: int) -> Stretch | None:
        found = self._catalogue.passages([id_]).get(id_)
        if found is None:
            return None
        ids = self._catalogue.passage_ids_of(found.note_id)
        at = ids.index(id_)
        return Stretch(
            id_,
            found.passage.text,
            found.passage.lines,
            found.passage.headings,
            ids[at - 1] if at else None,
            ids[at + 1] if at + 1 < len(ids) else None,
        )

    def _read_notes(self, notes: Iterable[int]) -> None:
        # Not a difference of sets: that would look at every note known so far.
        ids = sorted({note for note in notes if note not in self._facts})
        stats = self._catalogue.link_stats(ids) if ids else {}
        for fact in self._catalogue.facts(ids) if ids else ():
            linked = stats.get(fact.id, LinkStats())
            self._facts[fact.id] = NoteFacts(
                id=fact.id,
                path=fact.path,
                title=fact.title,
                date=fact.date,
                modified=fact.modified,
                linkers=linked.linking_notes,
                links=linked.linking_links,
                community=linked.community,
                importance=fact.importance,
                access=self._accesses.count(fact.id),
                superseded_by=tuple(sorted(self._successors.get(fact.id, ()))),
            )
            self._names.learn(fact)


def blank(note: NoteFacts, text: str) -> PassageFacts:
    """A note without a passage, as one that says nothing and has all of its lines.

    Its id is below 0, as that of every passage the catalogue does not have (verify.py).
    """
    id_ = -note.id * SECTIONS - 1
    lines = text.count("\n") + (not text.endswith("\n"))
    return PassageFacts(id_, note, section=id_, lines=(1, lines))


# --- Values that are read when they are asked for ---

V = TypeVar("V")
Whole = tuple[str, tuple[Span, ...]]
Reading = Callable[[Sequence[int]], Mapping[int, Whole]]
CHARACTERS = 4_000_000  # of notes, kept unpacked: as many as a thousand notes have


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

    def __init__(self, read: FetchVectors, ids: Sequence[int]) -> None:
        self._read, self._ids = read, list(ids)
        self._known: dict[int, NDArray[np.float32] | None] = {}  # None: it has no vector

    def fetch(self, ids: Sequence[int]) -> None:
        import numpy as np

        new = [id_ for id_ in ids if id_ not in self._known]
        for id_, row in zip(new, self._read(np.array(new, np.int64)), strict=True):
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
