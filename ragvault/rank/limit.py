"""Limit: keep the first n results."""

from __future__ import annotations

from collections.abc import Sequence

from ragvault.candidate import Candidate, Context, Ranked, Removal
from ragvault.rank.leg_weights import rank_mode


def limit(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Keep the first n."""
    if not ctx.settings.limit.enabled:
        return Ranked(tuple(candidates))
    n = result_count(ctx)
    reason = f"not among the first {n}"
    removed = tuple(Removal(each, reason) for each in candidates[n:])
    return Ranked(tuple(candidates[:n]), removed)


def result_count(ctx: Context) -> int:
    """How many results to return: the caller's n, else that of `fuse.mode`, else `limit.n`."""
    if ctx.limit is not None:
        return ctx.limit
    return rank_mode(ctx.settings.fuse, ctx.note_length).results or ctx.settings.limit.n
