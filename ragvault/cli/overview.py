"""Commands that look at a whole vault: what it holds, what is indexed, and whether all of it works.

list     tags, folders, properties and notes, with counts
status   what is indexed, skipped, broken and pending
doctor   every part checked, with a fix for what is wrong
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.progress import progress
from ragvault.cli.render import console
from ragvault.cli.waiting import waiting

if TYPE_CHECKING:
    from ragvault.service.process import WatcherRecord
    from ragvault.store.layout import KnownVault

app = typer.Typer()


class Listable(str, Enum):
    """What can be listed."""

    tags = "tags"
    folders = "folders"
    properties = "properties"
    notes = "notes"


@app.command("list")
def list_command(
    kind: Annotated[
        Listable | None,
        typer.Argument(
            metavar="[tags|folders|properties|notes]",
            help="What to list. Default: how many there are of each.",
            show_default=False,
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILTER]",
            help="Words in the name, and conditions on notes such as path:journal or tag:recipe.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Maximum number of lines. Default: all."),
    ] = None,
    cursor: Annotated[
        str | None,
        typer.Option("--cursor", metavar="NEXT", help="Continue where a page with --limit ended."),
    ] = None,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the tags, folders, properties or notes of a vault.

    Each with the number of its notes; a tag and a folder also count what is below them. Exits with
    1 if there is nothing to list. Loads no model and writes nothing.

    ragvault list tags

    ragvault list properties path:Recipes

    ragvault list notes rye tag:recipe --json
    """
    from ragvault.cli.render import reports
    from ragvault.cli.search import joined
    from ragvault.cli.start import this_caller
    from ragvault.vault import Vault

    caller, opened = this_caller(), Vault.open(vault)
    if kind is None:
        totals = {each.value: opened.list(each.value).total for each in Listable}
        counts = "\n".join(f"{number:6,}  {what}" for what, number in totals.items())
        console.out(encode({"vault": opened.name, **totals}) if json else counts)
        return
    what: Any = kind.value
    found = opened.list(
        what, joined(words or []), limit=limit, cursor=cursor, now=caller.local_time()
    )
    console.result(found.to_dict(), reports.contents_text(found), json=json)
    if not found.items:
        fit = f" match “{joined(words)}”" if words else ""
        console.report(f"no {kind.value}{fit}")
        raise typer.Exit(1)
    if found.next:
        shown = len(found.items)
        console.report(
            f"{shown:,} of {found.total:,} {kind.value}; to continue: --cursor {found.next}"
        )


@app.command("status")
def status_command(
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Show what is indexed, skipped, broken and pending.

    Outside of all vaults, a line for each of them. Loads no model and writes nothing. -v also lists
    every skipped file, warning and broken link.

    ragvault status

    ragvault status --vault sample_vault -v
    """
    from ragvault.answer.json_output import status_json
    from ragvault.cli.render import reports
    from ragvault.service.process import running_watcher
    from ragvault.vault import Vault, around_here

    if vault is None and len(around := around_here()) > 1:
        _status_of_all(around, json=json)
        return
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


def _status_of_all(vaults: Sequence[KnownVault], *, json: bool) -> None:
    from ragvault.cli.render import reports
    from ragvault.cli.vaults import vault_rows

    with waiting("comparing the indexes with the files", quiet=console.is_quiet()):
        rows = vault_rows(vaults, compare=True)
    console.result({"vaults": rows}, reports.vaults_text(rows), json=json)
    console.report("for more about one: ragvault status --vault NAME")


def _shown(process: WatcherRecord | None) -> dict[str, Any] | None:
    hidden = ("token", "started", "code", "resident")
    if process is None:
        return None
    return {name: value for name, value in asdict(process).items() if name not in hidden}


@app.command("doctor")
def doctor(
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Check that every part works, and show how to fix what does not.

    Checks Python and its libraries, models, folders, and the index against the vault. Then searches
    for the vault's own words, to see that each leg and each ranking signal has an effect. Outside
    of all vaults, checks the machine, and whether the index of each vault is up to date. Changes
    nothing. -q shows only problems, -v also what is fine. Exits with 3 if the index is missing or
    out of date, with 4 if something cannot be used.

    ragvault doctor

    ragvault doctor --vault sample_vault --json
    """
    from datetime import datetime

    from ragvault.cli.render import reports
    from ragvault.evaluate.doctor import diagnose, exit_code

    with progress("nothing was changed") as shown:
        name, found = diagnose(vault, datetime.now().astimezone(), shown)
    code = exit_code(found)
    console.result(
        {"vault": name, "exit": code, "findings": found},
        reports.findings(found, quiet=console.is_quiet(), full=console.is_verbose()),
        json=json,
    )
    if code:
        raise typer.Exit(code)
