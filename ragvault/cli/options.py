"""Options that mean the same on every command that has them.

    def status(vault: options.VaultName = None, json: options.Json = False) -> None: ...

Declaring Quiet and Verbose is enough: console.report and console.detail obey them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated
from unicodedata import category

import typer

from ragvault.cli import console


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
        return _offered((vault.name for vault in layout.known_vaults(data)), incomplete)
    return []


def note_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completion: paths, file names, titles and aliases of notes that begin with the text."""
    from ragvault.errors import RagvaultError
    from ragvault.text.names import names_of
    from ragvault.vault import Vault

    with suppress(RagvaultError, OSError):
        with Vault.open(ctx.params.get("vault")).catalogue() as catalogue:
            notes = catalogue.names()
        paths = _offered((note.path for note in notes), incomplete)
        names = {name for note in notes for name in names_of(note)}
        return paths or _offered(sorted(names), incomplete)
    return []


def profile_names(incomplete: str) -> list[str]:
    """Completion: ranking profiles that begin with the text."""
    from ragvault.config import profiles

    return _offered(profiles.names(), incomplete)


def _offered(names: Iterable[str], typed: str) -> list[str]:
    """The names that begin with what was typed and that no shell evaluates.

    Notes name themselves, and zsh evaluates what it is offered. A name with any other character
    than letters, digits, marks, "_", "-", ".", "/", "," and single spaces is not offered, nor one
    that a command would take for an option. bash inserts completions as they are, so that a space
    is escaped for it; other shells do so by themselves.
    """
    found = [name for name in names if name.startswith(typed) and _inert(name)]
    if os.environ.get("_RAGVAULT_COMPLETE") != "complete_bash":
        return found
    return [name.replace(" ", "\\ ") for name in found]


def _inert(name: str) -> bool:
    words = name.split(" ")
    return not name.startswith("-") and all(
        word and all(char in "_-./," or category(char)[0] in "LMN" for char in word)
        for word in words
    )


def model_names(incomplete: str) -> list[str]:
    """Completion: models of the registry that begin with the text."""
    from ragvault.models import registry

    return _offered(registry.known_models(), incomplete)


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
