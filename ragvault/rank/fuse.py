"""Fuse: several ranked lists become one score. `fuse.method` names the formula:

    rrf        reciprocal rank fusion: weight * evidence^exponent / (k + rank), summed over legs
    weighted   raw scores, weighted, as RAGtriever and recollection combined them before rank fusion
    features   similarity, recency, hierarchy and adjacency, each from 0 to 1
    union      the lists one after the other, as a baseline

RRF compares ranks because a BM25 score and a cosine have no common unit. But a rank says nothing
about how good a hit is: a keyword list of stray words outvotes a vector leg that alone found the
answer. So each hit also counts by its evidence, from 0 to 1. An exponent of 0 is plain RRF.

All methods share the rest:

    weights of the legs   those of the settings, times the plan's factors (by type of query), times
                          how certain each leg is of its hits
    exact                 an exact title, alias or quoted phrase goes to the top
    keep                  candidates far below the wanted number of results are dropped here
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import fsum, isnan
from statistics import pvariance

from ragvault.candidate import (
    Candidate,
    Context,
    Key,
    PassageFacts,
    Ranked,
    Removal,
    Term,
    cosine_evidence,
    key,
    total,
)
from ragvault.config.settings import Features
from ragvault.plan import UseCase
from ragvault.rank.boost import half_life_decay, note_age
from ragvault.rank.limit import rank_mode, result_count

Terms = list[list[Term]]  # of each candidate
Method = Callable[[Sequence[Candidate], Context], Terms]
# Shares of the evidence of a keyword hit; the keyword scores of the passage and of the title add
# nothing to these two (docs/decisions.md).
COVERAGE, NOTE = 0.6, 0.4
UNION = ("name", "vector", "graph", "keyword", "code")  # the order of the lists; LightRAG has three
LISTS = ("name", "vector", "keyword", "code", "graph", "recency", "access")
JUDGED = ("vector", "keyword")  # legs whose scores show how certain they are
EXACT_MATCHES = {
    "title": "the query is its name",
    "alias": "the query is one of its aliases",
    "phrase": "contains the quoted phrase",
}


def fuse(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Score every candidate by what the legs know of it, best first."""
    settings = ctx.settings.fuse
    method = METHODS[settings.method]
    terms = method(candidates, ctx)
    if settings.exact:
        terms = _exact_first(candidates, terms, settings.exact)
    scores = [total(0.0, each) for each in terms]
    order = sorted(range(len(scores)), key=lambda at: key(candidates[at], scores[at]))
    most = settings.keep * max(result_count(ctx), ctx.settings.limit.n) or len(order)
    kept = (candidates[at].placed("fuse", scores[at], terms[at], before=0.0) for at in order[:most])
    reason = f"not among the best {most}"
    return Ranked(tuple(kept), tuple(Removal(candidates[at], reason) for at in order[most:]))


# --- Exact hits ---


def _exact_first(candidates: Sequence[Candidate], terms: Terms, lift: float) -> Terms:
    """Put exact hits above everything else, in their own order, and names above phrases.

    A title or an alias names a note and not a passage, so only its best passage is lifted so far.
    """
    if not any(each.exact for each in candidates):
        return terms
    scores = [total(0.0, each) for each in terms]
    lifts = _lifts(candidates, scores)
    above = lift + max(scores, default=0.0) - min(scores, default=0.0)
    return [
        [*each, Term("exact", above, lifts[at], why=EXACT_MATCHES[candidates[at].exact])]
        if at in lifts
        else each
        for at, each in enumerate(terms)
    ]


def _lifts(candidates: Sequence[Candidate], scores: Sequence[float]) -> dict[int, float]:
    """How many times each is lifted above all others: a name twice if phrases are lifted too.

    If the phrase is also a note's name, the note's other passages stand with the phrase's passages.
    """
    exact = [at for at, each in enumerate(candidates) if each.exact]
    quoted = any(each.exact == "phrase" for each in candidates)
    named: set[int] = set()
    lifts: dict[int, float] = {}
    for at in sorted(exact, key=lambda i: key(candidates[i], scores[i])):
        each = candidates[at]
        if each.exact != "phrase" and each.note.id not in named:
            named.add(each.note.id)
            lifts[at] = 2.0 if quoted else 1.0
        elif quoted:
            lifts[at] = 1.0
    return lifts


# --- The methods, one function each ---


def rrf(candidates: Sequence[Candidate], ctx: Context) -> Terms:
    """weight * evidence^exponent / (k + rank) of every leg that ranks the candidate."""
    settings = ctx.settings.fuse
    k, weights = rank_mode(settings, ctx.note_length).k, leg_weights(candidates, ctx)

    def term(each: Candidate, leg: str, rank: int) -> Term:
        if not settings.exponent:
            return Term(leg, 1 / (k + rank), weights.get(leg, 1.0), why=f"rank {rank}")
        evidence = leg_evidence(each, leg, ctx)
        value = evidence**settings.exponent / (k + rank)
        return Term(leg, value, weights.get(leg, 1.0), why=f"rank {rank}, evidence {evidence:.2f}")

    terms = [
        [term(each, leg, rank) for leg, rank in sorted(each.ranks.items())] for each in candidates
    ]
    return _names_once(candidates, terms)


