"""Results for programs and prompts: JSON, lines, paths, Markdown and context.

The part of render.py for searching; results_text.py is the one for people, docs/output.md tells
what each format promises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from ragvault.cli import explain, render
from ragvault.cli.results_text import as_text
from ragvault.cli.shown import Answer, Found, Shown
from ragvault.plan import QueryPlan
from ragvault.query.restate import filter_json

_C1 = re.compile(r"[\x7f-\x9f]")
TIERS = ("keyword", "static", "full")  # the lowest first


def as_json(shown: Shown) -> str:
    """One object, as in the contract."""
    first = shown.answers[0]
    plan, config = first.response.plan, first.config
    failed = [(answer.vault, *pair) for answer in shown.answers
              for pair in answer.response.failed.items()]  # fmt: skip
    answer: dict[str, Any] = {
        "query": plan.query,
        "vaults": [each.vault for each in shown.answers],
        "profile": config.search.profile,
        "took_ms": round(sum(each.response.took_ms for each in shown.answers), 1),
        "plan": _plan(shown, plan),
        "index": _together(shown),
        "results": [_result(shown, *pair) for pair in enumerate(shown.results, 1)],
        "legs_failed": [{"vault": vault, "leg": leg, "why": why} for vault, leg, why in failed],
        "left_out": shown.left_out,
        "warnings": list(shown.said),
    }
    if shown.several:
        answer["indexes"] = {each.vault: _index(each) for each in shown.answers}
    if shown.explain:
        answer["explain"] = _labelled(shown, explain.stages)
        answer["legs"] = _labelled(shown, explain.legs)
    return _plain(render.as_json(answer))


def as_jsonl(shown: Shown) -> str:
    """One object a line and a result."""
    pairs = enumerate(shown.results, 1)
    return _plain("\n".join(render.as_json(_result(shown, rank, each)) for rank, each in pairs))


def as_paths(shown: Shown) -> str:
    """Every note once, best first."""
    return "\n".join(paths(shown))


def paths(shown: Shown) -> list[str]:
    """The same one by one: a name may hold the character that ends a line."""
    safe = render.printable if shown.around.terminal else str
    return list(dict.fromkeys(safe(shown.place(each)) for each in shown.results))


def as_grep(shown: Shown) -> str:
    """The line that shows best why it was found, behind its place."""
    safe = render.printable if shown.around.terminal else str
    return "\n".join(
        f"{safe(shown.place(each))}:{each.line}: {render.printable(_line(each))}"
        for each in shown.results
    )


def as_markdown(shown: Shown) -> str:
    """Sections under headings of their own."""
    parts = []
    for each in shown.results:
        title = render.one_line(each.each.note.title or each.each.note.path)
        text = each.each.text.strip()  # empty for a note that is all frontmatter
        parts.append(f"## {title} ({_cited(shown, each)})\n" + (f"\n{text}\n" if text else ""))
    return _shown(shown, "\n".join(parts).rstrip("\n"))


def as_context(shown: Shown) -> str:
    """Sections with numbered citations, ready to paste into a model's prompt."""
    parts = []
    for number, each in enumerate(shown.results, 1):
        heading = render.one_line(" > ".join(each.each.headings) or each.each.note.title)
        head = f"[{number}] {_cited(shown, each)} | {heading}"
        parts.append(f"{head}\n{each.each.text.strip()}".rstrip() + "\n")
    return _shown(shown, "\n".join(parts).rstrip("\n"))


FORMATS: Mapping[str, Callable[[Shown], str]] = {
    "text": as_text,
    "json": as_json,
    "jsonl": as_jsonl,
    "paths": as_paths,
    "grep": as_grep,
    "markdown": as_markdown,
    "context": as_context,
}


def _result(shown: Shown, rank: int, found: Found) -> dict[str, Any]:
    each = found.each
    result: dict[str, Any] = {
        "rank": rank,
        "vault": found.answer.vault,
        "note": each.note.path,
        "title": each.note.title,
        "headings": list(each.headings),
        "lines": list(each.lines),
        "score": each.score,
        "confidence": each.confidence,
        "band": each.band,
        "kind": each.passage.kind,
        "tier": found.answer.response.tiers.get(each.id, "keyword"),
        "stale": found.stale,
        "text": each.text,
        "passage": each.passage.text,
        "snippet": found.snippet.text,
        "line": found.line,
        "uri": found.uri,
        "modified": _moment(each.note.modified),
        "legs": {
            leg: {"rank": rank_, "score": each.scores.get(leg)} for leg, rank_ in each.ranks.items()
        },
    }
    if shown.explain:
        result["steps"] = explain.steps(each)
    return result


def _plan(shown: Shown, plan: QueryPlan) -> dict[str, Any]:
    plans = [answer.response.plan for answer in shown.answers]
    terms = [each.term for one in plans for each in one.expansions]
    return {
        "type": plan.type,
        "text": plan.text,
        "filters": filter_json(plan.filter),
        "expansions": list(dict.fromkeys(terms)),
        "weights": dict(plan.weights),
        "parse": plan.parse,
    }


def _index(answer: Answer) -> dict[str, Any]:
    return {
        "revision": answer.response.revision,
        "fresh": answer.fresh,
        "pending": answer.pending,
        "tier": answer.response.tier,
    }


def _together(shown: Shown) -> dict[str, Any]:
    """One index, or several as one: the newest revision, the lowest tier, all that is pending."""
    each = [_index(answer) for answer in shown.answers]
    counts = [one["pending"] for one in each]
    pending = None if None in counts else sum(counts)
    return {
        "revision": max(one["revision"] for one in each),
        "fresh": None if pending is None else all(one["fresh"] for one in each),
        "pending": pending,
        "tier": min((one["tier"] for one in each), key=TIERS.index),
    }


def _labelled(shown: Shown, tell: Callable[[Any], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What the answers tell; each line with its vault where there are several."""
    return [
        {**({"vault": answer.vault} if shown.several else {}), **line}
        for answer in shown.answers
        for line in tell(answer.response)
    ]


def _shown(shown: Shown, text: str) -> str:
    """The text of notes: as it is for a program, without what steers a terminal on one."""
    return render.harmless(text) if shown.around.terminal else text


def _moment(at: float | None) -> str:
    moment = datetime.fromtimestamp(at or 0.0, timezone.utc)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _plain(text: str) -> str:
    """JSON that can be written: half a pair of surrogates becomes the escape that JSON has."""
    plain = text.encode("utf-8", "backslashreplace").decode()
    # The controls above ASCII, which JSON lets pass and a terminal may obey.
    return _C1.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


def _cited(shown: Shown, found: Found) -> str:
    first, last = found.each.lines
    vault = f"{found.answer.vault}: " if shown.several else ""
    # On one line, whatever the name: it ends where the text begins.
    return render.one_line(f"{vault}{found.each.note.path}:{first}-{last}")


def _line(found: Found) -> str:
    """The line of the passage that its snippet begins in."""
    text, at = found.each.passage.text, found.snippet.at
    return (text[:at].rpartition("\n")[2] + text[at:].partition("\n")[0]).strip()
