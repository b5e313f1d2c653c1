"""ragvault doctor: does every part work, and what cures what does not?"""

from __future__ import annotations

import typer

from ragvault.cli import options, render

app = typer.Typer()


@app.command()
def doctor(
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Check that every part works and every signal is alive; say the cure.

    Looks at Python and its libraries, models, folders, the index against the vault, and asks each
    leg and each signal of the ranking with words of the vault itself. Changes nothing. Exit 3 when
    the index is missing or behind, 4 when something cannot be used. With -q only what is wrong is
    told, with -v also what is fine.

    ragvault doctor

    ragvault doctor --vault sample_vault --json
    """
    from datetime import datetime

    from ragvault.cli import pages
    from ragvault.doctor.examine import examine
    from ragvault.doctor.findings import exit_code

    name, found = examine(vault, datetime.now().astimezone())
    code = exit_code(found)
    if json:
        render.out(render.as_json({"vault": name, "exit": code, "findings": found}))
    else:
        render.out(pages.findings(found, quiet=render.is_quiet(), full=render.is_verbose()))
    if code:
        raise typer.Exit(code)
