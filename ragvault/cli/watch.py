"""ragvault watch: keep indexes true while files change, and answer searches meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ragvault.cli import options, render

if TYPE_CHECKING:
    from ragvault.service.openings import Openings
    from ragvault.service.pending import Pending
    from ragvault.service.running import Running
    from ragvault.vault import Vault

app = typer.Typer()

# Variables that say where things are; another session has others of its own, which do not matter.
PLACES = ("HOME", "RAGVAULT_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


class Unit(str, Enum):
    """Who can keep a watcher running."""

    systemd = "systemd"
    launchd = "launchd"


@app.command()
def watch(
    vaults: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="[VAULT]...", help="Folders or names; left out, every known one."),
    ] = None,
    daemon: Annotated[bool, typer.Option("--daemon", help="Run in the background.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End the watcher that runs.")] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Tell whether one runs, and how it is; exit 1: none.")
    ] = False,
    print_unit: Annotated[
        Optional[Unit],  # noqa: UP045
        typer.Option("--print-unit", help="Print what starts it at every login."),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Keep indexes true while files change, and answer searches warm.

    What changed can be searched within two seconds. While it runs, `ragvault search` is answered
    by it, with the models already in memory. Ctrl-C ends it; nothing is lost.

    ragvault watch ~/notes

    ragvault watch --daemon
    """
    if status:
        _tell_status(json)
    elif stop:
        _stop(json)
    elif print_unit:
        from ragvault.service.units import UNITS

        render.out(UNITS[print_unit.value]([vault.root for vault in _opened(vaults or ())]))
    elif daemon:
        _start(_opened(vaults or ()), json)
    else:
        _run(_opened(vaults or ()))


def _run(vaults: Sequence[Vault]) -> None:
    from ragvault.service.logs import Log, log_file
    from ragvault.service.run import run

    size = vaults[0].settings.config.watch.log_bytes
    log = Log(log_file(), size, aloud=not render.is_quiet())
    try:
        run(vaults, _answer, log)
    finally:
        log.end()


def _answer(
    args: list[str], around: Mapping[str, Any], openings: Openings, pending: Pending
) -> Mapping[str, Any] | None:
    """A search that was typed in another process; None is for that process to answer."""
    from ragvault.cli.around import Surroundings
    from ragvault.cli.ask import answer
    from ragvault.cli.search import parse

    where = Surroundings(**around)
    ask = parse(args, where) if _is_home(where.environ) else None
    return None if ask is None else answer(ask, where, openings, pending)._asdict()


def _is_home(environ: Mapping[str, str]) -> bool:
    """Whether folders mean the same there as here."""
    from ragvault.cli.around import surroundings

    ours = surroundings().environ
    return all(ours.get(name) == environ.get(name) for name in PLACES)


def _opened(named: Sequence[str]) -> list[Vault]:
    """The vaults to watch, each once."""
    from ragvault.errors import VaultNotFound
    from ragvault.vault import Vault, known

    vaults = [Vault.open(name) for name in named] or [
        Vault.open(vault.root) for vault in known() if vault.root.is_dir()
    ]
    if not vaults:
        raise VaultNotFound("no vault is known yet", fix="ragvault watch FOLDER")
    return list({vault.root: vault for vault in vaults}.values())


def _start(vaults: Sequence[Vault], json: bool) -> None:
    from ragvault.service.background import start

    _tell(start([vault.root for vault in vaults]), json)


def _tell(found: Running, json: bool) -> None:
    from ragvault.service.logs import log_file

    render.out(render.as_json(_card(found)) if json else f"watching: {found.words()}")
    render.talk(f"log: {log_file()}")


def _tell_status(json: bool) -> None:
    from ragvault.cli import pages
    from ragvault.service.running import running

    found = running()
    if found is None:
        render.out(render.as_json({"running": False}) if json else "")
        render.talk("no watcher runs")
        raise typer.Exit(1)
    state = _asked()
    render.out(render.as_json(_card(found) | state) if json else pages.watcher(found, state))


def _asked() -> dict[str, Any]:
    """What the watcher tells of itself; how it does not answer, where it does not."""
    from ragvault.runtime import runtime_folder
    from ragvault.service.client import Unanswered, ask

    try:
        told = ask(runtime_folder(), {"op": "status"})
    except Unanswered as unanswered:
        return {"vaults": [], "unanswered": unanswered.why}
    return {"vaults": told["vaults"], "answered": told["answered"]}


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
        render.talk("no watcher runs")
    else:
        stop(found)
        render.talk(f"stopped the watcher (pid {found.pid})")
    if json:
        render.out(render.as_json({"stopped": found.pid if found else None}))
