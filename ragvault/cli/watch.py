"""ragvault watch: update the index as files change, and answer searches meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.progress import waiting
from ragvault.cli.render import console

if TYPE_CHECKING:
    from ragvault.service.process import WatcherRecord
    from ragvault.service.server import ResidentIndexes
    from ragvault.service.vault_watcher import PendingCounter
    from ragvault.vault import Vault

app = typer.Typer()

# Variables that decide where files are. Others may differ between two login sessions.
PLACES = ("HOME", "RAGVAULT_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


class Unit(str, Enum):
    """The service managers for which --print-unit has a unit."""

    systemd = "systemd"
    launchd = "launchd"


@app.command()
def watch(
    vaults: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            metavar="[VAULT]...", help="Folders or names of vaults. Default: all known vaults."
        ),
    ] = None,
    daemon: Annotated[bool, typer.Option("--daemon", help="Run in the background.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the running watcher.")] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Show whether a watcher runs, and its state. Exits with 1 if none runs.",
        ),
    ] = False,
    print_unit: Annotated[
        Optional[Unit],  # noqa: UP045
        typer.Option("--print-unit", help="Print a unit that starts the watcher at every login."),
    ] = None,
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
    elif print_unit:
        from ragvault.service.process import LOGIN_UNITS

        roots = [vault.root for vault in _open_vaults(vaults or ())]
        console.out(LOGIN_UNITS[print_unit.value](roots))
    elif daemon:
        _start(_open_vaults(vaults or ()), json)
    else:
        _run(_open_vaults(vaults or ()))


def _run(vaults: Sequence[Vault]) -> None:
    from ragvault.service.log import WatchLog, watch_log_path
    from ragvault.service.watcher import run_watcher

    size = vaults[0].settings.config.watch.log_bytes
    log = WatchLog(watch_log_path(), size, echo=not console.is_quiet())
    try:
        run_watcher(vaults, _answer, log)
    finally:
        log.close_file()


def _answer(
    args: list[str],
    around: Mapping[str, Any],
    indexes: ResidentIndexes,
    pending: PendingCounter,
) -> Mapping[str, Any] | None:
    """Answer a search typed in another process; None: that process answers by itself."""
    from ragvault.cli.search import answer_search, parse_search
    from ragvault.cli.start import Caller

    caller = Caller(**around)
    typed = parse_search(args, caller) if _has_our_folders(caller.environ) else None
    return None if typed is None else answer_search(typed, caller, indexes, pending)._asdict()


def _has_our_folders(environ: Mapping[str, str]) -> bool:
    """Whether the other process has its indexes and settings in the same folders."""
    from ragvault.cli.start import this_caller

    ours = this_caller().environ
    return all(ours.get(name) == environ.get(name) for name in PLACES)


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

    with waiting("starting the watcher"):
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
    console.out(encode(_card(found) | state)) if json else console.show(
        reports.watcher(found, state)
    )


def _state() -> dict[str, Any]:
    """What the watcher reports of itself, or why it does not answer."""
    from ragvault.config.folders import runtime_folder
    from ragvault.service.protocol import WatcherUnavailable, ask_watcher

    try:
        status = ask_watcher(runtime_folder(), {"op": "status"})
        vaults, answered = status.get("vaults"), status.get("answered")
        if not isinstance(vaults, list) or not all(map(_is_state, vaults)):
            raise WatcherUnavailable("it sent something that is no status")
        if not isinstance(answered, int):
            raise WatcherUnavailable("it sent something that is no status")
    except WatcherUnavailable as unavailable:
        return {"vaults": [], "unanswered": unavailable.reason}
    return {"vaults": vaults, "answered": answered}


def _is_state(vault: object) -> bool:
    """Whether this is the state of a vault, as the watcher sends it."""
    return isinstance(vault, dict) and {"name", "away", "waiting", "why"} <= vault.keys()


def _card(found: WatcherRecord) -> dict[str, Any]:
    from ragvault.service.log import watch_log_path

    return {
        "running": True,
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
        console.report(f"stopped the watcher (pid {found.pid})")
    if json:
        console.out(encode({"stopped": found.pid if found else None}))
