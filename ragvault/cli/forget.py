"""ragvault forget: take a note out of the index, with nothing left behind."""

from __future__ import annotations

from typing import Annotated

import typer

from ragvault.cli import options, render

app = typer.Typer()


@app.command()
def forget(
    note: Annotated[
        str,
        typer.Argument(
            metavar="PATH|NOTE",
            autocompletion=options.note_names,
            help="A note by path or name, or a folder.",
        ),
    ],
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Take a note out of the index, with every byte of it.

    The file itself is not touched. One that is still in the vault comes back with the next index,
    unless a line in .ragignore keeps it out.

    ragvault forget Journal/2024-11-03.md

    ragvault forget Deutsch --vault sample_vault
    """
    from ragvault.cli import pages
    from ragvault.forget import ignore_line
    from ragvault.models.talk import on_stderr
    from ragvault.service.turns import turn
    from ragvault.vault import Vault

    opened = Vault.open(vault)
    with turn(opened.root):
        forgotten = opened.forget(note, talk=on_stderr(quiet=render.is_quiet()))
    render.out(render.as_json(forgotten) if json else pages.forgotten(opened.name, forgotten))
    for path in forgotten.still_there:
        render.talk(
            f"{path} is still in the vault: the next index brings it back, unless .ragignore "
            f"at the top of the vault has the line {ignore_line(path)}"
        )
