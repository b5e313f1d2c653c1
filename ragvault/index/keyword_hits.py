"""Hits in their order, and how those that only near spellings found stay below the exact ones."""

from __future__ import annotations

from ragvault.sought import KeywordHit


def scaled(hit: KeywordHit, by: float) -> KeywordHit:
    """The same hit with every score multiplied."""
    return hit._replace(
        score=hit.score * by,
        note_score=hit.note_score * by,
        passage_score=hit.passage_score * by,
        title_score=hit.title_score * by,
    )


def guess_scale(lowest: float, highest: float) -> float:
    """What to multiply the scores of guesses by, so that even the highest stays below exact hits.

    `lowest` is that of all exact hits of a query and `highest` that of all guesses, whichever of
    them are asked for: otherwise the same passage had another score in another list.
    """
    return 1.0 if highest < lowest else 0.99 * lowest / highest if highest > 0 else 1.0
