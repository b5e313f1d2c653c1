"""Pages: what `index`, `status`, `links`, `related` and `forget` print: a part of render.py.

Text for people, a line a thing, with nothing in it that steers a terminal. JSON is the value
itself (render.as_json), but for status, which tells an interface of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragvault.cli.render import as_json, count, printable, size

if TYPE_CHECKING:
    from ragvault.evaluate.doctor import Finding
    from ragvault.linked import Incoming, LinkPath, Links, Outgoing
    from ragvault.purge import Written
    from ragvault.related import Near, Related
    from ragvault.service.process import WatcherRecord
    from ragvault.status import ModelState, Pending, Status
    from ragvault.update.forget import Forgotten
    from ragvault.update.notes import Report

GONE = " (that file is gone; run: ragvault index)"
# What the catalogue calls unresolved is broken to the person whose link it is.
LINKS = {"resolved": "resolved", "unresolved": "broken", "ambiguous": "ambiguous"}


def index_report(name: str, report: Report) -> str:
    """What an indexing run did, in one line, and what it left out in a second."""
    words = ("added", "changed", "moved", "removed", "recut")
    done = [f"{count(getattr(report, word))} {word}" for word in words if getattr(report, word)]
    remade = f"{', '.join(report.remade)} made again" if report.remade else ""
    embedded = f"{_number(report.embedded, 'passage')} embedded" if report.embedded else ""
    did = "; ".join(filter(None, (", ".join(done), remade, embedded))) or "nothing to do"
    same = count(report.unchanged + report.touched)
    lines = [f"{printable(name)}: {did}; {same} unchanged ({report.seconds:.1f} s)"]
    if report.skipped:
        reasons = Counter(skip.reason for skip in report.skipped)
        lines.append(f"skipped {_listed(reasons)}; ragvault status -v lists them")
    return "\n".join(lines)


def forgotten(name: str, found: Forgotten) -> str:
    """What was forgotten, a note a line after the first."""
    if not found.notes:
        return f"{printable(name)}: nothing of what was removed before is left in any file"
    notes, passages = _number(len(found.notes), "note"), _number(found.passages, "passage")
    head = f"{printable(name)}: forgot {notes} with {passages}, with nothing left behind"
    return "\n".join([head, *map(printable, found.notes)])


def links(found: Links) -> str:
    """The links of a note, one a line, by what became of them."""
    lines = [printable(found.note)]
    lines += [f"outgoing  {_outgoing(link)}" for link in found.outgoing]
    lines += [f"incoming  {_incoming(link)}" for link in found.incoming]
    lines += [f"broken    {_outgoing(link)}" for link in found.broken]
    lines += [f"ambiguous {_outgoing(link)}" for link in found.ambiguous]
    lines += [f"waiting   {_outgoing(link)}" for link in found.waiting]
    return "\n".join(lines)


ARROWS = {"out": "->", "in": "<-", "both": "<->"}


def link_path(found: LinkPath) -> str:
    """The notes of a path, one a line, each after the first with the links that lead there."""
    lines = [printable(note) for note in found.notes[:1]]
    for step in found.steps:
        links = ", ".join(printable(f"{link.note}:{link.line}") for link in step.links)
        gone = GONE if step.gone else ""
        lines.append(f"{ARROWS[step.direction]:3} {printable(step.to)} ({links}){gone}")
    return "\n".join(lines)


def _outgoing(link: Outgoing) -> str:
    text = f"line {link.line}: {printable(link.target)}"
    if link.note:
        text += f" -> {printable(link.note)}"
    if not link.heading_found:
        text += " (no such heading there)"
    return text + _could_be(link.others)


def _incoming(link: Incoming) -> str:
    return f"{printable(link.note)}:{link.line}{GONE if link.gone else ''}"


def _could_be(others: Sequence[str]) -> str:
    return f" (could be {', '.join(map(printable, others))})" if others else ""


def related(found: Related) -> str:
    """Notes near a note: the path, and below it a reason a line."""
    return "\n".join(line for near in found.related for line in _near(near))


def _near(near: Near) -> Iterator[str]:
    yield printable(near.note)
    for reason in near.reasons:
        by = f"meaning {reason.value:.2f}" if reason.by == "meaning" else reason.by
        yield f"    {by}: {printable(reason.why)}"


def status(found: Status, watcher: str, *, full: bool) -> str:
    """An index in a dozen lines; with `full` every skipped file and broken link as well."""
    held = found.counts
    rows = {
        "vault": f"{printable(found.name)} ({printable(found.root)})",
        "notes": count(held.notes),
        "passages": f"{count(held.chunks)} in {_number(held.sections, 'section')}",
        "vectors": _vectors(found),
        "links": _listed({LINKS.get(word, word): n for word, n in held.links.items()}) or "none",
        "skipped": _listed(held.skipped) or "none",
        "warnings": _number(held.warned, "note") if held.warned else "none",
        "pending": _pending(found.pending),
        "size": _parts(held.bytes),
        "folder": printable(found.folder),
        "revision": f"{held.revision} (format {held.format})",
        "models": ", ".join(map(_model, found.models)),
        "last run": _last_run(held.last_run),
        "watcher": printable(watcher) or "none",
    }
    if found.removed:
        rows["removed"] = "text is in files still; to take it out now: ragvault forget --removed"
    if found.writer:
        rows["writer"] = printable(found.writer)
    lines = [f"{word:9} {text}" for word, text in rows.items()]
    return "\n".join([*lines, *_details(found)] if full else lines)


def status_json(found: Status, watcher: Mapping[str, Any] | None) -> str:
    """The same for programs, with everything that -v lists."""
    held = asdict(found.counts)
    passages = held.pop("chunks")
    pending = asdict(found.pending) | {"files": None if found.pending.why else found.pending.files}
    return as_json(
        {
            "vault": found.name,
            "root": found.root,
            "folder": found.folder,
            **held,
            "passages": passages,
            "links": {LINKS.get(word, word): n for word, n in found.counts.links.items()},
            "tiers": found.tiers,
            "removed": found.removed,
            "pending": pending,
            "models": {each.use: {"name": each.name, "here": each.here} for each in found.models},
            "watcher": watcher,
            "writer": found.writer or None,
            "skipped_files": found.skipped,
            "warnings": found.warnings,
            "dangling": [
                link._asdict() | {"status": LINKS.get(link.status, link.status)}
                for link in found.dangling
            ],
        }
    )


def _vectors(found: Status) -> str:
    """How passages are found by meaning, and how many are not yet."""
    words = {"full": "full", "static": "static", "keyword": "by word only", "none": "not yet found"}
    said = [f"{count(number)} {words[tier]}" for tier, number in found.tiers.items() if number]
    return ", ".join(said) or "none"


def _pending(found: Pending) -> str:
    files = {"new": found.new, "changed": found.changed, "gone": found.gone, "recut": found.recut}
    said = [f"{count(number)} {word}" for word, number in files.items() if number]
    if found.why:
        said = [f"files unknown ({printable(found.why)})"]
    if found.words:
        said.append(f"{_number(found.words, 'passage')} to index by word")
    if found.passages:
        said.append(f"{_number(found.passages, 'passage')} to embed")
    if found.links:
        said.append(f"{_number(found.links, 'link')} to look up")
    return f"{', '.join(said)}; run: ragvault index" if said else "nothing"


def _parts(sizes: Mapping[str, int]) -> str:
    """The whole, and the parts worth naming."""
    parts: Counter[str] = Counter()
    for name, number in sizes.items():
        parts[name.partition(".")[0]] += number  # catalogue.sqlite and its journal are one thing
    named = [f"{part} {size(number)}" for part, number in sorted(parts.items()) if number >= 1000]
    return f"{size(parts.total())} ({', '.join(named)})"


def _model(model: ModelState) -> str:
    missing = " (not here)" if model.here is False else ""
    return f"{model.use} {printable(model.name)}{missing}"


def _last_run(run: Mapping[str, Any]) -> str:
    if not run:
        return "never finished"
    ended = datetime.fromtimestamp(run["ended"]).astimezone()
    return f"{ended:%Y-%m-%d %H:%M}, {run['seconds']:.1f} s"


def _details(found: Status) -> Iterator[str]:
    for skip in found.skipped:
        why = ", ".join(filter(None, (skip.reason, printable(skip.detail))))
        yield f"skipped   {printable(skip.path)}: {why}"
    for path, warnings in found.warnings.items():
        yield from (f"warning   {printable(path)}: {printable(said)}" for said in warnings)
    for link in found.dangling:
        where = f"{printable(link.path)}:{link.line}: {printable(link.target)}"
        yield f"{LINKS.get(link.status, link.status):9} {where}{_could_be(link.others)}"


def findings(found: Sequence[Finding], *, quiet: bool, full: bool) -> str:
    """The findings of the doctor: problems first, each with its fix, then a count."""
    order = ("broken", "behind", "note", "fine")
    shown = order if full else order[:2] if quiet else order[:3]
    lines = [
        line for state in shown for each in found if each.state == state for line in _finding(each)
    ]
    well = sum(each.state in ("fine", "note") for each in found)
    if not quiet:
        lines.append(f"{well} of {len(found)} checks passed")
    return "\n".join(lines)


def _finding(each: Finding) -> Iterator[str]:
    yield f"{each.state:7} {each.part}: {printable(each.said)}"
    if each.cure:
        yield f"        fix: {printable(each.cure)}"


def written(found: Sequence[Written]) -> str:
    """What a purge would remove, a line each, and how much that is."""
    lines = [f"{each.what:8} {size(each.bytes):>9}  {printable(str(each.path))}" for each in found]
    total = size(sum(each.bytes for each in found))
    return "\n".join([*lines, f"{total} in all"] if found else ["ragvault has written nothing"])


def watcher(found: WatcherRecord, state: Mapping[str, Any]) -> str:
    """How a watcher is, a line a vault."""
    lines = [f"watching: {printable(found.describe())}"]
    if "unanswered" in state:
        lines.append(f"it does not answer: {printable(state['unanswered'])}")
    else:
        lines.append(f"searches answered: {state['answered']:,}")
    for vault in state["vaults"]:
        doing = vault["away"] or ("working" if vault["waiting"] else "up to date")
        heard = f"polling: {vault['why']}" if vault["why"] else "native events"
        lines.append(printable(f"{vault['name']}: {doing}, {heard}"))
    return "\n".join(lines)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count(number)} {word}" for word, number in sorted(counts.items()))


def _number(number: int, word: str) -> str:
    return f"{count(number)} {word}{'' if number == 1 else 's'}"
