"""Calibrate: set each candidate's confidence, from 0 to 1, and its band.

    score       1 / (1 + exp(-steepness * (score - threshold))), ragdocs' sigmoid of a fused score
    evidence    the same curve of the evidence that `fuse` ranks by, summed over the legs without
                their ranks: how likely a judge would call this result an answer

The sigmoid of an RRF score gives 0.06 to rank 1 of one leg. With a floor of 0.3, hybrid search
would then return only what several legs agree on. Evidence is absolute, and one leg is enough. The
evidence of a vector is measured from the cosine that unrelated texts have by the same model, so
one curve holds for different models (docs/decisions.md); `ragvault tune` fits it to a vault.

Scores and order do not change. Candidates below the floor are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Step
from ragvault.rank.fuse import EXACT_MATCHES, leg_evidence

LEGS = ("vector", "keyword", "name")  # whose evidence depends on the query alone


def calibrate(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Set confidence and band; the score does not change."""
    settings = ctx.settings.calibrate
    if not settings.enabled:
        return Ranked(tuple(candidates))
    scale = evidence_scale(candidates, ctx)
    calibrated = [_calibrated(each, ctx, scale) for each in candidates]
    below = [each for each in calibrated if (each.confidence or 0.0) < settings.floor]
    if not below:
        return Ranked(tuple(calibrated))
    gone = {each.id for each in below}
    return Ranked(
        tuple(each for each in calibrated if each.id not in gone),
        tuple(Removal(each, _too_low(each, settings.floor)) for each in below),
        _all_too_low(len(below), settings.floor) if len(below) == len(calibrated) else (),
    )


def sigmoid(x: float, threshold: float, steepness: float) -> float:
    """1 / (1 + exp(-steepness * (x - threshold))), without overflow at either end."""
    power = steepness * (x - threshold)
    if power >= 0:
        return 1 / (1 + exp(-power))
    return exp(max(power, -700.0)) / (1 + exp(max(power, -700.0)))


def evidence_parts(candidate: Candidate, ctx: Context, scale: float = 1.0) -> dict[str, float]:
    """What each leg adds to the evidence of a candidate; their sum is about 0 to 1.5."""
    curve, parts = ctx.settings.calibrate.evidence, {}
    for leg in LEGS:
        known = leg != "name" or "name" in candidate.evidence
        found = leg_evidence(candidate, leg, ctx) if known else 0.0
        weight = getattr(curve, leg) * (1.0 if leg == "name" else scale)
        parts[leg] = weight * found**curve.exponent
    return parts


def evidence_scale(candidates: Sequence[Candidate], ctx: Context) -> float:
    """Without vectors, or without words, the other of these legs has to carry the evidence."""
    curve = ctx.settings.calibrate.evidence
    asked = {
        "vector": any("vector" in each.scores for each in candidates),
        "keyword": "keyword" in ctx.settings.retrieve.legs,
    }
    known = sum(getattr(curve, leg) for leg, answered in asked.items() if answered)
    return (curve.vector + curve.keyword) / known if known else 1.0


def _calibrated(candidate: Candidate, ctx: Context, scale: float) -> Candidate:
    confidence, why = _confidence(candidate, ctx, scale)
    name = ctx.settings.calibrate.bands.name(confidence)
    step = Step("calibrate", candidate.score, candidate.score, why=f"{confidence:.3f}: {why}")
    return replace(candidate, confidence=confidence, band=name, steps=(*candidate.steps, step))


def _confidence(candidate: Candidate, ctx: Context, scale: float) -> tuple[float, str]:
    settings = ctx.settings.calibrate
    if settings.source == "score":
        confidence = sigmoid(candidate.score, settings.threshold, settings.steepness)
        return confidence, f"score {candidate.score:.4f}, threshold {settings.threshold}"
    curve, parts = settings.evidence, evidence_parts(candidate, ctx, scale)
    confidence = sigmoid(sum(parts.values()), curve.threshold, curve.steepness)
    why = "evidence " + ", ".join(f"{leg} {value:.2f}" for leg, value in parts.items())
    if candidate.exact and confidence < settings.exact:
        return settings.exact, f"{why}, raised: {EXACT_MATCHES[candidate.exact]}"
    return confidence, why


def _all_too_low(count: int, floor: float) -> tuple[str, ...]:
    found = "the only passage found is" if count == 1 else f"all {count} passages found are"
    return (f"{found} below the confidence floor of {floor:g} (calibrate.floor)",)


def _too_low(candidate: Candidate, floor: float) -> str:
    return f"confidence {candidate.confidence:.3f} is below the floor of {floor:g}"
