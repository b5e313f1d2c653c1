"""Detail: what is told about the hits that tantivy found, beside their scores.

How much of the query each covers, and what its note's title gave. Which terms a document holds is
one question: every term adds its power of two to a score.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from tantivy import Occur, Query

from ragvault.index.keyword_bm25 import BM25, idf
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_plan import Plan, Term
from ragvault.index.keyword_score import NEAR_COVERS
from ragvault.index.keyword_tantivy_find import Picked
from ragvault.index.keyword_tantivy_query import Asking, Level, filtered, unscored
from ragvault.sought import KeywordHit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BITS = 20  # terms that one score can tell apart: it is exact up to 24 bits
TITLE = "title"


class Detail:
    """Tells about hits of one plan."""

    def __init__(self, asking: Asking, fields: Fields, plan: Plan) -> None:
        self._asking, self._fields, self._terms = asking, fields, plan.terms

    def hits(self, picked: Picked, fuzzy: bool) -> list[KeywordHit]:
        own = self._held(self._asking.passages, picked.ids, picked.own)
        of_notes = self._held(self._asking.notes, picked.notes, picked.of_notes)
        titles = self._titles(picked.notes[picked.of_notes > 0], of_notes.fields)
        ids, notes = picked.ids.tolist(), picked.notes.tolist()
        pairs = zip(ids, notes, strict=True)
        held = [own.terms.get(id_, 0) | of_notes.terms.get(note, 0) for id_, note in pairs]
        title = (titles.get(note, 0.0) for note in notes)
        scores = (each.tolist() for each in (picked.scores, picked.of_notes, picked.own))
        rows = zip(ids, notes, *scores, self._coverage(held), title, repeat(fuzzy), strict=False)
        return [KeywordHit(*row) for row in rows]

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

    def _titles(self, notes: NDArray[np.int64], inside: Container[str]) -> dict[int, float]:
        """What the title alone gave to notes, where any of their titles gave something."""
        level, wanted = self._asking.notes, sorted(set(notes.tolist()))
        query = level.scoring(self._terms, only=TITLE) if TITLE in inside else None
        if query is None:
            return {}
        these = unscored(level.of("id", wanted))
        scores, ids = level.ask(filtered(query, these), len(wanted), "id")
        return dict(zip(ids.tolist(), scores.tolist(), strict=True))

    def _coverage(self, held: Sequence[int]) -> list[float]:
        """How much of the query each holds, by the rarity of its words."""
        counting = [(bit, term) for bit, term in enumerate(self._terms) if term.counts]
        whole = sum(self._rarity(term) for _, term in counting if self._is_counted(term))
        share = [(1 << bit, self._share(term)) for bit, term in counting]
        known = {each: sum(part for bit, part in share if each & bit) for each in set(held)}
        return [min(1.0, known[each] / whole) if whole else 0.0 for each in held]

    def _share(self, term: Term) -> float:
        return self._rarity(term) * (NEAR_COVERS if term.near else 1.0)

    def _held(self, level: Level, ids: NDArray[np.int64], scores: NDArray[np.float64]) -> _Held:
        """Which terms each document holds, and in which fields any of them is."""
        pairs = [
            (1 << bit, name, term.text)
            for bit, term in enumerate(self._terms)
            for name in level.names(term.field)
            if level.holders(name, term.text)
        ]
        weighs = level.weighs(self._terms)
        # Where everything weighs something, what has no score holds nothing.
        wanted = sorted(set((ids[scores > 0] if weighs else ids).tolist()))
        held = _Held({}, set())
        for start in range(0, len(pairs) if wanted else 0, BITS):
            some = pairs[start : start + BITS]
            held.take(self._masks(level, [pair[1:] for pair in some], wanted), some)
        return held

    def _masks(
        self, level: Level, pairs: Sequence[tuple[str, str]], ids: Sequence[int]
    ) -> dict[int, int]:
        """Which of up to 20 terms of fields each document holds: each adds its power of two."""
        clauses = [
            (Occur.Should, Query.const_score_query(level.term(name, text), float(1 << bit)))
            for bit, (name, text) in enumerate(pairs)
        ]
        query = filtered(Query.boolean_query(clauses), unscored(level.of("id", ids)))
        masks, found = level.ask(query, len(ids), "id")
        return dict(zip(found.tolist(), masks.astype(int).tolist(), strict=True))

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

    def take(self, masks: dict[int, int], pairs: Sequence[tuple[int, str, str]]) -> None:
        """Add what documents hold of these terms of fields; most hold the same few."""
        meaning: dict[int, int] = {}
        for mask in set(masks.values()):
            inside = [pair for at, pair in enumerate(pairs) if mask >> at & 1]
            self.fields.update(name for _, name, _ in inside)
            meaning[mask] = 0
            for bit, _, _ in inside:
                meaning[mask] |= bit
        for id_, mask in masks.items():
            self.terms[id_] = self.terms.get(id_, 0) | meaning[mask]
