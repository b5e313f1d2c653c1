"""How much each leg counts for this query, and the k of rank fusion.

    leg_weights   the weights in effect: those of the settings x the factors
    leg_factors   the plan's factors (by type of query) x how certain each leg is of its hits
    rank_mode     k of RRF and the number of results, by mode and length of notes

The seeds measure certainty by the variance of a leg's scores (`fuse.aware.by = "variance"`).
Cosines vary so little that the lower bound always applies, and one word shared by chance gives a
keyword list any variance. `by = "evidence"` uses better measures: how much of the query the best
keyword hit covers, each word weighted by its rarity, and how far the best cosine stands above the
mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import fmean, pvariance
from typing import NamedTuple

from ragvault.candidate import Candidate, Context
from ragvault.config.ranking import Aware, Fuse

LISTS = ("vector", "keyword", "code", "graph", "recency", "access")
JUDGED = ("vector", "keyword")  # legs whose scores show how certain they are


class RankMode(NamedTuple):
    """k of rank fusion, and how many results go with it; None leaves that to `limit`."""

    k: int
    results: int | None


def leg_weights(candidates: Sequence[Candidate], ctx: Context) -> dict[str, float]:
    """The weight of each leg for this query."""
    base, factors = ctx.settings.fuse.weights, leg_factors(candidates, ctx)
    return {leg: getattr(base, leg) * factors[leg] for leg in LISTS}


def leg_factors(candidates: Sequence[Candidate], ctx: Context) -> dict[str, float]:
    """What the plan and the legs' own certainty multiply each leg's weight by."""
    fuse = ctx.settings.fuse
    certainty = {leg: _certainty(leg, candidates, fuse.aware) for leg in JUDGED}
    if fuse.aware.by != "off" and fuse.aware.renormalise:
        planned = {leg: getattr(fuse.weights, leg) * ctx.weights.get(leg, 1.0) for leg in JUDGED}
        certainty = renormalised(planned, certainty)
    return {leg: ctx.weights.get(leg, 1.0) * certainty.get(leg, 1.0) for leg in LISTS}


def renormalised(weights: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, float]:
    """The factors, scaled so that the weights keep their sum."""
    after = sum(weights[leg] * factors[leg] for leg in weights)
    scale = sum(weights.values()) / after if after else 1.0
    return {leg: factor * scale for leg, factor in factors.items()}


def _certainty(leg: str, candidates: Sequence[Candidate], aware: Aware) -> float:
    found = [c for c in candidates if leg in c.ranks]
    if aware.by == "off" or not found:
        return 1.0
    if aware.by == "variance":
        return by_variance([c.scores.get(leg, 0.0) for c in found], aware)
    if leg == "keyword":
        return max(aware.least, max(c.evidence.get("coverage", 0.0) for c in found))
    return by_margin([cosine(c) for c in found], aware)


def by_variance(scores: Sequence[float], aware: Aware) -> float:
    """variance / threshold, between `least` and 1."""
    best = max(scores)
    # Variances of cosines and of BM25 scores have different units; divided by the best score they
    # are nearly comparable.
    scaled = [s / best for s in scores] if aware.scale == "best" and best > 0 else scores
    return max(aware.least, min(1.0, pvariance(scaled) / aware.threshold))


def by_margin(cosines: Sequence[float], aware: Aware) -> float:
    """(best - mean) / margin, between `least` and 1. A margin of 0 switches this off."""
    if aware.margin == 0:
        return 1.0
    return max(aware.least, min(1.0, (max(cosines) - fmean(cosines)) / aware.margin))


def cosine(candidate: Candidate) -> float:
    """The candidate's similarity to the query; 0 where it has no vector."""
    score = candidate.scores.get("vector", 0.0)
    return 0.0 if isnan(score) else score


def rank_mode(fuse: Fuse, note_length: float | None = None) -> RankMode:
    """The k and the number of results of the mode; `note_length` is the vault's median."""
    modes = fuse.modes
    if fuse.mode == "off":
        return RankMode(fuse.k, None)
    if fuse.mode == "speed":
        return RankMode(modes.speed_k, modes.speed_n)
    if fuse.mode == "quality":
        return RankMode(modes.quality_k, modes.quality_n)
    if fuse.mode == "auto" and note_length is not None and note_length < modes.short_note:
        return RankMode(modes.short_k, modes.short_n)
    return RankMode(modes.balanced_k, modes.balanced_n)
