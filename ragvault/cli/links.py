"""ragvault links: where a note's links lead, and which lead to it."""

from __future__ import annotations

import typer

from ragvault.cli import options, render

app = typer.Typer()


@app.command()
def links(
    note: options.Note,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the links of a note: outgoing, incoming, broken and ambiguous.

    Exit 1 when it has none at all. Loads no model and writes nothing.

    ragvault links "Sourdough Starter"

    ragvault links Technique/Steam.md --vault sample_vault --json
    """
    from ragvault.cli import pages
    from ragvault.vault import Vault

    found = Vault.open(vault).links(note)
    render.out(render.as_json(found) if json else pages.links(found))
    if not found:
        render.talk(f"{found.note} has no links, and no note links to it")
        raise typer.Exit(1)
