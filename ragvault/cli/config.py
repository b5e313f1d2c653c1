"""ragvault config: create a config file, show the settings in effect, check them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ragvault.cli import console, options
from ragvault.cli.reports import (
    changed_settings,
    no_problems,
    problems_json,
    settings_json,
    settings_toml,
)
from ragvault.config import folders
from ragvault.config.load import VAULT_FILE, Loaded, check_file, data_folder, load_settings
from ragvault.errors import ConfigError, UsageError, VaultNotFound
from ragvault.store import layout
from ragvault.text.printable import encode

Vault = Annotated[
    str | None,
    typer.Option(
        "--vault",
        metavar="PATH|NAME",
        autocompletion=options.vault_names,
        help="Include the settings of this vault. Default: the one around the current folder.",
    ),
]

EXAMPLE = "config.toml.example"
_KEPT = re.compile(r"\s*(\[[\w.]+\]\s*)?(#.*)?")  # blank lines, comments, table headers

app = typer.Typer(
    help="Manage settings: create a config file, show or check settings.",
    invoke_without_command=True,
)


@app.callback()
def config_command(ctx: typer.Context) -> None:
    """Manage settings: create a config file, show or check settings.

    Alone, it lists the settings that are not at their defaults.
    """
    if ctx.invoked_subcommand is None:
        folder = _folder(None)
        loaded = load_settings(folder, tuned=_tuned(folder))
        console.out(settings_toml(loaded, _about(loaded, folder), changed=True))
        console.report(f"{changed_settings(loaded)}; to see every setting: ragvault config show")


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
    kept = write_starter(path, force=force)
    if kept:
        console.report(f"the old file was renamed to {kept}")
    console.out(encode({"file": path, "kept": kept}) if json else str(path))


@app.command("show")
def show_settings(
    vault: Vault = None,
    set_: options.Set = None,
    json: options.Json = False,
) -> None:
    """Print every setting with its value and where it comes from.

    ragvault config show

    ragvault config show --vault sample_vault --json
    """
    folder = _folder(vault)
    loaded = load_settings(folder, tuned=_tuned(folder), flags=set_ or ())
    formatted = settings_json if json else settings_toml
    console.out(formatted(loaded, _about(loaded, folder)))


@app.command()
def check(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Check only this file.")
    ] = None,
    vault: Vault = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check your settings, and show how to fix problems. Exits with 2 if there are any.

    ragvault config check

    ragvault config check --vault sample_vault --json
    """
    from ragvault.index.keyword import choose_engine

    if file and vault:
        raise UsageError("FILE and --vault cannot be combined", fix="leave one of them out")
    try:
        folder = None if file else _folder(vault)
        loaded = check_file(file) if file else load_settings(folder, tuned=_tuned(folder))
        choose_engine(loaded.config.keyword, passages=0)  # as `index` does
    except ConfigError as mistakes:
        if not json:
            raise
        # The problems are the result of this command, not a failure of it.
        console.out(problems_json(mistakes))
        raise typer.Exit(mistakes.exit_code) from None
    if json:
        console.out(encode({"files": loaded.files, "problems": []}))
    elif not quiet:
        console.show(no_problems(loaded))


def _folder(vault: str | None) -> Path | None:
    """The folder of a vault, given by path or name; without one, the vault around this folder."""
    if vault is None:
        here = folders.here().resolve()
        around = layout.vaults_around(data_folder(), here)
        inside = [each.root for each in around if here.is_relative_to(each.root)]
        settings = (each for each in (here, *here.parents) if (each / VAULT_FILE).is_file())
        return next(iter((*inside, *settings)), None)
    path = Path(vault).expanduser()
    if path.is_dir():
        return path
    data = data_folder()
    named = [known.root for known in layout.known_vaults(data) if known.name == vault]
    if not named:
        raise VaultNotFound(
            f"no folder and no known vault is called {vault}",
            fix="give the folder that contains the notes",
        )
    return named[0]


def _tuned(vault: Path | None) -> Callable[[str], Path] | None:
    """Where `ragvault tune` stores the weights that it found for a vault and a profile."""
    if vault is None:
        return None
    with suppress(ConfigError):  # no index is possible there; settings are shown all the same
        return partial(layout.tuned_file, layout.index_folder(vault, data_folder()))
    return None


def _about(loaded: Loaded, vault: Path | None) -> dict[str, str]:
    """Which files settings are read from, and where ragvault writes."""
    files = {"user_file": folders.user_file()}
    if vault is not None:
        files["vault_file"] = vault / VAULT_FILE
        tuned = _tuned(vault)
        files |= {"tuned_file": tuned(loaded.config.search.profile)} if tuned else {}
    about = {name: os.fspath(path) for name, path in files.items()}
    return about | {"data_folder": str(folders.data_dir(override=loaded.config.paths.data))}


# --- The file that `config init` writes ---


def example() -> str:
    """The text of config.toml.example: inside the package in a wheel, above it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / EXAMPLE
    return (inside if inside.is_file() else package.parent / EXAMPLE).read_text("utf-8")


def starter_text() -> str:
    """The example with every setting commented out: `#key` is a setting, `# Word` an explanation.

    A file that repeated the defaults would freeze them, and a later release could not improve any.
    """
    lines = example().splitlines()
    return "".join(f"{line if _KEPT.fullmatch(line) else '#' + line}\n" for line in lines)


def write_starter(path: Path, *, force: bool = False) -> Path | None:
    """Write the starter file, readable by the user only. Returns the new name of an older file."""
    target = path.resolve()  # a link to a file kept elsewhere stays a link
    try:
        _make_private(target.parent)
        if not force:
            _write_new(target, starter_text())
            return None
        kept = _renamed_old_file(target)
        _write_new(target, starter_text())
    except OSError as error:
        if isinstance(error, FileExistsError):
            raise ConfigError(
                f"{path} is there already, and was not changed",
                fix="edit it, or replace it with: ragvault config init --force",
            ) from error
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}",
            fix="check the rights of that folder, or name another file in RAGVAULT_CONFIG",
        ) from error
    return kept


def _make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, each for the user alone."""
    # mkdir(parents=True) gives its mode to the last folder only.
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def _renamed_old_file(path: Path) -> Path | None:
    """Rename an existing file to the first free name: nothing a user wrote is lost."""
    if not path.exists():
        return None
    number = 1
    while (kept := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return path.rename(kept)


def _write_new(path: Path, text: str) -> None:
    """Fails when the file exists, even when it came to be a moment ago."""
    binary = getattr(os, "O_BINARY", 0)  # Windows would write each newline twice
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
