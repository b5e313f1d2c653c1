"""JSON for programs: the one place that turns answers into the JSON of the contract.

    search_json    one object, as `ragvault search --json` writes it
    search_jsonl   one result per line
    status_json    `ragvault status --json`
    encode         any other value, as it is

Callers send these strings unchanged, so the command line, HTTP and MCP give the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragvault.text.dates import iso_utc
from ragvault.text.printable import safe_json

if TYPE_CHECKING:
    from ragvault.answer.results import CorpusResponse, SearchAnswer, SearchResult, VaultAnswer
    from ragvault.answer.status import Status
    from ragvault.candidate import Candidate, Step
    from ragvault.plan import QueryPlan

TIERS = ("keyword", "static", "full")  # lowest first
# The catalogue calls a link unresolved; users call it broken.
LINK_STATES = {"resolved": "resolved", "unresolved": "broken", "ambiguous": "ambiguous"}


def encode(value: Any) -> str:
    """One line of JSON. Not by msgspec: a file name may contain bytes that are not Unicode."""
    import msgspec

    plain = msgspec.to_builtins(value, enc_hook=os.fspath)
    return safe_json(json.dumps(plain, ensure_ascii=False))


class Encodable:
    """A value whose JSON has its own fields."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The value as `--json` has it."""
        found: dict[str, Any] = json.loads(encode(self))
        return found


def search_json(answer: SearchAnswer, *, explain: bool = False) -> str:
    """A search as one line of JSON."""
    return encode(search_dict(answer, explain=explain))


def search_dict(answer: SearchAnswer, *, explain: bool = False) -> dict[str, Any]:
    """A search as one object, as in the contract."""
    first = answer.answers[0]
    plan, config = first.response.plan, first.config
    failed = [
        {"vault": each.vault, "leg": leg, "why": why}
        for each in answer.answers
        for leg, why in each.response.failed.items()
    ]
    found: dict[str, Any] = {
        "query": plan.query,
        "vaults": [each.vault for each in answer.answers],
        "profile": config.search.profile,
        "took_ms": round(sum(each.response.took_ms for each in answer.answers), 1),
        "plan": _plan(answer, plan),
        "index": _index_of_all(answer),
        "results": [_result(*pair, explain) for pair in enumerate(answer.results, 1)],
        "likely": answer.likely,
        "legs_failed": failed,
        "left_out": answer.left_out,
        "warnings": [*answer.warnings, *answer.suggestions],
    }
    if first.response.plans:
        found["queries"] = [each.query for each in first.response.plans]
    if answer.several:
        found["indexes"] = {each.vault: _index(each) for each in answer.answers}
    if explain:
        found["explain"] = _by_vault(answer, _stages)
        found["legs"] = _by_vault(answer, _legs)
    return found


def search_jsonl(answer: SearchAnswer, *, explain: bool = False) -> str:
    """The objects of `results`, one per line, each with `likely` of the answer."""
    rows = [_result(*pair, explain) for pair in enumerate(answer.results, 1)]
    return "\n".join(encode({**row, "likely": answer.likely}) for row in rows)


def status_json(
    status: Status, watcher: Mapping[str, Any] | None, resident: Mapping[str, Any] | None = None
) -> str:
    """The state of an index, with every skipped file, warning and broken link.

    `watcher` watches this vault; `resident` is the process that a search has started.
    """
    counts = asdict(status.counts)
    files = None if status.pending.why else status.pending.files
    return encode(
        {
            "vault": status.name,
            "root": status.root,
            "folder": status.folder,
            **counts,
            "links": {LINK_STATES.get(state, state): n for state, n in status.counts.links.items()},
            "keyword_engine": status.engine or None,
            "tiers": status.tiers,
            "tier": status.tier,
            "removed": status.removed,
            "pending": asdict(status.pending) | {"files": files},
            "models": {each.use: {"name": each.name, "here": each.here} for each in status.models},
            "watcher": watcher,
            "resident": resident,
            "writer": status.writer or None,
            "skipped_files": status.skipped,
            "excluded": status.excluded,
            "unread": status.unread,
            "warnings": status.warnings,
            "dangling": [
                link._asdict() | {"status": LINK_STATES.get(link.status, link.status)}
                for link in status.dangling
            ],
        }
    )


