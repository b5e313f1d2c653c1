"""ragvault watch: update the index as files change, and answer searches meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console
from ragvault.cli.waiting import waiting

if TYPE_CHECKING:
    from ragvault.answer.results import SearchAnswer, SearchResult
    from ragvault.service.log import WatchLog
    from ragvault.service.process import WatcherRecord
    from ragvault.service.watcher import SearchState
    from ragvault.vault import Vault

app = typer.Typer()

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
        _show_status(json)
    elif stop:
        _stop(json)
    elif resident:
        _run_resident()
    elif daemon:
        _start(_open_vaults(vaults or ()), json)
    else:
        _run(_open_vaults(vaults or ()))


def _run(vaults: Sequence[Vault]) -> None:
    from ragvault.service.watcher import run_watcher

    with _log() as log:
        run_watcher(vaults, _answer, log)


def _run_resident() -> None:
    from ragvault.config.load import load_settings
    from ragvault.config.schema import duration_seconds
    from ragvault.errors import UsageError
    from ragvault.service.watcher import run_watcher

    idle = duration_seconds(load_settings().config.service.resident)
    if not idle:
        raise UsageError('service.resident is "off"', fix='set it to a time such as "10m"')
    with _log() as log:
        run_watcher((), _answer, log, idle)


@contextmanager
def _log() -> Iterator[WatchLog]:
    from ragvault.service.log import WatchLog, watch_log_path

    log = WatchLog(watch_log_path(), echo=not console.is_quiet())
    try:
        yield log
    finally:
        log.close_file()


def _answer(
    args: list[str], around: Mapping[str, Any], state: SearchState
) -> Mapping[str, Any] | None:
    """Answer a search typed in another process; None: that process answers by itself."""
    from ragvault.cli.search import answer_search, parse_search
    from ragvault.cli.start import Caller

    caller = Caller(**around)
    typed = parse_search(args, caller) if _has_our_folders(caller.environ) else None
    if typed is None:
        return None

    def remember(answer: SearchAnswer) -> None:
        state.last.remember(caller.session, list(map(_opened, answer.results)))

    reply = answer_search(typed, caller, state.indexes, remember)
    return reply._asdict()


def _opened(result: SearchResult) -> dict[str, Any]:
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


def _open_vaults(named: Sequence[str]) -> list[Vault]:
    """The vaults to watch, each once."""
    from ragvault.errors import VaultNotFound
    from ragvault.vault import Vault, known

    try:
        vaults = [Vault.open(name) for name in named]
    except VaultNotFound as unknown:  # its fix names --vault, which `watch` does not have
        raise VaultNotFound(str(unknown), fix="ragvault watch FOLDER") from None
    vaults = vaults or [Vault.open(vault.root) for vault in known() if vault.root.is_dir()]
    if not vaults:
        raise VaultNotFound("no vaults yet", fix="ragvault watch FOLDER")
    return list({vault.root: vault for vault in vaults}.values())


def _start(vaults: Sequence[Vault], json: bool) -> None:
    from ragvault.service.log import watch_log_path
    from ragvault.service.process import start_watcher

    with waiting("starting the watcher", quiet=console.is_quiet()):
        found = start_watcher([vault.root for vault in vaults])
    console.out(encode(_card(found)) if json else f"watching: {found.describe()}")
    console.report(f"log: {watch_log_path()}")


def _show_status(json: bool) -> None:
    from ragvault.cli.render import reports
    from ragvault.service.process import running_watcher

    found = running_watcher()
    if found is None:
        console.out(encode({"running": False}) if json else "")
        console.report("no watcher is running")
        raise typer.Exit(1)
    state = _state()
    console.result(_card(found) | state, reports.watcher(found, state), json=json)


def _state() -> dict[str, Any]:
    """What the watcher reports of itself, or why it does not answer."""
    from ragvault.config.folders import runtime_folder
    from ragvault.service.protocol import WatcherUnavailable, ask_watcher

    try:
        status = ask_watcher(runtime_folder(), {"op": "status"})
        vaults, answered = status.get("vaults"), status.get("answered")
        ends_in = status.get("ends_in")
        if not isinstance(vaults, list) or not all(map(_is_state, vaults)):
            raise WatcherUnavailable("it sent something that is no status")
        if not isinstance(answered, int) or not isinstance(ends_in, (int, float, NoneType)):
            raise WatcherUnavailable("it sent something that is no status")
    except WatcherUnavailable as unavailable:
        return {"vaults": [], "unanswered": unavailable.reason}
    return {"vaults": vaults, "answered": answered, "ends_in": ends_in}


def _is_state(vault: object) -> bool:
    """Whether this is the state of a vault, as the watcher sends it."""
    return isinstance(vault, dict) and {"name", "away", "waiting", "why"} <= vault.keys()


def _card(found: WatcherRecord) -> dict[str, Any]:
    from ragvault.service.log import watch_log_path

    return {
        "running": True,
        "resident": found.resident,
        "pid": found.pid,
        "since": found.since,
        "version": found.version,
        "roots": list(found.vaults),
        "log": str(watch_log_path()),
    }


def _stop(json: bool) -> None:
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
