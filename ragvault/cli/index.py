"""Commands that write indexes: index once, or watch and update them as files change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from time import monotonic
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragvault.cli import console, options
from ragvault.cli.console import progress
from ragvault.cli.start import report_if_slow
from ragvault.text.printable import encode
from ragvault.types import Tier

if TYPE_CHECKING:
    from ragvault.answer.results import SearchAnswer, SearchResult
    from ragvault.service.process import WatcherRecord
    from ragvault.service.watcher import LastResults, ResidentIndexes
    from ragvault.update.notes import Report
    from ragvault.vault import Vault

app = typer.Typer()


@app.command()
def index(
    vaults: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VAULT]...",
            autocompletion=options.vault_names,
            help="Folders with notes. Default: the vault around the current folder.",
        ),
    ] = None,
    tier: Annotated[
        Tier | None,
        typer.Option(
            "--tier",
            help="Keywords only, with quick static vectors, or with full vectors. "
            "Remembered; at first full.",
        ),
    ] = None,
    no_vectors: Annotated[
        bool, typer.Option("--no-vectors", help="Same as --tier keyword.")
    ] = False,
    time_limit: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="TIME",
            help="Stop embedding full vectors after this time, such as 90s, 5m or 1h. "
            "Run it again to continue.",
        ),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild all indexes, reusing stored embeddings.")
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty", help="Accept an empty vault (otherwise treated as an unmounted disk)."
        ),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            autocompletion=options.model_names,
            help="Embed with this model from now on.",
        ),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Download nothing; use the installed models.")
    ] = False,
    set_: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Index vaults, or update their indexes.

    Reads only files that changed and embeds only new text. Never writes to the vault. You can
    search as soon as the first tier is done. Ctrl-C keeps what is done; run the same command again
    to continue. Searches use full vectors once every passage has one, and quick ones until then.

    ragvault index sample_vault

    ragvault index sample_vault --tier static --offline
    """
    flags = [*(set_ or ()), *([f"models.embedder={model}"] if model else ())]
    asked = "keyword" if no_vectors else tier or ("full" if model else None)
    how: Any = {
        "tier": asked,
        "rebuild": rebuild,
        "allow_empty": allow_empty,
        "offline": offline,
    }
    until = monotonic() + options.seconds(time_limit)
    named: list[str | None] = [*(vaults or ())] or [None]
    opened = [_opened(vault, flags) for vault in named]  # every mistake before any work
    reports = [(vault, _indexed(vault, how, until, json)) for vault in opened]
    if json:
        found = [{"vault": vault.name, **asdict(report)} for vault, report in reports]
        console.out(encode(reports[0][1] if len(reports) == 1 else {"vaults": found}))
    if not any(report.notes for _, report in reports) and not allow_empty:
        raise typer.Exit(1)


def _opened(vault: str | None, flags: Sequence[str] = (), command: str = "index") -> Vault:
    from ragvault.errors import VaultNotFound
    from ragvault.vault import Vault

    try:
        return Vault.open(vault, flags=flags)
    except VaultNotFound as unknown:  # its fix may name --vault, which these commands do not have
        fix = f"ragvault {command} FOLDER"
        raise VaultNotFound(str(unknown), fix=fix, near=unknown.near) from None


def _indexed(vault: Vault, how: Mapping[str, Any], until: float, json: bool) -> Report:
    """Index one vault and print what was done. `until`: the clock at which --for ends."""
    from ragvault.cli import reports
    from ragvault.service.process import pause_watcher

    first = not vault.folder.exists()
    kept = "finished work is kept. Run the same command again to continue"
    with pause_watcher(vault.root) as watcher, progress(kept) as shown:
        if watcher:
            console.report(f"pausing the watcher (pid {watcher.pid}) during this run")
        report = vault.index(progress=shown, time_limit=max(0.0, until - monotonic()), **how)
    if first:
        _say_neighbours(vault)
    looked_for = vault.settings.config.walk.extensions
    if how["tier"] is None and vault.tier != "full":
        only = {"keyword": "keywords", "static": "static vectors"}[vault.tier]
        console.report(f"{only} only, as asked before; for all: ragvault index --tier full")
    if not json:
        console.show(reports.index_report(vault.name, report, looked_for))
    for warning in report.warnings:
        console.report(f"warning: {warning}")
    for skip in report.skipped:
        why = ", ".join(filter(None, (skip.reason, skip.detail)))
        console.detail(f"skipped {skip.path}: {why}")
    return report


