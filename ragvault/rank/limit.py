"""Limit: keep the first n results.

result_count   n: the caller's, else that of `fuse.mode`, else `limit.n`
rank_mode      what `fuse.mode` sets: k of rank fusion, and a number of results
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragvault.candidate import Candidate, Context, Ranked, Removal
from ragvault.config.ranking import Fuse


def limit(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Keep the first n."""
    if not ctx.settings.limit.enabled:
        return Ranked(tuple(candidates))
    n = result_count(ctx)
    reason = f"not among the first {n}"
    removed = tuple(Removal(each, reason) for each in candidates[n:])
    return Ranked(tuple(candidates[:n]), removed)


def result_count(ctx: Context) -> int:
    """How many results to return."""
    if ctx.limit is not None:
        return ctx.limit
    return rank_mode(ctx.settings.fuse, ctx.note_length).results or ctx.settings.limit.n


class RankMode(NamedTuple):
    """k of rank fusion, and how many results go with it; None leaves that to `limit`."""

    k: int
    results: int | None


def rank_mode(fuse: Fuse, note_length: float | None = None) -> RankMode:
    """The k and the number of results of the mode; `note_length` is the vault's median."""
    modes = fuse.modes
    if fuse.mode == "off":
        return RankMode(fuse.k, None)
    if fuse.mode == "speed":
        return RankMode(modes.speed_k, modes.speed_n)
    if fuse.mode == "quality":
        return RankMode(modes.quality_k, modes.quality_n)
    if fuse.mode == "auto" and note_length is not None and note_length < modes.short_note:
        return RankMode(modes.short_k, modes.short_n)
    return RankMode(modes.balanced_k, modes.balanced_n)