def _names_once(candidates: Sequence[Candidate], terms: Terms) -> Terms:
    """A name is that of a note, so it counts for the note's best passage alone."""
    best = set(_best_of_notes(candidates, terms).values())
    return [
        own if at in best else [term for term in own if term.name != "name"]
        for at, own in enumerate(terms)
    ]


def _best_of_notes(candidates: Sequence[Candidate], terms: Terms) -> dict[int, int]:
    """Note -> the position of its best passage."""
    best: dict[int, int] = {}
    for at in sorted(range(len(terms)), key=lambda i: key(candidates[i], total(0.0, terms[i]))):
        best.setdefault(candidates[at].note.id, at)
    return best


def leg_evidence(candidate: Candidate, leg: str, ctx: Context, *, by_telling: bool = True) -> float:
    """How good a leg's hit is, from 0 to 1, on a scale that means the same in every query.

    vector    the cosine above that of unrelated texts, as a share of what is left up to 1
    keyword   shares of coverage, and of the note's score against the highest that this query could
              get. Coverage counts by how telling the words are: common words say little about what
              a text is about, even if it has all of them (`by_telling`)
    others    what the leg says; 1 for a list that does not depend on the query
    """
    if leg == "vector":
        return cosine_evidence(cosine(candidate), ctx.unrelated)
    if leg == "keyword":
        known = candidate.evidence
        telling = known.get("telling", 1.0) if by_telling else 1.0
        return COVERAGE * known.get("coverage", 0.0) * telling + NOTE * known.get("note", 0.0)
    return candidate.evidence.get(leg, 1.0)


def union(candidates: Sequence[Candidate], ctx: Context) -> Terms:
    """The lists one after the other, each passage where it comes first: 1 / place."""

    def first_place(at: int) -> tuple[int, int, Key]:
        each = candidates[at]
        for number, leg in enumerate(UNION):
            if leg in each.ranks:
                return number, each.ranks[leg], key(each, 0.0)
        return len(UNION), min(each.ranks.values(), default=0), key(each, 0.0)

    in_order = sorted(range(len(candidates)), key=first_place)
    places = {at: place for place, at in enumerate(in_order, 1)}
    return [[Term("place", 1 / places[at])] for at in range(len(candidates))]


# --- weighted ---

MONTH = 30.0  # days in which recency halves, as recollection has it
LONE = 0.5  # its scaled score of a single keyword hit


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
        return (score - low) / (high - low) if high > low else LONE

    return [
        scaled(score) if "keyword" in c.ranks else 0.0
        for score, c in zip(scores, candidates, strict=True)
    ]


def _decayed_age(candidate: Candidate, ctx: Context) -> list[Term]:
    share = ctx.settings.fuse.weighted.recency
    age = note_age(candidate.note, "note", ctx.now)
    if not share or age is None:
        return []
    return [Term("recency", half_life_decay(age.days, MONTH), share, why=age.why)]


# --- features ---

# What policy's document says a section is worth by its heading (the first pattern that matches
# names its kind), and what its form adds.
_SECTION_KINDS = (
    ("definitions", 1.0, re.compile(r"\b(definitions?|terminology|terms|glossary)\b", re.I)),
    ("overview", 0.9, re.compile(r"\b(overview|introduction|intro|background)\b", re.I)),
    ("policy", 0.85, re.compile(r"\b(polic(y|ies)|rules?|requirements?|regulations?)\b", re.I)),
    ("summary", 0.8, re.compile(r"\b(conclusions?|summary|takeaways?)\b", re.I)),
)
REGULAR = 0.5  # any other section
TABLE, NUMBERED, REFERENCE, HEADER = 0.15, 0.1, 0.1, 0.05
NEIGHBOURS = (0.3, 0.65, 1.0)  # by how many of the passage's two neighbours were found
# The example years of that document (2024 = 0.9, 2022 = 0.6, 2020 = 0.4) lie on one curve: every
# two years multiply by two thirds, a half-life of 2 ln 2 / ln 1.5 years in days.
TWO_THIRDS = 1249.0
UNDATED = 0.5  # the recency of a note without a date: neither new nor old
# Its three use cases, whose weights a query gets that shows one (`query.adaptive_weights`).
USE_CASES: Mapping[UseCase, Features] = {
    "historical": Features(similarity=0.5, recency=0.05, hierarchy=0.3, adjacency=0.15),
    "current": Features(similarity=0.4, recency=0.4, hierarchy=0.15, adjacency=0.05),
    "definitions": Features(similarity=0.4, recency=0.1, hierarchy=0.4, adjacency=0.1),
}
_NUMBERED = re.compile(r"^\s*\d+[.)]\s", re.M)
_REFERENCE = re.compile(r"\[\[|\]\(|\u00a7|\bsee (also|section|chapter|appendix)\b", re.I)
_HEADER = re.compile(r"^#{1,6}\s", re.M)


