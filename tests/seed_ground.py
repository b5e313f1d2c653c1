"""The ground that the profiles of the seeds stand on: who of them prints which value of it.

A row is a profile, who says so, and settings with their values (see seed_values.py).
"""

from __future__ import annotations

from typing import Any

RAGTRIEVER = "RAGtriever Ranking Improvements Design"
RECOLLECTION = "Two-Stage RRF Retrieval"
RAGDOCS = "Hybrid Search Strategy"
POLICY = "Re-Ranking Strategy Documentation"
LIGHTRAG = "Reciprocal Rank Fusion (RRF) Subsystem"
OURS = "no seed: ours"

Row = tuple[str, str, dict[str, Any]]

OFF = (
    *("fuse.exact", "fuse.keep", "fuse.weighted.floor", "fuse.weighted.recency"),
    *("fuse.weighted.access", "calibrate.floor", "dedup.reach"),
    *("boost.max_rise", "retrieve.window", "parents.neighbours"),
)
DISABLED = (
    *("boost.backlinks", "boost.recency", "boost.community", "boost.importance", "boost.access"),
    *("boost.templates", "boost.superseded", "dedup", "diversify", "rerank", "parents", "budget"),
)
GROUND: list[Row] = [
    (
        "plain",
        "every seed: nothing that it does not name",
        {
            **dict.fromkeys(OFF, 0),
            **{f"{name}.enabled": False for name in DISABLED},
            "query.adaptive_weights": False,
            "query.expand.method": "off",
            "fuse.score_aware": False,
            "fuse.mode": "off",
            "boost.bounded": False,
            "retrieve.legs": ["vector", "keyword"],
            "retrieve.lists": [],
            "retrieve.fill": [],
            "retrieve.widen": False,
            "diversify.relax": False,
        },
    ),
    (
        "plain",
        RAGTRIEVER,
        {
            "fuse.method": "rrf",
            "fuse.k": 60,
            "boost.backlinks.count": "links",
            "boost.backlinks.scale": "linear",
            "boost.backlinks.weight": 0.1,
            "boost.backlinks.cap": 10,
            "boost.recency.date": "modified",
            "boost.recency.tiers": [(14, 1.2), (60, 1.1), (180, 1.0)],
            "boost.recency.older": 0.95,
            "boost.recency.inclusive": False,
            "fuse.weighted.normalise": "off",
            "fuse.weighted.relevance": 1.0,
        },
    ),
    (
        "plain",
        RECOLLECTION,
        {
            "fuse.weights.recency": 1.0,
            "fuse.weights.access": 1.0,
            "boost.importance.levels": ["high"],
        },
    ),
    (
        "plain",
        RAGDOCS,
        {
            "fuse.weights.code": 1.0,
            "query.camel_case": "loose",
            "query.expand.terms": 3,
            "query.expand.similarity": 0.5,
            "boost.recency.bias": 0.5,
            "boost.community.factor": 1.1,
            "boost.community.top": 1,
            "calibrate.bands.excellent": 0.9,
            "calibrate.bands.good": 0.7,
            "calibrate.bands.moderate": 0.5,
            "calibrate.bands.weak": 0.3,
            "dedup.jaccard": 0.7,
            "dedup.keep": "best",
            "diversify.mmr_lambda": 0.7,
            "diversify.relevance": "vector",
            "rerank.n": 10,
            "rerank.close": 0.0,
            "rerank.titles": False,
            "rerank.method": "replace",
            "rerank.weight": 1.0,
            "rerank.rest": "drop",
        },
    ),
    (
        "plain",
        POLICY,
        {
            "fuse.features.similarity": 0.5,
            "fuse.features.recency": 0.2,
            "fuse.features.hierarchy": 0.2,
            "fuse.features.adjacency": 0.1,
            "limit.n": 10,
            "budget.tokens": 4000,
        },
    ),
    (
        "plain",
        LIGHTRAG,
        {
            "fuse.weights.name": 1.0,
            "fuse.weights.vector": 1.0,
            "fuse.weights.graph": 1.0,
            "fuse.weights.keyword": 1.0,
        },
    ),
    (
        "plain",
        OURS,
        {
            "query.phrases": "prefer",
            "retrieve.vector": 50,
            "retrieve.keyword": 50,
            "retrieve.outside": "keep",
            "retrieve.seconds": 2.0,
            # One curve through the seed's years: two are always worth two thirds.
            "fuse.exponent": 0,
            "boost.enabled": True,
            "boost.access.weight": 0.1,
            "boost.templates.folders": ["template", "templates", "_templates"],
            "boost.templates.factor": 0.5,
            "calibrate.enabled": True,
            "calibrate.source": "evidence",
            "calibrate.likely": 0.045,
            "calibrate.reranker": 1.0,
            "dedup.similarity": 0.95,
            "diversify.per_note": 0,
            "diversify.order": "mmr",
            "parents.unit": "passage",
            "parents.per_note": 0,
            "limit.min_confidence": 0.0,
        },
    ),
]
