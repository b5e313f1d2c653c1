"""ragvault status: what is indexed, skipped, broken and pending."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from ragvault.cli import options
from ragvault.cli.render import console
from ragvault.cli.waiting import waiting

if TYPE_CHECKING:
    from ragvault.service.process import WatcherRecord

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
    from ragvault.service.process import running_watcher
    from ragvault.vault import Vault

    opened = Vault.open(vault)
    with waiting("comparing the index with the files", quiet=console.is_quiet()):
        found, process = opened.status(), running_watcher()
    watcher = process if process and process.watches(opened.root) else None
    resident = process if process and process.resident else None
    if json:
        console.out(status_json(found, _shown(watcher), _shown(resident)))
    else:
        words = [each.describe() if each else "" for each in (watcher, resident)]
        console.show(reports.status_text(found, *words, full=console.is_verbose()))


def _shown(process: WatcherRecord | None) -> dict[str, Any] | None:
    hidden = ("token", "started", "code", "resident")
    if process is None:
        return None
    return {name: value for name, value in asdict(process).items() if name not in hidden}
