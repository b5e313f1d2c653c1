"""Ablation: which parts can be switched off, to measure what each is worth.

    leg      without one leg
    boost    without one boost
    fuse     without the lift for exact names, or without scores filled in by other legs
    stage    without one ranking stage; without `fuse`, the lists are concatenated

A variant is only settings. Parts that are already off have no variant: `parts_off` lists them.
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
# Stages that are optional. `limit` and `budget` only shorten an answer.
STAGES = ("calibrate", "dedup", "diversify", "rerank", "parents")


@dataclass(frozen=True, slots=True)
class Variant:
    """One part switched off: its name, its group, and the settings that do it."""

    name: str
    group: str
    flags: tuple[str, ...]


def variants(config: Config) -> Iterator[Variant]:
    """One variant for every part that is on."""
    legs = config.retrieve.legs
    for leg in legs:
        left = [f'"{other}"' for other in legs if other != leg]
        if set(left) - {'"graph"'}:  # the graph leg finds nothing alone
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


def parts_off(config: Config) -> list[str]:
    """The parts that these settings already switch off."""
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
