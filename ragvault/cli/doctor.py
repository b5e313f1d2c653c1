"""ragvault doctor: check every part and say how to fix what is wrong."""

from __future__ import annotations

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.progress import progress
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

    Checks Python and its libraries, models, folders, and the index against the vault. Then searches
    for the vault's own words, to see that each leg and each ranking signal has an effect. Changes
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
    if json:
        console.out(encode({"vault": name, "exit": code, "findings": found}))
    else:
        console.show(reports.findings(found, quiet=console.is_quiet(), full=console.is_verbose()))
    if code:
        raise typer.Exit(code)
