"""What commands print for people: index, status, read, links, related, forget, doctor, purge,
watch, vaults, models and config. With --json they print the value itself (text/printable.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ragvault.cli.console import counted, size
from ragvault.config import folders
from ragvault.text.printable import encode, printable
from ragvault.types import LINK_STATES

if TYPE_CHECKING:
    from ragvault.answer.contents import Contents, Counted
    from ragvault.answer.links import LinkOf, LinkPath, Links, Outgoing
    from ragvault.answer.read import NoteText
    from ragvault.answer.related import Near, Related
    from ragvault.answer.status import Pending, Status
    from ragvault.cli.remove import WrittenItem
    from ragvault.cli.vaults import VaultRow
    from ragvault.config.load import Loaded
    from ragvault.errors import RagvaultError
    from ragvault.evaluate.doctor import Finding
    from ragvault.service.process import WatcherRecord
    from ragvault.update.notes import Report
    from ragvault.update.upkeep import Forgotten


GONE = " (file deleted; run: ragvault index)"
LONGEST_VALUE = 30  # characters of a property's value in a list
ARROWS = {"out": "->", "in": "<-", "both": "<->"}


def index_report(name: str, report: Report, extensions: Sequence[str] = ()) -> str:
    """What an index run did, in one line, and what it skipped in a second."""
    lines = [_index_line(printable(name), report, extensions)]
    if report.unembedded:
        done = report.passages - report.unembedded
        lines.append(
            f"The time is up: {done:,} of {counted(report.passages, 'passage')} have full vectors. "
            "Quick ones answer until all have them. To continue, run the same command again."
        )
    if report.skipped:
        reasons = Counter(skip.reason for skip in report.skipped)
        lines.append(f"skipped {_counts(reasons)}; to list them: ragvault status -v")
    return "\n".join(lines)


def _index_line(name: str, report: Report, extensions: Sequence[str]) -> str:
    words = {"added": "added", "changed": "changed", "moved": "moved", "removed": "removed"}
    words["recut"] = "chunked again"
    did = [
        f"{getattr(report, key):,} {word}" for key, word in words.items() if getattr(report, key)
    ]
    if report.embedded:
        did.append(f"{counted(report.embedded, 'passage')} embedded")
    if report.rebuilt:
        did.append(f"rebuilt {' and '.join(report.rebuilt)}")
    held = f"{counted(report.notes, 'note')}, {counted(report.passages, 'passage')}"
    took = f"({report.seconds:.1f} s)"
    if not report.notes and not did:
        if report.skipped:
            return f"No notes indexed in {name} {took}."
        looked = f" (looked for {', '.join(extensions)})" if extensions else ""
        return f"No Markdown files found in {name}{looked}."
    if not did:
        return f"{name} is up to date: {held} {took}."
    if 0 < report.added == report.notes and not report.rebuilt:  # the first index of a vault
        return f"Indexed {name}: {held} {took}."
    return f"Updated {name}: {', '.join(did)}; now {held} {took}."


def forgotten(name: str, found: Forgotten) -> str:
    """What was forgotten: one line, then one line per note."""
    if not found.notes:
        return f"{printable(name)}: erased what was left of deleted notes and edits"
    notes, passages = counted(len(found.notes), "note"), counted(found.passages, "passage")
    left = "nothing is left in any index file"
    if found.still_there:
        left = "removed from the index only"  # and cli/remove.py says that it will come back
    head = f"{printable(name)}: forgot {notes} ({passages}); {left}"
    return "\n".join([head, *map(printable, found.notes)])


def note_facts(found: NoteText) -> Iterator[str]:
    """Where the text stands, how the note is linked, and what was left out."""
    first, last = found.lines
    out, into = found.links["out"], found.links["in"]
    linked = f"{counted(out, 'link')} out, {into:,} in" if found.indexed else "not indexed"
    yield printable(f"{found.note}:{first}-{last} of {found.total_lines:,} lines; {linked}")
    if found.rest:
        first, last = found.rest
        yield f"cut to fit the budget; to continue: --lines {first}-{last}"


def links_text(found: Links, root: Path) -> str:
    """The links of a note, one per line, by their state; paths work in the current folder."""
    lines = [_here(root, found.note)]
    lines += [f"outgoing  {_outgoing(link, root)}" for link in found.outgoing]
    lines += [f"incoming  {_incoming(link, root)}" for link in found.incoming]
    lines += [f"broken    {_outgoing(link, root)}" for link in found.broken]
    lines += [f"ambiguous {_outgoing(link, root)}" for link in found.ambiguous]
    lines += [f"waiting   {_outgoing(link, root)}" for link in found.waiting]
    return "\n".join(lines)


def link_path_text(found: LinkPath, root: Path) -> str:
    """The notes of a path, one per line, with the links that lead to each."""
    lines = [_here(root, note) for note in found.notes[:1]]
    for step in found.steps:
        links = ", ".join(f"{_here(root, link.note)}:{link.line}" for link in step.links)
        gone = GONE if step.gone else ""
        lines.append(f"{ARROWS[step.direction]:3} {_here(root, step.to)} ({links}){gone}")
    return "\n".join(lines)


def _here(root: Path, note: str) -> str:
    """The path of a note from the current folder."""
    return printable(place_from(folders.here(), root / note))


def _outgoing(link: Outgoing, root: Path) -> str:
    text = f"line {link.line}: {printable(link.target)}"
    if link.note:
        text += f" -> {_here(root, link.note)}"
    if not link.heading_found:
        text += " (no such heading)"
    return text + _could_be([place_from(folders.here(), root / each) for each in link.others])


def _incoming(link: LinkOf, root: Path) -> str:
    return f"{_here(root, link.note)}:{link.line}{GONE if link.gone else ''}"


def _could_be(others: Sequence[str]) -> str:
    return f" (could be {', '.join(map(printable, others))})" if others else ""


def related_text(found: Related, root: Path) -> str:
    """Notes near a note: each title, its path from the current folder, and its reasons."""
    return "\n".join(line for near in found.related for line in _near(near, root))


def _near(near: Near, root: Path) -> Iterator[str]:
    yield printable(near.title)
    yield f"    {_here(root, near.note)}"
    for reason in near.reasons:
        cosine = f"vector {reason.value:.2f}: " if reason.by == "vector" else ""
        yield f"    {cosine}{printable(reason.why)}"


def contents_text(found: Contents) -> str:
    """What a vault holds, one per line: how many notes, and the name."""
    from ragvault.answer.contents import Counted

    lines = []
    for each in found.items:
        if isinstance(each, Counted):
            sign = "#" if found.kind == "tags" else ""
            values = ", ".join(map(_property_value, each.values))
            line = f"{each.notes:6,}  {sign}{each.name}{f': {values}' if values else ''}"
        else:
            line = f"{each.date or '':10}  {each.note}{_other_title(each.note, each.title)}"
        lines.append(printable(line))
    return "\n".join(lines)


def _property_value(value: Counted) -> str:
    """A value, cut if it is a sentence, and how many notes have it."""
    name = value.name if len(value.name) <= LONGEST_VALUE else f"{value.name[:LONGEST_VALUE]}…"
    return name if value.notes == 1 else f"{name} ({value.notes:,})"


def _other_title(path: str, title: str) -> str:
    """The title, where it is not the file name."""
    return "" if title == PurePosixPath(path).stem else f"  ({title})"


def place_from(here: Path, path: Path) -> str:
    """A path that works in the folder `here`."""
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def status_text(found: Status, watcher: str, resident: str = "", *, full: bool) -> str:
    """An index in a dozen lines; with `full` also every skipped file and broken link."""
    held = found.counts
    rows = {
        "vault": f"{printable(found.name)} ({printable(found.root)})",
        "notes": f"{held.notes:,}",
        "passages": f"{held.passages:,} in {counted(held.sections, 'section')}",
        "keyword": found.engine or "not indexed yet",
        "vectors": _vectors(found),
        "links": _counts({LINK_STATES.get(word, word): n for word, n in held.links.items()})
        or "none",
        "skipped": _counts({**held.skipped, **_excluded(found)}) or "none",
        "warnings": counted(held.warned, "note") if held.warned else "none",
        "pending": _pending(found.pending),
        "size": _parts(held.bytes),
        "folder": printable(found.folder),
        "revision": f"{held.revision} (format {held.format})",
        "models": ", ".join(_model(use, *model) for use, model in found.models.items()),
        "last run": _last_run(held.last_run),
        "watcher": printable(watcher) or "none",
    }
    if resident:
        rows["resident"] = printable(resident)
    if found.unread:
        rows["not read"] = _unread(found.unread)
    if found.removed:
        rows["removed"] = (
            "deleted text is still in index files; to erase it: ragvault forget --removed"
        )
    if found.writer:
        rows["writer"] = printable(found.writer)
    lines = [f"{word:9} {text}" for word, text in rows.items()]
    return "\n".join([*lines, *_details(found)] if full else lines)


def _excluded(found: Status) -> dict[str, int]:
    return {"excluded": len(found.excluded)} if found.excluded else {}


def _unread(unread: Mapping[str, int]) -> str:
    """Documents that are no notes, and how to have them read."""
    from ragvault.notes.walk import TEXT_DOCUMENTS

    counts = ", ".join(f"{number:,} {suffix}" for suffix, number in unread.items())
    text = [suffix for suffix in unread if suffix in TEXT_DOCUMENTS]
    other = [suffix for suffix in unread if suffix not in TEXT_DOCUMENTS]
    ways = [f"to read {', '.join(text)} as text, add it to walk.extensions"] if text else []
    ways += [f"{', '.join(other)}: convert to Markdown or text first"] if other else []
    return "; ".join([counts, *ways])


def _vectors(found: Status) -> str:
    """How many passages have which kind of vector."""
    words = {
        "full": "full",
        "static": "static",
        "keyword": "keyword only",
        "none": "not indexed yet",
    }
    parts = [f"{number:,} {words[tier]}" for tier, number in found.tiers.items() if number]
    asked = " (as asked; for all: ragvault index --tier full)" * (found.tier != "full")
    return (", ".join(parts) or "none") + asked


def _pending(found: Pending) -> str:
    files = {"new": found.new, "changed": found.changed, "deleted": found.gone}
    files["to chunk again"] = found.recut
    parts = [f"{number:,} {word}" for word, number in files.items() if number]
    if found.why:
        parts = [f"files unknown ({printable(found.why)})"]
    if found.words:
        parts.append(f"{counted(found.words, 'passage')} to add to the keyword index")
    if found.passages:
        parts.append(f"{counted(found.passages, 'passage')} to embed")
    if found.links:
        parts.append(f"{counted(found.links, 'link')} to resolve")
    return f"{', '.join(parts)}; run: ragvault index" if parts else "nothing"


def _parts(sizes: Mapping[str, int]) -> str:
    """The total, and the parts of at least 1 kB."""
    parts: Counter[str] = Counter()
    for name, number in sizes.items():
        parts[name.partition(".")[0]] += number  # catalogue.sqlite together with its journal
    named = [f"{part} {size(number)}" for part, number in sorted(parts.items()) if number >= 1000]
    return f"{size(parts.total())} ({', '.join(named)})"


def _model(use: str, name: str, here: bool | None) -> str:
    missing = " (not installed)" if here is False else ""
    return f"{use} {printable(name)}{missing}"


def _last_run(run: Mapping[str, Any]) -> str:
    if not run:
        return "never finished"
    ended = datetime.fromtimestamp(run["ended"]).astimezone()
    return f"{ended:%Y-%m-%d %H:%M}, {run['seconds']:.1f} s"


def _details(found: Status) -> Iterator[str]:
    from ragvault.answer.note_lookup import listed

    for skip in (*found.skipped, *found.excluded):
        why = ", ".join(filter(None, (skip.reason, printable(skip.detail))))
        yield f"skipped   {printable(skip.path)}: {why}"
    same: dict[str, list[str]] = {}
    for path, warnings in found.warnings.items():
        for text in warnings:
            same.setdefault(text, []).append(path)
    for text, paths in same.items():
        yield f"warning   {printable(listed(paths))}: {printable(text)}"
    for path, link, target in found.dangling:
        where = f"{printable(path)}:{link.line}: {printable(link.target)}"
        state = LINK_STATES.get(target.status, target.status)
        yield f"{state:9} {where}{_could_be(target.others)}"


def findings(found: Sequence[Finding], *, quiet: bool, full: bool) -> str:
    """What the checks found: problems first, each with its fix, then a summary."""
    order = ("broken", "behind", "note", "fine")
    shown = order if full else order[:2] if quiet else order[:3]
    lines = [
        line for state in shown for each in found if each.state == state for line in _finding(each)
    ]
    passed = sum(each.state in ("fine", "note") for each in found)
    if not quiet:
        all_passed = f"all {len(found)} checks passed"
        some = f"{passed} of {len(found)} checks passed"
        lines.append(all_passed if passed == len(found) else some)
    return "\n".join(lines)


def _finding(each: Finding) -> Iterator[str]:
    yield f"{each.state:7} {each.part}: {printable(each.message)}"
    if each.fix:
        yield f"        fix: {printable(each.fix)}"


def purge_list(found: Sequence[WrittenItem]) -> str:
    """What purge would remove, one line each, and the total size."""
    lines = [f"{each.what:8} {size(each.bytes):>9}  {printable(str(each.path))}" for each in found]
    total = size(sum(each.bytes for each in found))
    return "\n".join([*lines, f"{total} in total"] if found else ["Nothing to remove."])


def watcher(found: WatcherRecord, state: Mapping[str, Any]) -> str:
    """The state of the watcher or the resident process, one line per watched vault."""
    doing = "resident" if found.resident else "watching"
    lines = [f"{doing}: {printable(found.describe())}"]
    if "unanswered" in state:
        lines.append(f"it does not answer: {printable(state['unanswered'])}")
    else:
        lines.append(f"searches answered: {state['answered']:,}")
        if state["ends_in"] is not None:
            lines.append(f"ends by itself in {state['ends_in'] / 60:.0f} min without a search")
    for vault in state["vaults"]:
        doing = vault["away"] or ("working" if vault["waiting"] else "up to date")
        heard = f"polling: {vault['why']}" if vault["why"] else "native events"
        lines.append(printable(f"{vault['name']}: {doing}, {heard}"))
    return "\n".join(lines)


def vaults_text(rows: Sequence[VaultRow]) -> str:
    """The known vaults, one per line; a star marks the default."""
    cells = [_vault(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def _vault(row: VaultRow) -> tuple[str, ...]:
    states = {
        "ready": "",
        "gone": "folder not found",
        "unreadable": "folder cannot be read",
        "not indexed": "not indexed",
    }
    state = states[row.state]
    if row.pending is not None and not state:
        state = _pending(row.pending).replace("nothing", "up to date")
    return (
        f"{'*' if row.default else ' '} {printable(row.name)}",
        "" if row.notes is None else counted(row.notes, "note"),
        row.tier or "",
        f"{size(row.bytes) if row.tier else '':>9}",
        printable(row.root),
        f"({state})" if state else "",
    )


def models_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Five lines per model: name, maker, description, sources, and where it is."""
    lines = []
    for row in rows:
        sources = ", ".join(row["sources"])
        installed = row["path"] or f"not installed; {row['download_bytes'] / 1e6:.0f} MB to fetch"
        lines += [
            f"{row['name']}  ({row['kind']}, {row['engine']})",
            f"    made by {row['origin']}, licence {row['licence']}",
            f"    {row['about']}",
            f"    fetched from {sources}; hash pinned, nothing in a package is executed",
            f"    {installed}",
        ]
    return "\n".join(lines)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {word}" for word, number in sorted(counts.items()))


