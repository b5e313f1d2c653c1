"""The read path: one vault, and one query or several.

    understand -> retrieve -> rank -> verify -> respond

    understand   operators, dates, the kind of question; near words if enabled   query/
    retrieve     name, vector, keyword, code and graph legs; lists               retrieve/
    rank         fuse, boost, calibrate, dedup, diversify, rerank, ...           rank/
    verify       every file behind a result is compared with the index           answer/verify.py
    respond      what was found, and what each step returned, for --explain      answer/results.py

Everything that is known of the vault comes through the port `Corpus`. Several vaults are merged,
and snippets are cut, by answer/vaults.py.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from ragvault.answer.results import VaultAnswer
from ragvault.answer.verify import Verified, verify
from ragvault.candidate import Candidate, Context, Ranked
from ragvault.errors import RagvaultError, UsageError
from ragvault.plan import QueryPlan
from ragvault.ports import CacheBroken, Corpus, Reranker
from ragvault.query.understand import add_near_terms, correct, understand
from ragvault.rank.dedup import dedup
from ragvault.rank.limit import is_likely, result_count
from ragvault.rank.pipeline import (
    RANKING_STAGES,
    SHOWING_STAGES,
    STAGES,
    Outcome,
    Stage,
    outcome_of,
    run_stages,
)
from ragvault.rank.queries import fuse_queries
from ragvault.retrieve.gather import Retrieved, retrieve, start_legs
from ragvault.retrieve.names import WORD, exact_notes
from ragvault.types import SearchRequest

MAX_QUERIES = 8  # in one search
DEPTH = 3  # times the limit: how far down a query may have found a passage that another one found


def search(request: SearchRequest, corpus: Corpus) -> VaultAnswer:
    """Answer one query, or several as one.

    Raises UsageError for a query with a mistake, VaultUnreadable.
    """
    began = time.perf_counter()
    with corpus.snapshot():
        if request.also:
            return search_several(request, corpus, began)
        failed: dict[str, str] = {}
        plan = understand_query(request, corpus, failed)
        retrieved = retrieve(plan, request, corpus)
        context = ranking_context(plan, retrieved.candidates, request, corpus, failed)
        stages = run_stages(retrieved.candidates, context, stages_of(plan))[1]
        corpus.load_texts([each.passage for each in outcome_of("limit", stages)])
        verified = verify(stages, context, plan, corpus, request.verify)
        return respond(plan, retrieved, verified, failed, corpus, began)


# --- Understand ---


def understand_query(request: SearchRequest, corpus: Corpus, failed: dict[str, str]) -> QueryPlan:
    """The plan of a query, with near words of the vault if the settings enable that.

    Adds to `failed` why it could not be expanded.
    """
    plan = _plan_or_name(request, corpus)
    if "keyword" in corpus.facts.searchable and "keyword" in corpus.config.retrieve.legs:
        with suppress(CacheBroken):  # the leg says so
            plan = correct(plan, corpus)
    settings = corpus.config.query.expand
    if settings.method == "off":
        return plan
    try:
        return add_near_terms(plan, settings, corpus)
    except RagvaultError as error:
        failed["expand"] = f"{error}; {error.fix}"
        return plan


def _plan_or_name(request: SearchRequest, corpus: Corpus) -> QueryPlan:
    """The plan of a query; the plan of its words if it has a mistake and is the name of a note."""
    read = partial(
        understand,
        settings=corpus.config.query,
        now=request.now,
        hypothesis=request.hypothesis,
    )
    try:
        return read(request.query)
    except UsageError:
        if not exact_notes(request.query, corpus):
            raise
    words = " ".join(WORD.findall(request.query))
    plan = read(words or f"`{request.query.replace('`', '')}`")  # nothing in backticks is a sign
    warning = f"“{request.query}” cannot be a query, and is the name of a note"
    return replace(plan, query=request.query, warnings=(*plan.warnings, warning))


# --- Rank ---


def stages_of(plan: QueryPlan) -> Sequence[Stage]:
    """The stages of a plan: a list by date is in order already."""
    return SHOWING_STAGES if plan.listing else STAGES


def ranking_context(
    plan: QueryPlan,
    candidates: Sequence[Candidate],
    request: SearchRequest,
    corpus: Corpus,
    failed: dict[str, str],
) -> Context:
    """Everything the stages may know beside the candidates.

    Adds to `failed` why there is no reranker.
    """
    config = corpus.config
    return Context(
        settings=config,
        query=plan.corrected or plan.text,
        type=plan.type,
        weights=plan.weights,
        use_case=plan.use_case,
        now=request.now.timestamp(),
        limit=request.limit,
        all_matches=request.all_matches,
        note_length=corpus.facts.median_length,
        unrelated=corpus.facts.unrelated_cosine,
        vectors=corpus.vectors([each.id for each in candidates]),
        sections=corpus.excerpts("section"),
        passages=corpus.excerpts("passage"),
        reranker=None if plan.listing else _reranker(corpus, failed),
        # A list loads no model, so it must not depend on what an earlier search has loaded.
        count_tokens=None if plan.listing else corpus.count_tokens(),
    )


def _reranker(corpus: Corpus, failed: dict[str, str]) -> Reranker | None:
    if not corpus.config.rerank.enabled:
        return None
    try:
        return corpus.reranker()
    except RagvaultError as error:
        failed["rerank"] = f"{error}; {error.fix}"
        return None


# --- Respond ---


def respond(
    plan: QueryPlan,
    retrieved: Retrieved,
    verified: Verified,
    failed: Mapping[str, str],
    corpus: Corpus,
    began: float,
) -> VaultAnswer:
    """What was found, what each step returned, and what the reader must know."""
    results = outcome_of("budget", verified.stages).kept
    shown = outcome_of("limit", verified.stages)
    facts, vectors = corpus.facts, corpus.vectors([verified.was(each.id) for each in shown])
    behind = [f"{facts.behind}; {facts.remedy}"] if facts.behind else []
    legs = {run.leg: run.failed for run in retrieved.runs if run.failed}
    return VaultAnswer(
        plan=plan,
        config=corpus.config,
        results=results,
        likely=is_likely(shown, corpus.config),
        stages=verified.stages,
        runs=tuple(retrieved.runs),
        tiers={
            each.id: facts.tier if verified.was(each.id) in vectors else "keyword" for each in shown
        },
        facts=facts,
        failed={**facts.missing, **retrieved.failed, **legs, **failed},
        warnings=(
            *behind,
            *plan.warnings,
            *retrieved.warnings,
            *(line for outcome in verified.stages for line in outcome.ranked.warnings),
        ),
        took_ms=(time.perf_counter() - began) * 1000,
        stale=frozenset(verified.stale),
    )


# --- Several queries ---


def search_several(request: SearchRequest, corpus: Corpus, began: float) -> VaultAnswer:
    """Answer several queries as one. Their legs search at the same time.

    Each query is ranked by itself; the lists are fused, and what is shown is chosen from all.
    """
    requests = requests_of(request)
    failed: dict[str, str] = {}
    plans = [understand_query(each, corpus, failed) for each in requests]
    pairs = list(zip(plans, requests, strict=True))
    running = [start_legs(*pair, corpus) for pair in pairs]
    parts = [retrieve(*pair, corpus, legs) for pair, legs in zip(pairs, running, strict=True)]
    found = _all_retrieved(parts)
    context = ranking_context(plans[0], found.candidates, request, corpus, failed)
    depth = DEPTH * result_count(context)
    lists = [
        _ranked_list(*pair, part, corpus, failed)[:depth]
        for pair, part in zip(pairs, parts, strict=True)
    ]
    fused = Outcome("queries", Ranked(tuple(fuse_queries(lists))))
    stages = (fused, *run_stages(fused.ranked, context, (dedup, *SHOWING_STAGES))[1])
    corpus.load_texts([each.passage for each in outcome_of("limit", stages)])
    verified = verify(stages, context, plans[0], corpus, request.verify)
    response = respond(plans[0], found, verified, failed, corpus, began)
    return replace(response, plans=tuple(plans))


def requests_of(request: SearchRequest) -> list[SearchRequest]:
    """One request for each query. The hypothesis stands in for the first one."""
    first, *others = dict.fromkeys((request.query, *request.also))
    if len(others) >= MAX_QUERIES:
        raise UsageError(
            f"{len(others) + 1} queries are too many for one search",
            fix=f"ask at most {MAX_QUERIES} at a time",
        )
    return [
        replace(request, query=first, also=()),
        *(replace(request, query=each, also=(), hypothesis=None) for each in others),
    ]


def _ranked_list(
    plan: QueryPlan,
    request: SearchRequest,
    found: Retrieved,
    corpus: Corpus,
    failed: dict[str, str],
) -> Sequence[Candidate]:
    """The candidates of one query in order. Adds to `failed` why none was reranked."""
    if plan.listing:
        return found.candidates
    context = ranking_context(plan, found.candidates, request, corpus, failed)
    return run_stages(found.candidates, context, RANKING_STAGES)[0].kept


def _all_retrieved(parts: Sequence[Retrieved]) -> Retrieved:
    """What all queries found; each passage once."""
    candidates = {each.id: each for part in parts for each in part.candidates}
    return Retrieved(
        list(candidates.values()),
        [run for part in parts for run in part.runs],
        list(dict.fromkeys(line for part in parts for line in part.warnings)),
        {leg: why for part in parts for leg, why in part.failed.items()},
    )
