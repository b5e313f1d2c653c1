"""ragvault links: the links of a note, in both directions."""

from __future__ import annotations

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console

app = typer.Typer()


@app.command()
def links(
    note: options.Note,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the links of a note: outgoing, incoming, broken and ambiguous.

    Exits with 1 if there are none. Loads no model and writes nothing.

    ragvault links "Sourdough Starter"

    ragvault links Technique/Steam.md --vault sample_vault --json
    """
    from ragvault.cli.render import reports
    from ragvault.vault import Vault

    found = Vault.open(vault).links(note)
    console.out(encode(found) if json else reports.links(found))
    if not found:
        console.report(f"{found.note} has no links, and no note links to it")
        raise typer.Exit(1)
