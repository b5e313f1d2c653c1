"""Commands about whole vaults.

list     tags, folders, properties and notes, with counts
status   what is indexed, skipped, broken and pending
doctor   every part checked, with a fix for what is wrong
vaults   the vaults that are known: list them, remove one, set the default
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragvault.answer.contents import KINDS, Kind
from ragvault.cli import console, options, reports
from ragvault.cli.console import progress, size
from ragvault.cli.start import report_if_slow
from ragvault.errors import RagvaultError, UsageError
from ragvault.text.printable import encode, printable

if TYPE_CHECKING:
    from ragvault.answer.status import Pending
    from ragvault.service.process import WatcherRecord
    from ragvault.store.layout import KnownVault

app = typer.Typer()
group = typer.Typer(
    help="Manage known vaults: list, remove, set the default.", invoke_without_command=True
)
app.add_typer(group, name="vaults")

Name = Annotated[
    str,
    typer.Argument(
        metavar="VAULT", autocompletion=options.vault_names, help="Name or folder of a vault."
    ),
]


@dataclass(frozen=True, slots=True)
class VaultRow:
    """One known vault. `state` is ready, not indexed, gone (no such folder) or unreadable.

    `tier` is the best one that covers every passage. `pending` is what the next `index` would do.
    """

    name: str
    root: str
    index: str
    state: str
    default: bool
    bytes: int
    created: str
    notes: int | None = None
    tier: str | None = None
    pending: Pending | None = None


@group.callback()
def vaults(ctx: typer.Context) -> None:
    """Manage known vaults: list, remove, set the default. Alone, it lists them."""
    if ctx.invoked_subcommand is None:
        list_vaults()


@group.command("list")
def list_vaults(json: options.Json = False) -> None:
    """List every known vault with its notes, its tier, its size and its folder.

    ragvault vaults list
    """
    from ragvault.vault import known

    rows = vault_rows(known())
    console.result({"vaults": rows}, reports.vaults_text(rows), json=json)
    if not rows:
        console.report("no vaults yet; to add one: ragvault index FOLDER")


@group.command()
def default(
    vault: Annotated[
        str | None,
        typer.Argument(
            metavar="[VAULT]",
            autocompletion=options.vault_names,
            help="Name or folder of a vault. Without it, shows the current default.",
        ),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Unset the default.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Set or show the default vault.

    ragvault vaults default sample_vault
    """
    from ragvault.config import folders
    from ragvault.config.load import data_folder
    from ragvault.store import layout

    if none:
        if vault:
            raise UsageError("VAULT and --none cannot be combined", fix="leave one of them out")
        layout.unset_default_vault(data_folder())
        return
    if vault:
        layout.set_default_vault(layout.known_vault(vault, data_folder(), folders.here()))
    chosen = layout.default_vault(data_folder())
    if chosen is None:
        console.report("no default vault is set; to set one: ragvault vaults default VAULT")
        raise typer.Exit(1)
    console.out(f"{chosen.name}: {printable(str(chosen.root))}")


