"""The catalogue: one SQLite file that is the truth about a vault.

    put, move, touch, remove     one file's change is one transaction and one revision
    note, sections, chunks, …    what was stored, as it was given
    links_to_look_up, …          links wait until they are looked up, across crashes
    chunks_since, …              how FAISS and Whoosh, its caches, catch up
    have, put_vectors, …         the embedding of every distinct text
    vocabulary, …                the words a vault is about, with theirs

This class only names what can be asked; the modules beside it know how. It knows no model, no
index and no Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragvault.plan import Filter
from ragvault.spans import Span
from ragvault.store import facts, history, links, read, standing, terms, vectors, write
from ragvault.store import filter as filter_
from ragvault.store.counts import Counts, counts
from ragvault.store.door import Door
from ragvault.store.facts import Fact
from ragvault.store.filter import Matching
from ragvault.store.history import ChunkRef
from ragvault.store.links import Dangling, Edge, LinkId
from ragvault.store.read import Body, Passage, Seen, Stored
from ragvault.store.standing import LinkRow, Standing
from ragvault.store.terms import Chosen, Vocabulary
from ragvault.store.vectors import Dtype
from ragvault.store.write import Cut, Stamp
from ragvault.types import Chunk, Date, File, Heading, Link, Note, Section, Skipped, Target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Catalogue(Door):
    """An open catalogue: `with Catalogue.open(folder) as catalogue`."""

    # Changes: each is one transaction, and each but the last two is one revision.

    def put(
        self,
        note: Note,
        file: File,
        digest: bytes,
        *,
        date: Date,
        created: float,
        modified: float,
        indexed_ns: int,
        recipe: str,
        sections: Sequence[Section],
        chunks: Sequence[Chunk],
        hashes: Sequence[bytes],
        was: str | None = None,
    ) -> int:
        """Store a note that was read in place of what its path (or its old path `was`) held.

        `indexed_ns` is the clock before the file was read. Passages whose text did not change
        keep their ids. Returns the note's id.
        """
        if note.path != file.path:
            raise ValueError(f"note {note.path} of file {file.path}")
        stamp = Stamp(file, date, created, modified, indexed_ns)
        cut = Cut(recipe, sections, chunks, hashes)
        return self._change(write.put, note, digest, stamp, cut, was)

    def move(
        self, old: str, file: File, *, date: Date, created: float, modified: float, indexed_ns: int
    ) -> int:
        """Give a note another path and nothing else: no id changes, nothing is embedded.

        For a note whose title is not its file name; otherwise `put(…, was=old)`.
        """
        stamp = Stamp(file, date, created, modified, indexed_ns)
        return self._change(write.move, old, stamp)

    def touch(
        self, file: File, *, date: Date, created: float, modified: float, indexed_ns: int
    ) -> int:
        """Take over the stat and the dates of a file whose contents are the same."""
        return self._change(write.touch, Stamp(file, date, created, modified, indexed_ns))

    def remove(self, path: str) -> bool:
        """Delete a note; False, and no revision, when there is none at that path."""
        return self._read(read.is_stored, path) and self._change(write.remove, path)

    def set_skipped(self, found: Iterable[Skipped]) -> None:
        """Replace the list of files that were not indexed."""
        self._write(read.set_skipped, found)

    def set_last_run(self, run: Mapping[str, Any]) -> None:
        """Keep what an indexing run has to say about itself, for `counts`."""
        self._write(history.set_last_run, run)

    def last_run(self) -> Mapping[str, Any]:
        """What the last indexing run that ended had to say; empty before the first."""
        return self._read(history.last_run)

    # Notes.

    def files(self) -> dict[str, Seen]:
        """Every indexed file by path: what a walk is compared with."""
        return self._read(read.files)

    def note(self, path: str) -> Note:
        """A note as it was put. This and all that follow raise KeyError for an unknown path."""
        return self._read(read.note, path)

    def note_id(self, path: str) -> int:
        """The id of a note, which outlives its path."""
        return self._read(read.note_id, path)

    def stored(self, path: str) -> Stored:
        """The file a note was, and its dates."""
        return self._read(read.stored, path)[0]

    def all_stored(self) -> list[Stored]:
        """The same of every note, by path, in one query."""
        return self._read(read.stored)

    def text(self, note_id: int) -> str:
        """The whole text of a note."""
        return self._read(read.whole, note_id)[0]

    def sections(self, path: str) -> list[Section]:
        """The parents of a note, in order."""
        return self._read(read.sections, path)

    def section_text(self, note_id: int, section: Section) -> str:
        """What a section says, without what is not indexed."""
        return self._read(read.section_text, note_id, section)

    def unit_text(self, note_id: int, section: int | None) -> str:
        """The same by the section's ordinal; None is the whole note."""
        return self._read(read.unit_text, note_id, section)

    def chunks(self, path: str) -> list[Chunk]:
        """The passages of a note as they were put, in order."""
        return [passage.chunk for passage in self._read(read.chunks, path)]

    def passages_of(self, path: str) -> list[Passage]:
        """The passages of a note with their ids and hashes, in order."""
        return self._read(read.chunks, path)

    def passages(self, ids: Iterable[int], body: Body | None = None) -> dict[int, Passage]:
        """Passages by id; an id that is gone is absent. `body` stands in for `Catalogue.body`."""
        return self._read(read.passages, ids, body)

    def body(self, note_id: int) -> tuple[str, tuple[Span, ...]]:
        """The whole text of a note, and what of it is not indexed."""
        return self._read(read.whole, note_id)

    def skipped(self) -> list[Skipped]:
        """Files that were not indexed, in the order they were met."""
        return self._read(read.skipped)

    def warnings(self) -> list[tuple[str, tuple[str, ...]]]:
        """Notes with something to say about, by path."""
        return self._read(read.warnings)

    def counts(self) -> Counts:
        """How much of everything there is."""
        return self._read(counts, self.folder)

    # Links.

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

    # What ranking asks.

    def facts(self, notes: Sequence[int]) -> list[Fact]:
        """What ranking wants to know of these notes."""
        return self._read(facts.facts, notes)

    def successors(self) -> dict[int, set[int]]:
        """Every note that others say they replace, with those others."""
        return self._read(facts.successors)

    def notes_of_chunks(self, chunks: Sequence[int]) -> dict[int, int]:
        """The note of each chunk."""
        return self._read(facts.notes_of_chunks, chunks)

    def chunk_ids_of(self, note: int, section: int | None) -> list[int]:
        """The chunks of a note, or of one of its sections, in order."""
        return self._read(facts.chunk_ids_of, note, section)

    def sections_of(self, note: int) -> list[Section]:
        """A note's sections, in order; none of one that is gone."""
        return self._read(facts.sections_of, note)

    def newest(self, count: int, opened: Sequence[int] = ()) -> list[int]:
        """Ids of the chunks of so many notes: those `opened` last, then those changed last."""
        return self._read(facts.newest, count, opened)

    def note_count(self) -> int:
        return self._read(facts.note_count)

    def median_length(self) -> float:
        """Of the notes' texts, in characters."""
        return self._read(facts.median_length)

    def kept_passages(
        self, tree: Filter | None, matching: Matching | None = None
    ) -> NDArray[np.int64] | None:
        """The ids of the passages a filter keeps; None for no filter."""
        return self._read(filter_.passages, tree, matching)

    def kept_notes(self, tree: Filter | None, matching: Matching | None = None) -> list[int]:
        """The ids of the notes a filter keeps a passage of, newest first."""
        return self._read(filter_.notes, tree, matching)

    def model_dims(self) -> dict[str, int]:
        """The models that vectors are kept of, and their dimensions."""
        return self._read(vectors.dims)

    # Standing.

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

    def fact(self, key: str) -> str:
        """Something small that a step of the write path remembers; empty before it is set."""
        return str(self._read(history.fact, f"fact {key}") or "")

    def set_fact(self, key: str, value: str) -> None:
        self._write(history.set_fact, f"fact {key}", value)

    # History.

    @property
    def identity(self) -> str:
        """Tells this catalogue from one made again in its place."""
        return str(self._read(history.fact, "identity"))

    @property
    def revision(self) -> int:
        """How many changes were made since this catalogue was."""
        return self._read(history.revision)

    def can_catch_up(self, identity: str, since: int) -> bool:
        """Whether a cache of that stamp can be brought up to date instead of made again."""
        return self._read(history.can_catch_up, identity, since)

    def chunks_since(self, since: int) -> list[ChunkRef]:
        """Chunks added after a revision and still there."""
        return self._read(history.chunks_since, since)

    def removed_since(self, since: int) -> list[int]:
        """Ids of chunks removed after a revision."""
        return self._read(history.removed_since, since)

    def removed_notes_since(self, since: int) -> list[int]:
        """Ids of notes removed after a revision."""
        return self._read(history.removed_notes_since, since)

    def notes_since(self, since: int) -> list[tuple[int, str]]:
        """(id, path) of notes put or moved after a revision."""
        return self._read(history.notes_since, since)

    def removed_before(self, when: float) -> int:
        """The revision up to which everything was removed before a moment."""
        return self._read(history.removed_before, when)

    def forget_tombstones(self, upto: int) -> None:
        """Drop the removals up to a revision that every cache has reached."""
        self._write(history.forget_tombstones, upto)

    # Vectors.

    def have(self, model: str, hashes: Sequence[bytes]) -> set[bytes]:
        """Those of the hashes whose text has a vector of this model."""
        return self._read(vectors.have, model, hashes)

    def put_vectors(
        self,
        model: str,
        dim: int,
        hashes: Sequence[bytes],
        matrix: NDArray[np.float32],
        dtype: Dtype = "float16",
    ) -> None:
        """Store one row of the matrix for each hash."""
        self._write(vectors.put, model, dim, hashes, matrix, dtype)

    def get_vectors(self, model: str, hashes: Sequence[bytes]) -> NDArray[np.float32]:
        """One row a hash, in the order given. KeyError with a hash that has no vector."""
        return self._read(vectors.get, model, hashes)

    def chunk_ids(self) -> NDArray[np.int64]:
        """Every chunk there is, ascending."""
        return self._read(vectors.chunk_ids)

    def chunk_count(self) -> int:
        """How many chunks there are."""
        return self._read(vectors.count_chunks)

    def lacking(self, *models: str) -> list[int]:
        """Ids of the chunks whose text has a vector of none of these models."""
        return self._read(vectors.lacking, models)

    def chunk_vectors(self, model: str, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """One row a chunk, in the order given; NaN for one that is gone or has no vector."""
        return self._read(vectors.of_chunks, model, ids)

    def drop_outdone_vectors(self, model: str, by: str) -> int:
        """Delete a model's vectors of texts that have one of a better model."""
        return self._write(vectors.drop_outdone, model, by)

    def drop_model(self, model: str) -> int:
        """Delete all vectors of a model; how many those were."""
        return self._write(vectors.drop_model, model)

    def drop_unused_vectors(self, removed_before: float | None = None) -> int:
        """Delete the vectors of texts no chunk holds any more, or of those gone before a moment."""
        return self._write(vectors.drop_unused, removed_before)

    # Vocabulary.

    def vocabulary(self) -> Vocabulary:
        """The words the vault is about, with their vectors and the model those are of."""
        return self._read(terms.vocabulary)

    def terms(self) -> list[str]:
        """The same without the vectors."""
        return self._read(terms.terms)

    def vocabulary_chosen(self) -> Chosen:
        """At which state of the vault the terms were chosen."""
        return self._read(terms.chosen)

    def change_vocabulary(
        self, now: Chosen, new: Sequence[str], matrix: NDArray[np.float32], gone: Iterable[str]
    ) -> None:
        """Add terms with their vectors, one row a term, and drop others."""
        self._write(terms.change, now, new, matrix, gone)

    def drop_terms(self, gone: Iterable[str]) -> None:
        """Delete terms that stand in no passage any more, and their vectors."""
        self._write(terms.drop, gone)
