"""The space of a tuning: which weights may change, in which steps, and how far.

Which ones there are depends on the fusion in use; a part that is off has none. Every key is a
setting of the ranking alone, so that what was found for a question stays true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from msgspec.structs import replace

from ragvault.config.settings import Config

STEPS = (0.5, 0.75, 1.33, 2.0)  # times the value; a few in turn reach any
# Where a weight of 0 may begin: as much as the smallest of ours that was measured.
START = 0.05

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting that may be turned, within its bounds."""

    key: str
    low: float = 0.0
    high: float = 4.0
    whole: bool = False

    def near(self, value: float) -> Iterator[float]:
        """The values that are tried from here."""
        found = [value * step for step in STEPS] if value else [START]
        found += [] if value < START else [0.0]
        tried = {self._bounded(each) for each in found} - {value}
        yield from sorted(tried)

    def _bounded(self, value: float) -> float:
        bounded = min(max(value, self.low), self.high)
        return round(bounded) if self.whole else round(bounded, 4)


_FUSION = {
    "evidence": tuple(
        Knob(f"fuse.evidence.{part}") for part in ("passage", "note", "title", "coverage", "trust")
    ),
    "rrf": (Knob("fuse.weights.keyword"), Knob("fuse.weights.graph"), Knob("fuse.k", 1, 200, True)),
    "weighted": (Knob("fuse.weights.keyword"),),
    "features": tuple(
        Knob(f"fuse.features.{part}") for part in ("recency", "hierarchy", "adjacency")
    ),
    "union": (),
}
_BOOSTS = {
    "backlinks": Knob("boost.backlinks.weight", 0, 0.1),
    "recency": Knob("boost.recency.bias", 0, 1),
    "access": Knob("boost.access.weight", 0, 0.1),
}


def knobs(config: Config) -> list[Knob]:
    """What may be turned under these settings."""
    found = list(_FUSION[config.fuse.method])
    if config.boost.enabled:
        found += [knob for name, knob in _BOOSTS.items() if getattr(config.boost, name).enabled]
        if config.boost.bounded:
            found.append(Knob("boost.max_rise", 0, 10, True))
    return found


def value(config: Config, key: str) -> float:
    found: Any = reduce(getattr, key.split("."), config)
    return float(found)


def turned(config: Config, values: Values) -> Config:
    """The settings with these values."""
    for key, number in values.items():
        config = _put(config, key.split("."), number)
    return config


def _put(table: Any, path: list[str], number: float) -> Any:
    name, *rest = path
    here = getattr(table, name)
    new = _put(here, rest, number) if rest else type(here)(number)
    return replace(table, **{name: new})
