"""Find: a search on tantivy whose scores are sums over two indexes.

The best passages by sum need not be among the best of either index. So both lists are read from
the top, what one list knows is looked up in the other, and reading goes on, further down each
time, until nothing unread could still pass (Fagin's threshold algorithm). Numbers are added here,
in double precision, from what tantivy gives for each index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tantivy import Occur, Query

from ragvault.index.keyword_bm25 import BM25, idf
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_pick import best
from ragvault.index.keyword_plan import Match, Plan, Term
from ragvault.index.keyword_score import NEAR_COVERS
from ragvault.index.keyword_tantivy_query import Asking, Level, filtered, only_words, unscored
from ragvault.types import KeywordHit

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST = 128  # hits read from each list at first; four times as many each time after
SET = 20_000  # up to here a filter is a set of ids in the query; above, hits are tested one by one
BITS = 20  # terms that one score can tell apart: it is exact up to 24 bits
NEAR = (
    1 << 16
)  # passages read of notes that were found: all of them, in any vault but a strange one
TITLE = "title"

Allow = tuple["NDArray[np.int64] | None", Callable[["NDArray[np.int64]"], "NDArray[np.bool_]"]]


class Picked(NamedTuple):
    """A passage with what its own fields gave it, and those of its note."""

    passage: int
    note: int
    own: float
    of_note: float


class Search:
    """One search: a plan, a filter, a deadline."""

    def __init__(self, asking: Asking, plan: Plan, allow: Allow, deadline: float) -> None:
        self._asking, self._plan, self._deadline = asking, plan, deadline
        self._few, self._test = allow
        self._scores = Sums(asking, plan)
        self.complete = True

    def best(self, match: Match, limit: int, per_note: int) -> list[Picked]:
        """The best, in order."""
        # Without near spellings, what any word of a plain query scores is what it matches.
        plain = only_words(match) and not any(term.near for term in self._plan.terms)
        constraint = None if plain else self._asking.matching(match)
        size = max(FIRST, 2 * limit)
        while True:
            found, edge = self._read(constraint, size)
            ids = np.array([each.passage for each in found], dtype=np.int64)
            notes = np.array([each.note for each in found], dtype=np.int64)
            sums = np.array([each.own + each.of_note for each in found], dtype=np.float64)
            order = best(sums, ids, notes, limit, per_note)
            enough = len(order) == limit and sums[order[-1]] >= edge
            if not enough and edge >= 0 and time.monotonic() > self._deadline:
                self.complete, enough = False, True
            if enough or edge < 0:
                return [found[at] for at in order]
            size *= 4

    def _read(self, constraint: Any | None, size: int) -> tuple[list[Picked], float]:
        """Candidates, and the most that anything unread can have (-1: nothing is)."""
        own = self._passages(constraint, None, size)
        # Fewer than were asked for: whatever else matches is found by its note's words alone.
        every = len(own) < size
        by_note = {} if every and constraint else self._scores.of_notes(None, size)
        near = self._passages(constraint, list(by_note), NEAR) if by_note else []
        found = {int(row[1]): row for row in (*own, *near)}
        edge = -1.0
        if not every or len(by_note) >= size:
            edge = (0.0 if every else own[-1][0]) + (
                min(by_note.values()) if len(by_note) >= size else 0.0
            )
        missing = {int(row[2]) for row in found.values()} - by_note.keys()
        by_note |= self._scores.of_notes(sorted(missing), len(missing))
        ids = np.array(list(found), dtype=np.int64)
        kept = [row for row, may in zip(found.values(), self._test(ids), strict=True) if may]
        return [_picked(row, by_note) for row in kept], edge

    def _passages(
        self, constraint: Any | None, notes: Sequence[int] | None, size: int
    ) -> list[tuple[float, ...]]:
        """The best passages, of all notes or of given ones."""
        level, scoring = self._asking.passages, self._scores.by_passage
        of_notes = unscored(level.of("note", notes)) if notes else None
        few = None if self._few is None else unscored(level.of("id", self._few.tolist()))
        if constraint is not None or of_notes is not None:
            query = filtered(scoring, constraint, of_notes, few)
        elif scoring is not None:
            query = filtered(None, scoring, few)
        else:
            return []
        return level.ask(query, size, "id", "note")


class Sums:
    """What the words of a plan give to passages and to notes, each by one query."""

    def __init__(self, asking: Asking, plan: Plan) -> None:
        self._asking = asking
        self._by_note = asking.notes.scoring(plan.terms)
        self.by_passage = asking.passages.scoring(plan.terms)

    def of(self, passages: Sequence[int]) -> list[Picked]:
        """Those of some passages; one that is not there is left out."""
        level = self._asking.passages
        query = filtered(self.by_passage, unscored(level.of("id", passages)))
        rows = level.ask(query, len(passages), "id", "note")
        by_note = self.of_notes(sorted({int(row[2]) for row in rows}), len(rows))
        return [_picked(row, by_note) for row in rows]

    def of_notes(self, ids: Sequence[int] | None, size: int) -> dict[int, float]:
        """Scores of the best notes, or of given ones; one without any may be absent."""
        level = self._asking.notes
        if self._by_note is None or (ids is not None and not ids):
            return {}
        chosen = unscored(level.of("id", ids)) if ids else None
        query = filtered(self._by_note, chosen) if chosen else self._by_note
        return {int(note): score for score, note in level.ask(query, size, "id")}


def _picked(row: tuple[float, ...], by_note: Mapping[int, float]) -> Picked:
    own, passage, note = row
    return Picked(int(passage), int(note), own, by_note.get(int(note), 0.0))


class Detail:
    """What is told about the hits that were picked: the title's part, and coverage."""

    def __init__(self, asking: Asking, fields: Fields, plan: Plan) -> None:
        self._asking, self._fields, self._terms = asking, fields, plan.terms

    def hits(self, picked: Sequence[Picked], fuzzy: bool) -> list[KeywordHit]:
        own = self._held(self._asking.passages, {p.passage: p.own for p in picked})
        notes = {p.note: p.of_note for p in picked}
        of_notes = self._held(self._asking.notes, notes)
        titles = self._titles([note for note in notes if notes[note]], of_notes.fields)
        covered = self._coverage(
            [own.terms.get(p.passage, 0) | of_notes.terms.get(p.note, 0) for p in picked]
        )
        return [
            KeywordHit(
                passage,
                note,
                score + of_note,
                of_note,
                score,
                coverage,
                titles.get(note, 0.0),
                fuzzy,
            )
            for (passage, note, score, of_note), coverage in zip(picked, covered, strict=True)
        ]

    def bounds(self, bm25: BM25) -> dict[str, float]:
        """The highest score of each field."""
        bounds = dict.fromkeys(self._fields.boosts, 0.0)
        for level in (self._asking.notes, self._asking.passages):
            for term in self._terms:
                for name in level.names(term.field):
                    if holders := level.holders(name, term.text):
                        rarity = idf(holders, level.searcher.num_docs)
                        bounds[name] += term.weight * level.boosts[name] * bm25.bound(rarity)
        return bounds

    def _titles(self, notes: Sequence[int], inside: Container[str]) -> dict[int, float]:
        """What the title alone gave to notes, where any of their titles gave something."""
        level = self._asking.notes
        query = level.scoring(self._terms, only=TITLE) if TITLE in inside else None
        if query is None:
            return {}
        rows = level.ask(filtered(query, unscored(level.of("id", notes))), len(notes), "id")
        return {int(note): score for score, note in rows}

    def _coverage(self, held: Sequence[int]) -> list[float]:
        """How much of the query each holds, by the rarity of its words."""
        counting = [(bit, term) for bit, term in enumerate(self._terms) if term.counts]
        whole = sum(self._rarity(term) for _, term in counting if self._is_counted(term))
        share = [(1 << bit, self._share(term)) for bit, term in counting]
        known = {each: sum(part for bit, part in share if each & bit) for each in set(held)}
        return [min(1.0, known[each] / whole) if whole else 0.0 for each in held]

    def _share(self, term: Term) -> float:
        return self._rarity(term) * (NEAR_COVERS if term.near else 1.0)

    def _held(self, level: Level, scores: Mapping[int, float]) -> _Held:
        """Which terms each document holds, and in which fields any of them is."""
        weighs = all(level.boosts.values()) and all(term.weight for term in self._terms)
        # Where everything weighs something, what has no score holds nothing.
        ids = [id_ for id_, score in scores.items() if score or not weighs]
        pairs = [
            (1 << bit, name, term.text)
            for bit, term in enumerate(self._terms)
            for name in level.names(term.field)
            if level.holders(name, term.text)
        ]
        held = _Held({}, set())
        for start in range(0, len(pairs) if ids else 0, BITS):
            some = pairs[start : start + BITS]
            masks = self._masks(level, [pair[1:] for pair in some], ids)
            held.note(masks, some)
        return held

    def _masks(
        self, level: Level, pairs: Sequence[tuple[str, str]], ids: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Which of up to 20 terms of fields each document holds: each adds its power of two."""
        clauses = [
            (Occur.Should, Query.const_score_query(level.term(name, text), float(1 << bit)))
            for bit, (name, text) in enumerate(pairs)
        ]
        these = unscored(level.of("id", ids))
        rows = level.ask(filtered(Query.boolean_query(clauses), these), len(ids), "id")
        return [(int(id_), int(score)) for score, id_ in rows]

    def _is_counted(self, term: Term) -> bool:
        return not term.near and not (term.optional and not self._holders(term))

    def _holders(self, term: Term) -> int:
        levels = (self._asking.notes, self._asking.passages)
        return sum(lv.holders(name, term.text) for lv in levels for name in lv.names(term.field))

    def _rarity(self, term: Term) -> float:
        name = term.field or self._fields.main
        level = self._asking.notes if name in self._fields.note else self._asking.passages
        return term.weight * idf(level.holders(name, term.text), level.searcher.num_docs)


class _Held(NamedTuple):
    """Terms by document, as bits, and the fields that hold any of them."""

    terms: dict[int, int]
    fields: set[str]

    def note(self, masks: Iterable[tuple[int, int]], pairs: Sequence[tuple[int, str, str]]) -> None:
        """Take in what documents hold of these terms of fields; most hold the same few."""
        meaning: dict[int, int] = {}
        for id_, mask in masks:
            if mask not in meaning:
                inside = [pair for at, pair in enumerate(pairs) if mask >> at & 1]
                self.fields.update(name for _, name, _ in inside)
                meaning[mask] = reduce(or_, (bit for bit, _, _ in inside), 0)
            self.terms[id_] = self.terms.get(id_, 0) | meaning[mask]
