"""The settings of the read path before ranking: profile, query and retrieval.

The reasons stand in config.toml.example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import field

from ragvault.config_table import Above0, AtLeast0, Count, From0To1, Open, Positive, told

Leg = Literal["vector", "keyword", "code", "graph"]


def _finding(legs: Sequence[str]) -> bool:
    """The graph leg looks at the neighbours of what others found, and finds nothing alone."""
    return bool(set(legs) - {"graph"})


Legs = Annotated[
    list[Leg],
    told('a list of "vector", "keyword", "code", "graph", one of the first three in it', _finding),
]


class Search(Open, frozen=True):
    """Which profile is laid under the other settings."""

    profile: str = "default"


class TypeWeights(Open, frozen=True):
    """What a query of one type multiplies the weight of one leg by."""

    factual_keyword: AtLeast0 = 1.5
    navigational_graph: AtLeast0 = 1.5
    exploratory_vector: AtLeast0 = 1.3


class Expand(Open, frozen=True):
    """Words of the vault's own vocabulary that are added to a query."""

    method: Literal["off", "similarity", "percentile"] = "off"
    terms: Positive = 3
    similarity: From0To1 = 0.5
    percentile: From0To1 = 0.999
    weight: From0To1 = 0.5
    embed: bool = False


class Query(Open, frozen=True):
    """How a query is understood."""

    adaptive_weights: bool = False
    hypothesis: bool = True
    camel_case: Literal["identifier", "loose"] = "identifier"
    phrases: Literal["must", "prefer"] = "must"
    weights: TypeWeights = TypeWeights()
    expand: Expand = Expand()


class Retrieve(Open, frozen=True):
    """How many candidates each leg brings, and what happens to those a leg missed."""

    legs: Legs = field(default_factory=lambda: ["vector", "keyword", "code", "graph"])
    lists: list[Literal["recency", "access"]] = field(default_factory=list)
    vector: Positive = 70
    keyword: Positive = 70
    code: Positive = 50
    graph: Positive = 50
    widen: bool = True
    seeds: Positive = 10
    window: Count = 0
    outside: Literal["keep", "drop"] = "keep"
    fill: Literal["off", "score", "rank"] = "score"
    fill_legs: list[Literal["vector", "keyword"]] = field(
        default_factory=lambda: ["vector", "keyword"]
    )
    seconds: Above0 = 2.0
