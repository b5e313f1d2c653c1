"""ragvault forget: take a note out of the index, with nothing left behind."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from ragvault.cli import options, render

app = typer.Typer()


@app.command()
def forget(
    note: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            metavar="PATH|NOTE",
            autocompletion=options.note_names,
            help="A note by path or name, or a folder.",
            show_default=False,
        ),
    ] = None,
    removed: Annotated[
        bool,
        typer.Option("--removed", help="Only what is no longer in your notes, and in files still."),
    ] = False,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Take a note out of the index, with every byte of it.

    The file itself is not touched. One that is still in the vault comes back with the next index,
    unless a line in .ragignore keeps it out. What you deleted or edited away earlier goes as well.

    ragvault forget Journal/2024-11-03.md

    ragvault forget Deutsch --vault sample_vault

    ragvault forget --removed
    """
    from ragvault.cli import pages
    from ragvault.errors import UsageError
    from ragvault.models.progress import stderr_reporter
    from ragvault.service.process import pause_watcher
    from ragvault.update.forget import ignore_line
    from ragvault.vault import Vault

    if (note is None) != removed:
        raise UsageError("name a note, or say --removed", fix="ragvault forget --help")
    opened = Vault.open(vault)
    with pause_watcher(opened.root):
        forgotten = opened.forget(note, talk=stderr_reporter(quiet=render.is_quiet()))
    if note is not None and not forgotten.notes:
        render.talk(f"{note} is not in the index any more")
    render.out(render.as_json(forgotten) if json else pages.forgotten(opened.name, forgotten))
    for path in forgotten.still_there:
        render.talk(
            f"{path} is still in the vault: the next index brings it back, unless .ragignore "
            f"at the top of the vault has the line {ignore_line(path)}"
        )
