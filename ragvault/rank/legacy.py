"""Raw scores, weighted: what two of the seeds did before rank fusion.

    relevance = w_vector * vector + w_keyword * keyword, and at least `floor` for an important note
    score     = relevance * r + 0.5^(age / half_life) * t + (opened + 1) / (most opened + 1) * a

The first seed has r = 1, t = a = 0 and takes the keyword score as it is; the second brings it to
0..1 between the worst and the best hit, and a lone hit to 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from ragvault.candidate import Candidate, Context, Term
from ragvault.rank import ages, weights


def weighted(candidates: Sequence[Candidate], ctx: Context) -> list[list[Term]]:
    """The terms of each candidate."""
    settings = ctx.settings.fuse.weighted
    of_leg = weights.of_legs(candidates, ctx)
    most = max((c.note.access for c in candidates), default=0)
    relevances = _relevances(candidates, ctx, of_leg)
    return [
        [*relevance, *_recency(each, ctx), Term("access", smoothed(each, most), settings.access)]
        for each, relevance in zip(candidates, relevances, strict=True)
    ]


def smoothed(candidate: Candidate, most: int) -> float:
    """How often a note was opened, against the one opened most."""
    return (candidate.note.access + 1) / (most + 1)


def _relevances(
    candidates: Sequence[Candidate], ctx: Context, of_leg: dict[str, float]
) -> list[list[Term]]:
    settings = ctx.settings.fuse.weighted
    share = settings.relevance
    found = []
    for each, keyword in zip(candidates, _keyword(candidates, ctx), strict=True):
        terms = [
            Term("vector", weights.cosine(each), of_leg["vector"] * share),
            Term("keyword", keyword, of_leg["keyword"] * share),
        ]
        relevance = fsum(term.amount for term in terms)
        important = each.note.importance in ctx.settings.boost.importance.levels
        if important and relevance < settings.floor * share:
            terms.append(Term("floor", settings.floor * share - relevance, why="important"))
        found.append(terms)
    return found


def _keyword(candidates: Sequence[Candidate], ctx: Context) -> list[float]:
    """The keyword score of each: as it is, or between the worst and the best hit."""
    scores = [c.scores.get("keyword", 0.0) for c in candidates]
    settings = ctx.settings.fuse.weighted
    if settings.normalise == "off":
        return scores
    hits = [score for score, c in zip(scores, candidates, strict=True) if "keyword" in c.ranks]
    low, high = min(hits, default=0.0), max(hits, default=0.0)

    def between(score: float) -> float:
        return (score - low) / (high - low) if high > low else settings.lone

    return [
        between(score) if "keyword" in c.ranks else 0.0
        for score, c in zip(scores, candidates, strict=True)
    ]


def _recency(candidate: Candidate, ctx: Context) -> list[Term]:
    settings = ctx.settings.fuse.weighted
    found = ages.age(candidate.note, settings.date, ctx.now)
    if not settings.recency or found is None:
        return []
    value = ages.halved(found.days, settings.half_life)
    return [Term("recency", value, settings.recency, why=f"{found.days:.0f} days, {found.source}")]
