"""What ranking asks of the catalogue: facts of notes, and what a filter keeps.

The queries are in facts.py and filter.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragvault.plan import Filter
from ragvault.store import facts
from ragvault.store import filter as filter_
from ragvault.store.door import Door
from ragvault.store.facts import Called, Fact
from ragvault.store.filter import Matching
from ragvault.types import Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Ranking(Door):
    """What a search asks about what it found."""

    def facts(self, notes: Sequence[int]) -> list[Fact]:
        """What ranking wants to know of these notes."""
        return self._read(facts.facts, notes)

    def successors(self) -> dict[int, set[int]]:
        """Every note that others say they replace, with those others."""
        return self._read(facts.successors)

    def maybe_called(self, name: str) -> list[Called]:
        """Notes that may have this title, alias or file name, and some others."""
        return self._read(facts.maybe_called, name)

    def blank_notes(self) -> list[int]:
        """Notes without a passage."""
        return self._read(facts.blank_notes)

    def notes_of_chunks(self, chunks: Sequence[int]) -> dict[int, int]:
        """The note of each chunk."""
        return self._read(facts.notes_of_chunks, chunks)

    def chunk_ids_of(self, note: int) -> list[int]:
        """The chunks of a note, in order."""
        return self._read(facts.chunk_ids_of, note)

    def chunk_ids_by_note(self, notes: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
        """The chunks of each note, in order, each with the place of its section."""
        return self._read(facts.chunk_ids_by_note, notes)

    def sections_near(self, note: int, ordinal: int) -> dict[int, Section]:
        """A section of a note and those beside it, by their places; none of one that is gone."""
        return self._read(facts.sections_near, note, ordinal)

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
