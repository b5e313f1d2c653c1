"""Gather: a plan becomes candidates.

    a filter alone     its notes by date
    otherwise          legs in parallel, each with a deadline -> graph neighbours of their hits
                       -> missing scores filled in -> union by passage
    then               the notes whose name is the query, whatever its filter; recency and access
                       as lists

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
from math import ceil, inf, isfinite
from typing import NamedTuple

import msgspec

from ragvault.candidate import SAYS_NOTHING, Candidate, Exact, Hit, LegRun, PassageFacts
from ragvault.config.settings import Config, Limit, Retrieve
from ragvault.plan import LEGS, QueryPlan
from ragvault.ports import CacheBroken, Corpus, Scope
from ragvault.retrieve.legs import Leg, LegHits, graph_hits, legs_of, ranked_by
from ragvault.retrieve.names import Named, exact_notes, holds_phrases, rarest
from ragvault.types import SearchRequest

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
HALF_TELLING = 0.5  # rarity of the query's words, added up, at which half of their evidence counts

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
        loading = 0.0 if corpus.model_is_loaded else MODEL_LOADING
        found = gather(plan, started, corpus, corpus.config.retrieve.seconds + loading)
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
    """What each leg found, in the order of the legs, whichever was first."""
    began, answers = time.perf_counter(), {}
    if "name" in started.legs:
        scope, limit = started.scopes["name"], started.limits["name"]
        answers["name"] = _run_leg("name", started.legs["name"], corpus, plan, limit, scope)
    for name, future in started.running.items():
        try:
            answers[name] = future.result(max(0.0, began + seconds - time.perf_counter()))
        except Late:  # noqa: PERF203 - three turns at most
            future.cancel()  # if it has not begun
            why = f"no answer within {seconds:g} s"
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
