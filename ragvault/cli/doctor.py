"""ragvault doctor: does every part work, and how to fix what does not."""

from __future__ import annotations

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console

app = typer.Typer()


@app.command()
def doctor(
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Check that every part works, and show how to fix what does not.

    Checks Python and its libraries, models, folders and the index, and runs test searches made of
    the vault's own words through each leg and ranking signal. Changes nothing. Exits with 3 if the
    index is missing or behind, with 4 if something cannot be used. -q shows only problems, -v also
    the checks that passed.

    ragvault doctor

    ragvault doctor --vault sample_vault --json
    """
    from datetime import datetime

    from ragvault.cli.render import reports
    from ragvault.doctor.examine import examine
    from ragvault.doctor.findings import exit_code

    name, found = examine(vault, datetime.now().astimezone())
    code = exit_code(found)
    if json:
        console.out(encode({"vault": name, "exit": code, "findings": found}))
    else:
        console.out(reports.findings(found, quiet=console.is_quiet(), full=console.is_verbose()))
    if code:
        raise typer.Exit(code)
