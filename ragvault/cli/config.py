"""ragvault config: start a settings file, show what is in effect, check it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Optional

import typer

from ragvault import configure, folders, starter
from ragvault.cli import options, render
from ragvault.errors import UsageError, VaultNotFound
from ragvault.sources import VAULT_FILE

app = typer.Typer(help="Your settings: start a file, show what is in effect, check it.")


@app.command()
def init(
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file; the old one is kept beside it.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a config file that explains every setting and changes none.

    ragvault config init
    """
    path = folders.user_file()
    kept = starter.write_starter(path, force=force)
    if kept:
        render.talk(f"the old file is now {kept}")
    render.out(str(path))


@app.command()
def show(
    vault: options.Vault = None,
    set_: options.Set = None,
    json: options.Json = False,
) -> None:
    """Print every setting, its value and where it came from.

    ragvault config show

    ragvault config show --vault ~/notes --json
    """
    loaded = configure.load(_folder(vault), flags=set_ or ())
    shown = render.settings_json if json else render.settings_toml
    render.out(shown(loaded, _about(loaded, vault)))


@app.command()
def check(
    file: Annotated[
        Optional[Path],  # noqa: UP045 - read by Typer at run time
        typer.Argument(metavar="FILE", help="One file alone, instead of all that is in effect."),
    ] = None,
    vault: options.Vault = None,
    quiet: options.Quiet = False,
) -> None:
    """Say what is wrong with your settings, and how to mend it.

    ragvault config check

    ragvault config check ~/notes/.ragvault.toml
    """
    if file and vault:
        raise UsageError("a file is checked alone", fix="leave out FILE or --vault")
    loaded = configure.check_file(file) if file else configure.load(_folder(vault))
    if not quiet:
        render.out(render.verdict(loaded))


def _folder(vault: Path | None) -> Path | None:
    if vault is not None and not vault.is_dir():
        raise VaultNotFound(
            f"there is no folder {vault}", fix="name the folder that holds the notes"
        )
    return vault


def _about(loaded: configure.Loaded, vault: Path | None) -> dict[str, str]:
    """Where the settings were looked for, and where ragvault writes because of them."""
    files = {"user_file": folders.user_file()}
    if vault is not None:
        files["vault_file"] = vault / VAULT_FILE
    about = {name: os.fspath(path) for name, path in files.items()}
    return about | {"data_folder": str(folders.data_dir(override=loaded.config.paths.data))}