@group.command()
def remove(
    vault: Name,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the index; only forget the vault.")
    ] = False,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Forget a vault and delete its index. Does not touch the notes.

    ragvault vaults remove sample_vault
    """
    from ragvault.config import folders
    from ragvault.config.load import data_folder
    from ragvault.service.process import watcher_of
    from ragvault.store import layout
    from ragvault.store.files import WriterLock

    known = layout.known_vault(vault, data_folder(), folders.here())
    watcher = watcher_of(known.root)
    name, folder = printable(known.name), printable(str(known.folder))
    question = f"delete the index of {name} ({size(_bytes(known.folder))} in {folder})?"
    if watcher:
        question = (
            f"{name} is being watched ({watcher.describe()}). Stop watching it, and {question}"
        )
    fix = "add --yes, or --keep to keep the index"
    if not keep and not yes and not console.confirm(question, fix=fix):
        console.report("nothing was removed")
        raise typer.Exit(1)
    if watcher:
        _stop_watching(known.root, watcher)
    # Held for a moment, to make sure nobody is writing. The lock is deleted with the folder.
    with WriterLock(known.folder, "ragvault vaults remove"):
        pass
    layout.remove_vault(known, keep=keep)
    left = f"its index is still in {folder}" if keep else "its index was deleted"
    console.show(f"removed {name}; {left}; the notes in {known.root} were not changed")


def _stop_watching(root: Path, watcher: WatcherRecord) -> None:
    """Stop the watcher, which would create the index again, and start it for the other vaults."""
    from ragvault.service.process import start_watcher, stop_watcher

    stop_watcher(watcher)
    others = [Path(each) for each in watcher.vaults if Path(each) != root.resolve()]
    if others:
        console.report(f"the watcher is still running ({start_watcher(others).describe()})")
    else:
        console.report(f"stopped the watcher (pid {watcher.pid})")


def vault_rows(vaults: Sequence[KnownVault], *, compare: bool = False) -> list[VaultRow]:
    """A row for each vault; `compare` looks for files that changed since the last index."""
    from ragvault.config.load import data_folder
    from ragvault.store import layout

    chosen = layout.default_vault(data_folder())
    return [
        _row(each, chosen is not None and each.folder == chosen.folder, compare) for each in vaults
    ]


def _row(vault: KnownVault, is_default: bool, compare: bool) -> VaultRow:
    from ragvault.answer.status import covering_tier
    from ragvault.store import layout
    from ragvault.vault import Vault

    row = VaultRow(
        name=vault.name,
        root=str(vault.root),
        index=str(vault.folder),
        state=_state(vault.root, vault.folder / layout.CATALOGUE),
        default=is_default,
        bytes=_bytes(vault.folder),
        created=vault.created,
    )
    if row.state == "not indexed":
        return row
    with suppress(RagvaultError):  # the folder is gone, or the index is damaged: doctor says why
        opened = Vault.open(vault.root)
        with opened.catalogue() as catalogue, catalogue.snapshot():
            row = replace(row, notes=catalogue.note_count(), tier=covering_tier(catalogue))
        return replace(row, pending=opened.status().pending) if compare else row
    return row


def _state(root: Path, catalogue: Path) -> str:
    from ragvault.update.freshness import folder_error, is_gone

    if is_gone(root):
        return "gone"
    if folder_error(root):
        return "unreadable"
    return "ready" if catalogue.exists() else "not indexed"


def _bytes(folder: Path) -> int:
    from ragvault.store.catalogue import file_sizes

    return sum(file_sizes(folder).values())


# --- one vault: list, status, doctor ---


@app.command("list")
def list_command(
    kind: Annotated[
        Kind | None,
        typer.Argument(
            metavar="[tags|folders|properties|notes]",
            help="What to list. Default: how many there are of each.",
            show_default=False,
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILTER]",
            help="Words in the name, and conditions on notes such as path:journal or tag:recipe.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Maximum number of lines. Default: all."),
    ] = None,
    cursor: Annotated[
        str | None,
        typer.Option("--cursor", metavar="NEXT", help="Continue where a page with --limit ended."),
    ] = None,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the tags, folders, properties or notes of a vault.

    Each with the number of its notes; a tag and a folder also count what is below them. Exits with
    1 if there is nothing to list. Loads no model and writes nothing.

    ragvault list tags

    ragvault list properties path:Recipes

    ragvault list notes rye tag:recipe --json
    """
    from ragvault.cli.search import query_of
    from ragvault.cli.start import this_caller
    from ragvault.vault import Vault

    caller, opened = this_caller(), Vault.open(vault)
    if kind is None:
        totals = {each: opened.list(each).total for each in KINDS}
        counts = "\n".join(f"{number:6,}  {what}" for what, number in totals.items())
        console.out(encode({"vault": opened.name, **totals}) if json else counts)
        return
    found = opened.list(
        kind, query_of(words or []), limit=limit, cursor=cursor, now=caller.local_time()
    )
    console.result(found.to_dict(), reports.contents_text(found), json=json)
    if not found.items:
        fit = f" match “{query_of(words)}”" if words else ""
        console.report(f"no {kind}{fit}")
        raise typer.Exit(1)
    if found.next:
        shown = len(found.items)
        console.report(f"{shown:,} of {found.total:,} {kind}; to continue: --cursor {found.next}")


@app.command("status")
def status_command(
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Show what is indexed, skipped, broken and pending.

    Outside of all vaults, a line for each of them. Loads no model and writes nothing. -v also lists
    every skipped file, warning and broken link.

    ragvault status

    ragvault status --vault sample_vault -v
    """
    from ragvault.answer.status import status_json
    from ragvault.service.process import running_watcher
    from ragvault.vault import Vault, around_here

    if vault is None and len(around := around_here()) > 1:
        _status_of_all(around, json=json)
        return
    opened = Vault.open(vault)
    with report_if_slow("comparing the index with the files", quiet=console.is_quiet()):
        found, process = opened.status(), running_watcher()
    watcher = process if process and process.watches(opened.root) else None
    resident = process if process and process.resident else None
    if json:
        console.out(status_json(found, _shown(watcher), _shown(resident)))
    else:
        words = [each.describe() if each else "" for each in (watcher, resident)]
        console.show(reports.status_text(found, *words, full=console.is_verbose()))


def _status_of_all(vaults: Sequence[KnownVault], *, json: bool) -> None:

    with report_if_slow("comparing the indexes with the files", quiet=console.is_quiet()):
        rows = vault_rows(vaults, compare=True)
    console.result({"vaults": rows}, reports.vaults_text(rows), json=json)
    console.report("for more about one: ragvault status --vault NAME")


def _shown(process: WatcherRecord | None) -> dict[str, Any] | None:
    hidden = ("token", "started", "code", "resident")
    if process is None:
        return None
    return {name: value for name, value in asdict(process).items() if name not in hidden}


@app.command("doctor")
def doctor(
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Check that every part works, and show how to fix what does not.

    Checks Python and its libraries, models, folders, and the index against the vault. Then searches
    for the vault's own words, to see that each leg and each ranking signal has an effect. Outside
    of all vaults, checks the machine, and whether the index of each vault is up to date. Changes
    nothing. -q shows only problems, -v also what is fine. Exits with 3 if the index is missing or
    out of date, with 4 if something cannot be used.

    ragvault doctor

    ragvault doctor --vault sample_vault --json
    """
    from datetime import datetime

    from ragvault.evaluate.doctor import diagnose, exit_code

    with progress("nothing was changed") as shown:
        name, found = diagnose(vault, datetime.now().astimezone(), shown)
    code = exit_code(found)
    console.result(
        {"vault": name, "exit": code, "findings": found},
        reports.findings(found, quiet=console.is_quiet(), full=console.is_verbose()),
        json=json,
    )
    if code:
        raise typer.Exit(code)
