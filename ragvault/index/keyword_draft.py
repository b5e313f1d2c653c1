"""Draft: a segment being made in memory, with no work done for a word that was met before.

While documents come in, a text is only a row of numbers, one for each chunk: looking a chunk up in
a dictionary is all that happens to it. When the draft is full, the numbers are spread into terms
and places and sorted, all at once, where Whoosh's own writer makes one object for each posting.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragvault.index.analyze import GAP, Analyzer
from ragvault.index.keyword_segment import LIMIT, Block, Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Chunks(dict[str, int]):
    """Numbers the chunks of a draft as they are met; number 0 is the gap between two texts."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self.widths = array("I", [GAP])
        self.sizes = array("I", [0])  # terms of each chunk
        self.terms = array("I")  # of all chunks, one after the other
        self.places = array("I")
        self.numbers: dict[str, int] = {}  # of terms

    def __missing__(self, chunk: str) -> int:
        width, tokens = self._analyzer.entry(chunk)
        numbers = self.numbers
        for term, place in tokens:
            self.terms.append(numbers.setdefault(term, len(numbers)))
            self.places.append(place)
        self.widths.append(width)
        self.sizes.append(len(tokens))
        self[chunk] = number = len(self.widths) - 1
        return number


class _Field:
    """The chunks of one field, and where one document ends and the next begins."""

    def __init__(self) -> None:
        self.chunks = array("I")
        self.ends = array("I")


class Draft:
    """Documents of two levels, each with its own numbers from 0."""

    def __init__(self, analyzer: Analyzer, fields: Sequence[str]) -> None:
        self._analyzer = analyzer
        self._chunks = _Chunks(analyzer)
        self._fields = {field: _Field() for field in fields}
        self._columns: dict[str, array[int]] = {}
        self.size = 0  # chunks held

    def add(self, level: str, ids: Mapping[str, int], texts: Mapping[str, Sequence[str]]) -> int:
        """Add a document of a level, with all fields of that level, and return its number."""
        for key, value in ids.items():
            self._columns.setdefault(f"{level}.{key}", array("q")).append(value)
        for name, parts in texts.items():
            field = self._fields[name]
            before = len(field.chunks)
            for text in parts:
                chunks = self._analyzer.chunks(text).findall(text)
                field.chunks.extend(map(self._chunks.__getitem__, chunks))
                field.chunks.append(0)
            field.ends.append(len(field.chunks))
            self.size += len(field.chunks) - before
        return self.count(level) - 1

    def count(self, level: str) -> int:
        """How many documents of a level there are."""
        return len(self._columns.get(f"{level}.id", ()))

    def columns(self) -> Columns:
        """Ids, and how many terms each document has in each field."""
        columns = {key: np.array(values, dtype=np.int64) for key, values in self._columns.items()}
        sizes = np.array(self._chunks.sizes, dtype=np.int64)
        for name, field in self._fields.items():
            ends = np.array(field.ends, dtype=np.int64)
            total = np.r_[0, np.cumsum(sizes[np.array(field.chunks, dtype=np.int64)])]
            columns[f"{name}.length"] = total[ends] - total[np.r_[0, ends[:-1]]]
        return columns

    def blocks(self) -> Iterator[tuple[str, str, Block]]:
        """Everything held, in the order of the file: UTF-8 sorts as its characters do."""
        terms = sorted(self._chunks.numbers)
        ranks = np.empty(len(terms), dtype=np.int64)
        ranks[[self._chunks.numbers[term] for term in terms]] = np.arange(len(terms))
        for name in sorted(self._fields):
            for rank, block in self._spread(self._fields[name], ranks):
                yield name, terms[rank], block

    def _spread(self, field: _Field, ranks: NDArray[np.int64]) -> Iterator[tuple[int, Block]]:
        """The blocks of one field, by the rank of their terms."""
        term, doc, place = self._tokens(field, ranks)
        if not len(term):
            return
        order = np.argsort(term, kind="stable")  # documents and places are in order already
        term, doc, place = term[order], doc[order], place[order]
        new_term = np.r_[True, term[1:] != term[:-1]]
        posts = np.flatnonzero(new_term | np.r_[True, doc[1:] != doc[:-1]])
        docs, counts = doc[posts], np.diff(np.r_[posts, len(term)]).astype("<u2")
        starts = np.flatnonzero(new_term)
        firsts = np.searchsorted(posts, starts)
        ends = [*starts[1:].tolist(), len(term)]
        lasts = [*firsts[1:].tolist(), len(posts)]
        rows = zip(
            term[starts].tolist(), starts.tolist(), ends, firsts.tolist(), lasts, strict=True
        )
        for rank, start, end, first, last in rows:
            yield rank, Block(docs[first:last], counts[first:last], place[start:end])

    def _tokens(
        self, field: _Field, ranks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint16], NDArray[np.uint16]]:
        """Term, document and place of every token of a field, in the order they were met."""
        known = self._chunks
        chunk = np.array(field.chunks, dtype=np.int64)
        ends = np.array(field.ends, dtype=np.int64)
        doc = np.repeat(np.arange(len(ends)), np.diff(np.r_[0, ends]))
        at = np.r_[0, np.cumsum(np.array(known.widths, dtype=np.int64)[chunk])]
        at = at[:-1] - at[np.r_[0, ends[:-1]]][doc] if len(ends) else at[:-1]
        sizes = np.array(known.sizes, dtype=np.int64)
        size = sizes[chunk]
        first = np.cumsum(sizes) - sizes  # of each chunk among all chunks' terms
        token = np.repeat(first[chunk] - (np.cumsum(size) - size), size) + np.arange(size.sum())
        place = np.repeat(at, size) + np.array(known.places, dtype=np.int64)[token]
        return (
            ranks[np.array(known.terms, dtype=np.int64)[token]].astype(np.int32),
            np.repeat(doc, size).astype("<u2"),
            np.minimum(place, LIMIT).astype("<u2"),
        )
