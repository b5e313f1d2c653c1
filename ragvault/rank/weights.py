"""How much each leg counts for this query, and how fast a rank loses its worth.

    factors    the plan's factors (by the type of the query) x what a leg knows about this query
    of_legs    the weights in effect: those of the settings x the factors
    damping    k of rank fusion, and the number of results, by mode and length of notes

Variance is the seeds' measure of a leg that is unsure. A cosine's is so small that the floor always
wins, and one word shared by chance gives a keyword list any variance you like; so there is also
evidence: how much of the query the best keyword hit covers, each word weighing its rarity, and how
far the best cosine stands out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import fmean, pvariance

from ragvault.candidate import Candidate, Context
from ragvault.config.ranking import Aware, Fuse

LEGS = ("vector", "keyword", "code", "graph", "recency", "access")
JUDGED = ("vector", "keyword")  # whose scores say how sure the leg is


def of_legs(candidates: Sequence[Candidate], ctx: Context) -> dict[str, float]:
    """The weight of each leg for this query."""
    base, changed = ctx.settings.fuse.weights, factors(candidates, ctx)
    return {leg: getattr(base, leg) * changed[leg] for leg in LEGS}


def factors(candidates: Sequence[Candidate], ctx: Context) -> dict[str, float]:
    """What the plan and the legs' own certainty multiply each leg's weight by."""
    fuse = ctx.settings.fuse
    sure = {leg: _certainty(leg, candidates, fuse.aware) for leg in JUDGED}
    if fuse.aware.by != "off" and fuse.aware.renormalise:
        meant = {leg: getattr(fuse.weights, leg) * ctx.weights.get(leg, 1.0) for leg in JUDGED}
        sure = renormalised(meant, sure)
    return {leg: ctx.weights.get(leg, 1.0) * sure.get(leg, 1.0) for leg in LEGS}


def renormalised(weights: Mapping[str, float], sure: Mapping[str, float]) -> dict[str, float]:
    """The same factors, scaled so that the weights keep their sum."""
    after = sum(weights[leg] * sure[leg] for leg in weights)
    scale = sum(weights.values()) / after if after else 1.0
    return {leg: factor * scale for leg, factor in sure.items()}


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
    """max(least, variance / threshold); a variance above the threshold changes nothing."""
    best = max(scores)
    # A variance of cosines and one of BM25 share no unit; divided by the best they nearly do.
    scaled = [s / best for s in scores] if aware.scale == "best" and best > 0 else scores
    return max(aware.least, min(1.0, pvariance(scaled) / aware.threshold))


def by_margin(cosines: Sequence[float], aware: Aware) -> float:
    """How far the best stands above the mean, against the margin that is enough; 0 asks nothing."""
    if aware.margin == 0:
        return 1.0
    return max(aware.least, min(1.0, (max(cosines) - fmean(cosines)) / aware.margin))


def cosine(candidate: Candidate) -> float:
    """Its similarity to the query; 0 where it has no vector."""
    score = candidate.scores.get("vector", 0.0)
    return 0.0 if isnan(score) else score


def damping(fuse: Fuse, note_length: float | None = None) -> tuple[int, int | None]:
    """k, and how many results go with it; None where the mode leaves that to `limit`."""
    modes = fuse.modes
    if fuse.mode == "off":
        return fuse.k, None
    if fuse.mode == "speed":
        return modes.speed_k, modes.speed_n
    if fuse.mode == "quality":
        return modes.quality_k, modes.quality_n
    if fuse.mode == "auto" and note_length is not None and note_length < modes.short_note:
        return modes.short_k, modes.short_n
    return modes.balanced_k, modes.balanced_n
