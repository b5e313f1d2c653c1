"""ragvault links: the links of a note, in both directions, and how two notes are connected."""

from __future__ import annotations

from typing import Annotated

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console

app = typer.Typer()


@app.command()
def links_command(
    note: options.Note,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="OTHER",
            autocompletion=options.note_names,
            help="Show how the two notes are connected.",
        ),
    ] = None,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the links of a note, in both directions.

    Also shows which of them are broken or ambiguous. With --path, shows how two notes are
    connected: the shortest path over links, followed in both directions.

    Exits with 1 if there are no links, or the notes are not connected. Loads no model and writes
    nothing.

    ragvault links "Sourdough Starter"

    ragvault links Technique/Steam.md --vault sample_vault --json

    ragvault links Steam --path "Rye Loaf"
    """
    from ragvault.cli.render import reports
    from ragvault.vault import vault_with

    if path is not None:
        way = vault_with(note, vault).link_path(note, path)
        if json:
            console.out(encode(way))
        else:
            console.show(reports.link_path_text(way))
        if not way.notes:
            console.report(f"no links connect {way.note} and {way.to}")
            raise typer.Exit(1)
        return
    found = vault_with(note, vault).links(note)
    if json:
        console.out(encode(found))
    else:
        console.show(reports.links_text(found))
    if not found:
        console.report(f"{found.note} has no links, and no note links to it")
        raise typer.Exit(1)