def _result(rank: int, result: SearchResult, explain: bool) -> dict[str, Any]:
    each = result.candidate
    found: dict[str, Any] = {
        "rank": rank,
        "vault": result.answer.vault,
        "note": each.note.path,
        "title": each.note.title,
        "headings": list(result.headings),
        "lines": list(each.lines),
        "score": each.score,
        "confidence": each.confidence,
        "band": each.band,
        "kind": each.passage.kind,
        "tier": result.answer.response.tiers.get(each.id, "keyword"),
        "stale": result.stale,
        "text": each.text,
        "passage": each.passage.text,
        "snippet": result.snippet.text,
        "line": result.line,
        "uri": result.uri,
        "date": None if result.date is None else iso_utc(result.date.at),
        "modified": iso_utc(each.note.modified),
        "legs": {
            leg: {"rank": place, "score": each.scores.get(leg)} for leg, place in each.ranks.items()
        },
    }
    if each.queries:
        found["queries"] = list(result.answer.response.queries_of(each))
    if each.also:
        found["also"] = [
            {"headings": list(place.headings), "lines": list(place.lines)} for place in each.also
        ]
    if explain:
        found["steps"] = [_step(step) for step in each.steps]
    return found


def _plan(answer: SearchAnswer, plan: QueryPlan) -> dict[str, Any]:
    from ragvault.query.restate import filter_json

    plans = [each.response.plan for each in answer.answers]
    terms = [expansion.term for each in plans for expansion in each.expansions]
    return {
        "type": plan.type,
        "text": plan.text,
        "filters": filter_json(plan.filter),
        "expansions": list(dict.fromkeys(terms)),
        "weights": dict(plan.weights),
        "parse": plan.parse,
    }


def _index(answer: VaultAnswer) -> dict[str, Any]:
    return {
        "revision": answer.response.revision,
        "fresh": answer.fresh,
        "pending": answer.pending,
        "tier": answer.response.tier,
    }


def _index_of_all(answer: SearchAnswer) -> dict[str, Any]:
    """The newest revision, the lowest tier and the sum of what is pending."""
    each = [_index(one) for one in answer.answers]
    counts = [one["pending"] for one in each]
    pending = None if None in counts else sum(counts)
    return {
        "revision": max(one["revision"] for one in each),
        "fresh": None if pending is None else all(one["fresh"] for one in each),
        "pending": pending,
        "tier": min((one["tier"] for one in each), key=TIERS.index),
    }


def _by_vault(
    answer: SearchAnswer, lines_of: Callable[[CorpusResponse], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Lines of every response; with several vaults each line names its vault."""
    return [
        {**({"vault": each.vault} if answer.several else {}), **line}
        for each in answer.answers
        for line in lines_of(each.response)
    ]


def _stages(response: CorpusResponse) -> list[dict[str, Any]]:
    """What each stage kept and removed."""
    return [
        {
            "stage": outcome.stage,
            "kept": len(outcome.ranked),
            "removed": [
                {
                    "passage": _place(removal.candidate),
                    "reason": removal.reason,
                    "by": _place(removal.by) if removal.by else None,
                }
                for removal in outcome.ranked.removed
            ],
        }
        for outcome in response.stages
    ]


def _legs(response: CorpusResponse) -> list[dict[str, Any]]:
    """When each leg ran, in seconds since retrieval began, and how many hits it had."""
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


def _place(candidate: Candidate) -> str:
    return f"{candidate.note.path}:{candidate.lines[0]}"
