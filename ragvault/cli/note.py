"""Commands about one note: read, open, links, related."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragvault.cli import console, options
from ragvault.cli.start import report_if_slow
from ragvault.errors import RagvaultError, UsageError
from ragvault.text.printable import encode

if TYPE_CHECKING:
    from ragvault.answer.results import NotePlace
    from ragvault.vault import Vault

app = typer.Typer()

DIGITS = 3  # of the number of a result; a longer one is the name of a note, such as a year
# How editors are told the line: by a +number before the file, or behind the file's name.
PLUS = {
    *("vi", "vim", "nvim", "gvim", "view", "nano", "pico", "micro", "kak", "joe", "emacs"),
    *("emacsclient", "gedit", "geany", "mg", "ne", "jed"),
}
GOTO = {"code", "codium", "code-insiders", "cursor", "windsurf"}
COLON = GOTO | {"subl", "hx", "helix", "zed"}
DASH = {"kate", "idea", "pycharm", "mate"}


@app.command("read")
def read_command(
    note: options.Note,
    heading: Annotated[
        str | None,
        typer.Option(
            "--heading",
            metavar="TEXT",
            help="Only the section under this heading (“A > B”), or the block with this ^id.",
        ),
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option("--lines", metavar="FROM-TO", help="Only these lines: 40-80, 40- or 40."),
    ] = None,
    budget: Annotated[
        int | None,
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
    from ragvault.cli import reports
    from ragvault.vault import vault_with

    found = vault_with(note, vault).read(
        note, heading=heading, lines=lines, budget=budget, numbered=numbered
    )
    if json:
        console.out(encode(found))
        return
    if found.text:
        console.out(found.text.removesuffix("\n"))
    for line in reports.note_facts(found):
        console.report(line)


@app.command("links")
def links_command(
    note: options.Note,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="OTHER",
            autocompletion=options.note_names,
            help="Show how the two notes are connected.",
        ),
    ] = None,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the links of a note, in both directions.

    Also shows which of them are broken or ambiguous. With --path, shows how two notes are
    connected: the shortest path over links, followed in both directions.

    Exits with 1 if there are no links, or the notes are not connected. Loads no model and writes
    nothing.

    ragvault links "Sourdough Starter"

    ragvault links Technique/Steam.md --vault sample_vault --json

    ragvault links Steam --path "Rye Loaf"
    """
    from ragvault.cli import reports
    from ragvault.vault import vault_with

    if path is not None:
        opened = vault_with(note, vault)
        way = opened.link_path(note, path)
        console.result(way, reports.link_path_text(way, opened.root), json=json)
        if not way.notes:
            console.report(f"no links connect {way.note} and {way.to}")
            raise typer.Exit(1)
        return
    opened = vault_with(note, vault)
    found = opened.links(note)
    console.result(found, reports.links_text(found, opened.root), json=json)
    if not found:
        console.report(f"{found.note} has no links, and no note links to it")
        raise typer.Exit(1)


