"""ragvault related: notes near a note, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console
from ragvault.cli.waiting import waiting

app = typer.Typer()


@app.command()
def related_command(
    note: options.Note,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Maximum number of notes.")
    ] = 10,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find notes near this one: by links, community and vectors.

    Shows the reasons for each note. Exits with 1 if there is none. Loads no model and writes
    nothing.

    ragvault related "Sourdough Starter" -n 5

    ragvault related Technique/Steam.md --vault sample_vault --json
    """
    from ragvault.cli.render import reports
    from ragvault.vault import vault_with

    opened = vault_with(note, vault)
    with waiting("looking for related notes", quiet=console.is_quiet()):
        found = opened.related(note, limit)
    if json:
        console.out(encode(found))
    else:
        console.show(reports.related_text(found, opened.root))
    for warning in found.warnings:
        console.report(f"warning: {warning}")
    if not found.related:
        console.report(f"no notes are related to {found.note}")
        raise typer.Exit(1)
