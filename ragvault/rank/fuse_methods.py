"""The methods of fuse: from what the legs found to the terms of a score.

    evidence   cosine, and keyword scores divided by the highest score this query could get
    rrf        reciprocal rank fusion: the sum of weight / (k + rank) over the legs that found it
    weighted   raw scores, as two of the seeds combined them before rank fusion
    features   similarity, recency, hierarchy and adjacency, each from 0 to 1
    union      the lists one after the other, as a baseline

RRF compares ranks because a BM25 score and a cosine have no common unit. But a rank says nothing
about how good a hit is: a keyword list of stray words outvotes a vector leg that alone found the
answer. `evidence` keeps that information, because a score divided by its bound means the same in
every query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import fsum

from ragvault.candidate import Candidate, Context, Key, PassageFacts, Term, key
from ragvault.config.ranking import Features, Hierarchy
from ragvault.rank.leg_weights import cosine, leg_factors, leg_weights, rank_mode
from ragvault.rank.recency import half_life_decay, note_age

Terms = list[list[Term]]  # of each candidate
Method = Callable[[Sequence[Candidate], Context], Terms]
# What the keyword leg knows, by the names in `Candidate.evidence`.
_KEYWORD_EVIDENCE = ("passage", "note", "title", "coverage")


def rrf(candidates: Sequence[Candidate], ctx: Context) -> Terms:
    """weight / (k + rank) of every leg that found the candidate."""
    k, weights = rank_mode(ctx.settings.fuse, ctx.note_length).k, leg_weights(candidates, ctx)
    return [
        [
            Term(leg, 1 / (k + rank), weights.get(leg, 1.0), why=f"rank {rank}")
            for leg, rank in sorted(each.ranks.items())
        ]
        for each in candidates
    ]


def evidence(candidates: Sequence[Candidate], ctx: Context) -> Terms:
    """What each leg knows, on scales that mean the same in every query."""
    settings, factors = ctx.settings.fuse.evidence, leg_factors(candidates, ctx)
    words = [(name, getattr(settings, name) * factors["keyword"]) for name in _KEYWORD_EVIDENCE]
    code = settings.code * factors["code"]
    vector, graph = settings.vector * factors["vector"], settings.graph * factors["graph"]
    k = ctx.settings.fuse.k

    def terms_of(each: Candidate) -> list[Term]:
        known = each.evidence
        terms = [Term("vector", cosine(each), vector)]
        # A hit on one stray word of a question is no evidence that it answers the rest.
        trust = known.get("coverage", 1.0) ** settings.trust
        terms += [Term(name, known[name], w * trust) for name, w in words if w and known.get(name)]
        if code and known.get("code"):
            terms.append(Term("code", known["code"], code))
        if graph and "graph" in each.ranks:
            rank = each.ranks["graph"]
            terms.append(Term("graph", (k + 1) / (k + rank), graph, why=f"rank {rank}"))
        return terms

    return [terms_of(each) for each in candidates]


def union(candidates: Sequence[Candidate], ctx: Context) -> Terms:
    """The lists one after the other, each passage where it comes first: 1 / place."""
    order = ctx.settings.fuse.order

    def first_place(at: int) -> tuple[int, int, Key]:
        each = candidates[at]
        for number, leg in enumerate(order):
            if leg in each.ranks:
                return number, each.ranks[leg], key(each, 0.0)
        return len(order), min(each.ranks.values(), default=0), key(each, 0.0)

    in_order = sorted(range(len(candidates)), key=first_place)
    places = {at: place for place, at in enumerate(in_order, 1)}
    return [[Term("place", 1 / places[at])] for at in range(len(candidates))]


# --- weighted ---


def weighted(candidates: Sequence[Candidate], ctx: Context) -> Terms:
    """Raw scores, weighted.

    relevance = w_vector * cosine + w_keyword * keyword, and at least `floor` for an important note
    score     = relevance * r + 0.5^(age / half_life) * t + (opened + 1) / (most opened + 1) * a

    ragtriever has r = 1, t = a = 0 and the keyword score as it is. recollection scales the keyword
    score to 0..1 between the worst and the best hit; a single hit gets 0.5.
    """
    settings = ctx.settings.fuse.weighted
    weights = leg_weights(candidates, ctx)
    most = max((c.note.access for c in candidates), default=0)
    return [
        [
            *_relevance(each, keyword, weights, ctx),
            *_decayed_age(each, ctx),
            Term("access", (each.note.access + 1) / (most + 1), settings.access),
        ]
        for each, keyword in zip(candidates, _keyword_scores(candidates, ctx), strict=True)
    ]


def _relevance(
    each: Candidate, keyword: float, weights: Mapping[str, float], ctx: Context
) -> list[Term]:
    settings = ctx.settings.fuse.weighted
    share = settings.relevance
    terms = [
        Term("vector", cosine(each), weights["vector"] * share),
        Term("keyword", keyword, weights["keyword"] * share),
    ]
    relevance = fsum(term.amount for term in terms)
    important = each.note.importance in ctx.settings.boost.importance.levels
    if important and relevance < settings.floor * share:
        terms.append(Term("floor", settings.floor * share - relevance, why="important note"))
    return terms


def _keyword_scores(candidates: Sequence[Candidate], ctx: Context) -> list[float]:
    """The keyword score of each: as it is, or scaled between the worst and the best hit."""
    scores = [c.scores.get("keyword", 0.0) for c in candidates]
    settings = ctx.settings.fuse.weighted
    if settings.normalise == "off":
        return scores
    hits = [score for score, c in zip(scores, candidates, strict=True) if "keyword" in c.ranks]
    low, high = min(hits, default=0.0), max(hits, default=0.0)

    def scaled(score: float) -> float:
        return (score - low) / (high - low) if high > low else settings.lone

    return [
        scaled(score) if "keyword" in c.ranks else 0.0
        for score, c in zip(scores, candidates, strict=True)
    ]


def _decayed_age(candidate: Candidate, ctx: Context) -> list[Term]:
    settings = ctx.settings.fuse.weighted
    age = note_age(candidate.note, settings.date, ctx.now)
    if not settings.recency or age is None:
        return []
    value = half_life_decay(age.days, settings.half_life)
    return [Term("recency", value, settings.recency, why=f"{age.days:.0f} days, {age.source}")]


# --- features ---

# The first pattern that matches a heading names the kind of section.
_SECTION_KINDS = (
    ("definitions", re.compile(r"\b(definitions?|terminology|terms|glossary)\b", re.I)),
    ("overview", re.compile(r"\b(overview|introduction|intro|background)\b", re.I)),
    ("policy", re.compile(r"\b(polic(y|ies)|rules?|requirements?|regulations?)\b", re.I)),
    ("summary", re.compile(r"\b(conclusions?|summary|takeaways?)\b", re.I)),
)
_NUMBERED = re.compile(r"^\s*\d+[.)]\s", re.M)
_REFERENCE = re.compile(r"\[\[|\]\(|\u00a7|\bsee (also|section|chapter|appendix)\b", re.I)
_HEADER = re.compile(r"^#{1,6}\s", re.M)


def features(candidates: Sequence[Candidate], ctx: Context) -> Terms:
    """A weighted sum of four features, each from 0 to 1, in place of fusion.

    similarity   the cosine
    recency      0.5^(age / half_life)
    hierarchy    the kind of section, and the form of the passage
    adjacency    how many of its two neighbours were found as well

    The seed's example years (2024 = 0.9, 2022 = 0.6, 2020 = 0.4) lie on one curve: every two years
    multiply by two thirds, which is a half-life of 2 ln 2 / ln 1.5 years, 1,249 days.
    """
    settings = ctx.settings.fuse.features
    places = {(c.note.id, c.passage.ordinal) for c in candidates}
    return [
        [
            Term("similarity", min(1.0, max(0.0, cosine(each))), settings.similarity),
            _recency(each, settings, ctx.now),
            _hierarchy(each.passage, settings),
            _adjacency(each, settings, places),
        ]
        for each in candidates
    ]


def hierarchy(passage: PassageFacts, scores: Hierarchy) -> tuple[float, str]:
    """The hierarchy score of a passage by its headings and its form, and the reasons."""
    headings = (*passage.headings, *passage.subheadings)
    kinds = (name for name, pattern in _SECTION_KINDS if any(map(pattern.search, headings)))
    forms = (
        ("table", passage.kind == "table"),
        ("numbered", bool(_NUMBERED.search(passage.text))),
        ("reference", bool(_REFERENCE.search(passage.text))),
        ("header", bool(_HEADER.search(passage.text))),
    )
    names = [next(kinds, "regular"), *(name for name, present in forms if present)]
    return min(1.0, sum(getattr(scores, name) for name in names)), ", ".join(names)


def _hierarchy(passage: PassageFacts, settings: Features) -> Term:
    value, why = hierarchy(passage, settings.sections)
    return Term("hierarchy", value, settings.hierarchy, why=why)


def _recency(candidate: Candidate, settings: Features, now: float) -> Term:
    age = note_age(candidate.note, settings.date, now)
    if age is None:
        return Term("recency", settings.undated, settings.recency, why="undated")
    value = half_life_decay(age.days, settings.half_life)
    return Term("recency", value, settings.recency, why=f"{age.days:.0f} days, {age.source}")


def _adjacency(candidate: Candidate, settings: Features, places: set[tuple[int, int]]) -> Term:
    note, ordinal = candidate.note.id, candidate.passage.ordinal
    count = ((note, ordinal - 1) in places) + ((note, ordinal + 1) in places)
    by_count = settings.neighbours
    value = (by_count.none, by_count.one, by_count.both)[count]
    return Term("adjacency", value, settings.adjacency, why=f"{count} of 2 neighbours found")


METHODS: Mapping[str, Method] = {
    "evidence": evidence,
    "rrf": rrf,
    "weighted": weighted,
    "features": features,
    "union": union,
}
