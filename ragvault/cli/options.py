"""Options that mean the same on every command that has them.

    def status(vault: options.VaultName = None, json: options.Json = False) -> None: ...

Quiet and Verbose act by being declared: render.talk and render.detail obey them.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Annotated, Optional

import typer

from ragvault.cli import render


def _quiet(wanted: bool) -> bool:
    if wanted:
        render.be_quiet()
    return wanted


def _verbose(wanted: bool) -> bool:
    if wanted:
        render.be_verbose()
    return wanted


def vault_names(incomplete: str) -> list[str]:
    """The known vaults whose names begin so, for the shell; the shell adds folders by itself."""
    from ragvault.config import folders
    from ragvault.config.load import load_settings
    from ragvault.errors import RagvaultError
    from ragvault.store import layout

    # Somebody is in the middle of a line: a mistake in the settings is told when it is entered.
    with suppress(RagvaultError, OSError):
        data = folders.data_dir(override=load_settings().config.paths.data)
        names = [vault.name for vault in layout.known_vaults(data)]
        return _typed([name for name in names if name.startswith(incomplete)])
    return []


def note_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The notes whose paths begin so, for the shell."""
    from ragvault.errors import RagvaultError
    from ragvault.vault import Vault

    with suppress(RagvaultError, OSError):
        with Vault.open(ctx.params.get("vault")).catalogue() as catalogue:
            known = sorted(catalogue.files())
        return _typed([path for path in known if path.startswith(incomplete)])
    return []


def _typed(names: list[str]) -> list[str]:
    """As one would type them: bash takes a completion as it is, other shells quote it."""
    if os.environ.get("_RAGVAULT_COMPLETE") != "complete_bash":
        return names
    return [re.sub(r"([^\w./@%+=:,-])", r"\\\1", name) for name in names]


def model_names(incomplete: str) -> list[str]:
    """The models of the registry whose names begin so, for the shell."""
    from ragvault.models import registry

    return [name for name in registry.known_models() if name.startswith(incomplete)]


Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_quiet, help="Say nothing but results and errors.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_verbose, help="Say more on the way.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
# Optional and not `| None`: Typer reads these at run time, on Python 3.10 as well.
VaultName = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--vault",
        metavar="PATH|NAME",
        autocompletion=vault_names,
        help="The vault; left out, the one around this folder, else the only or the default one.",
    ),
]
Note = Annotated[
    str,
    typer.Argument(
        metavar="NOTE", autocompletion=note_names, help="A note by its path or its name."
    ),
]
Set = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--set", metavar="KEY=VALUE", help="One setting for this run; repeatable."),
]
