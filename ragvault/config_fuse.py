"""The settings of fusion: how several lists become one score.

The reasons stand in config.toml.example, the formulas in docs/ranking.md.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from ragvault.config_table import Above0, AtLeast0, Count, DateOf, From0To1, Open, Positive

Listed = Literal["vector", "keyword", "code", "graph", "recency", "access"]


class Weights(Open, frozen=True):
    """How much each list counts in `rrf` and `weighted`."""

    vector: AtLeast0 = 1.0
    keyword: AtLeast0 = 1.0
    code: AtLeast0 = 1.0
    graph: AtLeast0 = 0.5
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
    short_note: Positive = 500


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


class Features(Open, frozen=True):
    """A sum of four features, each from 0 to 1, in place of fusion."""

    similarity: AtLeast0 = 0.5
    recency: AtLeast0 = 0.2
    hierarchy: AtLeast0 = 0.2
    adjacency: AtLeast0 = 0.1
    half_life: Above0 = 1249.0
    undated: From0To1 = 0.5
    date: DateOf = "note"
    sections: Hierarchy = Hierarchy()
    neighbours: Adjacency = Adjacency()


class Evidence(Open, frozen=True):
    """A sum of what each leg knows, each part measured against the most it could be."""

    vector: AtLeast0 = 1.0
    passage: AtLeast0 = 0.2
    note: AtLeast0 = 0.1
    title: AtLeast0 = 0.1
    coverage: AtLeast0 = 0.2
    trust: AtLeast0 = 0.75
    code: AtLeast0 = 0.05
    graph: AtLeast0 = 0.0


class Fuse(Open, frozen=True):
    """Several lists become one score."""

    method: Literal["evidence", "rrf", "weighted", "features", "union"] = "evidence"
    level: Literal["passage", "note"] = "passage"
    exact: AtLeast0 = 1.0
    keep: Count = 8
    k: Positive = 60
    mode: Literal["off", "speed", "balanced", "quality", "auto"] = "off"
    order: list[Listed] = field(default_factory=lambda: ["vector", "graph", "keyword", "code"])
    weights: Weights = Weights()
    aware: Aware = Aware()
    modes: Modes = Modes()
    weighted: Weighted = Weighted()
    features: Features = Features()
    evidence: Evidence = Evidence()
