"""The stages of ranking, in reading order.

    fuse -> boost -> calibrate -> dedup -> diversify -> rerank -> parents -> limit -> budget

Each stage takes candidates and a context and returns a Ranked: the candidates it kept, in order,
and those it removed, with reasons. `--explain` prints what the stages returned; nothing is computed
a second time to explain it.
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

# They decide what is shown, and also run alone: on a list by date, and again after `verify`.
SHOWING_STAGES: tuple[Stage, ...] = (parents, limit, budget)
RANKING_STAGES: tuple[Stage, ...] = (fuse, boost, calibrate, dedup, diversify, rerank)
STAGES: tuple[Stage, ...] = (*RANKING_STAGES, *SHOWING_STAGES)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one stage returned."""

    stage: str
    ranked: Ranked


def run_stages(
    candidates: Sequence[Candidate], ctx: Context, stages: Sequence[Stage] = STAGES
) -> tuple[Ranked, tuple[Outcome, ...]]:
    """Pass candidates through each stage in turn, keeping what each one returned."""
    ranked, outcomes = Ranked(tuple(candidates)), []
    for stage in stages:
        ranked = stage(ranked, ctx)
        outcomes.append(Outcome(stage_name(stage), ranked))
    return ranked, tuple(outcomes)


def stage_name(stage: Stage) -> str:
    """The stage's file name, which is also its config table, --explain line and ablation row."""
    return stage.__module__.rpartition(".")[2]


def outcome_of(stage: str, outcomes: Sequence[Outcome]) -> Ranked:
    """What the stage of this name returned. Raises KeyError if it did not run."""
    for outcome in outcomes:
        if outcome.stage == stage:
            return outcome.ranked
    raise KeyError(stage)
