"""Calibrate: how sure we are of each candidate, 0 to 1, and the name of that band.

    score       1 / (1 + exp(-steepness * (score - threshold))), the seeds' sigmoid of a fused score
    evidence    1 - (1 - vector) * (1 - keyword), each a sigmoid of what that leg knows

The sigmoid of an RRF score gives 0.06 to rank 1 of one leg, so that a floor of 0.3 would turn a
hybrid search into one that wants every leg to agree. Evidence is absolute, and one leg is enough.
The score and the order stay as they are; below the floor a candidate is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Step
from ragvault.config.ranking import Bands, Calibrate, KeywordCurve
from ragvault.rank import weights


def calibrate(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Set confidence and band; leave the score."""
    settings = ctx.settings.calibrate
    if not settings.enabled:
        return Ranked(tuple(candidates))
    sure = [_calibrated(each, settings) for each in candidates]
    below = [each for each in sure if (each.confidence or 0.0) < settings.floor]
    if not below:
        return Ranked(tuple(sure))
    gone = {each.id for each in below}
    return Ranked(
        tuple(each for each in sure if each.id not in gone),
        tuple(Removal(each, _too_low(each, settings.floor)) for each in below),
        _all_too_low(len(below), settings.floor) if len(below) == len(sure) else (),
    )


def sigmoid(x: float, threshold: float, steepness: float) -> float:
    """0.5 at the threshold. Written so that neither end overflows."""
    power = steepness * (x - threshold)
    if power >= 0:
        return 1 / (1 + exp(-power))
    return exp(max(power, -700.0)) / (1 + exp(max(power, -700.0)))


def band(confidence: float, bands: Bands) -> str:
    """The name of the highest band this confidence is above."""
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
        sure = sigmoid(candidate.score, settings.threshold, settings.steepness)
        return sure, f"score {candidate.score:.4f} around {settings.threshold}"
    vector = _vector(candidate, settings)
    keyword = sigmoid(*_words(candidate, settings.keyword))
    sure = 1 - (1 - vector) * (1 - keyword)
    why = f"vector {vector:.3f}, keyword {keyword:.3f}"
    if candidate.exact and sure < settings.exact:
        return settings.exact, f"{why}, and the {candidate.exact} itself"
    return sure, why


def _vector(candidate: Candidate, settings: Calibrate) -> float:
    if "vector" not in candidate.scores:
        return 0.0
    curve = settings.vector
    return sigmoid(weights.cosine(candidate), curve.threshold, curve.steepness)


def _words(candidate: Candidate, curve: KeywordCurve) -> tuple[float, float, float]:
    known = candidate.evidence
    found = curve.coverage * known.get("coverage", 0.0) + curve.passage * known.get("passage", 0.0)
    return found, curve.threshold, curve.steepness


def _all_too_low(count: int, floor: float) -> tuple[str, ...]:
    found = "what was found is" if count == 1 else f"all {count} passages that were found are"
    return (f"{found} below the floor of {floor:g} (calibrate.floor)",)


def _too_low(candidate: Candidate, floor: float) -> str:
    return f"confidence {candidate.confidence:.3f} is below the floor of {floor:g}"
