"""ragvault status: what is indexed, skipped, broken and pending."""

from __future__ import annotations

from dataclasses import asdict

import typer

from ragvault.cli import options
from ragvault.cli.progress import waiting
from ragvault.cli.render import console

app = typer.Typer()


@app.command()
def status_command(
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Show what is indexed, skipped, broken and pending.

    Loads no model and writes nothing. -v also lists every skipped file, warning and broken link.

    ragvault status

    ragvault status --vault sample_vault -v
    """
    from ragvault.answer.json_output import status_json
    from ragvault.cli.render import reports
    from ragvault.service.process import watcher_of
    from ragvault.vault import Vault

    opened = Vault.open(vault)
    with waiting("comparing the index with the files"):
        found, watcher = opened.status(), watcher_of(opened.root)
    if json:
        hidden = ("token", "started")
        shown = {k: v for k, v in asdict(watcher).items() if k not in hidden} if watcher else None
        console.out(status_json(found, shown))
    else:
        words = watcher.describe() if watcher else ""
        console.show(reports.status_text(found, words, full=console.is_verbose()))
