"""ragvault read: a note, or a part of it, as its file is now."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console

app = typer.Typer()


@app.command()
def read_command(
    note: options.Note,
    heading: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--heading",
            metavar="TEXT",
            help="Only the section under this heading (“A > B”), or the block with this ^id.",
        ),
    ] = None,
    lines: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--lines", metavar="FROM-TO", help="Only these lines: 40-80, 40- or 40."),
    ] = None,
    budget: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--budget", metavar="TOKENS", min=1, help="Stop after the last block that fits."
        ),
    ] = None,
    numbered: Annotated[
        bool, typer.Option("--line-numbers", "-N", help="Number the lines, as in the file.")
    ] = False,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Print a note, or a section, a block or lines of it.

    Reads the file as it is now, whatever the index has. The note may be written with its part:
    Steam#Setup, Steam#^id, Steam.md:40-80. Loads no model and writes nothing.

    ragvault read Steam

    ragvault read "Sourdough Starter" --heading Feeding

    ragvault read Technique/Steam.md --lines 3-9 --line-numbers

    ragvault read Troubleshooting --budget 200 --json
    """
    from ragvault.cli.render import reports
    from ragvault.vault import vault_with

    found = vault_with(note, vault).read(
        note, heading=heading, lines=lines, budget=budget, numbered=numbered
    )
    if json:
        console.out(encode(found))
        return
    if found.text:
        console.out(reports.note_text(found, terminal=sys.stdout.isatty()))
    for line in reports.note_facts(found):
        console.report(line)
