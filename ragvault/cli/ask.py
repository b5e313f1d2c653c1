"""A search as it was typed becomes what is written: pure, so that any process can answer it.

    Ask            what was typed
    Surroundings   where (around.py)
    Reply          what goes to stdout and to stderr, and the exit code

`answer` prints nothing and reads neither the current folder nor a variable of its own process: a
process that keeps indexes open gives the same bytes as one that opens them for one search, but for
the times that were measured (`took_ms`, and those of --explain).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, NamedTuple

from ragvault.cli import render
from ragvault.cli.around import Surroundings
from ragvault.errors import RagvaultError

if TYPE_CHECKING:
    from ragvault.opened import Opened
    from ragvault.vault import Vault

# How an index is opened to be asked: closed again after this search, or kept for the next.
Opening = Callable[["Vault"], AbstractContextManager["Opened"]]


@dataclass(frozen=True, slots=True)
class Ask:
    """A search as it was typed; `flags` are settings, as key=value."""

    query: str
    vaults: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    limit: int | None = None
    hypothesis: str | None = None
    format: str = "text"
    explain: bool = False
    nul: bool = False
    require_fresh: bool = False
    quiet: bool = False
    verbose: bool = False


class Reply(NamedTuple):
    """What a search writes; `out` ends as it is to end, `err` is lines."""

    out: str
    err: tuple[str, ...] = ()
    code: int = 0


def once(vault: Vault) -> AbstractContextManager[Opened]:
    """Open an index for one search."""
    return vault.reading()


def answer(ask: Ask, around: Surroundings, opening: Opening = once) -> Reply:
    """The whole search, its errors included."""
    try:
        return found(ask, around, opening)
    except RagvaultError as error:
        return Reply("", tuple(render.error_lines(error)), error.exit_code)


def found(ask: Ask, around: Surroundings, opening: Opening = once) -> Reply:
    """The same, but for a RagvaultError, which is raised."""
    from ragvault.cli import results
    from ragvault.search import Asked, search
    from ragvault.vault import Vault

    where = ask.vaults[0] if ask.vaults else None
    vault = Vault.open(where, flags=ask.flags, environ=around.environ, cwd=around.cwd)
    with opening(vault) as index:
        response = search(Asked(ask.query, _clock(around), ask.limit, ask.hypothesis), index)
    shown = results.Shown(vault.name, vault.root, vault.settings.config, response)
    said = () if ask.quiet else tuple(map(render.printable, results.about(shown)))
    text = results.FORMATS[ask.format](shown, ask.explain)
    return Reply(_ended(text, ask), said, 0 if response.results else 1)


def _ended(text: str, ask: Ask) -> str:
    if ask.format == "paths" and ask.nul:
        return text.replace("\n", "\0") + "\0" if text else ""
    return f"{text}\n" if text else ""


def _clock(around: Surroundings) -> datetime:
    return datetime.fromtimestamp(around.now, timezone(timedelta(seconds=around.zone)))
