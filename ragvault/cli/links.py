"""ragvault links: where a note's links lead, which lead to it, and how two notes are connected."""

from __future__ import annotations

from typing import Annotated

import typer

from ragvault.cli import options, render

app = typer.Typer()


@app.command()
def links(
    note: options.Note,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="OTHER", help="Show how the two notes are connected."),
    ] = None,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the links of a note: outgoing, incoming, broken and ambiguous.

    With --path, show how it is connected to another note: the shortest way over links, followed in
    both directions.

    Exit 1 when it has no links at all, or the two are not connected. Loads no model and writes
    nothing.

    ragvault links "Sourdough Starter"

    ragvault links Technique/Steam.md --vault sample_vault --json

    ragvault links Steam --path "Rye Loaf"
    """
    from ragvault.cli import pages
    from ragvault.vault import Vault

    if path is not None:
        way = Vault.open(vault).link_path(note, path)
        render.out(render.as_json(way) if json else pages.link_path(way))
        if not way.notes:
            render.talk(f"no links connect {way.note} and {way.to}")
            raise typer.Exit(1)
        return
    found = Vault.open(vault).links(note)
    render.out(render.as_json(found) if json else pages.links(found))
    if not found:
        render.talk(f"{found.note} has no links, and no note links to it")
        raise typer.Exit(1)
