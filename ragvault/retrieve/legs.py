"""Legs: the ways of finding passages, each with its own index and none knowing the others.

    vector    the plan's text, embedded, among the vectors of both tiers
    keyword   its words and phrases, by BM25
    code      its names, among blocks of code

A leg answers with hits, best first, or fails; the search goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ragvault.candidate import Hit
from ragvault.index.keyword.terms import Coverage
from ragvault.index.tiers import Tiers
from ragvault.plan import (
    KeywordAnswer,
    KeywordHit,
    KeywordNote,
    KeywordPassage,
    KeywordQuery,
    Or,
    Phrase,
    QueryPlan,
    Words,
)
from ragvault.ports import Allowed, Embedder, KeywordIndex
from ragvault.retrieve.abreast import Scale, abreast

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAMES = 20  # notes of which a query may be the very title or alias
NAME_WORDS = 12  # a longer text is nobody's title


@dataclass(frozen=True, slots=True)
class Found:
    """What one leg brought.

    `score_of` gives the leg's true scores of other passages, where it can; `evidence` what it
    knows of a hit beside the score, each part from 0 to 1; `tiers` which tier a passage is in.
    `coverage` counts how much of the query the texts of a passage and of its note hold.
    """

    hits: tuple[Hit, ...] = ()
    evidence: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    tiers: Mapping[int, str] = field(default_factory=dict)
    also: tuple[int, ...] = ()  # passages to look at though they are no hits
    more: tuple[Hit, ...] = ()  # true scores of passages this leg missed
    score_of: Callable[[Sequence[int]], Found] | None = None
    said: tuple[str, ...] = ()
    coverage: Callable[[KeywordPassage, KeywordNote], float] | None = None


class VectorLeg:
    """Asks every tier that holds passages, each with the model its vectors are of."""

    name = "vector"

    def __init__(self, tiers: Tiers, embedders: Mapping[str, Embedder]) -> None:
        self._tiers = tiers
        self._embedders = embedders

    def search(self, plan: QueryPlan, limit: int, allowed: Allowed) -> Found:
        if not plan.embed:
            return Found()
        queries = self.queries(plan)
        found = self._tiers.search(queries, limit=limit, allowed=allowed)
        if not found:
            return Found()
        # Where none has a hit, the best tier still tells the scores of what other legs find.
        lists = {tier: listed for tier, listed in found.items() if len(listed[0])}
        lists = lists or dict(list(found.items())[:1])
        hits, scales = abreast(lists)
        return Found(
            tuple(hits[:limit]),
            tiers={int(passage): tier for tier, (ids, _) in lists.items() for passage in ids},
            score_of=lambda some: self._of(queries, scales, some),
        )

    def queries(self, plan: QueryPlan) -> dict[str, NDArray[np.float32]]:
        """The query's vector for each tier that has passages."""
        wanted = [tier for tier, count in self._tiers.counts().items() if count]
        role: Any = "passage" if plan.hypothesis else "query"
        return {tier: self._embedders[tier].embed([plan.embed], role)[0] for tier in wanted}

    def _of(
        self,
        queries: Mapping[str, NDArray[np.float32]],
        scales: Mapping[str, Scale],
        passages: Sequence[int],
    ) -> Found:
        """True cosines, in the unit of the best tier that found anything."""
        ids = np.asarray(passages, np.int64)
        hits: list[Hit] = []
        tiers: dict[int, str] = {}
        for tier, scores in self._tiers.scores_of(queries, ids).items():
            known = np.flatnonzero(~np.isnan(scores)) if tier in scales else ()
            hits += [Hit(int(ids[at]), 0, scales[tier](float(scores[at]))) for at in known]
            tiers.update((int(ids[at]), tier) for at in known)
        return Found(tuple(hits), tiers=tiers)


class KeywordLeg:
    """Asks the keyword index, and for notes whose very name the query is."""

    name = "keyword"

    def __init__(self, index: KeywordIndex) -> None:
        self._index = index

    def search(self, plan: QueryPlan, limit: int, allowed: Allowed) -> Found:
        if plan.keyword_query is None:
            return Found()
        sought = plan.keyword_query
        answer = self._index.search(sought, limit=limit, allowed=allowed)
        found = _of_words(answer)
        return Found(
            found.hits,
            found.evidence,
            also=self._named(plan, allowed),
            score_of=lambda some: _of_words(self._index.score_of(sought, some)),
            said=_about(answer),
            coverage=Coverage(answer.terms, self._index.analyzers).of,
        )

    def _named(self, plan: QueryPlan, allowed: Allowed) -> tuple[int, ...]:
        """Passages of notes that are called what was asked for, though others score higher."""
        if not plan.text or len(plan.text.split()) > NAME_WORDS:
            return ()
        names: KeywordQuery = Or((Phrase(plan.text, "title"), Phrase(plan.text, "aliases")))
        answer = self._index.search(names, limit=NAMES, allowed=allowed, per_note=1, fuzzy=False)
        return tuple(hit.passage for hit in answer.hits)


class CodeLeg:
    """Asks the keyword index for the names in the query, in the code of passages."""

    name = "code"

    def __init__(self, index: KeywordIndex) -> None:
        self._index = index

    def search(self, plan: QueryPlan, limit: int, allowed: Allowed) -> Found:
        if not plan.text:
            return Found()
        sought = Words(plan.text, field="code")  # languages are in the filter, so in `allowed`
        answer = self._index.search(sought, limit=limit, allowed=allowed, fuzzy=False)
        hits = tuple(Hit(hit.passage, rank, hit.score) for rank, hit in enumerate(answer.hits, 1))
        bound = answer.bound or 1.0
        return Found(hits, {hit.passage: {"code": min(hit.score / bound, 1.0)} for hit in hits})


def _of_words(answer: KeywordAnswer) -> Found:
    hits = tuple(Hit(hit.passage, rank, hit.score) for rank, hit in enumerate(answer.hits, 1))
    bounds = answer.bounds
    passage = sum(bounds.get(name, 0.0) for name in ("headers", "body")) or 1.0
    note = sum(bounds.values()) - sum(bounds.get(name, 0.0) for name in ("headers", "body"))
    return Found(hits, {hit.passage: _evidence(hit, bounds, passage, note) for hit in answer.hits})


def _evidence(
    hit: KeywordHit, bounds: Mapping[str, float], passage: float, note: float
) -> dict[str, float]:
    """Scores against the highest that this query could get, so that they mean the same in all."""
    title = bounds.get("title", 0.0)
    return {
        "passage": min(hit.passage_score / passage, 1.0),
        "note": min(hit.note_score / note, 1.0) if note > 0 else 0.0,
        "title": min(hit.title_score / title, 1.0) if title > 0 else 0.0,
    }


def _about(answer: KeywordAnswer) -> tuple[str, ...]:
    said = [
        f"{word!r} is found nowhere; looked for {', '.join(near)} instead"
        for word, near in answer.spellings.items()
        if near
    ]
    if not answer.complete:
        said.append("the keyword search ran out of time; its scores are of part of the query")
    return tuple(said)
