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
    level                 with "note", ranks and scores are counted in notes, not passages
    exact                 an exact title, alias or quoted phrase goes to the top
    keep                  candidates far below the wanted number of results are dropped here
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum, isnan
from statistics import fmean, pvariance

from msgspec.structs import replace

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
from ragvault.config.ranking import Aware, Features, FeatureWeights, Hierarchy
from ragvault.rank.boost import half_life_decay, note_age
from ragvault.rank.limit import rank_mode, result_count

Terms = list[list[Term]]  # of each candidate
Method = Callable[[Sequence[Candidate], Context], Terms]
KEYWORD_PARTS = ("coverage", "passage", "note", "title")  # of Candidate.evidence
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
    if settings.level == "note":
        terms = _by_note(candidates, terms, method, ctx)
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


# --- Notes instead of passages (`fuse.level = "note"`) ---


def _by_note(candidates: Sequence[Candidate], terms: Terms, method: Method, ctx: Context) -> Terms:
    """Give the best passage of each note the terms of the whole note; others keep their own.

    If the vector leg found one passage of a note and the keyword leg another, both legs found the
    note. Ranks are counted in notes: one with ten passages does not push the next one down by ten.
    """
    best = _best_of_notes(candidates, terms)
    of_notes = method(_notes_as_candidates(candidates, best), ctx)
    found = dict(zip(best.values(), map(_among_notes, of_notes), strict=True))
    return [
        found[at] if at in found and total(0.0, found[at]) > total(0.0, own) else own
        for at, own in enumerate(terms)
    ]


def _among_notes(terms: list[Term]) -> list[Term]:
    """Say that a rank was counted in notes: --explain shows the legs' own beside it."""
    return [
        replace(term, why=f"{term.why} among notes") if term.why.startswith("rank ") else term
        for term in terms
    ]


def _best_of_notes(candidates: Sequence[Candidate], terms: Terms) -> dict[int, int]:
    """Note -> the position of its best passage."""
    best: dict[int, int] = {}
    for at in sorted(range(len(terms)), key=lambda i: key(candidates[i], total(0.0, terms[i]))):
        best.setdefault(candidates[at].note.id, at)
    return best


def _notes_as_candidates(
    candidates: Sequence[Candidate], best: Mapping[int, int]
) -> list[Candidate]:
    """One candidate per note, with the best of every leg."""
    passages: dict[int, list[Candidate]] = defaultdict(list)
    for each in candidates:
        passages[each.note.id].append(each)
    ranks = _note_ranks(passages)
    return [
        replace(
            candidates[at],
            ranks=ranks[note],
            scores=_highest(c.scores for c in passages[note]),
            evidence=_highest(c.evidence for c in passages[note]),
        )
        for note, at in best.items()
    ]


def _note_ranks(passages: Mapping[int, Sequence[Candidate]]) -> dict[int, dict[str, int]]:
    """The rank of each note in each leg, counted in notes; equal best ranks share one."""
    first: dict[str, dict[int, int]] = defaultdict(dict)
    for note, found in passages.items():
        for leg in {leg for each in found for leg in each.ranks}:
            first[leg][note] = min(each.ranks[leg] for each in found if leg in each.ranks)
    ranks: dict[int, dict[str, int]] = {note: {} for note in passages}
    for leg, best_rank in first.items():
        places = {rank: place for place, rank in enumerate(sorted(set(best_rank.values())), 1)}
        for note, rank in best_rank.items():
            ranks[note][leg] = places[rank]
    return ranks


def _highest(found: Iterable[Mapping[str, float]]) -> dict[str, float]:
    highest: dict[str, float] = {}
    for each in found:
        for name, value in each.items():
            highest[name] = max(value, highest.get(name, value))
    return highest


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


