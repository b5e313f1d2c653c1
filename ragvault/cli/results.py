"""Results as text, JSON, Markdown, lines and context: the part of render.py for searching."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ragvault.candidate import Candidate
from ragvault.cli import render
from ragvault.config import Config
from ragvault.plan import leaves
from ragvault.search import Response

SNIPPET = 240  # characters of the matched passage in text output


@dataclass(frozen=True, slots=True)
class Shown:
    """A response, and the vault it is about."""

    vault: str
    root: Path
    config: Config
    response: Response


def as_text(shown: Shown, explain: bool) -> str:
    """For people: title, place, the words that matched, how sure we are."""
    lines: list[str] = []
    for rank, each in enumerate(shown.response.results, 1):
        where = " > ".join(each.headings[1:] if _repeats(each) else each.headings)
        sure = f"  {each.band} {each.confidence:.2f}" if each.confidence is not None else ""
        lines.append(f"{rank:2}  {_title(each)}{f' > {where}' if where else ''}{sure}")
        lines.append(f"    {each.note.path}:{each.lines[0]}")
        lines.append(f"    {_snippet(each)}")
        if explain:
            lines += [f"      {line}" for line in _why(each)]
        lines.append("")
    if explain:
        lines += _trace(shown.response)
    return render.printable_lines("\n".join(lines).rstrip())


def as_json(shown: Shown, explain: bool) -> str:
    response = shown.response
    plan = response.plan
    answer: dict[str, Any] = {
        "query": plan.query,
        "vaults": [shown.vault],
        "profile": shown.config.search.profile,
        "took_ms": round(response.took_ms, 1),
        "plan": {
            "type": plan.type,
            "text": plan.text,
            "filters": [str(leaf) for leaf in leaves(plan.filter)] if plan.filter else [],
            "expansions": [each.term for each in plan.expansions],
            "weights": dict(plan.weights),
            "parse": plan.parse,
        },
        "index": {"revision": response.revision, "tier": response.tier},
        "results": [_result(shown, rank, c, explain) for rank, c in enumerate(response.results, 1)],
        "legs_failed": [{"leg": leg, "why": why} for leg, why in response.failed.items()],
        "left_out": sum(len(stage.ranked.removed) for stage in response.stages[-2:]),
        "warnings": list(response.said),
    }
    if explain:
        answer["explain"] = list(_stages(response))
        answer["legs"] = [asdict(run) for run in response.runs]
    return render.as_json(answer)


def as_jsonl(shown: Shown, explain: bool) -> str:
    results = enumerate(shown.response.results, 1)
    return "\n".join(render.as_json(_result(shown, rank, c, explain)) for rank, c in results)


def as_paths(shown: Shown, explain: bool) -> str:
    return "\n".join(dict.fromkeys(each.note.path for each in shown.response.results))


def as_grep(shown: Shown, explain: bool) -> str:
    return "\n".join(
        f"{each.note.path}:{each.passage.lines[0]}: {_first_line(each)}"
        for each in shown.response.results
    )


def as_markdown(shown: Shown, explain: bool) -> str:
    parts = []
    for each in shown.response.results:
        head = f"## {_title(each)} ({each.note.path}:{each.lines[0]}-{each.lines[1]})"
        parts.append(f"{head}\n\n{each.text.strip()}\n")
    return "\n".join(parts)


def as_context(shown: Shown, explain: bool) -> str:
    """Sections with numbered citations, ready to paste into a model's prompt."""
    parts = []
    for number, each in enumerate(shown.response.results, 1):
        heading = " > ".join(each.headings) or _title(each)
        lines = f"lines {each.lines[0]}-{each.lines[1]}"
        parts.append(f"[{number}] {each.note.path} | {heading} | {lines}\n{each.text.strip()}\n")
    return "\n".join(parts)


FORMATS: Mapping[str, Callable[[Shown, bool], str]] = {
    "text": as_text,
    "json": as_json,
    "jsonl": as_jsonl,
    "paths": as_paths,
    "grep": as_grep,
    "markdown": as_markdown,
    "context": as_context,
}


def about(shown: Shown) -> Iterator[str]:
    """What must be said beside the results: on stderr, in every format."""
    response = shown.response
    for part, why in response.failed.items():
        yield f"{part} did not answer: {why}"
    yield from response.said
    if not response.results:
        yield f"nothing found for {response.plan.parse}"


def _result(shown: Shown, rank: int, each: Candidate, explain: bool) -> dict[str, Any]:
    note = each.note
    modified = datetime.fromtimestamp(note.modified or 0.0, timezone.utc)
    found: dict[str, Any] = {
        "rank": rank,
        "vault": shown.vault,
        "note": note.path,
        "title": note.title,
        "headings": list(each.headings),
        "lines": list(each.lines),
        "score": each.score,
        "confidence": each.confidence,
        "band": each.band,
        "kind": each.passage.kind,
        "tier": shown.response.tiers.get(each.id, "keyword"),
        "text": each.text,
        "passage": each.passage.text,
        "uri": f"obsidian://open?path={quote(str(shown.root / note.path), safe='')}",
        "modified": modified.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "legs": {
            leg: {"rank": rank_, "score": each.scores.get(leg)} for leg, rank_ in each.ranks.items()
        },
    }
    if explain:
        found["steps"] = [_step(step) for step in each.steps]
    return found


def _step(step: Any) -> dict[str, Any]:
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


def _stages(response: Response) -> Iterator[dict[str, Any]]:
    for outcome in response.stages:
        yield {
            "stage": outcome.stage,
            "kept": len(outcome.ranked),
            "removed": [
                {
                    "passage": f"{gone.candidate.note.path}:{gone.candidate.lines[0]}",
                    "reason": gone.reason,
                    "by": f"{gone.by.note.path}:{gone.by.lines[0]}" if gone.by else None,
                }
                for gone in outcome.ranked.removed
            ],
        }


def _why(each: Candidate) -> Iterator[str]:
    """Every reason for a score, in the order of the stages."""
    found = ", ".join(f"{leg} {rank}" for leg, rank in sorted(each.ranks.items()))
    yield f"found by: {found or 'its name'}"
    for step in each.steps:
        reasons = " ".join(_reason(term) for term in step.terms)
        said = " ".join(part for part in (reasons, step.why) if part)
        yield f"{step.stage:9} {step.score:.4f}  {said}".rstrip()


def _reason(term: Any) -> str:
    amount = f"x{1 + term.amount:.3f}" if term.how == "multiply" else f"{term.amount:+.4f}"
    return f"{term.name} {amount}{f' ({term.why})' if term.why else ''}"


def _trace(response: Response) -> Iterator[str]:
    yield f"understood: {response.plan.parse}"
    for run in response.runs:
        what = run.failed or f"{run.hits} hits"
        yield f"{run.leg:9} {run.start * 1000:6.1f} to {run.end * 1000:6.1f} ms  {what}"
    for outcome in response.stages:
        gone = f", {len(outcome.ranked.removed)} removed" if outcome.ranked.removed else ""
        yield f"{outcome.stage:9} {len(outcome.ranked)} kept{gone}"


def _title(each: Candidate) -> str:
    return each.note.title or each.note.path


def _repeats(each: Candidate) -> bool:
    return bool(each.headings) and each.headings[0] == each.note.title


def _snippet(each: Candidate) -> str:
    text = " ".join(each.passage.text.split())
    return text if len(text) <= SNIPPET else text[:SNIPPET].rsplit(" ", 1)[0] + " …"


def _first_line(each: Candidate) -> str:
    return next((line.strip() for line in each.passage.text.split("\n") if line.strip()), "")
