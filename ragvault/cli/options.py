"""Options that mean the same on every command that has them.

    def status(vault: options.Vault = None, json: options.Json = False) -> None: ...

Quiet and Verbose act by being declared: render.talk and render.detail obey them.
"""

from __future__ import annotations

from pathlib import Path
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


Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_quiet, help="Say nothing but results and errors.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_verbose, help="Say more on the way.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")]
# Optional and not `| None`: Typer reads these at run time, on Python 3.10 as well.
Vault = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--vault", metavar="PATH", help="The folder of notes."),
]
Set = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--set", metavar="KEY=VALUE", help="One setting for this run; repeatable."),
]
