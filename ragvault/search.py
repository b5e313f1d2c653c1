"""The read path.

    understand -> expand -> filter -> legs in parallel, graph -> candidates -> stages -> response

    query        operators, phrases, dates, the kind of question              query/
    expand       words of the vault's own vocabulary, where wanted            expanded
    filter       one set of passages that every leg obeys                     store/filters
    gather       vector, keyword, code; neighbours; union; scores filled in   retrieve/
    run          fuse, boost, calibrate, dedup, diversify, rerank, parents, limit, budget   rank/

What is explained is what each of these returned.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

import msgspec

from ragvault.called import names_first, or_a_name
from ragvault.candidate import Candidate, Context, Ranked, together
from ragvault.config.ranking import Limit
from ragvault.config.settings import Config, Retrieve
from ragvault.errors import RagvaultError
from ragvault.expanded import expanded
from ragvault.listing import listing
from ragvault.opened import Opened
from ragvault.plan import LEGS, MatchesWords, QueryPlan
from ragvault.ports import Allowed, CacheBroken, Reranker
from ragvault.query.understand import understand
from ragvault.rank.pipeline import SHOWING_STAGES, STAGES, Outcome, outcome_of, run_stages
from ragvault.retrieve.ask import Run
from ragvault.retrieve.gather import Gathered, gather
from ragvault.retrieve.lists import with_lists

LOADING = 20.0  # seconds


@dataclass(frozen=True, slots=True)
class Asked:
    """A search as the caller wants it. `now` is the clock, for recency and for human dates.

    Without `widen`, more results than usual are looked for among the same candidates: the first of
    them are those that a reader gets who asks for fewer.
    """

    query: str
    now: datetime
    limit: int | None = None
    hypothesis: str | None = None
    widen: bool = True


@dataclass(frozen=True, slots=True)
class Response:
    """What was found, and everything that was done to find it.

    `failed` names the legs and parts that could not answer, with the reason; `said` are sentences
    for the reader. `stages` is what each stage of the ranking returned. `stale` are passages whose
    file says something else by now (verify.py).
    """

    plan: QueryPlan
    results: tuple[Candidate, ...]
    stages: tuple[Outcome, ...]
    runs: tuple[Run, ...]
    tiers: Mapping[int, str]
    tier: str
    revision: int
    failed: Mapping[str, str]
    said: tuple[str, ...]
    took_ms: float
    stale: frozenset[int] = frozenset()

    def stage(self, name: str) -> Ranked:
        """What the stage of this name returned. Raises KeyError if it did not run."""
        return outcome_of(name, self.stages)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query with all that was found for it, before anything is ranked.

    `missing` names a model that is wanted and cannot be had, with the reason.
    """

    plan: QueryPlan
    gathered: Gathered
    candidates: Sequence[Candidate]
    context: Context
    missing: Mapping[str, str]

    def ranked(self) -> tuple[Ranked, tuple[Outcome, ...]]:
        """The order, and what each stage returned on the way to it."""
        stages = SHOWING_STAGES if self.plan.listing else STAGES  # a list by date is in order
        return run_stages(self.candidates, self.context, stages)


def search(asked: Asked, index: Opened) -> Response:
    """Answer one query. Raises UsageError for one that cannot be meant."""
    began = time.perf_counter()
    index.refresh()
    with index.catalogue.snapshot():
        found = prepare(asked, index)
        ranked, stages = found.ranked()
        read_shown(stages)
        revision = index.catalogue.revision
        behind = (
            [f"the index is behind: {index.behind}; run: ragvault index"] if index.behind else []
        )
    runs = found.gathered.runs
    failed = found.gathered.trouble | {run.leg: run.failed for run in runs if run.failed}
    return Response(
        plan=found.plan,
        results=ranked.kept,
        stages=stages,
        runs=tuple(runs),
        tiers=found.gathered.tiers,
        tier=index.tier,
        revision=revision,
        failed={**index.missing, **failed, **found.missing},
        said=(*behind, *found.plan.warnings, *found.gathered.said, *_said(stages)),
        took_ms=(time.perf_counter() - began) * 1000,
    )


def prepare(asked: Asked, index: Opened) -> Prepared:
    """Understand a query and ask every leg; what is left to do needs no index."""
    config = index.config
    how: dict[str, Any] = {"now": asked.now, "hypothesis": asked.hypothesis}
    meant = or_a_name(asked.query, index, lambda query: understand(query, config.query, **how))
    plan, unexpanded = expanded(meant, index)
    gathered = _listing(asked, plan, index) if plan.listing else _gather(asked, plan, index)
    names_first(gathered, plan, index)
    candidates = with_lists(gathered.candidates, config.retrieve.lists)
    reranker, missing = (None, {}) if plan.listing else _reranker(index)
    context = _context(asked, plan, index, candidates, reranker)
    return Prepared(plan, gathered, candidates, context, {**unexpanded, **missing})


