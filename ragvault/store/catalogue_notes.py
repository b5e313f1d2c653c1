"""Notes of the catalogue: what was stored of each file, as it was given.

How it is read is in read.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragvault.spans import Span
from ragvault.store import history, read, texts
from ragvault.store.counts import Counts, counts
from ragvault.store.door import Door
from ragvault.store.read import Body, Passage, Place, Seen, Stored
from ragvault.types import Chunk, Head, Note, Said, Section, Skipped


class Notes(Door):
    """What can be asked about notes."""

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

    def said(self, ids: Sequence[int]) -> list[Said]:
        """What passages say, without where they stand, by id; one that is gone is absent."""
        return self._read(texts.said, ids)

    def heads(self, ids: Sequence[int]) -> list[Head]:
        """What notes are called and are about, by id; one that is gone is absent."""
        return self._read(texts.heads, ids)

    def places(self, ids: Sequence[int]) -> list[Place]:
        """Where passages stand, without what they say, by id; one that is gone is absent."""
        return self._read(read.places, ids)

    def bodies(self, notes: Sequence[int]) -> dict[int, tuple[str, tuple[Span, ...]]]:
        """The whole texts of notes, as `body` gives them; one that is gone is absent."""
        return self._read(read.wholes, notes)

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

    def last_run(self) -> Mapping[str, Any]:
        """What the last indexing run that ended had to say; empty before the first."""
        return self._read(history.last_run)
