"""Gather: a plan becomes candidates.

    a filter alone     its notes by date
    otherwise          legs in parallel, each with a deadline -> graph neighbours of their hits
                       -> missing scores filled in -> union by passage
    then               the notes whose name is the query, whatever its filter; recency and access
                       as lists

The legs:

    name      notes that are called what the query says: retrieve/names.py
    vector    the plan's text, embedded, among the vectors of the tier that answers
    keyword   its words and phrases, by BM25
    code      its identifiers, in blocks of code
    graph     notes that links join to the best hits of the other legs

A leg that fails or is late is named and left out. The order in which legs answer does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nlargest
from itertools import chain, islice
from math import ceil, inf, isfinite, isnan
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ragvault.candidate import (
    SAYS_NOTHING,
    Candidate,
    Exact,
    Hit,
    LegRun,
    PassageFacts,
    cosine_evidence,
)
from ragvault.config.settings import Config, Limit, Retrieve
from ragvault.plan import LEGS, KeywordAnswer, KeywordHit, QueryPlan, Words
from ragvault.ports import CacheBroken, Corpus, Neighbour, Scope
from ragvault.retrieve.names import Named, exact_notes, holds_phrases, rarest
from ragvault.types import SearchRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL_LOADING = 20.0  # seconds that the first search may wait for its model
# Hits of the legs whose number is no setting: more change nothing on the judged vaults.
HITS = {"name": 20, "code": 50, "graph": 50}
MIN_SECONDS = 0.5  # for scores of each other's hits, however late the legs were
# Passages whose text is read at once, per hit of the vector leg: the stages look at three times as
# many as the user sees, which is 30 of 70.
READ_SHARE = 0.5
SOME = 3  # notes of one name that a warning lists
SPARE = 3  # times the limit of a list by date: a note whose file is gone is replaced by the next
FIRST = 2.0  # score of a named note in a list by date, in which the newest note has 1
DAY = 86_400.0  # seconds
# What nearness in meaning is worth for a note without text: the vector of a few words is near to
# whatever shares one of them, so that an empty `All Posts` came before notes that say something.
OF_PROPERTIES = 0.5
SEEDS = 10  # best notes whose neighbours the graph leg finds: more drown the hits in link lists
HALF_TELLING = 0.5  # rarity of the query's words, added up, at which half of their evidence counts


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


LegAnswer = tuple[LegRun, "LegHits | None"]


@dataclass(slots=True)
class Retrieved:
    """The candidates of a query, and how they were found."""

    candidates: list[Candidate] = field(default_factory=list)
    runs: list[LegRun] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # legs that answered in part, and why
    exact: dict[int, Exact] = field(default_factory=dict)  # the notes whose name is the query


class Started(NamedTuple):
    """The legs of a query, most of which search in threads of the pool already."""

    limits: Mapping[str, int]
    scopes: Mapping[str, Scope]
    legs: Mapping[str, Leg]
    running: Mapping[str, Future[LegAnswer]]


def start_legs(plan: QueryPlan, request: SearchRequest, corpus: Corpus) -> Started | None:
    """Let the legs search while other queries are looked at; `retrieve` waits for them.

    Only the name leg searches in the caller's thread, because it reads the catalogue.
    """
    if plan.listing:
        return None
    scopes, legs = _scopes(plan, corpus.config.retrieve, corpus), legs_of(corpus)
    limits = leg_limits(corpus.config, request)
    running = {
        name: corpus.pool.submit(_run_leg, name, leg, corpus, plan, limits[name], scopes[name])
        for name, leg in legs.items()
        if name != "name"
    }
    return Started(limits, scopes, legs, running)


def retrieve(
    plan: QueryPlan, request: SearchRequest, corpus: Corpus, started: Started | None = None
) -> Retrieved:
    """Everything that may answer the query, not yet ranked. Raises RagvaultError.

    `started` are its legs if they have been started already.
    """
    started = started or start_legs(plan, request, corpus)
    if started is None:
        found = list_by_date(plan, request.limit or corpus.config.limit.n, corpus)
        if "name" in corpus.config.retrieve.legs:
            found.exact = exact_notes(plan.query, corpus)
    else:
        found = gather(plan, started, corpus, corpus.config.retrieve.seconds)
    if found.exact:
        _add_exact(found, plan, corpus)
    found.candidates = add_lists(found.candidates, corpus.config.retrieve.lists)
    return found


def _add_exact(found: Retrieved, plan: QueryPlan, corpus: Corpus) -> None:
    """Add the notes whose name is the query if the filter left them out."""
    known = {each.note.id for each in found.candidates}
    parts = corpus.passages_of([(note, None) for note in found.exact if note not in known])
    new = corpus.passages([id_ for ids in parts for id_ in ids[:1]]).values()
    found.candidates += [
        Candidate(each, {"name": 1}, {"name": 1.0}, {"name": 1.0}, found.exact[each.note.id])
        for each in new
    ]
    if plan.listing:
        found.candidates = _first_in_list(found.candidates, found.exact)
    if plan.listing or (new and plan.filter is not None):
        named = {each.note.path for each in found.candidates if each.note.id in found.exact}
        what = "a note" if len(named) == 1 else f"{len(named):,} notes"
        paths = ", ".join(sorted(named)[:SOME]) + (", …" if len(named) > SOME else "")
        found.warnings.append(f"“{plan.query}” is also the name of {what}: {paths}")


def _first_in_list(candidates: Sequence[Candidate], exact: Mapping[int, Exact]) -> list[Candidate]:
    """The notes that are called so before a list by date."""
    first = [
        msgspec.structs.replace(each, exact=exact[each.note.id], score=FIRST)
        for each in candidates
        if each.note.id in exact
    ]
    return [*first, *(each for each in candidates if each.note.id not in exact)]


def list_by_date(plan: QueryPlan, limit: int, corpus: Corpus) -> Retrieved:
    """The notes that a filter keeps, newest first: as many as are wanted, and some to spare."""
    notes, total = corpus.notes_by_date(plan.filter, limit * SPARE)
    candidates = [
        Candidate(each, score=SAYS_NOTHING if nothing else 1 / rank)
        for rank, (each, nothing) in enumerate(notes, 1)
    ]
    warnings = [f"the newest {limit} of {total} notes"] if limit < total else []
    return Retrieved(candidates, warnings=warnings)


def gather(plan: QueryPlan, started: Started, corpus: Corpus, seconds: float) -> Retrieved:
    """Wait so long for what every leg finds, and unite it."""
    settings, clock = corpus.config.retrieve, time.perf_counter
    limits, scopes = started.limits, started.scopes
    began = clock()
    retrieved = Retrieved()
    answers = await_legs(plan, started, corpus, seconds)
    retrieved.runs = [run for run, _ in answers]
    began = min([began, *(run.start for run in retrieved.runs)])
    found = {run.leg: hits for run, hits in answers if hits is not None}
    named = found["name"].named if "name" in found else None
    retrieved.exact = named.exact if named else {}
    if settings.window and settings.outside == "drop":
        found = {name: _within(leg, scopes["vector"], corpus) for name, leg in found.items()}
    if "graph" in settings.legs and limits["graph"]:
        start = clock()
        cosines = partial(_cosines, found.get("vector", LegHits()), retrieved.failed)
        linked = graph_hits(corpus, found, cosines, limit=limits["graph"], scope=scopes["graph"])
        found["graph"] = linked
        retrieved.runs.append(LegRun(leg="graph", start=start, end=clock(), hits=len(linked.hits)))
    own = {name: {hit.passage for hit in leg.hits} for name, leg in found.items()}
    left = max(MIN_SECONDS, began + settings.seconds - clock())
    found = fill(found, settings.fill, retrieved.failed, corpus.pool, left)
    retrieved.candidates = _candidates(plan, found, corpus, ceil(READ_SHARE * limits["vector"]))
    for leg in found.values():
        retrieved.warnings += leg.warnings
    ids = {each.id for each in retrieved.candidates}
    retrieved.runs = [
        msgspec.structs.replace(
            run,
            start=run.start - began,
            end=run.end - began,
            candidates=len(own.get(run.leg, set()) & ids),
        )
        for run in retrieved.runs
    ]
    return retrieved


def leg_limits(config: Config, request: SearchRequest) -> dict[str, int]:
    """How many hits each leg finds: with twice as many results as usual, twice as many."""
    settings = config.retrieve
    limits = {**HITS, "vector": settings.vector, "keyword": settings.keyword}
    more = (request.limit or config.limit.n) / Limit().n
    if not (settings.widen and request.widen and more > 1):
        return limits
    return {leg: ceil(most * more) for leg, most in limits.items()}


def _scopes(plan: QueryPlan, settings: Retrieve, corpus: Corpus) -> dict[str, Scope]:
    """The passages each leg may return: what the filter keeps, and what is in the window."""
    kept = corpus.scope(plan.filter)
    if not settings.window:
        return dict.fromkeys(LEGS, kept)
    inside = corpus.scope(plan.filter, settings.window)
    # The other legs search all passages; `gather` drops what is outside afterwards.
    linked = inside if settings.outside == "drop" else kept
    return {**dict.fromkeys(LEGS, kept), "vector": inside, "graph": linked}


# --- Legs in parallel ---


def await_legs(
    plan: QueryPlan, started: Started, corpus: Corpus, seconds: float
) -> list[LegAnswer]:
    """What each leg found, in the order of the legs, whichever was first.

    Each has so many seconds; the vector leg has longer while its model is not loaded.
    """
    loading = 0.0 if corpus.model_is_loaded else MODEL_LOADING
    began, answers = time.perf_counter(), {}
    if "name" in started.legs:
        scope, limit = started.scopes["name"], started.limits["name"]
        answers["name"] = _run_leg("name", started.legs["name"], corpus, plan, limit, scope)
    for name, future in started.running.items():
        most = seconds + (loading if name == "vector" else 0.0)
        try:
            answers[name] = future.result(max(0.0, began + most - time.perf_counter()))
        except Late:
            future.cancel()  # if it has not begun
            why = f"no answer within {most:g} s"
            run = LegRun(leg=name, start=began, end=time.perf_counter(), failed=why)
            answers[name] = run, None
    return [answers[name] for name in started.legs]


def _run_leg(
    name: str, leg: Leg, corpus: Corpus, plan: QueryPlan, limit: int, scope: Scope
) -> LegAnswer:
    start, found, failed = time.perf_counter(), None, ""
    try:
        found = leg(corpus, plan, limit, scope)
    except CacheBroken as broken:
        failed = f"{broken}; run: {broken.fix}"
    except Exception as error:  # a leg that fails must not fail the search
        failed = f"{type(error).__name__}: {error}"
    hits = len(found.hits) if found else 0
    end = time.perf_counter()
    return LegRun(leg=name, start=start, end=end, hits=hits, failed=failed), found


def _within(leg: LegHits, window: Scope, corpus: Corpus) -> LegHits:
    """The hits in the window. Ranks stay as they are: what the list loses leaves a gap."""
    inside = corpus.within((hit.passage for hit in leg.hits), window)
    return replace(leg, hits=tuple(hit for hit in leg.hits if hit.passage in inside))


def _cosines(
    vector: LegHits, failed: dict[str, str], passages: Sequence[int]
) -> Mapping[int, float]:
    try:
        return {hit.passage: hit.score for hit in _scored(vector, passages).hits}
    except Exception as error:  # an index that breaks after it has answered
        failed["vector"] = f"{type(error).__name__}: {error}"
        return {}


# --- Scores of what a leg missed ---


def fill(
    found: Mapping[str, LegHits],
    legs: Collection[str],
    failed: dict[str, str],
    pool: Executor,
    seconds: float,
) -> dict[str, LegHits]:
    """Let these legs score what the other legs found, so that no list's end hides a candidate.

    Those passages also get a place in the list. A leg that cannot score them keeps its hits, and
    `failed` says why.
    """
    if not legs:
        return dict(found)
    every = {hit.passage for leg in found.values() for hit in leg.hits}
    missing = {
        name: sorted(every - {hit.passage for hit in leg.hits}) if name in legs else []
        for name, leg in found.items()
        if leg.score is not None
    }
    filled = dict(found)
    for name, more in _score_in_parallel(found, missing, failed, pool, seconds).items():
        leg = found[name]
        filled[name] = replace(
            leg,
            hits=_ranked((*leg.hits, *more.hits)),
            filled=more.hits,
            evidence={**more.evidence, **leg.evidence},
        )
    return filled


def _score_in_parallel(
    found: Mapping[str, LegHits],
    missing: Mapping[str, Sequence[int]],
    failed: dict[str, str],
    pool: Executor,
    seconds: float,
) -> dict[str, LegHits]:
    running = {leg: pool.submit(_scored, found[leg], ids) for leg, ids in missing.items()}
    until, scored = time.perf_counter() + seconds, {}
    for leg, waiting in running.items():
        try:
            scored[leg] = waiting.result(max(0.0, until - time.perf_counter()))
        except Late:  # noqa: PERF203 - three turns at most
            waiting.cancel()
            failed[leg] = f"no scores of what other legs found within {seconds:.2g} s"
        except Exception as error:  # an index that breaks after it has answered
            failed[leg] = f"{type(error).__name__}: {error}"
    return scored


def _scored(leg: LegHits, ids: Sequence[int]) -> LegHits:
    """The true scores of some passages; none if the leg cannot score them."""
    return leg.score(ids) if ids and leg.score else LegHits()


def _ranked(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """All of them in one list, by score; equal scores share a rank."""
    return tuple(Hit(*each) for each in ranked_by({hit.passage: hit.score for hit in hits}))


# --- Candidates ---


def _candidates(
    plan: QueryPlan, found: Mapping[str, LegHits], corpus: Corpus, count: int
) -> list[Candidate]:
    """The union by passage, with every leg's rank, score and evidence."""
    ranks: dict[int, dict[str, int]] = {}
    for name, leg in found.items():
        for hit in leg.hits:
            ranks.setdefault(hit.passage, {})[name] = hit.rank
    scores: dict[int, dict[str, float]] = {passage: {} for passage in ranks}
    evidence: dict[int, dict[str, float]] = {passage: {} for passage in ranks}
    for name, leg in found.items():
        for hit in (*leg.filled, *leg.hits):
            scores[hit.passage][name] = hit.score
        for passage in ranks.keys() & leg.evidence.keys():
            evidence[passage].update(leg.evidence[passage])
    worded = [passage for passage in ranks if "passage" in evidence[passage]]
    texts = list(ranks) if plan.phrases else _nearest_first(scores, count)
    passages = corpus.passages(sorted(ranks), texts)
    rarity = found.get("keyword", LegHits()).rarity / rarest(corpus.facts.passages)
    for passage in worded:
        telling = evidence[passage]["coverage"] * rarity
        evidence[passage]["telling"] = telling / (telling + HALF_TELLING)
    for id_, facts in passages.items():
        if facts.kind == "properties" and "vector" in evidence[id_]:
            evidence[id_]["vector"] *= OF_PROPERTIES
    named = found["name"].named if "name" in found else None
    if named is not None:
        _add_names(named, passages, ranks, scores, evidence)
    called = named.called if named else {}
    return [
        Candidate(
            facts,
            ranks[id_],
            scores[id_],
            evidence[id_],
            called.get(facts.note.id) or ("phrase" if holds_phrases(plan, facts) else ""),
        )
        for id_, facts in sorted(passages.items())
    ]


