"""Find: the whole of a search on Whoosh's segments: spell, plan, score, pick."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ragvault.config import Keyword
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_allow import allowed_rows
from ragvault.index.keyword_bm25 import BM25
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_hits import below_exact
from ragvault.index.keyword_pick import best
from ragvault.index.keyword_plan import Planner, typos
from ragvault.index.keyword_score import Scorer, Scores
from ragvault.index.keyword_spell import near
from ragvault.index.keyword_view import View
from ragvault.sought import KeywordAnswer, KeywordHit, Sought

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
        key = (sought, fuzzy, *self._fields.boosts.items())
        matched = self._view.remembered(key) or self._matched(sought, fuzzy, seconds)
        if matched is None:
            return KeywordAnswer()
        if matched.complete:  # its scores are soon asked for again, of what other legs found
            self._view.remember(key, matched, len(matched.rows))
        may = allowed_rows(allowed, self._view.ids["passage"][matched.rows])
        hits = self._hits(matched.of(may), limit, per_note)
        return KeywordAnswer(hits, matched.scores.bounds, matched.spellings, matched.complete)

    def _matched(self, sought: Sought, fuzzy: bool, seconds: float) -> _Matched | None:
        """Every living passage that is found, whatever may be returned."""
        scorer = Scorer(self._view, self._fields, self._bm25, time.monotonic() + seconds)
        spellings = self._spellings(sought) if fuzzy else {}
        plan = self._planner(spellings).plan(sought)
        if plan.match is None:
            return None
        scores = scorer.scores(plan)
        rows = np.flatnonzero(self._view.alive["passage"] & scorer.mask(plan.match))
        exact = self._exact(sought, scorer, rows) if spellings else np.ones(len(rows), dtype=bool)
        return _Matched(rows, exact, scores(rows), spellings, scorer.complete)

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
            names = [field] if field else self._likeliest_first()
            terms = {form, *(term for term, _ in self._analyzer.word(form).main)}
            # The living ones: a word that only a removed passage holds is found nowhere.
            if any(len(self._view.found(name, term).rows) for name in names for term in terms):
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

    def _likeliest_first(self) -> list[str]:
        main = self._fields.main
        return [main, *(name for name in self._fields.names() if name != main)]

    def _beginning(self, names: list[str], letters: str) -> set[str]:
        return {word for name in names for word in self._view.spellings(name, letters)}

    def _hits(self, matched: _Matched, limit: int, per_note: int) -> tuple[KeywordHit, ...]:
        view, scores = self._view, matched.scores
        ids, notes = view.ids["passage"][matched.rows], view.passage_notes[matched.rows]
        of_note, own = scores.of_fields(self._fields.note), scores.of_fields(self._fields.passage)
        title = scores.of_fields(["title"])
        scale = below_exact(of_note + own, matched.exact)
        total = (of_note + own) * scale
        at = best(total, ids, notes, limit, per_note)
        told = (ids, notes, total, of_note * scale, own * scale, scores.coverage, title * scale)
        rows = zip(*(each[at].tolist() for each in (*told, ~matched.exact)), strict=True)
        return tuple(KeywordHit(*row) for row in rows)


@dataclass(frozen=True, slots=True)
class _Matched:
    """The passages that a query finds, as rows of a view; `exact` are found as it was typed."""

    rows: NDArray[np.int64]
    exact: NDArray[np.bool_]
    scores: Scores
    spellings: dict[str, tuple[str, ...]]
    complete: bool

    def of(self, which: NDArray[np.bool_]) -> _Matched:
        rows, exact, scores = self.rows[which], self.exact[which], self.scores.of(which)
        return _Matched(rows, exact, scores, self.spellings, self.complete)
