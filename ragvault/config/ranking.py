"""The settings of the ranking stages, one table a stage.

The defaults are the profile `default`; a profile is a file of these settings and nothing else. The
formulas are in docs/ranking.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from msgspec import field

from ragvault.config.schema import (
    Above0,
    AtLeast0,
    Count,
    DateOf,
    Factor,
    From0To1,
    How,
    Open,
    Positive,
    Share,
    Size,
    checked,
    whole,
)


def _rising(tiers: Sequence[Sequence[float]]) -> bool:
    """The first tier that holds an age counts: one behind a longer one would never be asked."""
    return all(shorter[0] < longer[0] for shorter, longer in pairwise(tiers))


Tiers = Annotated[
    list[tuple[Above0, Factor]],
    checked("a list of [days, factor], the fewest days first: [[14, 1.2], [60, 1.1]]", _rising),
]


# --- fuse ---

Listed = Literal["name", "vector", "keyword", "code", "graph", "recency", "access"]


class Weights(Open, frozen=True):
    """How much each list counts in `rrf` and `weighted`."""

    name: AtLeast0 = 1.25
    vector: AtLeast0 = 1.0
    keyword: AtLeast0 = 1.2
    code: AtLeast0 = 0.1
    graph: AtLeast0 = 0.2
    recency: AtLeast0 = 0.6
    access: AtLeast0 = 0.4


class Aware(Open, frozen=True):
    """Weights that follow what a leg knows about this query."""

    by: Literal["off", "variance", "evidence"] = "off"
    threshold: Above0 = 0.1
    least: From0To1 = 0.2
    scale: Literal["raw", "best"] = "raw"
    margin: AtLeast0 = 0.0
    renormalise: bool = True


class Modes(Open, frozen=True):
    """A damping constant and a number of results for each mode, and for short notes in `auto`."""

    speed_k: Positive = 40
    speed_n: Positive = 2
    balanced_k: Positive = 60
    balanced_n: Positive = 3
    quality_k: Positive = 80
    quality_n: Positive = 3
    short_k: Positive = 80
    short_n: Positive = 2
    short_note: Size = 500


class Weighted(Open, frozen=True):
    """Raw scores, weighted: how it was done before rank fusion."""

    normalise: Literal["off", "minmax"] = "off"
    lone: From0To1 = 0.5
    floor: From0To1 = 0.0
    relevance: AtLeast0 = 1.0
    recency: AtLeast0 = 0.0
    access: AtLeast0 = 0.0
    half_life: Above0 = 30.0
    date: DateOf = "note"


class Hierarchy(Open, frozen=True):
    """What a section is worth by its heading, and what its form adds."""

    definitions: From0To1 = 1.0
    overview: From0To1 = 0.9
    policy: From0To1 = 0.85
    summary: From0To1 = 0.8
    regular: From0To1 = 0.5
    table: From0To1 = 0.15
    numbered: From0To1 = 0.1
    reference: From0To1 = 0.1
    header: From0To1 = 0.05


class Adjacency(Open, frozen=True):
    """What a passage is worth by how many of its two neighbours were found as well."""

    none: From0To1 = 0.3
    one: From0To1 = 0.65
    both: From0To1 = 1.0


class FeatureWeights(Open, frozen=True):
    """How much each of the four features counts."""

    similarity: AtLeast0 = 0.5
    recency: AtLeast0 = 0.2
    hierarchy: AtLeast0 = 0.2
    adjacency: AtLeast0 = 0.1


class HistoricalWeights(FeatureWeights, frozen=True):
    """The weights for questions about the past."""

    recency: AtLeast0 = 0.05
    hierarchy: AtLeast0 = 0.3
    adjacency: AtLeast0 = 0.15


class CurrentWeights(FeatureWeights, frozen=True):
    """The weights for questions about what applies today."""

    similarity: AtLeast0 = 0.4
    recency: AtLeast0 = 0.4
    hierarchy: AtLeast0 = 0.15
    adjacency: AtLeast0 = 0.05


class DefinitionWeights(FeatureWeights, frozen=True):
    """The weights for questions about what a word means."""

    similarity: AtLeast0 = 0.4
    recency: AtLeast0 = 0.1
    hierarchy: AtLeast0 = 0.4


class Features(FeatureWeights, frozen=True):
    """A sum of four features, each from 0 to 1, in place of fusion.

    With `query.adaptive_weights` a query that shows its use case has the weights of that one.
    """

    historical: HistoricalWeights = HistoricalWeights()
    current: CurrentWeights = CurrentWeights()
    definitions: DefinitionWeights = DefinitionWeights()
    half_life: Above0 = 1249.0
    undated: From0To1 = 0.5
    date: DateOf = "note"
    sections: Hierarchy = Hierarchy()
    neighbours: Adjacency = Adjacency()


class KeywordEvidence(Open, frozen=True):
    """What the evidence of a keyword hit is made of: shares of their sum."""

    coverage: AtLeast0 = 0.6
    passage: AtLeast0 = 0.0
    note: AtLeast0 = 0.4
    title: AtLeast0 = 0.0


class Fuse(Open, frozen=True):
    """Several lists become one score."""

    method: Literal["rrf", "weighted", "features", "union"] = "rrf"
    level: Literal["passage", "note"] = "passage"
    exact: AtLeast0 = 1.0
    keep: Count = 8
    k: Positive = 60
    exponent: AtLeast0 = 1.5
    mode: Literal["off", "speed", "balanced", "quality", "auto"] = "off"
    order: list[Listed] = field(
        default_factory=lambda: ["name", "vector", "graph", "keyword", "code"]
    )
    weights: Weights = Weights()
    aware: Aware = Aware()
    modes: Modes = Modes()
    weighted: Weighted = Weighted()
    features: Features = Features()
    keyword: KeywordEvidence = KeywordEvidence()


# --- boost ---


class Backlinks(Open, frozen=True):
    """Notes that others link to."""

    enabled: bool = True
    how: How = "multiply"
    count: Literal["notes", "links"] = "notes"
    scale: Literal["linear", "log"] = "log"
    weight: AtLeast0 = 0.01
    cap: Positive = 10


class Recency(Open, frozen=True):
    """Notes of late."""

    enabled: bool = True
    how: How = "multiply"
    date: DateOf = "note"
    shape: Literal["tiers", "half-life"] = "tiers"
    tiers: Tiers = field(default_factory=lambda: [(14.0, 1.02), (60.0, 1.01)])
    older: Factor = 1.0
    inclusive: bool = False
    bias: From0To1 = 0.5
    half_life: Above0 = 30.0
    weight: AtLeast0 = 0.02


class Community(Open, frozen=True):
    """Notes of the same community as the best ones."""

    enabled: bool = True
    how: How = "multiply"
    factor: Factor = 1.01
    top: Positive = 3


class Importance(Open, frozen=True):
    """Notes that say of themselves that they are important."""

    enabled: bool = True
    how: How = "add"
    levels: list[str] = field(default_factory=lambda: ["high"])
    ranks: Positive = 10


class Access(Open, frozen=True):
    """Notes that are opened often."""

    enabled: bool = False
    how: How = "multiply"
    weight: AtLeast0 = 0.02


class Templates(Open, frozen=True):
    """Notes that are forms to fill in, and answer nothing."""

    enabled: bool = True
    folders: list[str] = field(default_factory=lambda: ["template", "templates", "_templates"])
    factor: Factor = 0.5


class Superseded(Open, frozen=True):
    """Notes that another one replaces."""

    enabled: bool = True
    place: Literal["replaced", "replacing"] = "replaced"


class Boost(Open, frozen=True):
    """What is known of a note, whatever the query."""

    enabled: bool = True
    bounded: bool = True
    max_rise: From0To1 = 0.4
    backlinks: Backlinks = Backlinks()
    recency: Recency = Recency()
    community: Community = Community()
    importance: Importance = Importance()
    access: Access = Access()
    templates: Templates = Templates()
    superseded: Superseded = Superseded()


# --- calibrate ---


class Bands(Open, frozen=True):
    """Above which confidence a match has which name; below all of them it is unlikely."""

    rules = (("weak", "<", "moderate"), ("moderate", "<", "good"), ("good", "<", "excellent"))

    excellent: From0To1 = 0.9
    good: From0To1 = 0.7
    moderate: From0To1 = 0.5
    weak: From0To1 = 0.2

    def name(self, confidence: float) -> str:
        """The highest band whose bound this confidence exceeds."""
        for name in ("excellent", "good", "moderate", "weak"):
            if confidence > getattr(self, name):
                return name
        return "unlikely"


class EvidenceCurve(Open, frozen=True):
    """The evidence of the legs in one sum, and the S-curve that makes a confidence of it."""

    threshold: AtLeast0 = 0.39
    steepness: Above0 = 8.5
    others: From0To1 = 0.4
    exponent: AtLeast0 = 1.5
    vector: AtLeast0 = 1.0
    keyword: AtLeast0 = 0.5
    name: AtLeast0 = 0.4


class Calibrate(Open, frozen=True):
    """How likely a result answers, on a scale that can be compared between answers."""

    enabled: bool = True
    source: Literal["evidence", "score"] = "evidence"
    threshold: AtLeast0 = 0.035
    steepness: Above0 = 150.0
    exact: From0To1 = 0.95
    floor: From0To1 = 0.0
    likely: From0To1 = 0.08
    reranker: From0To1 = 0.2
    evidence: EvidenceCurve = EvidenceCurve()
    bands: Bands = Bands()


# --- dedup, diversify, rerank, parents, limit, budget ---


class Dedup(Open, frozen=True):
    """The same thing said twice."""

    enabled: bool = True
    hash: bool = True
    ngram: bool = True
    n: Positive = 3
    jaccard: Share = 0.9
    cosine: bool = True
    similarity: Share = 0.98
    keep: Literal["best", "newest"] = "best"
    reach: Count = 3


class Lambdas(Open, frozen=True):
    """Lambda of MMR for each type of query."""

    factual: From0To1 = 0.9
    navigational: From0To1 = 0.7
    exploratory: From0To1 = 0.5
    plain: From0To1 = 0.7


class Diversify(Open, frozen=True):
    """Not ten times the same corner of the vault."""

    enabled: bool = True
    method: Literal["mmr", "per-note"] = "mmr"
    per_note: Count = 3
    relax: bool = True
    mmr_lambda: From0To1 = 0.8
    by_type: bool = False
    relevance: Literal["vector", "score", "confidence"] = "score"
    order: Literal["score", "mmr"] = "score"
    lambdas: Lambdas = Lambdas()


class Rerank(Open, frozen=True):
    """The best ones read again by a model that sees query and passage together."""

    enabled: bool = False
    n: Annotated[int, whole(1, 100)] = 20
    close: From0To1 = 0.8
    titles: bool = True
    method: Literal["rank", "score", "replace"] = "score"
    weight: From0To1 = 0.3
    k: Count = 10
    rest: Literal["keep", "drop"] = "keep"


class Parents(Open, frozen=True):
    """A passage becomes its section."""

    enabled: bool = True
    unit: Literal["section", "passage"] = "section"
    neighbours: Annotated[int, whole(0, 20)] = 0
    per_note: Count = 1
    alike: From0To1 = 0.4


class Limit(Open, frozen=True):
    """How many results, where the caller does not say."""

    enabled: bool = True
    n: Positive = 10
    closest: Positive = 5
    min_confidence: From0To1 = 0.0


class Budget(Open, frozen=True):
    """What fits into the reader's context."""

    enabled: bool = False
    tokens: Size = 4000
    chars_per_token: Above0 = 4.0
    last: Literal["cut", "leave"] = "cut"
    least: Count = 20
