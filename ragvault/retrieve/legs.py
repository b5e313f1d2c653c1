"""Legs: the ways of finding passages, none knowing the others.

    name      notes that are called what the query says: retrieve/names.py
    vector    the plan's text, embedded, among the vectors of the tier that answers
    keyword   its words and phrases, by BM25
    code      its identifiers, in blocks of code
    graph     notes that links join to the best hits of the other legs

A leg returns hits, best first, or fails; the search continues without it. The graph leg runs after
the others, because it starts from their hits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from ragvault.candidate import Hit, cosine_evidence
from ragvault.plan import KeywordAnswer, KeywordHit, QueryPlan, Words
from ragvault.ports import Corpus, Neighbour, Scope
from ragvault.retrieve.names import Named

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEEDS = 10  # best notes whose neighbours the graph leg finds: more drown the hits in link lists


@dataclass(frozen=True, slots=True)
class LegHits:
    """What one leg found.

    `evidence` is what the leg knows of a hit beside its score, each part 0..1. `score` gives the
    leg's true scores of other passages, if it can. `filled` are such scores, of passages that this
    leg missed. `named` says what the query names: each passage of such a note is a hit, and one of
    them is in `hits`.
    """

    hits: tuple[Hit, ...] = ()
    evidence: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    named: Named | None = None
    filled: tuple[Hit, ...] = ()
    score: Callable[[Sequence[int]], LegHits] | None = None
    warnings: tuple[str, ...] = ()
    rarity: float = 0.0  # of the query's words, added up


# One way of finding passages: best first, at most so many, no passage twice. Any error fails this
# leg alone.
Leg = Callable[[Corpus, QueryPlan, int, Scope], LegHits]


def legs_of(corpus: Corpus) -> dict[str, Leg]:
    """The legs that the settings ask for and the corpus can search; without the graph leg."""
    wanted, searchable = corpus.config.retrieve.legs, corpus.facts.searchable
    needs = {"vector": "vector", "keyword": "keyword", "code": "keyword"}
    return {
        name: leg
        for name, leg in SEARCHES.items()
        if name in wanted
        and needs.get(name, "") in {"", *searchable}
        and (name != "code" or corpus.config.code.enabled)
    }


# --- Name ---


def name_leg(corpus: Corpus, plan: QueryPlan, limit: int, scope: Scope) -> LegHits:
    """Searches the names of notes; a note is found as its first passage in the scope."""
    named = Named(plan, corpus, limit)
    parts = corpus.passages_of([(note, None) for note in named.notes])
    inside = corpus.within(chain.from_iterable(parts), scope)
    firsts = [next((each for each in ids if each in inside), None) for ids in parts]
    found = {
        passage: evidence
        for passage, evidence in zip(firsts, named.notes.values(), strict=True)
        if passage is not None
    }
    return LegHits(
        tuple(Hit(*each) for each in ranked_by(found)),
        {passage: {"name": evidence} for passage, evidence in found.items()},
        named=named,
    )


def ranked_by(scores: Mapping[int, float]) -> list[tuple[int, int, float]]:
    """Ids with their ranks and scores, best first; equal scores share a rank."""
    ranks = {score: at for at, score in enumerate(sorted(set(scores.values()), reverse=True), 1)}
    order = sorted(scores, key=lambda id_: (-scores[id_], id_))
    return [(id_, ranks[scores[id_]], scores[id_]) for id_ in order]


# --- Vector ---


def vector_leg(corpus: Corpus, plan: QueryPlan, limit: int, scope: Scope) -> LegHits:
    """Searches the vectors of the tier that answers."""
    if not plan.embed or corpus.facts.tier == "keyword":
        return LegHits()
    vector = corpus.embed_query(plan.embed, "passage" if plan.hypothesis else "query")
    ids, cosines = corpus.nearest(vector, limit, scope)
    pairs = zip(ids.tolist(), cosines.tolist(), strict=True)
    hits = tuple(Hit(id_, rank, cosine) for rank, (id_, cosine) in enumerate(pairs, 1))
    return LegHits(hits, score=partial(_cosines, corpus, vector))


def _cosines(corpus: Corpus, vector: NDArray[np.float32], passages: Sequence[int]) -> LegHits:
    cosines = corpus.cosines(vector, passages).tolist()
    pairs = zip(passages, cosines, strict=True)
    return LegHits(tuple(Hit(id_, 0, cosine) for id_, cosine in pairs if not isnan(cosine)))


# --- Words ---


def keyword_leg(corpus: Corpus, plan: QueryPlan, limit: int, scope: Scope) -> LegHits:
    """Searches for the query's words."""
    query = plan.keyword_query
    if query is None:
        return LegHits()
    answer = corpus.words.search(query, limit=limit, allowed=scope)
    found = _keyword_hits(answer)
    return LegHits(
        found.hits,
        found.evidence,
        score=lambda passages: _keyword_hits(corpus.words.score_of(query, passages)),
        warnings=_keyword_warnings(answer),
        rarity=answer.rarity,
    )


def code_leg(corpus: Corpus, plan: QueryPlan, limit: int, scope: Scope) -> LegHits:
    """Searches for the query's identifiers in the code of passages."""
    if not plan.text:
        return LegHits()
    query = Words(plan.text, field="code")  # languages are part of the filter, so of the scope
    answer = corpus.words.search(query, limit=limit, allowed=scope, coverage=False)
    hits = tuple(Hit(hit.passage, rank, hit.score) for rank, hit in enumerate(answer.hits, 1))
    bound = answer.bound or 1.0
    return LegHits(hits, {hit.passage: {"code": min(hit.score / bound, 1.0)} for hit in hits})


