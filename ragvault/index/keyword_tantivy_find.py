"""Find: a search on tantivy whose scores are sums over two indexes.

The best passages by sum need not be among the best of either index. So both lists are read from
the top, what one list knows is looked up in the other, and reading goes on, further down each
time, until nothing unread could still pass (Fagin's threshold algorithm). Numbers are added here,
in double precision, from what tantivy gives for each field.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from tantivy import Occur, Query

from ragvault.index.keyword_bm25 import BM25, idf
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_hits import hit
from ragvault.index.keyword_pick import best
from ragvault.index.keyword_plan import Match, Plan, Term
from ragvault.index.keyword_score import NEAR_COVERS
from ragvault.index.keyword_tantivy_query import Asking, Level, filtered, only_words
from ragvault.types import KeywordHit

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST = 128  # hits read from each list at first; four times as many each time after
SET = 20_000  # up to here a filter is a set of ids in the query; above, hits are tested one by one
BITS = 20  # terms that one score can tell apart: it is exact up to 24 bits

Allow = tuple["NDArray[np.int64] | None", Callable[["NDArray[np.int64]"], "NDArray[np.bool_]"]]


class Search:
    """One search: a plan, a filter, a deadline."""

    def __init__(self, asking: Asking, plan: Plan, allow: Allow, deadline: float) -> None:
        self._asking, self._plan, self._deadline = asking, plan, deadline
        self._few, self._test = allow
        self._by_note = asking.notes.scoring(plan.terms)
        self._by_passage = asking.passages.scoring(plan.terms)
        self.complete = True

    def best(self, match: Match, limit: int, per_note: int) -> list[tuple[int, int]]:
        """(passage, note) of the best, in order."""
        # Without near spellings, what any word of a plain query scores is what it matches.
        plain = only_words(match) and not any(term.near for term in self._plan.terms)
        constraint = None if plain else self._asking.matching(match)
        size = max(FIRST, 2 * limit)
        while True:
            ids, notes, scores, edge = self._read(constraint, size)
            order = best(scores, ids, notes, limit, per_note)
            enough = len(order) == limit and scores[order[-1]] >= edge
            if enough or edge < 0:
                return [(int(ids[at]), int(notes[at])) for at in order]
            if time.monotonic() > self._deadline:
                self.complete = False
                return [(int(ids[at]), int(notes[at])) for at in order]
            size *= 4

    def _read(
        self, constraint: Any | None, size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], float]:
        """Candidates with their sums, and the most that anything unread can have (-1: nothing)."""
        by_note = self._notes_of(None, size)
        found: dict[int, tuple[int, float]] = {}
        own = self._passages(constraint, None, size) if constraint or self._by_passage else []
        near = self._passages(constraint, list(by_note), 1 << 16) if by_note else []
        for score, passage, note in [*own, *near]:
            found[int(passage)] = (int(note), score)
        missing = [n for n in {note for note, _ in found.values()} if n not in by_note]
        edge = -1.0
        if len(own) >= size or len(by_note) >= size:
            edge = (own[-1][0] if len(own) >= size else 0.0) + (
                min(by_note.values()) if len(by_note) >= size else 0.0
            )
        by_note |= self._notes_of(missing, len(missing))
        ids = np.array(list(found), dtype=np.int64)
        notes = np.array([note for note, _ in found.values()], dtype=np.int64)
        sums = np.array([score + by_note.get(note, 0.0) for note, score in found.values()])
        keep = self._test(ids) if len(ids) else np.zeros(0, dtype=bool)
        return ids[keep], notes[keep], sums.reshape(-1)[keep], edge

    def _notes_of(self, ids: Sequence[int] | None, size: int) -> dict[int, float]:
        """Scores of the best notes, or of given ones."""
        level = self._asking.notes
        if self._by_note is None or (ids is not None and not ids):
            return {}
        chosen = Query.const_score_query(level.of("id", ids), 0.0) if ids else None
        query = filtered(self._by_note, chosen) if chosen else self._by_note
        return {int(note): score for score, note in level.ask(query, size, "id")}

    def _passages(
        self, constraint: Any | None, notes: Sequence[int] | None, size: int
    ) -> list[tuple[float, ...]]:
        """The best passages, of all notes or of given ones."""
        level = self._asking.passages
        of_notes = Query.const_score_query(level.of("note", notes), 0.0) if notes else None
        few = None
        if self._few is not None:
            few = Query.const_score_query(level.of("id", self._few.tolist()), 0.0)
        if constraint is None and of_notes is None:
            if self._by_passage is None:
                return []
            filters = [self._by_passage] if few is None else [self._by_passage, few]
            return level.ask(filtered(None, *filters), size, "id", "note")
        return level.ask(filtered(self._by_passage, constraint, of_notes, few), size, "id", "note")


class Detail:
    """What is told about the hits that were picked: scores by field, and coverage."""

    def __init__(self, asking: Asking, fields: Fields, plan: Plan) -> None:
        self._asking, self._fields, self._terms = asking, fields, plan.terms

    def hits(self, picked: Sequence[tuple[int, int]], fuzzy: bool) -> list[KeywordHit]:
        passages = [passage for passage, _ in picked]
        notes = list(dict.fromkeys(note for _, note in picked))
        held, inside = self._held(self._asking.passages, passages)
        held_by_note, inside_notes = self._held(self._asking.notes, notes)
        own = self._by_field(self._asking.passages, inside, passages)
        of_note = self._by_field(self._asking.notes, inside_notes, notes)
        covered = self._coverage([held[p] | held_by_note[n] for p, n in picked])
        return [
            hit(
                self._fields,
                passage,
                note,
                {
                    **{name: scores.get(passage, 0.0) for name, scores in own.items()},
                    **{name: scores.get(note, 0.0) for name, scores in of_note.items()},
                },
                covered[at],
                fuzzy,
            )
            for at, (passage, note) in enumerate(picked)
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

    def _by_field(
        self, level: Level, names: Iterable[str], ids: Sequence[int]
    ) -> dict[str, dict[int, float]]:
        found: dict[str, dict[int, float]] = {}
        for name in names:
            query = level.scoring(self._terms, only=name)
            if query is not None and ids:
                these = Query.const_score_query(level.of("id", ids), 0.0)
                rows = level.ask(filtered(query, these), len(ids), "id")
                found[name] = {int(id_): score for score, id_ in rows}
        return found

    def _coverage(self, held: Sequence[int]) -> list[float]:
        """How much of the query each holds, by the rarity of its words."""
        counting = [(bit, term) for bit, term in enumerate(self._terms) if term.counts]
        whole = sum(self._rarity(term) for _, term in counting if self._is_counted(term))
        share = [(1 << bit, self._share(term)) for bit, term in counting]
        known = {each: sum(part for bit, part in share if each & bit) for each in set(held)}
        return [min(1.0, known[each] / whole) if whole else 0.0 for each in held]

    def _share(self, term: Term) -> float:
        return self._rarity(term) * (NEAR_COVERS if term.near else 1.0)

    def _held(self, level: Level, ids: Sequence[int]) -> tuple[dict[int, int], list[str]]:
        """Which terms each document holds, as bits, and the fields that hold any of them."""
        pairs = [
            (bit, name, term.text)
            for bit, term in enumerate(self._terms)
            for name in level.names(term.field)
            if level.holders(name, term.text)
        ]
        held = dict.fromkeys(ids, 0)
        inside: set[str] = set()
        for start in range(0, len(pairs) if ids else 0, BITS):
            some = pairs[start : start + BITS]
            for id_, mask in self._masks(level, [pair[1:] for pair in some], ids):
                for at, (bit, name, _) in enumerate(some):
                    if mask >> at & 1:
                        held[id_] |= 1 << bit
                        inside.add(name)
        return held, sorted(inside)

    def _masks(
        self, level: Level, pairs: Sequence[tuple[str, str]], ids: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Which of up to 20 terms of fields each document holds: each adds its power of two."""
        clauses = [
            (Occur.Should, Query.const_score_query(level.term(name, text), float(1 << bit)))
            for bit, (name, text) in enumerate(pairs)
        ]
        these = Query.const_score_query(level.of("id", ids), 0.0)
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
