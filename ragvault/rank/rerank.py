"""Rerank: a cross-encoder reads the query with each of the best `n` passages and scores the pair.

    replace   its score becomes the score
    score     weight * its score + (1 - weight) * the score so far, each scaled from the lowest (0)
              to the highest (1) of the passages it read

With `titles` it reads each passage below the title of its note and its headings: a passage alone
often does not name what it is about. With `close`, it reads only where the order is open: nothing
if the second score is below that share of the first.

Exact hits that `fuse` put first stay first, unread. The other passages it did not read stay behind,
or are dropped. If the model fails, the order does not change and a warning says so. If its scores
are from 0 to 1, they take part in the confidence: `calibrate.reranker` is their share, as log odds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, log

from msgspec.structs import replace

from ragvault.candidate import (
    Candidate,
    Context,
    PassageFacts,
    Ranked,
    Removal,
    Term,
    best_first,
)
from ragvault.config.settings import Rerank
from ragvault.errors import RagvaultError
from ragvault.ports import Reranker
from ragvault.rank.calibrate import sigmoid

# Scores are bounded here before they count: of what our reranker scores below 0.02, 5 % is right.
LEAST_ODDS = 0.05


def rerank(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Reorder the best candidates by the scores of a reranker."""
    settings = ctx.settings.rerank
    if not settings.enabled or not candidates:
        return Ranked(tuple(candidates))
    if ctx.reranker is None:
        return Ranked(tuple(candidates))  # the caller knows why there is none, and says so
    first = [each for each in candidates if each.lifted]
    others = [each for each in candidates if not each.lifted]
    read, rest = others[: settings.n], others[settings.n :]
    if not read or _is_decided(read, settings.close):
        return Ranked(tuple(candidates))
    try:
        given = _scores(ctx.reranker, ctx.query, read, titles=settings.titles)
    except RagvaultError as error:
        return Ranked(tuple(candidates), warnings=(f"not reranked: {error}",))
    order = _confident(best_first(_blended(read, given, settings)), read, given, ctx)
    if settings.rest == "keep":
        return Ranked((*first, *order, *_behind(rest, order[-1].score, settings)))
    reason = f"not among the {settings.n} reranked"
    return Ranked((*first, *order), tuple(Removal(each, reason) for each in rest))


def _is_decided(read: Sequence[Candidate], close: float) -> bool:
    """Whether the first is so far ahead that reading again is not worth the wait."""
    return len(read) > 1 and read[1].score < close * read[0].score


def _scores(
    reranker: Reranker, query: str, read: Sequence[Candidate], *, titles: bool
) -> list[float]:
    texts = [titled(each.passage) if titles else each.passage.text for each in read]
    given = reranker.score(query, texts)
    if len(given) != len(read) or not all(map(isfinite, given)):
        raise RagvaultError(f"{reranker.name} gave no score for some of the passages")
    return given


def titled(passage: PassageFacts) -> str:
    """The passage below the title of its note and its headings, each named once."""
    names = (passage.note.title, *passage.headings, *passage.subheadings)
    line = " > ".join(dict.fromkeys(name for name in names if name))
    return f"{line}\n{passage.text}" if line else passage.text


def _blended(
    read: Sequence[Candidate], given: Sequence[float], settings: Rerank
) -> list[Candidate]:
    scores = _unit([each.score for each in read])
    share, read_scores = settings.weight, _unit(given)
    blended = []
    for at, each in enumerate(read):
        if settings.method == "replace":
            terms = [Term("reranker", given[at])]
        else:
            terms = [
                Term("reranker", read_scores[at], share),
                Term("before", scores[at], 1 - share),
            ]
        blended.append(each.after("rerank", terms, before=0.0))
    return blended


def _unit(scores: Sequence[float]) -> list[float]:
    """Scores scaled from the lowest (0) to the highest (1); all 1 if they are equal.

    Scores from 0 to 1 are scaled too: one side of the blend may use that whole range while RRF
    scores use a thirtieth of it.
    """
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _confident(
    order: list[Candidate], read: Sequence[Candidate], given: Sequence[float], ctx: Context
) -> list[Candidate]:
    """The candidates with the confidence that both readings give, where scores are from 0 to 1."""
    if not all(0 <= score <= 1 for score in given):
        return order
    scores = {each.id: score for each, score in zip(read, given, strict=True)}
    return [_recalibrated(each, scores[each.id], ctx) for each in order]


def _recalibrated(candidate: Candidate, score: float, ctx: Context) -> Candidate:
    """The confidence so far and the reranker's, averaged as log odds; a share of 1 replaces it."""
    settings, before = ctx.settings.calibrate, candidate.confidence
    share, now = settings.reranker, score
    if before is not None and share < 1:
        now = sigmoid(share * _log_odds(score) + (1 - share) * _log_odds(before), 0.0, 1.0)
    return replace(candidate, confidence=now, band=settings.bands.name(now))


def _log_odds(confidence: float) -> float:
    bounded = min(max(confidence, LEAST_ODDS), 1 - LEAST_ODDS)
    return log(bounded / (1 - bounded))


def _behind(rest: Sequence[Candidate], lowest: float, settings: Rerank) -> list[Candidate]:
    """The rest in its order, each scored 1 below the one before it."""
    why = f"not among the {settings.n} reranked"
    return [
        each.placed("rerank", lowest - at, [Term("behind", lowest - at - each.score, why=why)])
        for at, each in enumerate(rest, 1)
    ]
