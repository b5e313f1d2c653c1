"""ragvault config: create a config file, show the settings in effect, check them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console
from ragvault.cli.render.reports import (
    no_problems,
    problems_json,
    settings_json,
    settings_toml,
    settings_without_effect,
)
from ragvault.config import folders, starter
from ragvault.config.load import VAULT_FILE, Loaded, check_file, load_settings
from ragvault.errors import ConfigError, UsageError, VaultNotFound
from ragvault.store import layout

Vault = Annotated[
    Optional[str],  # noqa: UP045 - read by Typer at run time
    typer.Option(
        "--vault",
        metavar="PATH|NAME",
        autocompletion=options.vault_names,
        help="Include the settings of this vault.",
    ),
]

app = typer.Typer(help="Manage settings: create a config file, show or check settings.")


@app.command()
def init(
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing file; keeps a copy of it.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a config file that explains the settings and changes none.

    ragvault config init
    """
    path = folders.user_file()
    kept = starter.write_starter(path, force=force)
    if kept:
        console.report(f"the old file was renamed to {kept}")
    console.out(encode({"file": path, "kept": kept}) if json else str(path))


@app.command()
def show(
    vault: Vault = None,
    set_: options.Set = None,
    json: options.Json = False,
) -> None:
    """Print every setting with its value and where it comes from.

    ragvault config show

    ragvault config show --vault sample_vault --json
    """
    folder = _folder(vault)
    loaded = load_settings(folder, tuned=_tuned(folder, set_ or ()), flags=set_ or ())
    formatted = settings_json if json else settings_toml
    console.out(formatted(loaded, _about(loaded, folder)))


@app.command()
def check(
    file: Annotated[
        Optional[Path],  # noqa: UP045 - read by Typer at run time
        typer.Argument(metavar="[FILE]", help="Check only this file."),
    ] = None,
    vault: Vault = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check your settings, and show how to fix problems. Exits with 2 if there are any.

    ragvault config check

    ragvault config check --vault sample_vault --json
    """
    if file and vault:
        raise UsageError("FILE and --vault cannot be combined", fix="leave one of them out")
    try:
        folder = None if file else _folder(vault)
        loaded = check_file(file) if file else load_settings(folder, tuned=_tuned(folder))
    except ConfigError as mistakes:
        if not json:
            raise
        # The problems are the result of this command, not a failure of it.
        console.out(problems_json(mistakes))
        raise typer.Exit(mistakes.exit_code) from None
    if json:
        notes = settings_without_effect(loaded.config)
        console.out(encode({"files": loaded.files, "problems": [], "notes": notes}))
    elif not quiet:
        console.out(no_problems(loaded))


def _folder(vault: str | None) -> Path | None:
    """The folder of a vault, given by path or name."""
    if vault is None:
        return None
    path = Path(vault).expanduser()
    if path.is_dir():
        return path
    data = folders.data_dir(override=load_settings().config.paths.data)
    named = [known.root for known in layout.known_vaults(data) if known.name == vault]
    if not named:
        raise VaultNotFound(
            f"no folder and no known vault is called {vault}",
            fix="give the folder that contains the notes",
        )
    return named[0]


def _tuned(vault: Path | None, flags: Sequence[str] = ()) -> Path | None:
    """The file with the weights that `ragvault tune` found for a vault and the profile in use."""
    if vault is None:
        return None
    profile = load_settings(vault, flags=flags).config.search.profile
    data = folders.data_dir(override=load_settings().config.paths.data)
    try:
        return layout.tuned_file(layout.index_folder(vault, data), profile)
    except ConfigError:  # no index is possible there; settings are shown all the same
        return None


def _about(loaded: Loaded, vault: Path | None) -> dict[str, str]:
    """Which files settings are read from, and where ragvault writes."""
    files = {"user_file": folders.user_file()}
    if vault is not None:
        files["vault_file"] = vault / VAULT_FILE
        tuned = _tuned(vault)
        files |= {"tuned_file": tuned} if tuned else {}
    about = {name: os.fspath(path) for name, path in files.items()}
    return about | {"data_folder": str(folders.data_dir(override=loaded.config.paths.data))}
