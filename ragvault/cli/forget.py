"""ragvault forget: remove a note from the index, with nothing left behind."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.progress import progress
from ragvault.cli.render import console

app = typer.Typer()


@app.command()
def forget_command(
    note: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            metavar="PATH|NOTE",
            autocompletion=options.note_names,
            help="A note: its path, name, title or alias, or a part of one; or a folder.",
            show_default=False,
        ),
    ] = None,
    removed: Annotated[
        bool,
        typer.Option(
            "--removed", help="Only erase leftovers of notes you already deleted or edited."
        ),
    ] = False,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Remove a note from the index, with nothing left behind.

    Does not touch the note itself. If it is still in the vault, the next index adds it again,
    unless .ragignore excludes it. Also erases leftovers of notes you deleted or edited earlier.

    ragvault forget Journal/2024-11-03.md

    ragvault forget Deutsch --vault sample_vault

    ragvault forget --removed
    """
    from ragvault.answer.note_lookup import listed
    from ragvault.cli.render import reports
    from ragvault.errors import UsageError
    from ragvault.service.process import pause_watcher
    from ragvault.update.forget import ignore_lines
    from ragvault.vault import Vault

    if (note is None) != removed:
        raise UsageError("name a note, or use --removed", fix="ragvault forget --help")
    opened = Vault.open(vault)
    kept = "something may be left. Run the same command again to erase it"
    with pause_watcher(opened.root), progress(kept) as shown:
        forgotten = opened.forget(note, progress=shown)
    if note is not None and not forgotten.notes:
        console.report(f"no note called {note} is in the index")
    console.out(encode(forgotten)) if json else console.show(
        reports.forgotten(opened.name, forgotten)
    )
    if still := forgotten.still_there:
        console.report(
            f"the next index will add again what is still in the vault: {listed(still)}; to "
            "exclude it, add to .ragignore at the top of the vault: "
            f"{'  '.join(ignore_lines(still, note))}"
        )