def features(candidates: Sequence[Candidate], ctx: Context) -> Terms:
    """A weighted sum of four features, each from 0 to 1, in place of fusion.

    similarity   the cosine
    recency      0.5^(age / half_life)
    hierarchy    the kind of section, and the form of the passage
    adjacency    how many of its two neighbours were found as well

    A query with a use case (`query.adaptive_weights`) is ranked with the weights of that use case.
    """
    weights = USE_CASES.get(ctx.use_case, ctx.settings.fuse.features)
    places = {(c.note.id, c.passage.ordinal) for c in candidates}
    why = f"weights of {ctx.use_case}" if ctx.use_case else ""
    return [
        [
            Term("similarity", min(1.0, max(0.0, cosine(each))), weights.similarity, why=why),
            _recency_feature(each, weights.recency, ctx.now),
            _hierarchy(each.passage, weights.hierarchy),
            _adjacency(each, weights.adjacency, places),
        ]
        for each in candidates
    ]


def hierarchy(passage: PassageFacts) -> tuple[float, str]:
    """The hierarchy score of a passage by its headings and its form, and the reasons."""
    headings = (*passage.headings, *passage.subheadings)
    kinds = (
        (name, value) for name, value, form in _SECTION_KINDS if any(map(form.search, headings))
    )
    forms = (
        ("table", TABLE, passage.kind == "table"),
        ("numbered", NUMBERED, _NUMBERED.search(passage.text)),
        ("reference", REFERENCE, _REFERENCE.search(passage.text)),
        ("header", HEADER, _HEADER.search(passage.text)),
    )
    found = [next(kinds, ("regular", REGULAR)), *((name, more) for name, more, has in forms if has)]
    return min(1.0, sum(value for _, value in found)), ", ".join(name for name, _ in found)


def _hierarchy(passage: PassageFacts, weight: float) -> Term:
    value, why = hierarchy(passage)
    return Term("hierarchy", value, weight, why=why)


def _recency_feature(candidate: Candidate, weight: float, now: float) -> Term:
    age = note_age(candidate.note, "note", now)
    if age is None:
        return Term("recency", UNDATED, weight, why="undated")
    return Term("recency", half_life_decay(age.days, TWO_THIRDS), weight, why=age.why)


def _adjacency(candidate: Candidate, weight: float, places: set[tuple[int, int]]) -> Term:
    note, ordinal = candidate.note.id, candidate.passage.ordinal
    count = ((note, ordinal - 1) in places) + ((note, ordinal + 1) in places)
    return Term("adjacency", NEIGHBOURS[count], weight, why=f"{count} of 2 neighbours found")


METHODS: Mapping[str, Method] = {
    "rrf": rrf,
    "weighted": weighted,
    "features": features,
    "union": union,
}


# --- The weights of the legs ---

# With `fuse.score_aware`, a leg is as certain as its scores vary, as ragdocs measures it. Cosines
# vary so little that the lower bound always applies. The sum of the two weights stays.
CERTAIN = 0.1  # the variance of a certain leg
LEAST = 0.2  # the share of its weight that an uncertain leg keeps; ragdocs names none


def leg_weights(candidates: Sequence[Candidate], ctx: Context) -> dict[str, float]:
    """The weight of each leg for this query."""
    base, factors = ctx.settings.fuse.weights, leg_factors(candidates, ctx)
    return {leg: getattr(base, leg) * factors[leg] for leg in LISTS}


def leg_factors(candidates: Sequence[Candidate], ctx: Context) -> dict[str, float]:
    """What the plan and the legs' own certainty multiply each leg's weight by."""
    fuse = ctx.settings.fuse
    certainty: Mapping[str, float] = {}
    if fuse.score_aware:
        planned = {leg: getattr(fuse.weights, leg) * ctx.weights.get(leg, 1.0) for leg in JUDGED}
        certainty = renormalised(planned, {leg: _certainty(leg, candidates) for leg in JUDGED})
    return {leg: ctx.weights.get(leg, 1.0) * certainty.get(leg, 1.0) for leg in LISTS}


def renormalised(weights: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
    """The factors, scaled so that the weights keep their sum."""
    after = sum(weights[leg] * factors[leg] for leg in weights)
    scale = sum(weights.values()) / after if after else 1.0
    return {leg: factor * scale for leg, factor in factors.items()}


def _certainty(leg: str, candidates: Sequence[Candidate]) -> float:
    scores = [c.scores.get(leg, 0.0) for c in candidates if leg in c.ranks]
    return by_variance(scores) if scores else 1.0


def by_variance(scores: Sequence[float]) -> float:
    """variance / CERTAIN, between LEAST and 1."""
    return max(LEAST, min(1.0, pvariance(scores) / CERTAIN))


def cosine(candidate: Candidate) -> float:
    """The candidate's similarity to the query; 0 where it has no vector."""
    score = candidate.scores.get("vector", 0.0)
    return 0.0 if isnan(score) else score
