"""Explanations as text and as JSON: what each stage returned, and every reason for a score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ragvault.candidate import Candidate, Step, Term
from ragvault.search import Response


def why(each: Candidate) -> Iterator[str]:
    """Every reason for a score, in the order of the stages."""
    found = ", ".join(f"{leg} {rank}" for leg, rank in sorted(each.ranks.items()))
    yield f"found by: {found or 'the filter'}"  # what no leg found is in a list by filter alone
    for step in each.steps:
        reasons = " ".join(_reason(term) for term in step.terms)
        said = " ".join(part for part in (reasons, step.why) if part)
        yield f"{step.stage:9} {step.score:.4f}  {said}".rstrip()


def trace(response: Response) -> Iterator[str]:
    """What was understood, what each leg found and when, and what each stage kept."""
    yield f"understood: {response.plan.parse}"
    for run in response.runs:
        what = run.failed or f"{run.hits} hits"
        yield f"{run.leg:9} {run.start * 1000:6.1f} to {run.end * 1000:6.1f} ms  {what}"
    for outcome in response.stages:
        gone = f", {len(outcome.ranked.removed)} removed" if outcome.ranked.removed else ""
        yield f"{outcome.stage:9} {len(outcome.ranked)} kept{gone}"


def steps(each: Candidate) -> list[dict[str, Any]]:
    """The same as `why`, for programs."""
    return [_step(step) for step in each.steps]


def stages(response: Response) -> list[dict[str, Any]]:
    """What each stage kept and removed."""
    return [
        {
            "stage": outcome.stage,
            "kept": len(outcome.ranked),
            "removed": [
                {
                    "passage": _place(gone.candidate),
                    "reason": gone.reason,
                    "by": _place(gone.by) if gone.by else None,
                }
                for gone in outcome.ranked.removed
            ],
        }
        for outcome in response.stages
    ]


def legs(response: Response) -> list[dict[str, Any]]:
    """When each leg ran and what it found; times in seconds since the legs were asked."""
    return [asdict(run) for run in response.runs]


def _step(step: Step) -> dict[str, Any]:
    terms = [
        {"name": t.name, "value": t.value, "weight": t.weight, "how": t.how, "why": t.why}
        for t in step.terms
    ]
    return {
        "stage": step.stage,
        "before": step.before,
        "score": step.score,
        "terms": terms,
        "why": step.why,
    }


def _place(each: Candidate) -> str:
    return f"{each.note.path}:{each.lines[0]}"


def _reason(term: Term) -> str:
    amount = f"x{1 + term.amount:.3f}" if term.how == "multiply" else f"{term.amount:+.4f}"
    return f"{term.name} {amount}{f' ({term.why})' if term.why else ''}"
