"""View: one commit of a keyword index, as arrays, for as long as someone looks at it.

Rows number the documents of a level through all segments, removed ones too. A passage knows the
row of its note; a passage whose note is not there points at one empty row behind the last.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_segment import Block, Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEPT = 2_000_000  # postings of recent terms kept decoded; 16 bytes each
REMEMBERED = 500_000  # passages that a query matched, of the last two queries; 80 bytes each
COUNTED = 50_000  # recent terms whose holders were counted
LEVELS = ("note", "passage")


@dataclass(frozen=True, slots=True)
class Found:
    """The living rows that hold a term in a field, and how often."""

    rows: NDArray[np.int64]
    counts: NDArray[np.float64]


class View:
    """What a search reads. Nothing here changes but the memory of recent terms."""

    def __init__(
        self,
        fields: Fields,
        segments: Sequence[Segment],
        dead: Sequence[Mapping[str, NDArray[np.bool_]]],
    ) -> None:
        self.segments = segments
        self.alive = {level: ~_joined([masks[level] for masks in dead], bool) for level in LEVELS}
        self.any_dead = [{level: bool(m[level].any()) for level in LEVELS} for m in dead]
        self.ids = {level: self._column(f"{level}.id") for level in LEVELS}
        self.documents = {level: int(self.alive[level].sum()) for level in LEVELS}
        self.level_of = {
            **dict.fromkeys(fields.note, "note"),
            **dict.fromkeys(fields.passage, "passage"),
        }
        self.passage_notes = self._column("passage.note")
        self.note_of = self._notes_of_passages()
        self._starts = {level: self._first_rows(level) for level in LEVELS}
        self._measure(fields)
        self._kept: OrderedDict[tuple[str, str], Found] = OrderedDict()
        self._kept_size = 0
        self._holders: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()
        self._answers: dict[object, object] = {}

    def _column(self, name: str) -> NDArray[np.int64]:
        return _joined([own.columns[name] for own in self.segments if name in own.columns])

    def _first_rows(self, level: str) -> NDArray[np.int64]:
        sizes = [len(segment.columns.get(f"{level}.id", ())) for segment in self.segments]
        return np.cumsum([0, *sizes])

    def _notes_of_passages(self) -> NDArray[np.int64]:
        notes, alive = self.ids["note"], self.alive["note"]
        wanted = self.passage_notes
        living = np.flatnonzero(alive)
        order = living[np.argsort(notes[living], kind="stable")]
        if not len(order):
            return np.full(len(wanted), len(notes))
        at = np.minimum(np.searchsorted(notes[order], wanted), len(order) - 1)
        rows = order[at]
        return np.where(notes[rows] == wanted, rows, len(notes))

    def _measure(self, fields: Fields) -> None:
        """Lengths of documents, and their averages over the living; an empty field counts 1."""
        self.lengths: dict[str, NDArray[np.float64]] = {}
        self.averages: dict[str, float] = {}
        for field in fields.names():
            lengths = np.maximum(self._column(f"{field}.length"), 1).astype(np.float64)
            living = lengths[self.alive[self.level_of[field]]]
            self.lengths[field] = lengths
            self.averages[field] = float(living.mean()) if len(living) else 1.0

    def rows_of(self, level: str, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which living rows have one of these ids."""
        return self.alive[level] & np.isin(self.ids[level], ids)

    def holders(self, field: str, term: str) -> int:
        """How many hold a term, removed ones too: quick, and near enough to sort by."""
        key, counted = (field, term), self._holders
        if key not in counted:
            if len(counted) > COUNTED:
                counted = self._holders = {}
            counted[key] = sum(segment.holders(field, term) for segment in self.segments)
        return counted[key]

    def counted(self, field: str) -> Counter[str]:
        """The same for every term of a field."""
        counts: Counter[str] = Counter()
        for segment in self.segments:
            counts.update(segment.counted(field))
        return counts

    def found(self, field: str, term: str) -> Found:
        """Who holds a term."""
        key = (field, term)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._read(field, term)
            self._keep(key, kept)
        return kept

    def _read(self, field: str, term: str) -> Found:
        level = self.level_of[field]
        rows, counts = [], []
        for at, block in self._blocks(field, term, places=False):
            docs = block.docs.astype(np.int64) + self._starts[level][at]
            if self.any_dead[at][level]:
                living = self.alive[level][docs]
                rows.append(docs[living])
                counts.append(block.counts[living])
            else:
                rows.append(docs)
                counts.append(block.counts)
        return Found(_joined(rows), _joined(counts).astype(np.float64))

    def _keep(self, key: tuple[str, str], found: Found) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self._kept_size += len(found.rows)
            while self._kept_size > KEPT and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._kept_size -= len(oldest.rows)

    def remember(self, key: object, answer: object, size: int) -> None:
        """Keep what was worked out for a query of a moment ago, if it is not too much."""
        if size <= REMEMBERED:
            with self._lock:
                self._answers = {**dict(list(self._answers.items())[-1:]), key: answer}

    def remembered(self, key: object) -> Any:
        """What was worked out for a query, while it is remembered."""
        return self._answers.get(key)

    def places(self, field: str, term: str) -> NDArray[np.int64]:
        """Where a term stands: row * 65536 + place, sorted, removed rows too."""
        level = self.level_of[field]
        keys = [
            np.repeat(block.docs.astype(np.int64) + self._starts[level][at] << 16, block.counts)
            + block.places
            for at, block in self._blocks(field, term, places=True)
        ]
        return _joined(keys)

    def _blocks(self, field: str, term: str, *, places: bool) -> Iterator[tuple[int, Block]]:
        for at, segment in enumerate(self.segments):
            block = segment.block(field, term, places=places)
            if block is not None:
                yield at, block

    def spellings(self, field: str, prefix: str) -> set[str]:
        """The terms of a field that begin with a prefix."""
        return {term for segment in self.segments for term in segment.terms_from(field, prefix)}


def _joined(arrays: Sequence[NDArray[Any]], kind: type = np.int64) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)