def leg_evidence(candidate: Candidate, leg: str, ctx: Context, *, by_telling: bool = True) -> float:
    """How good a leg's hit is, from 0 to 1, on a scale that means the same in every query.

    vector    the cosine above that of unrelated texts, as a share of what is left up to 1
    keyword   shares of coverage, and of the scores of passage, note and title against the highest
              that this query could get. Coverage counts by how telling the words are: common words
              say little about what a text is about, even if it has all of them (`by_telling`)
    others    what the leg says; 1 for a list that does not depend on the query
    """
    if leg == "vector":
        return cosine_evidence(cosine(candidate), ctx.unrelated)
    if leg == "keyword":
        shares, known = ctx.settings.fuse.keyword, dict(candidate.evidence)
        if by_telling and "coverage" in known:
            known["coverage"] *= known.get("telling", 1.0)
        parts = [(getattr(shares, name), known.get(name, 0.0)) for name in KEYWORD_PARTS]
        whole = fsum(share for share, _ in parts)
        return fsum(share * part for share, part in parts) / whole if whole else 1.0
    return candidate.evidence.get(leg, 1.0)


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
    return [Term("recency", value, settings.recency, why=age.why)]


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

    The example years in policy's document (2024 = 0.9, 2022 = 0.6, 2020 = 0.4) lie on one curve:
    every two years multiply by two thirds, a half-life of 2 ln 2 / ln 1.5 years, 1,249 days.

    A query with a use case (`query.adaptive_weights`) is ranked with the weights of that use case.
    """
    settings = ctx.settings.fuse.features
    weights: FeatureWeights = getattr(settings, ctx.use_case) if ctx.use_case else settings
    places = {(c.note.id, c.passage.ordinal) for c in candidates}
    why = f"weights of {ctx.use_case}" if ctx.use_case else ""
    return [
        [
            Term("similarity", min(1.0, max(0.0, cosine(each))), weights.similarity, why=why),
            _recency_feature(each, settings, weights.recency, ctx.now),
            _hierarchy(each.passage, settings, weights.hierarchy),
            _adjacency(each, settings, weights.adjacency, places),
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


def _hierarchy(passage: PassageFacts, settings: Features, weight: float) -> Term:
    value, why = hierarchy(passage, settings.sections)
    return Term("hierarchy", value, weight, why=why)


def _recency_feature(candidate: Candidate, settings: Features, weight: float, now: float) -> Term:
    age = note_age(candidate.note, settings.date, now)
    if age is None:
        return Term("recency", settings.undated, weight, why="undated")
    return Term("recency", half_life_decay(age.days, settings.half_life), weight, why=age.why)


def _adjacency(
    candidate: Candidate, settings: Features, weight: float, places: set[tuple[int, int]]
) -> Term:
    note, ordinal = candidate.note.id, candidate.passage.ordinal
    count = ((note, ordinal - 1) in places) + ((note, ordinal + 1) in places)
    by_count = settings.neighbours
    value = (by_count.none, by_count.one, by_count.both)[count]
    return Term("adjacency", value, weight, why=f"{count} of 2 neighbours found")


METHODS: Mapping[str, Method] = {
    "rrf": rrf,
    "weighted": weighted,
    "features": features,
    "union": union,
}


# --- The weights of the legs ---

# ragdocs measures certainty by the variance of a leg's scores (`fuse.aware.by = "variance"`).
# Cosines vary so little that the lower bound always applies, and one word shared by chance gives a
# keyword list any variance. `by = "evidence"` uses better measures: how much of the query the best
# keyword hit covers, each word weighted by its rarity, and how far the best cosine stands above the
# mean.


def leg_weights(candidates: Sequence[Candidate], ctx: Context) -> dict[str, float]:
    """The weight of each leg for this query."""
    base, factors = ctx.settings.fuse.weights, leg_factors(candidates, ctx)
    return {leg: getattr(base, leg) * factors[leg] for leg in LISTS}


def leg_factors(candidates: Sequence[Candidate], ctx: Context) -> dict[str, float]:
    """What the plan and the legs' own certainty multiply each leg's weight by."""
    fuse = ctx.settings.fuse
    certainty = {leg: _certainty(leg, candidates, fuse.aware) for leg in JUDGED}
    if fuse.aware.by != "off" and fuse.aware.renormalise:
        planned = {leg: getattr(fuse.weights, leg) * ctx.weights.get(leg, 1.0) for leg in JUDGED}
        certainty = renormalised(planned, certainty)
    return {leg: ctx.weights.get(leg, 1.0) * certainty.get(leg, 1.0) for leg in LISTS}


def renormalised(weights: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
    """The factors, scaled so that the weights keep their sum."""
    after = sum(weights[leg] * factors[leg] for leg in weights)
    scale = sum(weights.values()) / after if after else 1.0
    return {leg: factor * scale for leg, factor in factors.items()}


def _certainty(leg: str, candidates: Sequence[Candidate], aware: Aware) -> float:
    found = [c for c in candidates if leg in c.ranks]
    if aware.by == "off" or not found:
        return 1.0
    if aware.by == "variance":
        return by_variance([c.scores.get(leg, 0.0) for c in found], aware)
    if leg == "keyword":
        return max(aware.least, max(c.evidence.get("coverage", 0.0) for c in found))
    return by_margin([cosine(c) for c in found], aware)


def by_variance(scores: Sequence[float], aware: Aware) -> float:
    """variance / threshold, between `least` and 1."""
    best = max(scores)
    # Variances of cosines and of BM25 scores have different units; divided by the best score they
    # are nearly comparable.
    scaled = [s / best for s in scores] if aware.scale == "best" and best > 0 else scores
    return max(aware.least, min(1.0, pvariance(scaled) / aware.threshold))


def by_margin(cosines: Sequence[float], aware: Aware) -> float:
    """(best - mean) / margin, between `least` and 1. A margin of 0 switches this off."""
    if aware.margin == 0:
        return 1.0
    return max(aware.least, min(1.0, (max(cosines) - fmean(cosines)) / aware.margin))


def cosine(candidate: Candidate) -> float:
    """The candidate's similarity to the query; 0 where it has no vector."""
    score = candidate.scores.get("vector", 0.0)
    return 0.0 if isnan(score) else score
