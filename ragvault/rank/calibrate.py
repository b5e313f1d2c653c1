"""Calibrate: set each candidate's confidence, from 0 to 1, and its band.

    score       1 / (1 + exp(-steepness * (score - threshold))), ragdocs' sigmoid of a fused score
    evidence    1 - (1 - vector) * (1 - keyword), each a sigmoid of what that leg knows

The sigmoid of an RRF score gives 0.06 to rank 1 of one leg. With a floor of 0.3, hybrid search
would then return only what several legs agree on. Evidence is absolute, and one leg is enough.
Scores and order do not change. Candidates below the floor are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Step
from ragvault.config.ranking import Bands, Calibrate, KeywordCurve
from ragvault.rank.fuse import EXACT_MATCHES, cosine


def calibrate(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Set confidence and band; the score does not change."""
    settings = ctx.settings.calibrate
    if not settings.enabled:
        return Ranked(tuple(candidates))
    calibrated = [_calibrated(each, settings) for each in candidates]
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


def band(confidence: float, bands: Bands) -> str:
    """The highest band whose bound this confidence exceeds."""
    for name in ("excellent", "good", "moderate", "weak"):
        if confidence > getattr(bands, name):
            return name
    return "noise"


def _calibrated(candidate: Candidate, settings: Calibrate) -> Candidate:
    confidence, why = _confidence(candidate, settings)
    name = band(confidence, settings.bands)
    step = Step("calibrate", candidate.score, candidate.score, why=f"{confidence:.3f}: {why}")
    return replace(candidate, confidence=confidence, band=name, steps=(*candidate.steps, step))


def _confidence(candidate: Candidate, settings: Calibrate) -> tuple[float, str]:
    if settings.source == "score":
        confidence = sigmoid(candidate.score, settings.threshold, settings.steepness)
        return confidence, f"score {candidate.score:.4f}, threshold {settings.threshold}"
    vector = _vector_confidence(candidate, settings)
    keyword = _keyword_confidence(candidate, settings.keyword)
    confidence = 1 - (1 - vector) * (1 - keyword)
    why = f"vector {vector:.3f}, keyword {keyword:.3f}"
    if candidate.exact and confidence < settings.exact:
        return settings.exact, f"{why}, raised: {EXACT_MATCHES[candidate.exact]}"
    return confidence, why


def _vector_confidence(candidate: Candidate, settings: Calibrate) -> float:
    if "vector" not in candidate.scores:
        return 0.0
    curve = settings.vector
    return sigmoid(cosine(candidate), curve.threshold, curve.steepness)


def _keyword_confidence(candidate: Candidate, curve: KeywordCurve) -> float:
    known = candidate.evidence
    found = curve.coverage * known.get("coverage", 0.0) + curve.passage * known.get("passage", 0.0)
    return sigmoid(found, curve.threshold, curve.steepness)


def _all_too_low(count: int, floor: float) -> tuple[str, ...]:
    found = "the only passage found is" if count == 1 else f"all {count} passages found are"
    return (f"{found} below the confidence floor of {floor:g} (calibrate.floor)",)


def _too_low(candidate: Candidate, floor: float) -> str:
    return f"confidence {candidate.confidence:.3f} is below the floor of {floor:g}"
