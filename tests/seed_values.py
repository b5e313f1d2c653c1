"""What the seeds print, profile by profile.

A row is a profile, who says so, and settings with their values. Every setting that the file of a
profile names stands in a row of that profile, so that no value can change unnoticed; a row may also
name what a profile has by what it extends, where the seed prints it.
"""

from __future__ import annotations

from seed_ground import GROUND, LIGHTRAG, POLICY, RAGDOCS, RAGTRIEVER, RECOLLECTION, Row

PROFILES: list[Row] = [
    (
        "ragtriever",
        RAGTRIEVER,
        {
            "retrieve.legs": ["vector", "keyword"],
            "fuse.method": "rrf",
            "fuse.k": 60,
            "fuse.weights.vector": 1.0,
            "fuse.weights.keyword": 1.0,
            "boost.backlinks.enabled": True,
            "boost.backlinks.weight": 0.1,
            "boost.backlinks.cap": 10,
            "boost.recency.enabled": True,
            "boost.recency.tiers": [(14, 1.2), (60, 1.1), (180, 1.0)],
            "boost.recency.older": 0.95,
            "rerank.enabled": False,
        },
    ),
    (
        "ragtriever-weighted",
        RAGTRIEVER,
        {
            "retrieve.legs": ["vector", "keyword"],
            "fuse.method": "weighted",
            "fuse.weights.vector": 1.0,
            "fuse.weights.keyword": 0.5,
            "fuse.weighted.normalise": "off",
            "boost.backlinks.enabled": False,
            "boost.recency.enabled": False,
        },
    ),
    (
        "recollection",
        RECOLLECTION,
        {
            "retrieve.legs": ["vector", "keyword"],
            "retrieve.lists": ["recency", "access"],
            "retrieve.keyword": 50,
            "retrieve.vector": 200,
            "retrieve.window": 200,
            "retrieve.outside": "keep",
            "retrieve.fill": ["vector"],
            "fuse.method": "rrf",
            "fuse.k": 60,
            "fuse.weights.vector": 1.0,
            "fuse.weights.keyword": 1.0,
            "fuse.weights.recency": 0.6,
            "fuse.weights.access": 0.4,
            "boost.importance.enabled": True,
            "limit.n": 3,
        },
    ),
    (
        "recollection-weighted",
        RECOLLECTION,
        {
            "retrieve.legs": ["vector", "keyword"],
            "retrieve.lists": [],
            "retrieve.keyword": 50,
            "retrieve.vector": 200,
            "retrieve.window": 200,
            "retrieve.outside": "drop",
            "retrieve.fill": ["vector"],
            "fuse.method": "weighted",
            "fuse.weights.vector": 0.7,
            "fuse.weights.keyword": 0.3,
            "fuse.weighted.normalise": "minmax",
            "fuse.weighted.floor": 0.3,
            "fuse.weighted.relevance": 0.5,
            "fuse.weighted.recency": 0.3,
            "fuse.weighted.access": 0.2,
            "boost.importance.enabled": False,
            "limit.n": 3,
        },
    ),
    (
        "ragdocs",
        RAGDOCS,
        {
            "query.adaptive_weights": True,
            "query.expand.method": "similarity",
            "retrieve.legs": ["vector", "keyword", "code", "graph"],
            "fuse.method": "rrf",
            "fuse.weights.graph": 0.5,
            "fuse.score_aware": True,
            "boost.recency.enabled": True,
            "boost.recency.tiers": [(7, 1.2), (30, 1.1)],
            "boost.recency.older": 1.0,
            "boost.recency.inclusive": True,
            "boost.community.enabled": True,
            "calibrate.source": "score",
            "calibrate.floor": 0.3,
            "dedup.enabled": True,
            "diversify.enabled": True,
            "rerank.enabled": True,
            "parents.enabled": True,
            "parents.unit": "section",
            "limit.n": 5,
        },
    ),
    *(
        (
            name,
            RAGDOCS,
            {
                "fuse.weights.vector": vector,
                "fuse.weights.keyword": keyword,
                "boost.recency.bias": bias,
                "calibrate.source": "score",
                "rerank.enabled": True,
                "limit.n": 5,
            },
        )
        for name, vector, keyword, bias in (
            ("docs", 1.0, 1.0, 0.5),
            ("technical", 0.8, 1.5, 0.3),
            ("personal", 1.3, 0.7, 0.8),
            ("research", 1.5, 0.5, 0.0),
        )
    ),
    *(
        (
            name,
            POLICY,
            {
                "retrieve.legs": ["vector"],
                "retrieve.vector": 20,
                "fuse.method": "features",
                "fuse.features.similarity": similarity,
                "fuse.features.recency": recency,
                "fuse.features.hierarchy": hierarchy,
                "fuse.features.adjacency": adjacency,
                "parents.enabled": True,
                "parents.unit": "passage",
                "parents.neighbours": 1,
                "limit.n": 10,
                "budget.enabled": True,
                "budget.tokens": 4000,
            },
        )
        for name, similarity, recency, hierarchy, adjacency in (
            ("policy", 0.5, 0.2, 0.2, 0.1),
            ("historical", 0.5, 0.05, 0.3, 0.15),
            ("current", 0.4, 0.4, 0.15, 0.05),
            ("definitions", 0.4, 0.1, 0.4, 0.1),
        )
    ),
    *(
        (
            name,
            LIGHTRAG,
            {
                "retrieve.legs": ["vector", "keyword", "graph"],
                "fuse.method": "rrf",
                "fuse.mode": mode,
                "fuse.weights.vector": 1.0,
                "fuse.weights.graph": 1.0,
                "fuse.weights.keyword": 1.0,
                "limit.n": n,
            },
        )
        for name, mode, n in (
            ("lightrag", "quality", 3),
            ("speed", "speed", 2),
            ("balanced", "balanced", 3),
            ("quality", "quality", 3),
        )
    ),
    (
        "lightrag-mix",
        LIGHTRAG,
        {
            "retrieve.legs": ["vector", "keyword", "graph"],
            "fuse.method": "union",
            "limit.n": 3,
        },
    ),
]

ROWS = [*GROUND, *PROFILES]
