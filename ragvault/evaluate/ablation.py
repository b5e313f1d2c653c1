"""Ablation: what is each part worth? Take it away and ask again.

    leg      one way of finding less
    boost    one reason to rise less, or none at all
    fuse     the lists one after the other, in place of one score; no lift for exact names
    stage    one step of the ranking left out

A variant is settings and nothing else. Parts that are off already have no variant: `off` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragvault.config.settings import Config
from ragvault.plan import LEGS

BOOSTS = (
    *("backlinks", "recency", "community", "importance", "access"),
    *("templates", "superseded"),
)
# What may be left out and still give an answer; `limit` and `budget` only shorten it.
STAGES = ("calibrate", "dedup", "diversify", "rerank", "parents")


@dataclass(frozen=True, slots=True)
class Variant:
    """One part taken away: its name, what sort of part it is, and the settings that do it."""

    name: str
    group: str
    flags: tuple[str, ...]


def variants(config: Config) -> Iterator[Variant]:
    """Every part that is on, each taken away alone."""
    legs = config.retrieve.legs
    for leg in legs:
        left = [f'"{other}"' for other in legs if other != leg]
        if set(left) - {'"graph"'}:  # which finds nothing alone
            yield Variant(leg, "leg", (f"retrieve.legs=[{', '.join(left)}]",))
    yield from _fusion(config)
    if config.boost.enabled:
        on = [name for name in BOOSTS if getattr(config.boost, name).enabled]
        for name in on:
            yield Variant(name, "boost", (f"boost.{name}.enabled=false",))
        if on:
            yield Variant("boost", "stage", ("boost.enabled=false",))
    for stage in STAGES:
        if getattr(config, stage).enabled:
            yield Variant(stage, "stage", (f"{stage}.enabled=false",))


def off(config: Config) -> list[str]:
    """The parts that the settings leave out already."""
    boosts = [name for name in BOOSTS if not getattr(config.boost, name).enabled]
    stages = [name for name in ("boost", *STAGES) if not getattr(config, name).enabled]
    legs = [leg for leg in LEGS if leg not in config.retrieve.legs]
    return [*legs, *boosts, *stages]


def _fusion(config: Config) -> Iterator[Variant]:
    if config.fuse.method != "union":
        yield Variant("fuse", "stage", ('fuse.method="union"',))
    if config.fuse.exact:
        yield Variant("exact", "fuse", ("fuse.exact=0",))
    if config.retrieve.fill != "off":
        yield Variant("fill", "fuse", ('retrieve.fill="off"',))
