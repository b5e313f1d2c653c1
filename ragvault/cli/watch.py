"""ragvault watch: update indexes as files change, and answer searches meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console

if TYPE_CHECKING:
    from ragvault.service.openings import Openings
    from ragvault.service.pending import Pending
    from ragvault.service.running import Running
    from ragvault.vault import Vault

app = typer.Typer()

# Variables that decide where files are. A search is answered only if they are the same there.
PLACES = ("HOME", "RAGVAULT_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


class Unit(str, Enum):
    """Which service manager starts the watcher."""

    systemd = "systemd"
    launchd = "launchd"


@app.command()
def watch(
    vaults: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            metavar="[VAULT]...", help="Folders or names of vaults. Default: every known vault."
        ),
    ] = None,
    daemon: Annotated[bool, typer.Option("--daemon", help="Run in the background.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the running watcher.")] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show the state of the watcher; exit 1 if none runs.")
    ] = False,
    print_unit: Annotated[
        Optional[Unit],  # noqa: UP045
        typer.Option("--print-unit", help="Print a unit file that starts it at login."),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Update indexes as files change, and keep models loaded for fast searches.

    Changes can be searched within two seconds. While it runs, it answers `ragvault search` with
    models that are already in memory. Ctrl-C stops it; nothing is lost.

    ragvault watch ~/notes

    ragvault watch --daemon
    """
    if status:
        _show_status(json)
    elif stop:
        _stop(json)
    elif print_unit:
        from ragvault.service.units import UNITS

        console.out(UNITS[print_unit.value]([vault.root for vault in _opened(vaults or ())]))
    elif daemon:
        _start(_opened(vaults or ()), json)
    else:
        _run(_opened(vaults or ()))


def _run(vaults: Sequence[Vault]) -> None:
    from ragvault.service.logs import Log, log_file
    from ragvault.service.run import run

    size = vaults[0].settings.config.watch.log_bytes
    log = Log(log_file(), size, aloud=not console.is_quiet())
    try:
        run(vaults, _answer, log)
    finally:
        log.end()


def _answer(
    args: list[str], around: Mapping[str, Any], openings: Openings, pending: Pending
) -> Mapping[str, Any] | None:
    """Answer a search that was typed in another process; None if that process must answer."""
    from ragvault.cli.caller import Caller
    from ragvault.cli.search import answer_search, parse_search

    caller = Caller(**around)
    typed = parse_search(args, caller) if _has_same_folders(caller.environ) else None
    return None if typed is None else answer_search(typed, caller, openings, pending)._asdict()


def _has_same_folders(environ: Mapping[str, str]) -> bool:
    """Whether the caller's settings and indexes are in the same folders as ours."""
    from ragvault.cli.caller import this_caller

    ours = this_caller().environ
    return all(ours.get(name) == environ.get(name) for name in PLACES)


def _opened(named: Sequence[str]) -> list[Vault]:
    """The vaults to watch, each once."""
    from ragvault.errors import VaultNotFound
    from ragvault.vault import Vault, known

    vaults = [Vault.open(name) for name in named] or [
        Vault.open(vault.root) for vault in known() if vault.root.is_dir()
    ]
    if not vaults:
        raise VaultNotFound("no vaults yet", fix="ragvault watch FOLDER")
    return list({vault.root: vault for vault in vaults}.values())


def _start(vaults: Sequence[Vault], json: bool) -> None:
    from ragvault.service.background import start

    _show_started(start([vault.root for vault in vaults]), json)


def _show_started(found: Running, json: bool) -> None:
    from ragvault.service.logs import log_file

    console.out(encode(_card(found)) if json else f"watching: {found.words()}")
    console.report(f"log: {log_file()}")


def _show_status(json: bool) -> None:
    from ragvault.cli.render import reports
    from ragvault.service.running import running

    found = running()
    if found is None:
        console.out(encode({"running": False}) if json else "")
        console.report("no watcher is running")
        raise typer.Exit(1)
    state = _watcher_state()
    console.out(encode(_card(found) | state) if json else reports.watcher(found, state))


def _watcher_state() -> dict[str, Any]:
    """The state that the watcher reports, or why it does not answer."""
    from ragvault.runtime import runtime_folder
    from ragvault.service.client import Unanswered, ask

    try:
        answer = ask(runtime_folder(), {"op": "status"})
    except Unanswered as unanswered:
        return {"vaults": [], "unanswered": unanswered.why}
    return {"vaults": answer["vaults"], "answered": answer["answered"]}


def _card(found: Running) -> dict[str, Any]:
    from ragvault.service.logs import log_file

    return {
        "running": True,
        "pid": found.pid,
        "since": found.since,
        "version": found.version,
        "roots": list(found.vaults),
        "log": str(log_file()),
    }


def _stop(json: bool) -> None:
    from ragvault.service.running import running, stop

    found = running()
    if found is None:
        console.report("no watcher is running")
    else:
        stop(found)
        console.report(f"stopped the watcher (pid {found.pid})")
    if json:
        console.out(encode({"stopped": found.pid if found else None}))
