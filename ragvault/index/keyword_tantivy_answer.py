"""Answer: the whole of a search on tantivy: spell, plan, find, tell.

What was typed is looked for first. Guesses, which only near spellings find, fill the places that
are left, scaled so that none reaches an exact hit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from ragvault.config.settings import Keyword
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_allow import allowed_rows
from ragvault.index.keyword_bm25 import BM25
from ragvault.index.keyword_hits import guess_scale, scaled
from ragvault.index.keyword_plan import Every, Match, Plan, Planner, Without, typos
from ragvault.index.keyword_spell import spellings
from ragvault.index.keyword_tantivy_detail import Detail
from ragvault.index.keyword_tantivy_find import SET, Allow, Search, Sums
from ragvault.index.keyword_tantivy_query import Asking
from ragvault.index.keyword_time import Deadline
from ragvault.ports import Allowed
from ragvault.sought import KeywordAnswer, KeywordHit, Sought


class Finder:
    """Answers searches at one moment of the two indexes."""

    def __init__(
        self, asking: Asking, analyzer: Analyzer, settings: Keyword, deadline: Deadline
    ) -> None:
        self._asking, self._analyzer = asking, analyzer
        self._settings, self._deadline = settings, deadline

    def find(
        self, sought: Sought, limit: int, allowed: Allowed, per_note: int, fuzzy: bool
    ) -> KeywordAnswer:
        """The best of the allowed passages that match."""
        near = self._spellings(sought) if fuzzy else {}
        plan = Planner(self._analyzer, self._settings.exact, near).plan(sought)
        plain = self._plain(sought).match
        if plan.match is None or limit < 1:
            return KeywordAnswer()
        search = Search(self._asking, plan, _allow(allowed), self._deadline)
        detail = Detail(self._asking, self._asking.fields, plan)
        exact = detail.hits(search.best(plain, limit, per_note), fuzzy=False) if plain else []
        hits = _in_order(exact)
        if near and len(hits) < limit:
            rest = Every((plan.match, Without(plain))) if plain else plan.match
            # Some of them may be too many of their note: as many as there are exact ones.
            found = _in_order(detail.hits(search.best(rest, limit, per_note), fuzzy=True))
            guessed = _few_a_note(hits, found, per_note)[: limit - len(hits)]
            scale = self._guess_scale(plan, plain, rest) if guessed and plain else 1.0
            hits += [scaled(hit, scale) for hit in guessed]
        return KeywordAnswer(tuple(hits), detail.bounds(BM25()), near, self._deadline.complete)

    def score_of(self, sought: Sought, passages: Sequence[int]) -> KeywordAnswer:
        plan = self._plain(sought)
        fuzzy = self._settings.fuzzy
        guesses = fuzzy and self._spellings(sought)
        words = plan.match is not None and self._asking.scores_matches(plan.match, plan.terms)
        if not words or guesses or not passages:
            return self.find(sought, len(passages), np.array(passages, dtype=np.int64), 0, fuzzy)
        # Words need no search: each of these passages has a score for them, or none.
        detail = Detail(self._asking, self._asking.fields, plan)
        hits = detail.hits(Sums(self._asking, plan).of(passages), fuzzy=False)
        told = _in_order(hit for hit in hits if hit.score)
        return KeywordAnswer(tuple(told), detail.bounds(BM25()), {}, self._deadline.complete)

    def _plain(self, sought: Sought) -> Plan:
        """What was typed, and no guess."""
        return Planner(self._analyzer, self._settings.exact).plan(sought)

    def _spellings(self, sought: Sought) -> dict[str, tuple[str, ...]]:
        kept = self._asking.near
        if sought in kept:
            return kept[sought]
        words = typos(sought, self._analyzer)
        found = spellings(words, self._asking, self._settings, self._deadline)
        if self._deadline.complete:
            self._asking.near = {sought: found}
        return found

    def _guess_scale(self, plan: Plan, exact: Match, rest: Match) -> float:
        """What the scores of guesses are multiplied by: of all there are, not of those allowed."""
        kept = self._asking.scales
        if plan in kept:
            return kept[plan]
        everything = Search(self._asking, plan, _allow(None), self._deadline)
        lowest = everything.lowest(exact)
        if lowest is None:
            return 1.0
        scale = guess_scale(lowest, float(everything.best(rest, 1, 0).scores[0]))
        self._asking.scales = {plan: scale}
        return scale


def _in_order(hits: Iterable[KeywordHit]) -> list[KeywordHit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.passage))


def _few_a_note(
    before: Iterable[KeywordHit], hits: Iterable[KeywordHit], per_note: int
) -> list[KeywordHit]:
    """Those that are not too many of their note, with those before them."""
    count = Counter(hit.note for hit in before)
    kept: list[KeywordHit] = []
    for hit in hits:
        count[hit.note] += 1
        if not per_note or count[hit.note] <= per_note:
            kept.append(hit)
    return kept


def _allow(allowed: Allowed) -> Allow:
    """A filter as a short list of ids, if it is one, and as a test."""
    few = None
    if allowed is not None and not callable(allowed):
        given = np.asarray(allowed)
        ids = np.flatnonzero(given) if given.dtype == bool else given
        few = ids.astype(np.int64) if len(ids) <= SET else None
    return few, lambda ids: allowed_rows(allowed, ids)
