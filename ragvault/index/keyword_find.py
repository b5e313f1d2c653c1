"""Find: the whole of a search on Whoosh's segments: spell, plan, score, pick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_lowercase
from typing import TYPE_CHECKING

import numpy as np

from ragvault.config.settings import Keyword
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_allow import allowed_rows
from ragvault.index.keyword_bm25 import BM25
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_hits import guess_scale
from ragvault.index.keyword_pick import best
from ragvault.index.keyword_plan import Planner, typos
from ragvault.index.keyword_score import Scorer, Scores
from ragvault.index.keyword_spell import spellings
from ragvault.index.keyword_time import Deadline
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
        scale = matched.guess_scale()
        may = allowed_rows(allowed, self._view.ids["passage"][matched.rows])
        hits = self._hits(matched.of(may), scale, limit, per_note)
        return KeywordAnswer(hits, matched.scores.bounds, matched.spellings, matched.complete)

    def _matched(self, sought: Sought, fuzzy: bool, seconds: float) -> _Matched | None:
        """Every living passage that is found, whatever may be returned."""
        deadline = Deadline(seconds)
        scorer = Scorer(self._view, self._fields, self._bm25, deadline)
        near = self._spellings(sought, deadline) if fuzzy else {}
        plan = self._planner(near).plan(sought)
        if plan.match is None:
            return None
        scores = scorer.scores(plan)
        rows = np.flatnonzero(self._view.alive["passage"] & scorer.mask(plan.match))
        exact = self._exact(sought, scorer, rows) if near else np.ones(len(rows), dtype=bool)
        return _Matched(rows, exact, scores(rows), near, deadline.complete)

    def _planner(self, spellings: Mapping[str, tuple[str, ...]]) -> Planner:
        return Planner(self._analyzer, self._settings.exact, spellings)

    def _exact(self, sought: Sought, scorer: Scorer, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows the words find as they were typed."""
        match = self._planner({}).plan(sought).match
        return scorer.mask(match)[rows] if match else np.zeros(len(rows), dtype=bool)

    def _spellings(self, sought: Sought, deadline: Deadline) -> dict[str, tuple[str, ...]]:
        words = typos(sought, self._analyzer)
        return spellings(words, self, self._settings, deadline)

    def lives(self, field: str, term: str) -> bool:
        return any(len(self._view.found(name, term).rows) for name in self._names(field))

    def begins(self, field: str, letters: str) -> set[str]:
        return {word for name in self._names(field) for word in self._view.spellings(name, letters)}

    def lacks(self, field: str, letters: str) -> set[str]:
        name = self._names(field)[0]
        return {
            word for one in ascii_lowercase for word in self._view.spellings(name, one + letters)
        }

    def _names(self, field: str) -> list[str]:
        """The fields that are meant, the likeliest to hold a word first."""
        main = self._fields.main
        every = [main, *(name for name in self._fields.names() if name != main)]
        return [field] if field else every

    def _hits(
        self, matched: _Matched, guess_scale: float, limit: int, per_note: int
    ) -> tuple[KeywordHit, ...]:
        view, scores, exact = self._view, matched.scores, matched.exact
        ids, notes = view.ids["passage"][matched.rows], view.passage_notes[matched.rows]
        of_note, own = scores.of_fields(self._fields.note), scores.of_fields(self._fields.passage)
        title, total = scores.of_fields(["title"]), of_note + own
        at = best(_exact_first(total, exact), ids, notes, limit, per_note)
        scale = np.where(exact, 1.0, guess_scale)
        told = (ids, notes, *(each * scale for each in (total, of_note, own)), scores.coverage)
        every = (*told, title * scale, ~exact)
        rows = zip(*(each[at].tolist() for each in every), strict=True)
        return tuple(KeywordHit(*row) for row in rows)


def _exact_first(scores: NDArray[np.float64], exact: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What to sort by: guesses below what scores nothing and yet is exact."""
    return scores if exact.all() else np.where(exact, scores, scores - 2 * scores.max() - 1)


@dataclass(frozen=True, slots=True)
class _Matched:
    """The passages that a query finds, as rows of a view; `exact` are found as it was typed."""

    rows: NDArray[np.int64]
    exact: NDArray[np.bool_]
    scores: Scores
    spellings: dict[str, tuple[str, ...]]
    complete: bool

    def guess_scale(self) -> float:
        """What the scores of guesses are multiplied by; of all there are, not of those allowed."""
        if self.exact.all() or not self.exact.any():
            return 1.0
        scores = self.scores.of_fields(self.scores.fields)
        return guess_scale(float(scores[self.exact].min()), float(scores[~self.exact].max()))

    def of(self, which: NDArray[np.bool_]) -> _Matched:
        rows, exact, scores = self.rows[which], self.exact[which], self.scores.of(which)
        return _Matched(rows, exact, scores, self.spellings, self.complete)