def _gather(asked: Asked, plan: QueryPlan, index: Opened) -> Gathered:
    settings = _wide_enough(index.config, asked)
    return gather(
        plan,
        index.legs(),
        index.library(),
        settings,
        allowed=_allowed(plan, index),
        depth=index.config.graph.depth,
        pool=index.pool,
        seconds=_seconds(settings, index),
    )


def _seconds(settings: Retrieve, index: Opened) -> dict[str, float]:
    """How long each leg may take. A first search may wait for its model to be read from disk."""
    loading = 0.0 if index.embedders.loaded else LOADING
    return {**dict.fromkeys(LEGS, settings.seconds), "vector": settings.seconds + loading}


def _wide_enough(config: Config, asked: Asked) -> Retrieve:
    """Who wants twice as many results as usual gets twice as many candidates of each leg."""
    settings, more = config.retrieve, (asked.limit or config.limit.n) / Limit().n
    if not (settings.widen and asked.widen and more > 1):
        return settings
    legs = {leg: ceil(getattr(settings, leg) * more) for leg in LEGS}
    return msgspec.structs.replace(settings, **legs)


def _allowed(plan: QueryPlan, index: Opened) -> dict[str, Allowed]:
    """The passages each leg may return: what the filter keeps, and what is in the window."""
    kept = index.catalogue.filtered_passages(plan.filter, lambda holds: _matching(holds, index))
    settings = index.config.retrieve
    if not settings.window:
        return dict.fromkeys(LEGS, kept)
    import numpy as np

    lately = index.catalogue.newest(settings.window, index.accesses.lately())
    window = np.unique(np.array(lately, np.int64))
    inside = window if kept is None else np.intersect1d(window, kept)
    # The other lists are of all passages; those that they lose then are gather's affair.
    linked = inside if settings.outside == "drop" else kept
    return {**dict.fromkeys(LEGS, kept), "vector": inside, "graph": linked}


def _matching(holds: MatchesWords, index: Opened) -> list[int]:
    """Every passage that a condition on words keeps."""
    if index.keyword is None:
        raise RagvaultError(
            "this query needs the keyword index, which cannot be read", fix="ragvault index"
        )
    try:
        found = index.keyword.matching(holds.query)
    except CacheBroken as broken:
        raise CacheBroken(f"this query needs the keyword index: {broken}") from broken
    if found is None:  # half of them would keep what the query excludes
        raise RagvaultError(
            "the keyword index had no time to look up every word that this query excludes or wants",
            fix="give it more, in seconds: --set keyword.seconds=10",
        )
    return [int(passage) for passage in found]


def _listing(asked: Asked, plan: QueryPlan, index: Opened) -> Gathered:
    return listing(plan, index, asked.limit, lambda holds: _matching(holds, index))


def _reranker(index: Opened) -> tuple[Reranker | None, dict[str, str]]:
    if not index.config.rerank.enabled:
        return None, {}
    try:
        return index.reranker(), {}
    except RagvaultError as error:
        return None, {"rerank": f"{error}; {error.fix}"}


def _context(
    asked: Asked,
    plan: QueryPlan,
    index: Opened,
    candidates: list[Candidate],
    reranker: Reranker | None,
) -> Context:
    library = index.library()
    return Context(
        settings=index.config,
        query=plan.text,
        type=plan.type,
        weights=plan.weights,
        now=asked.now.timestamp(),
        limit=asked.limit,
        note_length=library.median_length(),
        vectors=_vectors(index, plan, candidates),
        sections=library.sections(),
        passages=library.stretches(),
        reranker=reranker,
        # A list loads no model: it must not depend on what an earlier search has loaded.
        count_tokens=None if plan.listing else index.count_tokens(),
    )


def _vectors(index: Opened, plan: QueryPlan, candidates: Sequence[Candidate]) -> Mapping[int, Any]:
    """Vectors of the candidates. Those that will be compared are read now, as their texts were."""
    known = index.library().vectors([each.id for each in candidates])
    if index.config.dedup.enabled and index.config.dedup.cosine and not plan.listing:
        together(known, [each.id for each in candidates if each.passage.is_read])
    return known


def read_shown(stages: Sequence[Outcome]) -> None:
    """What may be shown is read now, while all that is read is of one moment."""
    for each in outcome_of("limit", stages):
        _ = each.passage.text


def _said(stages: tuple[Outcome, ...]) -> tuple[str, ...]:
    return tuple(line for outcome in stages for line in outcome.ranked.said)
