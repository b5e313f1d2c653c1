"""ragvault index: read a vault into its index, or bring the index up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from ragvault.cli import options, render
from ragvault.cli.progress import progress

app = typer.Typer()


@app.command()
def index(
    vault: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(help="The folder of notes; left out, the vault around this folder."),
    ] = None,
    set_: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Index a vault, or bring its index up to date.

    Only what changed is read. The vault itself is never written to. Ctrl-C keeps what is done;
    the same command goes on from there.

    ragvault index ~/notes
    """
    from ragvault.vault import Vault

    opened = Vault.open(vault, flags=set_ or ())
    try:
        with progress() as tell:
            report = opened.index(tell)
    except KeyboardInterrupt:
        render.talk("stopped; what was done is kept, and the same command goes on from there")
        raise
    render.out(render.as_json(report) if json else render.index_report(opened.name, report))
    for warning in report.warnings:
        render.talk(f"warning: {warning}")
    for skip in report.skipped:
        render.detail(f"skipped {skip.path}: {skip.reason} {skip.detail}".rstrip())
