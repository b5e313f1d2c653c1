"""Find: the whole of a search on Whoosh's segments: spell, plan, score, pick."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ragvault.config import Keyword
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_allow import allowed_rows
from ragvault.index.keyword_bm25 import BM25
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_hits import below_exact, hit
from ragvault.index.keyword_pick import best
from ragvault.index.keyword_plan import Planner, typos
from ragvault.index.keyword_score import Scorer, Scores
from ragvault.index.keyword_spell import near
from ragvault.index.keyword_view import View
from ragvault.types import KeywordAnswer, KeywordHit, Sought

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragvault.ports import Allowed


class Finder:
    """Answers searches on one view."""

    def __init__(self, view: View, fields: Fields, analyzer: Analyzer, settings: Keyword) -> None:
        self._view, self._fields, self._analyzer = view, fields, analyzer
        self._settings, self._bm25 = settings, BM25(settings.k1, settings.b)

    def find(
        self,
        sought: Sought,
        limit: int,
        allowed: Allowed,
        per_note: int,
        fuzzy: bool,
        seconds: float,
    ) -> KeywordAnswer:
        """The best of the allowed passages that match."""
        scorer = Scorer(self._view, self._fields, self._bm25, time.monotonic() + seconds)
        spellings = self._spellings(sought) if fuzzy else {}
        plan = self._planner(spellings).plan(sought)
        if plan.match is None:
            return KeywordAnswer()
        scores = scorer.scores(plan)
        may = self._view.alive["passage"] & allowed_rows(allowed, self._view.ids["passage"])
        rows = np.flatnonzero(may & scorer.mask(plan.match))
        exact = self._exact(sought, scorer, rows) if spellings else np.ones(len(rows), dtype=bool)
        hits = self._hits(scores, rows, exact, limit, per_note)
        return KeywordAnswer(hits, scores.bounds, spellings, scorer.complete)

    def _planner(self, spellings: Mapping[str, tuple[str, ...]]) -> Planner:
        return Planner(self._analyzer, self._settings.exact, spellings)

    def _exact(self, sought: Sought, scorer: Scorer, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows the words find as they were typed."""
        match = self._planner({}).plan(sought).match
        return scorer.mask(match)[rows] if match else np.zeros(len(rows), dtype=bool)

    def _spellings(self, sought: Sought) -> dict[str, tuple[str, ...]]:
        """Near spellings of the words that are found nowhere."""
        found: dict[str, tuple[str, ...]] = {}
        for form, field in typos(sought, self._analyzer):
            names = [field] if field else self._fields.names()
            terms = {form, *(term for term, _ in self._analyzer.word(form).main)}
            if any(self._view.holders(name, term) for name in names for term in terms):
                continue
            words = near(
                form,
                partial(self._beginning, names),
                most=self._settings.slips,
                limit=self._settings.spellings,
            )
            if words:
                found[form] = words
        return found

    def _beginning(self, names: list[str], letters: str) -> set[str]:
        return {word for name in names for word in self._view.spellings(name, letters)}

    def _hits(
        self,
        scores: Scores,
        rows: NDArray[np.int64],
        exact: NDArray[np.bool_],
        limit: int,
        per_note: int,
    ) -> tuple[KeywordHit, ...]:
        view, fields = self._view, scores.fields
        ids, notes = view.ids["passage"][rows], view.passage_notes[rows]
        total = np.zeros(len(rows))
        for by_row in fields.values():
            total += by_row[rows]
        scale = below_exact(total, exact)
        return tuple(
            hit(
                self._fields,
                int(ids[at]),
                int(notes[at]),
                {name: float(by_row[rows[at]] * scale[at]) for name, by_row in fields.items()},
                float(scores.coverage[rows[at]]),
                not exact[at],
            )
            for at in best(total * scale, ids, notes, limit, per_note)
        )