def _say_neighbours(vault: Vault) -> None:
    """A vault that is new: say which others have its folder's name, or share notes with it."""
    from ragvault.vault import known

    root = vault.root.resolve()
    for other in known():
        if other.folder == vault.folder:
            continue
        if other.name.casefold() == root.name.casefold() != vault.name.casefold():
            console.report(
                f"this vault is called {vault.name}: {other.name} is the one in {other.root}"
            )
        if root.is_relative_to(other.root) or other.root.is_relative_to(root):
            inner, outer = sorted((root, other.root), key=lambda each: -len(each.parts))
            console.report(
                f"warning: {inner} is inside the vault {outer}: its notes are in both indexes. "
                f"To keep one: ragvault vaults remove NAME"
            )


# --- watch ---


# Variables that decide where files are. Others may differ between two login sessions. Those of XDG
# count only without RAGVAULT_HOME.
PLACES = ("HOME", "RAGVAULT_HOME")
XDG_PLACES = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


@app.command()
def watch(
    vaults: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VAULT]...", help="Folders or names of vaults. Default: all known vaults."
        ),
    ] = None,
    daemon: Annotated[bool, typer.Option("--daemon", help="Run in the background.")] = False,
    resident: Annotated[
        bool,
        typer.Option(
            "--resident",
            hidden=True,  # for a search, which starts it
            help="Watch nothing; answer searches, and end after service.resident.",
        ),
    ] = False,
    stop: Annotated[
        bool,
        typer.Option("--stop", help="Stop the watcher, or the process that a search has started."),
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Show whether a watcher runs, and its state. Exits with 1 if none runs.",
        ),
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Update the index as files change, and keep searches fast.

    A change can be searched within two seconds. While the watcher runs, it also answers
    `ragvault search`: models and indexes stay in memory. Ctrl-C ends it; nothing is lost.

    ragvault watch ~/notes

    ragvault watch --daemon
    """
    if status:
        _show_watcher(json)
    elif stop:
        _stop_watcher(json)
    elif resident:
        _stay_resident()
    elif daemon:
        _start_watcher(_vaults_to_watch(vaults or ()), json)
    else:
        _watch(_vaults_to_watch(vaults or ()))


def _watch(vaults: Sequence[Vault], idle: float | None = None) -> None:
    from ragvault.service.watcher import WatchLog, run_watcher, watch_log_path

    with closing(WatchLog(watch_log_path(), echo=not console.is_quiet())) as log:
        run_watcher(vaults, _answer, log, idle)


def _stay_resident() -> None:
    from ragvault.config.load import load_settings
    from ragvault.config.schema import duration_seconds
    from ragvault.errors import UsageError

    idle = duration_seconds(load_settings().config.service.resident)
    if not idle:
        raise UsageError('service.resident is "off"', fix='set it to a time such as "10m"')
    _watch((), idle)


def _answer(
    asked: Mapping[str, Any], indexes: ResidentIndexes, last: LastResults
) -> Mapping[str, Any] | None:
    """Answer another process: its `request`, or the words that were typed there, as `args`.

    None: that process answers by itself.
    """
    from ragvault.cli.search import answer_search, encoded_response, parse_search
    from ragvault.cli.start import Caller

    caller = Caller(**asked["around"])
    if not _has_our_folders(caller.environ):
        return None
    if "request" in asked:
        return encoded_response(asked["request"], caller, indexes)
    typed = parse_search(asked["args"])
    if typed is None:
        return None

    def remember(answer: SearchAnswer) -> None:
        last.remember(caller.session, list(map(_remembered, answer.results)))

    reply = answer_search(typed, caller, indexes, remember)
    return reply._asdict()


def _remembered(result: SearchResult) -> dict[str, Any]:
    """What `ragvault open` needs to open a result."""
    return {
        "vault": result.answer.vault,
        "root": str(result.answer.root),
        "note": result.candidate.note.path,
        "title": result.candidate.note.title,
        "path": str(result.path),
        "line": result.line,
        "uri": result.uri,
    }


def _has_our_folders(environ: Mapping[str, str]) -> bool:
    """Whether the other process has its indexes and settings in the same folders."""
    from ragvault.cli.start import this_caller

    ours = this_caller().environ
    places = PLACES if ours.get("RAGVAULT_HOME") else (*PLACES, *XDG_PLACES)
    return all(ours.get(name) == environ.get(name) for name in places)


def _vaults_to_watch(named: Sequence[str]) -> list[Vault]:
    """The vaults to watch, each once."""
    from ragvault.errors import VaultNotFound
    from ragvault.vault import Vault, known

    vaults = [_opened(name, command="watch") for name in named]
    vaults = vaults or [Vault.open(vault.root) for vault in known() if vault.root.is_dir()]
    if not vaults:
        raise VaultNotFound("no vaults yet", fix="ragvault watch FOLDER")
    return list({vault.root: vault for vault in vaults}.values())


def _start_watcher(vaults: Sequence[Vault], json: bool) -> None:
    from ragvault.service.process import start_watcher
    from ragvault.service.watcher import watch_log_path

    with report_if_slow("starting the watcher", quiet=console.is_quiet()):
        found = start_watcher([vault.root for vault in vaults])
    console.out(encode(_card(found)) if json else f"watching: {found.describe()}")
    console.report(f"log: {watch_log_path()}")


def _show_watcher(json: bool) -> None:
    from ragvault.cli import reports
    from ragvault.service.process import running_watcher

    found = running_watcher()
    if found is None:
        console.out(encode({"running": False}) if json else "")
        console.report("no watcher is running")
        raise typer.Exit(1)
    state = _watcher_state()
    console.result(_card(found) | state, reports.watcher(found, state), json=json)


def _watcher_state() -> dict[str, Any]:
    """What the watcher reports of itself, or why it does not answer."""
    from ragvault.config.folders import runtime_folder
    from ragvault.service.protocol import WatcherUnavailable, ask_watcher

    try:
        status = ask_watcher(runtime_folder(), {"op": "status"})
        vaults, answered = status.get("vaults"), status.get("answered")
        ends_in = status.get("ends_in")
        if not isinstance(vaults, list) or not all(map(_is_vault_state, vaults)):
            raise WatcherUnavailable("it sent something that is no status")
        if not isinstance(answered, int) or not isinstance(ends_in, (int, float, NoneType)):
            raise WatcherUnavailable("it sent something that is no status")
    except WatcherUnavailable as unavailable:
        return {"vaults": [], "unanswered": unavailable.reason}
    return {"vaults": vaults, "answered": answered, "ends_in": ends_in}


def _is_vault_state(vault: object) -> bool:
    """Whether this is the state of a vault, as the watcher sends it."""
    return isinstance(vault, dict) and {"name", "away", "waiting", "why"} <= vault.keys()


def _card(found: WatcherRecord) -> dict[str, Any]:
    from ragvault.service.watcher import watch_log_path

    return {
        "running": True,
        "resident": found.resident,
        "pid": found.pid,
        "since": found.since,
        "version": found.version,
        "roots": list(found.vaults),
        "log": str(watch_log_path()),
    }


def _stop_watcher(json: bool) -> None:
    from ragvault.service.process import running_watcher, stop_watcher

    found = running_watcher()
    if found is None:
        console.report("no watcher is running")
    else:
        stop_watcher(found)
        what = "resident process" if found.resident else "watcher"
        console.report(f"stopped the {what} (pid {found.pid})")
    if json:
        console.out(encode({"stopped": found.pid if found else None}))
