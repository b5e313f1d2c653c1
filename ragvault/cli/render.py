"""The only formatting: everything a person or a program reads is written here.

    out       data, to stdout
    talk      a line about what is going on, to stderr; silent with --quiet
    detail    the same, only with --verbose
    error     what went wrong and the cure, to stderr

The other functions turn a value into text or JSON for `out`. They compute nothing and ask nothing.
Every command imports this file, so what only one of them needs is imported inside its function.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from ragvault.errors import RagvaultError

if TYPE_CHECKING:
    from ragvault.configure import Loaded
    from ragvault.forget import Forgotten
    from ragvault.linked import Incoming, Links, Outgoing
    from ragvault.related import Near, Related
    from ragvault.status import Status
    from ragvault.write.notes import Report

# 0 with --quiet, 2 with --verbose; a thread that answers somebody else has its own
_volume: ContextVar[int] = ContextVar("volume", default=1)


def reset() -> None:
    """As loud as usual; stdout never fails on a name that its encoding cannot say."""
    _volume.set(1)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")


def be_quiet() -> None:
    _volume.set(0)


def be_verbose() -> None:
    _volume.set(2)


def is_quiet() -> bool:
    return _volume.get() < 1


def is_verbose() -> bool:
    return _volume.get() > 1


def out(text: str) -> None:
    if text:
        typer.echo(text)


def talk(text: str) -> None:
    if _volume.get() >= 1:
        typer.echo(printable(text), err=True)


def detail(text: str) -> None:
    if _volume.get() >= 2:
        typer.echo(printable(text), err=True)


def error(error: RagvaultError) -> None:
    """Two lines for each problem; with RAGVAULT_DEBUG=1 the traceback above them."""
    _traceback()
    for line in error_lines(error):
        typer.echo(line, err=True)


def error_lines(error: RagvaultError) -> Iterator[str]:
    """What `error` writes."""
    for each in getattr(error, "problems", (error,)):
        yield from _two_lines(str(each), each.fix)


def misuse(error: Any) -> None:
    """A command line that Typer refused."""
    words = " ".join(error.format_message().split()).rstrip(".")
    path = error.ctx.command_path if error.ctx else "ragvault"
    for line in _two_lines(words[:1].lower() + words[1:], f"{path} --help"):
        typer.echo(line, err=True)


def unexpected(error: Exception) -> None:
    """A mistake of ours: asks to report it."""
    _traceback()
    said = " ".join(str(error).split())
    fix = "please report this with what RAGVAULT_DEBUG=1 shows; nothing in your vault was changed"
    for line in _two_lines(f"unexpected {type(error).__name__}: {said}", fix):
        typer.echo(line, err=True)


def as_json(value: Any) -> str:
    """One line. Not msgspec: a file name may hold what is not Unicode, and must still be told."""
    import msgspec

    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def settings_toml(loaded: Loaded, about: Mapping[str, str]) -> str:
    """Every setting with its origin, as a TOML file that means the same."""
    from ragvault import toml

    lines = [f"# {name}: {printable(text)}" for name, text in about.items()]
    table = ""
    for key, value in _settings(loaded).items():
        above, _, name = key.rpartition(".")
        if above != table:
            table = above
            lines += ["", f"[{table}]"]
        lines.append(f"{name} = {toml.literal(value)}  # {printable(loaded.origin[key])}")
    return "\n".join(lines)


def settings_json(loaded: Loaded, about: Mapping[str, str]) -> str:
    """The same for programs."""
    settings = {
        key: {"value": value, "origin": loaded.origin[key]}
        for key, value in _settings(loaded).items()
    }
    return as_json({"settings": settings, "files": [str(path) for path in loaded.files], **about})


def verdict(loaded: Loaded) -> str:
    """What `config check` found right."""
    count = sum(origin != "default" for origin in loaded.origin.values())
    lines = [f"{printable(str(path))}: all is well" for path in loaded.files]
    lines.append(f"settings with a value of their own: {count}; the others have their defaults")
    return "\n".join(lines)


def index_report(name: str, report: Report) -> str:
    """What an indexing run did, in one line, and what it left out in a second."""
    words = ("added", "changed", "moved", "removed", "recut")
    done = [f"{count(getattr(report, word))} {word}" for word in words if getattr(report, word)]
    did = ", ".join(done) or "nothing to do"
    if report.embedded:
        did += f"; {count(report.embedded)} passages embedded"
    lines = [f"{name}: {did}; {count(report.unchanged)} unchanged ({report.seconds:.1f} s)"]
    if report.skipped:
        reasons = Counter(skip.reason for skip in report.skipped)
        lines.append(f"skipped {_listed(reasons)}; ragvault status -v lists them")
    return "\n".join(lines)


def forgotten(name: str, found: Forgotten) -> str:
    """What was forgotten, a note a line after the first."""
    notes, passages = count(len(found.notes)), count(found.passages)
    head = f"{name}: forgot {notes} notes with {passages} passages, with nothing left behind"
    return "\n".join([head, *map(printable, found.notes)])


def status(found: Status, *, full: bool) -> str:
    """An index in a dozen lines; with `full` every skipped file and broken link as well."""
    held = found.counts
    rows = {
        "vault": f"{found.name} ({printable(found.root)})",
        "notes": count(held.notes),
        "sections": count(held.sections),
        "passages": count(held.chunks),
        "links": _listed(held.links) or "none",
        "skipped": _listed(held.skipped) or "none",
        "warnings": f"{count(held.warned)} notes" if held.warned else "none",
        "pending": _pending(found),
        "size": f"{sum(held.bytes.values()) / 1e6:.1f} MB in {printable(found.folder)}",
        "revision": f"{held.revision} (format {held.format})",
        "last run": _last_run(held.last_run),
    }
    if found.writer:
        rows["writer"] = found.writer
    lines = [f"{word:9} {text}" for word, text in rows.items()]
    return "\n".join([*lines, *_details(found)] if full else lines)


def links(found: Links) -> str:
    """The links of a note, one a line, by what became of them."""
    lines = [printable(found.note)]
    lines += [f"outgoing  {_outgoing(link)}" for link in found.outgoing]
    lines += [f"incoming  {_incoming(link)}" for link in found.incoming]
    lines += [f"broken    {_outgoing(link)}" for link in found.broken]
    lines += [f"ambiguous {_outgoing(link)}" for link in found.ambiguous]
    lines += [f"waiting   {_outgoing(link)}" for link in found.waiting]
    return "\n".join(lines)


def _outgoing(link: Outgoing) -> str:
    text = f"line {link.line}: {printable(link.target)}"
    if link.note:
        text += f" -> {printable(link.note)}"
    if not link.heading_found:
        text += " (no such heading there)"
    return text + _could_be(link.others)


def _incoming(link: Incoming) -> str:
    gone = " (that file is gone; run: ragvault index)" if link.gone else ""
    return f"{printable(link.note)}:{link.line}{gone}"


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


def count(number: int) -> str:
    return f"{number:,}"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count(number)} {word}" for word, number in sorted(counts.items()))


def _pending(found: Status) -> str:
    if found.pending is None:
        return f"unknown: {printable(found.unreadable)}"
    return f"{count(found.pending)} files changed since" if found.pending else "nothing"


def _last_run(run: Mapping[str, Any]) -> str:
    if not run:
        return "never finished"
    from datetime import datetime

    ended = datetime.fromtimestamp(run["ended"]).astimezone()
    return f"{ended:%Y-%m-%d %H:%M}, {run['seconds']:.1f} s"


def _details(found: Status) -> Iterator[str]:
    for skip in found.skipped:
        yield f"skipped   {printable(skip.path)}: {skip.reason} {printable(skip.detail)}".rstrip()
    for path, warnings in found.warnings.items():
        yield from (f"warning   {printable(path)}: {printable(said)}" for said in warnings)
    for link in found.dangling:
        where = f"{printable(link.path)}:{link.line}: {printable(link.target)}"
        yield f"{link.status:9} {where}{_could_be(link.others)}"


def printable_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def printable(text: str) -> str:
    """Text of unknown origin on one line, with nothing in it that steers a terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _settings(loaded: Loaded) -> dict[str, Any]:
    """Dotted key -> plain value, in the order of the tables."""
    import msgspec

    from ragvault.schema import settings

    plain: dict[str, Any] = {}
    for path, setting in settings().items():
        value: Any = loaded.config
        for name in path:
            value = getattr(value, name)
        plain[setting.key] = msgspec.to_builtins(value)
    return plain


def _two_lines(message: str, fix: str) -> Iterator[str]:
    yield f"ragvault: {printable(message)}"
    if fix:
        yield f"     fix: {printable(fix)}"


def _traceback() -> None:
    if os.environ.get("RAGVAULT_DEBUG") == "1":
        import traceback

        traceback.print_exc()
