"""ragvault config: start a settings file, show what is in effect, check it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from ragvault.cli import options, render
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
        help="With the settings of this vault.",
    ),
]

app = typer.Typer(help="Your settings: start a file, show what is in effect, check it.")


@app.command()
def init(
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file; the old one is kept beside it.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a config file that explains every setting and changes none.

    ragvault config init
    """
    path = folders.user_file()
    kept = starter.write_starter(path, force=force)
    if kept:
        render.talk(f"the old file is now {kept}")
    render.out(render.as_json({"file": path, "kept": kept}) if json else str(path))


@app.command()
def show(
    vault: Vault = None,
    set_: options.Set = None,
    json: options.Json = False,
) -> None:
    """Print every setting, its value and where it came from.

    ragvault config show

    ragvault config show --vault sample_vault --json
    """
    folder = _folder(vault)
    loaded = load_settings(folder, tuned=_tuned(folder, set_ or ()), flags=set_ or ())
    shown = render.settings_json if json else render.settings_toml
    render.out(shown(loaded, _about(loaded, folder)))


@app.command()
def check(
    file: Annotated[
        Optional[Path],  # noqa: UP045 - read by Typer at run time
        typer.Argument(metavar="[FILE]", help="One file alone, instead of all that is in effect."),
    ] = None,
    vault: Vault = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what is wrong with your settings, and how to mend it. Exit 2 when something is.

    ragvault config check

    ragvault config check --vault sample_vault --json
    """
    if file and vault:
        raise UsageError("a file is checked alone", fix="leave out FILE or --vault")
    try:
        folder = None if file else _folder(vault)
        loaded = check_file(file) if file else load_settings(folder, tuned=_tuned(folder))
    except ConfigError as mistakes:
        if not json:
            raise
        # Here mistakes are the answer, and not what kept us from one.
        render.out(render.mistakes_json(mistakes))
        raise typer.Exit(mistakes.exit_code) from None
    if json:
        render.out(
            render.as_json(
                {"files": loaded.files, "problems": [], "notes": render.notes(loaded.config)}
            )
        )
    elif not quiet:
        render.out(render.verdict(loaded))


def _folder(vault: str | None) -> Path | None:
    """The folder of a vault, by path or by the name it is known by."""
    if vault is None:
        return None
    path = Path(vault).expanduser()
    if path.is_dir():
        return path
    data = folders.data_dir(override=load_settings().config.paths.data)
    named = [known.root for known in layout.known_vaults(data) if known.name == vault]
    if not named:
        raise VaultNotFound(
            f"there is no folder {vault}, and no vault of that name",
            fix="name the folder that holds the notes",
        )
    return named[0]


def _tuned(vault: Path | None, flags: Sequence[str] = ()) -> Path | None:
    """Where `ragvault tune` keeps what it found for a vault and the profile in use."""
    if vault is None:
        return None
    profile = load_settings(vault, flags=flags).config.search.profile
    data = folders.data_dir(override=load_settings().config.paths.data)
    try:
        return layout.tuned_file(layout.index_folder(vault, data), profile)
    except ConfigError:  # no index can be there, and settings must be shown all the same
        return None


def _about(loaded: Loaded, vault: Path | None) -> dict[str, str]:
    """Where the settings were looked for, and where ragvault writes because of them."""
    files = {"user_file": folders.user_file()}
    if vault is not None:
        files["vault_file"] = vault / VAULT_FILE
        tuned = _tuned(vault)
        files |= {"tuned_file": tuned} if tuned else {}
    about = {name: os.fspath(path) for name, path in files.items()}
    return about | {"data_folder": str(folders.data_dir(override=loaded.config.paths.data))}
