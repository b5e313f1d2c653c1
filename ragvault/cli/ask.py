"""A search as it was typed becomes what is written: pure, so that any process can answer it.

    Ask            what was typed
    Surroundings   where (around.py)
    Reply          what goes to stdout and to stderr, and the exit code (reply.py)

`answer` prints nothing and reads neither the current folder nor a variable of its own process: a
process that keeps indexes open gives the same bytes as one that opens them for one search, but for
the times that were measured (`took_ms`, and those of --explain).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragvault.cli import render
from ragvault.cli.around import Surroundings
from ragvault.cli.reply import Reply
from ragvault.errors import IndexBehind, RagvaultError, UsageError

if TYPE_CHECKING:
    from ragvault.candidate import Candidate
    from ragvault.cli.shown import Answer, Shown
    from ragvault.opened import Opened
    from ragvault.several import Writing
    from ragvault.store.layout import KnownVault
    from ragvault.vault import Vault

# Up to so many notes a search says by itself that its index is behind: to know takes a walk, which
# took 42 ms for 1,000 notes in a folder each, 95 ms for 2,500 and 472 ms for 14,593. A search that
# answers by itself takes a second, and this a twentieth of it; one with a watcher says the same.
FEW = 1000

# Formats that are handed to a model as they are: all that they write is held to the budget.
HANDED_OVER = ("context", "markdown")

# How an index is opened to be asked: closed again after this search, or kept for the next.
Opening = Callable[["Vault"], AbstractContextManager["Opened"]]
# How many files wait to be indexed: by a walk, or known to whoever watches them.
Counting = Callable[["Vault", "Opened"], int]


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


def once() -> Opening:
    """Open indexes for one search; a model that several of them need is loaded once."""
    from ragvault.models.load import ModelPool

    kit = ModelPool()
    return lambda vault: vault.reading(kit=kit)


def walked(vault: Vault, index: Opened) -> int:
    """Look at every file of the vault, without reading one."""
    from ragvault.freshness import waiting

    return sum(waiting(vault.root, index.catalogue, index.config))


def answer(
    ask: Ask, around: Surroundings, opening: Opening | None = None, counting: Counting = walked
) -> Reply:
    """The whole search, its errors included."""
    try:
        return found(ask, around, opening, counting)
    except RagvaultError as error:
        return Reply("", tuple(render.error_lines(error)), error.exit_code)


def found(
    ask: Ask, around: Surroundings, opening: Opening | None = None, counting: Counting = walked
) -> Reply:
    """The same, but for a RagvaultError, which is raised."""
    from ragvault.cli.shown import Found, Shown, said
    from ragvault.several import merge

    opening = opening or once()
    answers, vaults = [], _vaults(ask, around)
    for vault in vaults:
        with opening(vault) as index:
            answers.append(_answer(ask, around, vault, index, counting))
    first = answers[0]
    merged = merge(
        [each.response for each in answers],
        first.config,
        ask.limit,
        first.count_tokens,
        _writing(ask, answers, around) if ask.format in HANDED_OVER else None,
    )
    results = tuple(Found(answers[of], each) for of, each in merged.results)
    if ask.format == "context":
        for at, vault in enumerate(vaults):
            vault.handed_over((each for of, each in merged.results if of == at), around.now)
    shown = Shown(results, tuple(answers), merged.left_out, merged.said, around, ask.explain)
    lines = () if ask.quiet else tuple(map(render.printable, said(shown)))
    return Reply(_written(shown, ask), lines, 0 if results else _nothing(answers))


def _nothing(answers: Sequence[Answer]) -> int:
    """The exit code of an answer without results: 3 where nothing could answer."""
    responses = [each.response for each in answers]
    # Neighbours are of what others found.
    runs = [run for each in responses for run in each.runs if run.leg != "graph"]
    answered = any(not run.failed for run in runs)
    return 1 if answered or not any(each.failed for each in responses) else 3


def _answer(
    ask: Ask, around: Surroundings, vault: Vault, index: Opened, counting: Counting
) -> Answer:
    from ragvault import freshness
    from ragvault.cli.shown import Answer, disks, snippets
    from ragvault.cli.zone import clock
    from ragvault.search import Asked

    freshness.check(vault.root, index.catalogue)
    asked = Asked(ask.query, clock(around), ask.limit, ask.hypothesis)
    pending, partial = _standing(ask, vault, index, counting)
    with index.catalogue.snapshot():
        response = vault.answer(asked, index)
        shown, spelled = snippets(response, index), disks(response, index)
    counter = None if response.plan.listing else index.count_tokens()
    unfinished = "" if response.results else _unfinished(vault, index)
    told = (response, pending, partial, unfinished, shown, counter, spelled)
    return Answer(vault.name, vault.root, index.config, *told)


def _standing(ask: Ask, vault: Vault, index: Opened, counting: Counting) -> tuple[int | None, str]:
    """How many files wait, and what cannot answer for all notes. Raises IndexBehind if asked to."""
    if not _is_counted(ask, index):
        return None, ""
    index.refresh()
    pending, partial = counting(vault, index), _partial(index)
    if ask.require_fresh and (pending or partial):
        why = f"{render.counted(pending, 'file')} changed since" if pending else partial
        raise IndexBehind(vault.root, why)
    return pending, partial


def _is_counted(ask: Ask, index: Opened) -> bool:
    """Programs are always told whether an index is behind; people where it takes no time."""
    told = ask.format == "json" or ask.require_fresh
    return told or (not ask.quiet and index.catalogue.note_count() <= FEW)


def _unfinished(vault: Vault, index: Opened) -> str:
    """Why a vault that was never indexed to its end may lack notes; empty for any other."""
    from ragvault.store.lock import lock_owner

    if index.catalogue.last_run():
        return ""
    if lock_owner(vault.folder):
        return "still being indexed; ask again when that is done (ragvault status)"
    return "its first indexing was not finished; to go on with it: ragvault index"


def _partial(index: Opened) -> str:
    """What of the index cannot answer, or not for all of its notes yet; empty when all can."""
    for part, why in index.missing.items():
        if part != "access":  # which is no part of the index
            return f"{part}: {why}"
    return index.behind


def _vaults(ask: Ask, around: Surroundings) -> list[Vault]:
    """The vaults to search, each once: by --vault, by in: in the query, or the one around."""
    from ragvault.vault import Vault

    def opened(where: str | Path | None) -> Vault:
        return Vault.open(where, flags=ask.flags, environ=around.environ, cwd=around.cwd)

    named, mistake = _named_in(ask, around)
    if not ask.vaults:
        wanted = [opened(vault.root) for vault in named] or [_around(opened, mistake)]
    else:
        wanted = [opened(where) for where in ask.vaults]
    roots = {vault.root for vault in named}
    kept = {vault.root: vault for vault in wanted if not roots or vault.root in roots}
    if not kept:
        names = ", ".join(vault.name for vault in wanted)
        raise UsageError(
            f"in:{named[0].name} is not among the vaults to search ({names})",
            fix="leave out in: or --vault, or name the same vault with both",
        )
    return list(kept.values())


def _around(opened: Callable[[None], Vault], mistake: UsageError | None) -> Vault:
    """The vault that nobody named. Where there is none, a mistake in the query comes first."""
    try:
        return opened(None)
    except RagvaultError as error:
        raise mistake or error from None


def _named_in(ask: Ask, around: Surroundings) -> tuple[list[KnownVault], UsageError | None]:
    """The vaults that the query itself names, or what is wrong with the query."""
    if "in:" not in ask.query.casefold():
        return [], None
    from ragvault.cli.zone import clock
    from ragvault.config.settings import Query
    from ragvault.query.understand import understand
    from ragvault.store import layout
    from ragvault.vault import data_folder

    try:
        plan = understand(ask.query, Query(), now=clock(around), hypothesis=ask.hypothesis)
    except UsageError as mistake:  # told by the search itself, unless it is the name of a note
        return [], mistake
    data, here = data_folder(around.environ), Path(around.cwd)
    return [layout.known_vault(name, data, here) for name in plan.vaults], None


def _written(shown: Shown, ask: Ask) -> str:
    from ragvault.cli.results import FORMATS, paths

    if ask.nul:
        return "".join(f"{path}\0" for path in paths(shown))
    text = FORMATS[ask.format](shown)
    return f"{text}\n" if text else ""


def _writing(ask: Ask, answers: Sequence[Answer], around: Surroundings) -> Writing:
    """What would be written of some results."""
    from ragvault.cli.shown import Found, Shown

    def written(results: Sequence[tuple[int, Candidate]]) -> str:
        found = tuple(Found(answers[of], each) for of, each in results)
        return _written(Shown(found, tuple(answers), 0, (), around), ask)

    return written
