"""ragvault related: notes near a note, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from ragvault.cli import options, render

app = typer.Typer()


@app.command()
def related(
    note: options.Note,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many notes.")] = 10,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find notes near this one: by links, by community and by meaning.

    Each is told with its reasons. Exit 1 when there is none. Loads no model and writes nothing.

    ragvault related "Sourdough Starter" -n 5

    ragvault related Technique/Steam.md --vault sample_vault --json
    """
    from ragvault.cli import pages
    from ragvault.vault import Vault

    found = Vault.open(vault).related(note, limit)
    render.out(render.as_json(found) if json else pages.related(found))
    for warning in found.warnings:
        render.talk(f"warning: {warning}")
    if not found.related:
        render.talk(f"nothing is near {found.note}")
        raise typer.Exit(1)
