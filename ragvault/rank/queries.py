"""Queries: the ranked lists of several queries become one.

    score(d) = sum over the queries of  w_q / (K + rank_q(d))

Reciprocal rank fusion, as in `fuse`. The weight of a query is the confidence of its first result,
so that a wording which finds nothing good does not push down what another one found; the first
query counts two and a half times, because it is the one that was asked. K is small: these lists are
ranked already, and a large K would let the middle of two lists outvote the top of one.
docs/decisions.md has the figures.

A passage that several queries found is kept once, as the query that was surest of it found it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from ragvault.candidate import Candidate, Term, best_first

K = 1
FIRST = 2.5  # weight of the first query


def fuse_queries(lists: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """The candidates of all queries, best first; `queries` has the places of their queries."""
    found: dict[int, list[tuple[int, int, Candidate]]] = defaultdict(list)
    for query, candidates in enumerate(lists):
        for rank, each in enumerate(candidates, 1):
            found[each.id].append((query, rank, each))
    weights = [_weight(query, candidates) for query, candidates in enumerate(lists)]
    return best_first(_fused(places, weights) for places in found.values())


def _weight(query: int, candidates: Sequence[Candidate]) -> float:
    confidence = candidates[0].confidence if candidates else None
    return (1.0 if confidence is None else confidence) * (1.0 if query else FIRST)


def _fused(places: Sequence[tuple[int, int, Candidate]], weights: Sequence[float]) -> Candidate:
    surest = max(places, key=lambda place: (place[2].confidence or 0.0, -place[0]))[2]
    terms = [
        Term(f"query {query + 1}", 1 / (K + rank), weights[query], why=f"rank {rank}")
        for query, rank, _ in places
    ]
    fused = surest.after("queries", terms, before=0.0)
    return replace(fused, queries=tuple(query for query, _, _ in places))
