"""Limit: the caller's n, or the mode's, or the setting's."""

from __future__ import annotations

from collections.abc import Sequence

from ragvault.candidate import Candidate, Context, Ranked, Removal
from ragvault.rank.weights import damping


def limit(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """The first n."""
    if not ctx.settings.limit.enabled:
        return Ranked(tuple(candidates))
    n = wanted(ctx)
    cut = candidates[n:]
    reason = f"not among the first {n}"
    return Ranked(tuple(candidates[:n]), tuple(Removal(each, reason) for each in cut))


def wanted(ctx: Context) -> int:
    """How many results are asked for."""
    if ctx.limit is not None:
        return ctx.limit
    _, of_mode = damping(ctx.settings.fuse, ctx.note_length)
    return of_mode or ctx.settings.limit.n
