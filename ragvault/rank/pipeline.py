"""The ranking, in reading order.

    fuse -> boost -> calibrate -> dedup -> diversify -> rerank -> parents -> limit -> budget

Each stage takes candidates and a context and returns a Ranked: whom it kept, in order, and whom it
removed, and why. The trace is what the stages returned; nothing is calculated a second time to
explain it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragvault.candidate import Candidate, Context, Ranked
from ragvault.rank.boost import boost
from ragvault.rank.budget import budget
from ragvault.rank.calibrate import calibrate
from ragvault.rank.dedup import dedup
from ragvault.rank.diversify import diversify
from ragvault.rank.fuse import fuse
from ragvault.rank.limit import limit
from ragvault.rank.parents import parents
from ragvault.rank.rerank import rerank

Stage = Callable[[Sequence[Candidate], Context], Ranked]

STAGES: tuple[Stage, ...] = (
    fuse,
    boost,
    calibrate,
    dedup,
    diversify,
    rerank,
    parents,
    limit,
    budget,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one stage returned."""

    stage: str
    ranked: Ranked


def run(
    candidates: Sequence[Candidate], ctx: Context, stages: Sequence[Stage] = STAGES
) -> tuple[Ranked, tuple[Outcome, ...]]:
    """Pass candidates through each stage in turn, keeping what each one returned."""
    ranked, trace = Ranked(tuple(candidates)), []
    for stage in stages:
        ranked = stage(ranked, ctx)
        trace.append(Outcome(name_of(stage), ranked))
    return ranked, tuple(trace)


def name_of(stage: Stage) -> str:
    """File name, config table, --explain line and ablation row: one word for all four."""
    return stage.__module__.rpartition(".")[2]
