"""ragvault status: what is indexed, skipped and pending."""

from __future__ import annotations

import typer

from ragvault.cli import options, render

app = typer.Typer()


@app.command()
def status(
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Tell what is indexed, skipped, broken and pending.

    Loads no model and writes nothing. With -v every skipped file, warning and broken link is
    listed.

    ragvault status --vault ~/notes
    """
    from ragvault.vault import Vault

    found = Vault.open(vault).status()
    render.out(render.as_json(found) if json else render.status(found, full=render.is_verbose()))
