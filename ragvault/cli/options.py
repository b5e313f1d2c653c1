"""Options that mean the same on every command that has them.

    def status(vault: options.VaultName = None, json: options.Json = False) -> None: ...

Declaring Quiet and Verbose is enough: console.report and console.detail obey them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from ragvault.cli.render import console

if TYPE_CHECKING:
    from ragvault.types import Head


def _quiet(wanted: bool) -> bool:
    if wanted:
        console.be_quiet()
    return wanted


def _verbose(wanted: bool) -> bool:
    if wanted:
        console.be_verbose()
    return wanted


def vault_names(incomplete: str) -> list[str]:
    """Completion: known vaults that begin with the text; the shell itself adds folders."""
    from ragvault.config.load import data_folder
    from ragvault.errors import RagvaultError
    from ragvault.store import layout

    # No errors in the middle of typing: the command itself reports mistakes in the settings.
    with suppress(RagvaultError, OSError):
        data = data_folder()
        names = [vault.name for vault in layout.known_vaults(data)]
        return _typed([name for name in names if name.startswith(incomplete)])
    return []


def note_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completion: paths, file names, titles and aliases of notes that begin with the text."""
    from ragvault.errors import RagvaultError
    from ragvault.vault import Vault

    with suppress(RagvaultError, OSError):
        with Vault.open(ctx.params.get("vault")).catalogue() as catalogue:
            notes = catalogue.heads([note for note, _ in catalogue.notes_since(0)])
        paths = sorted(note.path for note in notes if note.path.startswith(incomplete))
        return _typed(paths or sorted(set(_names_from(notes, incomplete))))
    return []


def _names_from(notes: Iterable[Head], text: str) -> Iterator[str]:
    for note in notes:
        names = (PurePosixPath(note.path).stem, note.title, *note.aliases)
        yield from (name for name in names if name.startswith(text))


def profile_names(incomplete: str) -> list[str]:
    """Completion: ranking profiles that begin with the text."""
    from ragvault.config import profiles

    return [name for name in profiles.names() if name.startswith(incomplete)]


def _typed(names: list[str]) -> list[str]:
    """Quoted for bash, which inserts completions as they are; other shells quote by themselves."""
    if os.environ.get("_RAGVAULT_COMPLETE") != "complete_bash":
        return names
    return [re.sub(r"([^\w./@%+=:,-])", r"\\\1", name) for name in names]


def model_names(incomplete: str) -> list[str]:
    """Completion: models of the registry that begin with the text."""
    from ragvault.models import registry

    return [name for name in registry.known_models() if name.startswith(incomplete)]


Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_quiet, help="Print only results and errors.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_verbose, help="Print more details.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
VaultName = Annotated[
    str | None,
    typer.Option(
        "--vault",
        metavar="PATH|NAME",
        autocompletion=vault_names,
        help="Vault to use. Default: the vault around the current folder, else the only one, else "
        "the default vault.",
    ),
]
Note = Annotated[
    str,
    typer.Argument(
        metavar="NOTE",
        autocompletion=note_names,
        help="A note: its path, name, title or alias, or a part of one.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting for this run; repeatable."),
]


def seconds(duration: str | None) -> float:
    """The seconds of a time that was typed, such as 5m; infinity without one. Raises UsageError."""
    from ragvault.config.schema import duration_seconds
    from ragvault.errors import UsageError

    if duration is None:
        return math.inf
    found = duration_seconds(duration)
    if not found:
        raise UsageError(
            f"--for {duration} is not a time", fix="use a number and s, m or h: --for 5m"
        )
    return found
