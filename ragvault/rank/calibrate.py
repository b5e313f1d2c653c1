"""Calibrate: set each candidate's confidence, from 0 to 1, and its band.

    score       1 / (1 + exp(-steepness * (score - threshold))), ragdocs' sigmoid of a fused score
    evidence    the same curve of the evidence that `fuse` ranks by, with common words counted like
                rare ones: how likely a judge would call this result an answer

The sigmoid of an RRF score gives 0.06 to rank 1 of one leg. With a floor of 0.3, hybrid search
would then return only what several legs agree on. Evidence is absolute, and one leg is enough: it
is summed over the legs without their ranks. A share of what the other results of this query have
is subtracted (`others`), because a query that everything matches a little is answered by nothing.

The evidence of a vector is measured from the cosine that unrelated texts have by the same model, so
one curve holds for different models (docs/decisions.md); `benchmarks.confidence --fit` fits it to
judged questions. Scores and order do not change. Candidates below the floor are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Step
from ragvault.config.settings import Bands
from ragvault.rank.fuse import EXACT_MATCHES, leg_evidence

# The curve of ragdocs: the fused score that means 0.5, and how fast confidence changes around it.
SCORE_THRESHOLD, SCORE_STEEPNESS = 0.035, 150.0
# Ours, fitted to judged questions by `benchmarks.confidence --fit`: the weight of each leg whose
# evidence depends on the query alone, and the power of that evidence.
THRESHOLD, STEEPNESS = 0.39, 8.5
WEIGHTS = {"vector": 1.0, "keyword": 0.5, "name": 0.4}
POWER = 1.5
LESS = 0.4  # the share of the evidence of the other results that is subtracted
EXACT = 0.95  # the least confidence of an exact title, alias or phrase: that was asked for
OTHERS = slice(3, 12)  # the notes that stand for the other results: they rarely answer
USUAL = 0.3  # their evidence where fewer notes were found: the mean over judged questions


def calibrate(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Set confidence and band; the score does not change."""
    settings = ctx.settings.calibrate
    if not settings.enabled:
        return Ranked(tuple(candidates))
    sure = _by_score if settings.source == "score" else _by_evidence
    bands = settings.bands
    calibrated = [
        _calibrated(each, *found, bands)
        for each, found in zip(candidates, sure(candidates, ctx), strict=True)
    ]
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


def evidence_parts(candidates: Sequence[Candidate], ctx: Context) -> list[dict[str, float]]:
    """What each leg adds to the evidence of each candidate, best first, and what is subtracted."""
    scale = _scale(candidates, ctx)
    every = [_leg_parts(each, ctx, scale) for each in candidates]
    best: dict[int, float] = {}  # note -> the evidence of its best passage
    for each, parts in zip(candidates, every, strict=True):
        best.setdefault(each.note.id, sum(parts.values()))
    others = list(best.values())[OTHERS] or [USUAL]
    less = LESS * sum(others) / len(others)
    return [{**parts, "others": -less} for parts in every]


def _leg_parts(candidate: Candidate, ctx: Context, scale: float) -> dict[str, float]:
    parts = {}
    for leg, weight in WEIGHTS.items():
        known = leg != "name" or "name" in candidate.evidence
        # A text that has every word of a query answers it, also if the words are common.
        found = leg_evidence(candidate, leg, ctx, by_telling=False) if known else 0.0
        parts[leg] = weight * (1.0 if leg == "name" else scale) * found**POWER
    return parts


def _scale(candidates: Sequence[Candidate], ctx: Context) -> float:
    """Without vectors, or without words, the other of these legs has to carry the evidence."""
    asked = {
        "vector": any("vector" in each.scores for each in candidates),
        "keyword": "keyword" in ctx.settings.retrieve.legs,
    }
    known = sum(WEIGHTS[leg] for leg, answered in asked.items() if answered)
    return (WEIGHTS["vector"] + WEIGHTS["keyword"]) / known if known else 1.0


def _calibrated(candidate: Candidate, confidence: float, why: str, bands: Bands) -> Candidate:
    step = Step("calibrate", candidate.score, candidate.score, why=f"{confidence:.3f}: {why}")
    name = bands.name(confidence)
    return replace(candidate, confidence=confidence, band=name, steps=(*candidate.steps, step))


def _by_score(candidates: Sequence[Candidate], ctx: Context) -> Iterator[tuple[float, str]]:
    for each in candidates:
        confidence = sigmoid(each.score, SCORE_THRESHOLD, SCORE_STEEPNESS)
        yield confidence, f"score {each.score:.4f}, threshold {SCORE_THRESHOLD}"


def _by_evidence(candidates: Sequence[Candidate], ctx: Context) -> Iterator[tuple[float, str]]:
    for each, parts in zip(candidates, evidence_parts(candidates, ctx), strict=True):
        confidence = sigmoid(sum(parts.values()), THRESHOLD, STEEPNESS)
        why = "evidence " + ", ".join(f"{name} {value:.2f}" for name, value in parts.items())
        if each.exact and confidence < EXACT:
            yield EXACT, f"{why}, raised: {EXACT_MATCHES[each.exact]}"
        else:
            yield confidence, why


def _all_too_low(count: int, floor: float) -> tuple[str, ...]:
    found = "the only passage found is" if count == 1 else f"all {count} passages found are"
    return (f"{found} below the confidence floor of {floor:g} (calibrate.floor)",)


def _too_low(candidate: Candidate, floor: float) -> str:
    return f"confidence {candidate.confidence:.3f} is below the floor of {floor:g}"