def _keyword_hits(answer: KeywordAnswer) -> LegHits:
    hits = tuple(Hit(hit.passage, rank, hit.score) for rank, hit in enumerate(answer.hits, 1))
    bounds = answer.bounds
    passage = sum(bounds.get(name, 0.0) for name in ("headers", "body"))
    note = sum(bounds.values()) - passage
    passage = passage or 1.0
    return LegHits(
        hits, {hit.passage: _keyword_evidence(hit, bounds, passage, note) for hit in answer.hits}
    )


def _keyword_evidence(
    hit: KeywordHit, bounds: Mapping[str, float], passage: float, note: float
) -> dict[str, float]:
    """Scores divided by the highest this query could get, so that they compare between queries."""
    title = bounds.get("title", 0.0)
    return {
        "passage": min(hit.passage_score / passage, 1.0),
        "note": min(hit.note_score / note, 1.0) if note > 0 else 0.0,
        "title": min(hit.title_score / title, 1.0) if title > 0 else 0.0,
        "coverage": hit.coverage,
    }


def _keyword_warnings(answer: KeywordAnswer) -> tuple[str, ...]:
    if answer.complete:
        return ()
    return ("the keyword search ran out of time; its scores are of part of the query",)


SEARCHES: dict[str, Leg] = {
    "name": name_leg,
    "vector": vector_leg,
    "keyword": keyword_leg,
    "code": code_leg,
}


# --- Graph ---


def graph_hits(
    corpus: Corpus,
    found: Mapping[str, LegHits],
    cosines: Callable[[Sequence[int]], Mapping[int, float]],
    *,
    limit: int,
    scope: Scope,
) -> LegHits:
    """One hit for each neighbour of the notes that other legs found, best first.

    A hit may be the neighbour of another hit: that two notes were found and one links the other
    speaks for both. A neighbour enters as the section that a link names, otherwise as its passage
    nearest to the query, by `cosines`. Its evidence is that of the hit that led to it, times the
    weight of the link: little for one link of a long list. One outside the scope takes no place.
    """
    seeds = _seeds(found, corpus)
    near = corpus.neighbours(
        {note: seed.rank for note, seed in seeds.items()}, corpus.config.graph.depth
    )
    entered: list[tuple[Neighbour, int]] = []
    for first in range(0, len(near), limit):  # many at once: each call costs a query
        some = near[first : first + limit]
        parts = corpus.passages_of([(each.note, each.section) for each in some])
        inside = corpus.within(chain.from_iterable(parts), scope)
        choices = [[passage for passage in ids if passage in inside] for ids in parts]
        unsure = sorted({passage for ids in choices if len(ids) > 1 for passage in ids})
        known = cosines(unsure)
        chosen = [_nearest(ids, known) for ids in choices]
        pairs = zip(some, chosen, strict=True)
        entered += [(each, passage) for each, passage in pairs if passage is not None]
        if len(entered) >= limit:
            break
    best = entered[:limit]
    hits = [Hit(passage, rank, 1.0 / each.rank) for rank, (each, passage) in enumerate(best, 1)]
    return LegHits(
        tuple(hits),
        {passage: {"graph": _link_evidence(each, seeds[each.seed])} for each, passage in best},
    )


class Seed(NamedTuple):
    """A note that other legs found: its best rank in any of them, and its best evidence."""

    rank: int
    evidence: float


def _link_evidence(neighbour: Neighbour, seed: Seed) -> float:
    """The seed's evidence times the weights of the links, by which `rank` was divided."""
    return min(1.0, seed.evidence * seed.rank / neighbour.rank)


def _nearest(passages: Sequence[int], cosines: Mapping[int, float]) -> int | None:
    """The one nearest to the query; the first if none has a cosine."""
    known = [passage for passage in passages if passage in cosines]
    if known:
        return min(known, key=lambda passage: (-cosines[passage], passage))
    return passages[0] if passages else None


def _seeds(found: Mapping[str, LegHits], corpus: Corpus) -> dict[int, Seed]:
    """The notes of the best hits: by best rank in any leg, then by how many legs found them."""
    ranks: dict[int, list[int]] = {}
    evidence: dict[int, float] = {}
    unrelated = corpus.facts.unrelated_cosine
    for name, leg in found.items():
        for hit in leg.hits:
            ranks.setdefault(hit.passage, []).append(hit.rank)
            own = _hit_evidence(name, hit, leg, unrelated)
            evidence[hit.passage] = max(own, evidence.get(hit.passage, 0.0))
    order = sorted(ranks, key=lambda passage: (min(ranks[passage]), -len(ranks[passage]), passage))
    seeds: dict[int, Seed] = {}
    while order and len(seeds) < SEEDS:
        few, order = order[: 2 * SEEDS], order[2 * SEEDS :]
        known = corpus.passages(few)
        for passage in few:
            if passage in known:
                seeds.setdefault(
                    known[passage].note.id, Seed(min(ranks[passage]), evidence[passage])
                )
    return dict(islice(seeds.items(), SEEDS))


def _hit_evidence(name: str, hit: Hit, leg: LegHits, unrelated: float) -> float:
    """How good one hit is, 0 to 1, before all legs are known. Coverage alone is not telling."""
    if name == "vector":
        return cosine_evidence(hit.score, unrelated)
    known = leg.evidence.get(hit.passage, {})
    return max((value for part, value in known.items() if part != "coverage"), default=0.0)