@app.command("related")
def related_command(
    note: options.Note,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="Maximum number of notes.")
    ] = 10,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find notes near this one: by links, community and vectors.

    Shows the reasons for each note. Exits with 1 if there is none. Loads no model and writes
    nothing.

    ragvault related "Sourdough Starter" -n 5

    ragvault related Technique/Steam.md --vault sample_vault --json
    """
    from ragvault.cli import reports
    from ragvault.vault import vault_with

    opened = vault_with(note, vault)
    with report_if_slow("looking for related notes", quiet=console.is_quiet()):
        found = opened.related(note, limit)
    console.result(found, reports.related_text(found, opened.root), json=json)
    for warning in found.warnings:
        console.report(f"warning: {warning}")
    if not found.related:
        console.report(f"no notes are related to {found.note}")
        raise typer.Exit(1)


@app.command("open")
def open_command(
    note: Annotated[
        str,
        typer.Argument(
            metavar="N|NOTE",
            autocompletion=options.note_names,
            help="Number of a result of the last search, or a note: its path, name, title or "
            "alias, or a part of one. NOTE:12 and NOTE#Heading go there.",
        ),
    ],
    editor: Annotated[
        bool, typer.Option("--editor", "-e", help="Use $VISUAL or $EDITOR, never Obsidian.")
    ] = False,
    vault: options.VaultName = None,
    quiet: options.Quiet = False,
) -> None:
    """Open a note in Obsidian or your editor.

    N is the number of a result: the process that answers searches remembers the last one that was
    typed in this terminal.

    A note of a vault with a .obsidian folder opens in Obsidian; any other in $VISUAL or $EDITOR, at
    its line. Without an editor, the program that your system has for such files is used.

    ragvault open "Sourdough Starter"

    ragvault open Technique/Steam.md:12 --editor
    """
    from ragvault.cli.start import clock
    from ragvault.vault import Vault, vault_with

    if note.isdecimal() and len(note) <= DIGITS:
        place = _last_result(int(note))
        opened = Vault.open(place.root)
    else:
        opened = vault_with(note, vault)
        place = opened.place(note)
    opened.record_opened(place.note, clock())
    open_place(opened, place, in_editor=editor)


def _last_result(number: int) -> NotePlace:
    """Result N of the last search in this terminal, which the resident process remembers."""
    from ragvault.answer.results import NotePlace
    from ragvault.cli.start import session
    from ragvault.config.folders import runtime_folder
    from ragvault.service.protocol import WatcherUnavailable, ask_watcher

    fix = "search first, or name the note: ragvault open NOTE"
    try:
        answer = ask_watcher(runtime_folder(), {"op": "last_results", "session": session()})
    except WatcherUnavailable:
        raise UsageError("no process remembers the last search", fix=fix) from None
    results = answer.get("results")
    if not isinstance(results, list):
        raise UsageError("nothing was searched in this terminal lately", fix=fix)
    if not 1 <= number <= len(results):
        found = console.counted(len(results), "result")
        raise UsageError(f"there is no result {number}: the last search found {found}", fix=fix)
    each = results[number - 1]
    return NotePlace(
        each["vault"], Path(each["root"]), each["note"], Path(each["path"]), each["line"]
    )


def open_place(vault: Vault, place: NotePlace, *, in_editor: bool = False) -> None:
    """Open a line of a note. Raises UsageError if there is nothing to open it with."""
    from ragvault.answer.results import note_uri, system_may_open

    if not place.file.is_file():
        raise RagvaultError(f"{place.file} is no longer there", fix="ragvault index")
    command = _editor()
    uri = note_uri(place, vault.settings.config.output.editor)
    if in_editor and not command:
        raise UsageError("no editor is set", fix="set VISUAL or EDITOR, for example: EDITOR=vim")
    text = system_may_open(place.file)
    if text and not in_editor and not (command and uri.startswith("file:")):
        target = str(place.file) if uri.startswith("file:") else uri
        if typer.launch(target) == 0:
            console.report(f"opened {place.file}")
            return
    if not command:
        why = "nothing here can open" if text else "only an editor may open"
        raise UsageError(
            f"{why} {place.file}",
            fix="set VISUAL or EDITOR, for example: EDITOR=vim",
        )
    _edit([*command, *line_arguments(command[0], place.file, place.line)])


def _editor() -> list[str]:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    return shlex.split(command, posix=os.name != "nt")


def line_arguments(editor: str, file: Path, line: int) -> list[str]:
    """The arguments that open a file at a line, as far as the editor is known."""
    name = Path(editor).stem.lower()
    if name in PLUS:
        return [f"+{line}", str(file)]
    if name in COLON:
        return [*(["--goto"] if name in GOTO else ()), f"{file}:{line}"]
    return ["--line", str(line), str(file)] if name in DASH else [str(file)]


def _edit(command: list[str]) -> None:
    sys.stdout.flush()
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise UsageError(
            f"{command[0]} cannot be started: {error.strerror}",
            fix="set VISUAL or EDITOR to an editor that is installed",
        ) from error
    if code:
        raise RagvaultError(f"{command[0]} ended with code {code}")
