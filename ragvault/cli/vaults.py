"""ragvault vaults: list known vaults, remove one, set the default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragvault.cli import options
from ragvault.cli.render import console, reports
from ragvault.cli.render.console import size
from ragvault.errors import RagvaultError, UsageError
from ragvault.text.printable import printable
from ragvault.update.freshness import folder_error, is_gone

if TYPE_CHECKING:
    from ragvault.answer.status import Pending
    from ragvault.service.process import WatcherRecord
    from ragvault.store.layout import KnownVault

app = typer.Typer(
    help="Manage known vaults: list, remove, set the default.", invoke_without_command=True
)

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


@app.callback()
def vaults(ctx: typer.Context) -> None:
    """Manage known vaults: list, remove, set the default. Alone, it lists them."""
    if ctx.invoked_subcommand is None:
        list_vaults()


@app.command("list")
def list_vaults(json: options.Json = False) -> None:
    """List every known vault with its notes, its tier, its size and its folder.

    ragvault vaults list
    """
    rows = vault_rows(_known())
    console.result({"vaults": rows}, reports.vaults_text(rows), json=json)
    if not rows:
        console.report("no vaults yet; to add one: ragvault index FOLDER")


@app.command()
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


@app.command()
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
    from ragvault.store.lock import WriterLock

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
    try:
        opened = Vault.open(vault.root)
        with opened.catalogue() as catalogue, catalogue.snapshot():
            row = replace(row, notes=catalogue.note_count(), tier=covering_tier(catalogue))
        return replace(row, pending=opened.status().pending) if compare else row
    except RagvaultError:  # the folder is gone, or the index is damaged: doctor says why
        return row


def _known() -> list[KnownVault]:
    from ragvault.config.load import data_folder
    from ragvault.store import layout

    return layout.known_vaults(data_folder())


def _state(root: Path, catalogue: Path) -> str:
    if is_gone(root):
        return "gone"
    if folder_error(root):
        return "unreadable"
    return "ready" if catalogue.exists() else "not indexed"


def _bytes(folder: Path) -> int:
    from ragvault.store.catalogue import file_sizes

    return sum(file_sizes(folder).values())
