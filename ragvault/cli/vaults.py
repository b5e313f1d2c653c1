"""ragvault vaults: which vaults are known, forgetting one, choosing the one meant by default."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from ragvault.cli import options, render
from ragvault.errors import RagvaultError, UsageError
from ragvault.presence import is_gone, trouble

app = typer.Typer(help="The vaults it knows: list them, remove one, choose the default.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="VAULT", autocompletion=options.vault_names, help="A vault by name or by folder."
    ),
]


@dataclass(frozen=True, slots=True)
class Row:
    """One known vault. `state` is ready, not indexed, gone (its folder is not there) or unreadable
    (its folder cannot be reached now)."""

    name: str
    root: str
    index: str
    state: str
    default: bool
    bytes: int
    created: str


@app.command("list")
def list_(json: options.Json = False) -> None:
    """Every vault that was indexed: its name, its folder, and whether that is there.

    ragvault vaults list
    """
    rows = _rows()
    render.out(render.as_json({"vaults": rows}) if json else _table(rows))
    if not rows:
        render.talk("no vault is known yet; ragvault index FOLDER makes one known")


@app.command()
def default(
    vault: Annotated[
        Optional[str],  # noqa: UP045 - read by Typer at run time
        typer.Argument(
            metavar="[VAULT]",
            autocompletion=options.vault_names,
            help="A vault by name or by folder; left out, the one chosen is told.",
        ),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Choose none any more.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Choose the vault that is meant outside of all vaults, or tell which it is.

    ragvault vaults default sample_vault
    """
    from ragvault.config import folders
    from ragvault.store import layout
    from ragvault.vault import data_folder

    if none:
        if vault:
            raise UsageError("a vault and --none contradict each other", fix="leave one out")
        layout.unset_default_vault(data_folder())
        return
    if vault:
        layout.set_default_vault(layout.known_vault(vault, data_folder(), folders.here()))
    chosen = layout.default_vault(data_folder())
    if chosen is None:
        render.talk("no default vault is chosen; ragvault vaults default VAULT chooses one")
        raise typer.Exit(1)
    render.out(f"{chosen.name}: {render.printable(str(chosen.root))}")


@app.command()
def remove(
    vault: Name,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the index for later; only forget the vault.")
    ] = False,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Forget a vault and delete its index. The notes are not touched.

    ragvault vaults remove sample_vault
    """
    from ragvault.config import folders
    from ragvault.store import layout
    from ragvault.store.lock import WriterLock
    from ragvault.vault import data_folder

    known = layout.known_vault(vault, data_folder(), folders.here())
    _refuse_watched(known.root)
    name, folder = render.printable(known.name), render.printable(str(known.folder))
    question = f"delete the index of {name} ({render.size(_bytes(known.folder))} in {folder})?"
    if not keep and not yes and not _agreed(question):
        render.talk("nothing was removed")
        raise typer.Exit(1)
    # Held for a moment, to know that nobody is writing: the lock itself goes with the folder.
    with WriterLock(known.folder, "ragvault vaults remove"):
        pass
    layout.remove_vault(known, keep=keep)
    left = f"its index stays in {folder}" if keep else "its index is deleted"
    render.out(f"{name} is forgotten; {left}; the notes in {known.root} are as they were")


def _refuse_watched(root: Path) -> None:
    """A watcher would make the index again as soon as a note changes."""
    from ragvault.service.process import running_watcher

    watcher = running_watcher()
    if watcher and watcher.watches(root):
        raise RagvaultError(
            f"the vault {root} is being watched ({watcher.describe()})", fix="ragvault watch --stop"
        )


def _agreed(question: str) -> bool:
    if not sys.stdin or not sys.stdin.isatty():
        raise UsageError("nobody is here to be asked", fix="say --yes, or --keep to delete nothing")
    return typer.confirm(question, err=True)


def _rows() -> list[Row]:
    from ragvault.store import layout
    from ragvault.vault import data_folder

    data = data_folder()
    chosen = layout.default_vault(data)
    return [
        Row(
            name=vault.name,
            root=str(vault.root),
            index=str(vault.folder),
            state=_state(vault.root, vault.folder / layout.CATALOGUE),
            default=chosen is not None and vault.folder == chosen.folder,
            bytes=_bytes(vault.folder),
            created=vault.created,
        )
        for vault in layout.known_vaults(data)
    ]


def _state(root: Path, catalogue: Path) -> str:
    if is_gone(root):
        return "gone"
    if trouble(root):
        return "unreadable"
    return "ready" if catalogue.exists() else "not indexed"


def _bytes(folder: Path) -> int:
    from ragvault.store.catalogue import file_sizes

    return sum(file_sizes(folder).values())


def _table(rows: list[Row]) -> str:
    if not rows:
        return ""
    widest = max(len(render.printable(row.name)) for row in rows)
    return "\n".join(_line(row, widest) for row in rows)


def _line(row: Row, widest: int) -> str:
    name = render.printable(row.name)
    told = {
        "ready": "",
        "gone": "  (its folder is gone)",
        "unreadable": "  (its folder cannot be read now)",
        "not indexed": "  (not indexed)",
    }
    star = "*" if row.default else " "
    return f"{star} {name:{widest}}  {render.printable(row.root)}{told[row.state]}"
