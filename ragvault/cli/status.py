"""ragvault status: what is indexed, skipped and pending."""

from __future__ import annotations

from dataclasses import asdict

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

    ragvault status

    ragvault status --vault sample_vault -v
    """
    from ragvault.cli import pages
    from ragvault.service.process import watcher_of
    from ragvault.vault import Vault

    opened = Vault.open(vault)
    found, watcher = opened.status(), watcher_of(opened.root)
    if json:
        hidden = ("token", "started")
        told = {k: v for k, v in asdict(watcher).items() if k not in hidden} if watcher else None
        render.out(pages.status_json(found, told))
    else:
        said = watcher.describe() if watcher else ""
        render.out(pages.status(found, said, full=render.is_verbose()))