def _add_names(
    named: Named,
    passages: Mapping[int, PassageFacts],
    ranks: dict[int, dict[str, int]],
    scores: dict[int, dict[str, float]],
    evidence: dict[int, dict[str, float]],
) -> None:
    """Every passage of a named note, and every one below a named heading, is a hit of the leg."""
    found = {id_: value for id_, facts in passages.items() if (value := named.evidence(facts))}
    for id_, rank, value in ranked_by(found):
        ranks[id_]["name"] = rank
        scores[id_]["name"] = evidence[id_]["name"] = value


def _nearest_first(scores: Mapping[int, Mapping[str, float]], count: int) -> list[int]:
    """The passages that look best before anything is ranked."""
    cosines = {passage: of_legs.get("vector", 0.0) for passage, of_legs in scores.items()}
    return nlargest(count, cosines, key=cosines.__getitem__)


# --- Lists that do not depend on the query ---


def add_lists(candidates: Sequence[Candidate], lists: Sequence[str]) -> list[Candidate]:
    """The candidates with their rank by recency and by access, if these lists are wanted.

    Ranks are dense: notes of the same day (UTC), or opened equally often, share one. A note
    without a date comes after all that have one.
    """
    ranked = list(candidates)
    for name in lists:
        ranked = _in_list(ranked, name, _LIST_VALUES[name])
    return ranked


def _in_list(
    candidates: Sequence[Candidate], name: str, value: Callable[[Candidate], float]
) -> list[Candidate]:
    values = [value(each) for each in candidates]
    rank = {value: place for place, value in enumerate(sorted(set(values), reverse=True), 1)}
    return [
        msgspec.structs.replace(
            each,
            ranks={**each.ranks, name: rank[value]},
            scores={**each.scores, name: value} if isfinite(value) else each.scores,
        )
        for each, value in zip(candidates, values, strict=True)
    ]


def _day(candidate: Candidate) -> float:
    date = candidate.note.date
    return date.at // DAY * DAY if date else -inf


_LIST_VALUES: dict[str, Callable[[Candidate], float]] = {
    "recency": _day,
    "access": lambda candidate: float(candidate.note.access),
}


# --- Legs: none knows the others. Each returns hits, best first, or fails ---


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
    return LegHits(hits, score=partial(_vector_scores, corpus, vector))


def _vector_scores(corpus: Corpus, vector: NDArray[np.float32], passages: Sequence[int]) -> LegHits:
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