# --- config ---


def settings_toml(loaded: Loaded, about: Mapping[str, str], *, changed: bool = False) -> str:
    """Every setting with its origin, as a TOML file with the same meaning.

    `changed`: only those that somebody set.
    """
    from ragvault.config.schema import literal

    lines = [f"# {name}: {printable(text)}" for name, text in about.items()]
    table = ""
    for key, value in _values(loaded).items():
        if changed and key not in loaded.chosen:
            continue
        above, _, name = key.rpartition(".")
        if above != table:
            table = above
            lines += ["", f"[{table}]"]
        lines.append(f"{name} = {literal(value)}  # {printable(loaded.origin[key])}")
    return "\n".join(lines)


def settings_json(loaded: Loaded, about: Mapping[str, str]) -> str:
    """The same for programs."""
    settings = {
        key: {"value": value, "origin": loaded.origin[key]}
        for key, value in _values(loaded).items()
    }
    return encode({"settings": settings, "files": [str(path) for path in loaded.files], **about})


def problems_json(error: RagvaultError) -> str:
    """The problems that `config check` found, for programs."""
    return encode({"files": [], "problems": [{"message": str(error), "fix": error.fix}]})


def no_problems(loaded: Loaded) -> str:
    """What `config check` prints if it found no problem."""
    lines = [f"{printable(str(path))}: no problems found" for path in loaded.files]
    lines.append(changed_settings(loaded))
    return "\n".join(lines)


def changed_settings(loaded: Loaded) -> str:
    """How many settings are not at their defaults."""
    changed = len(loaded.chosen)
    values = (
        f"{counted(changed, 'setting')} changed from" if changed else "no settings changed from"
    )
    return f"{values} {'its default' if changed == 1 else 'their defaults'}"


def _values(loaded: Loaded) -> dict[str, Any]:
    """Dotted key -> plain value, in the order of the tables."""
    import msgspec

    from ragvault.config.schema import settings

    plain: dict[str, Any] = {}
    for path, setting in settings().items():
        value: Any = loaded.config
        for name in path:
            value = getattr(value, name)
        plain[setting.key] = msgspec.to_builtins(value)
    return plain
