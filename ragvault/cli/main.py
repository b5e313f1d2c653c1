"""The program: which commands there are, and how each of them ends.

To add a command, write ragvault/cli/NAME.py with a Typer `app` in it and add one line to COMMANDS
in commands.py: its name and the first line of its help. A file with one @app.command() becomes a
plain command, a file with several becomes a group (`ragvault config show`). Small commands about
one thing share a file, which SHARED_FILES names (`ragvault read`, in note.py). The file is imported
only when its command is called, so `ragvault --help` never waits for what a command needs. Shared
options are in options.py; what commands print is formatted in console.py, reports.py, results.py.

A command returns when it is done, raises typer.Exit(1) if it found nothing, and raises a
RagvaultError if it failed. Only `main` catches those and prints an error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from errno import ENOSPC
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeGuard

import typer
from typer.core import TyperCommand, TyperGroup

from ragvault import __version__
from ragvault.cli import console, options
from ragvault.cli.commands import (
    COMMANDS,
    OPERATORS_HELP,
    SHARED_FILES,
    asked_for,
    check_command,
    instead_of,
    meant_command,
    picker_vaults,
    volume_first,
    with_command,
)
from ragvault.errors import RagvaultError, UsageError, VaultNotFound

# The base class of all usage errors that Typer raises; it has no public name.
_Misuse: type[Any] = typer.BadParameter.__mro__[1]

TYPED = 26  # columns for what is typed, in the tables of `help operators`


class Commands(TyperGroup):
    """The commands by name: placeholders with a summary, imported when they are called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=line) for name, line in COMMANDS.items()}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # completion: somebody is still typing
            check_command(args)
        rest: list[str] = super().parse_args(ctx, with_command(args))
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, _imported(name) if name in COMMANDS else command, rest


def _imported(name: str) -> Any:
    called: typer.Typer = import_module(f"ragvault.cli.{SHARED_FILES.get(name, name)}").app
    called.rich_markup_mode = app.rich_markup_mode
    called._add_completion = False  # ragvault itself offers it
    command: Any = typer.main.get_command(called)
    if name in SHARED_FILES:
        command = command.commands[name]
    command.name = name
    return command


def options_of(name: str) -> set[str]:
    """The options of a command, and of the commands in its group."""
    command = _imported(name)
    commands = (command, *getattr(command, "commands", {}).values())
    return {option for each in commands for param in each.params for option in param.opts}


app = typer.Typer(
    name="ragvault",
    cls=Commands,
    # No Rich: importing it to draw boxes doubles the time of --help.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ragvault {__version__}")
        raise typer.Exit


@app.callback()
def ragvault(
    ctx: typer.Context,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    """Search your Markdown notes with vectors, keywords and links, all on this machine."""
    if ctx.invoked_subcommand is None:
        console.out(ctx.get_help())


def main(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. Errors are two lines, not a traceback."""
    console.reset()
    try:
        code = _call(args)
        if sys.stdout:  # None if it was closed: `>&-`
            sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except Exception as error:
        code = failed(error, args)
        if isinstance(error, UsageError):  # says what is wrong
            return code
    if hint := meant_command(args, code):
        console.report(hint)
    return code


def failed(error: Exception, args: Sequence[str] = ()) -> int:
    """Write what went wrong, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        return reader_left()
    if isinstance(error, PermissionError) or _is_about_a_file(error):
        error = _unusable(error)
    if not isinstance(error, RagvaultError):
        console.unexpected(error)
        return 4
    unknown = isinstance(error, UsageError | VaultNotFound)
    console.error(error, search=asked_for(args) if unknown else "")
    return error.exit_code


def _is_about_a_file(error: Exception) -> TypeGuard[OSError]:
    """A path that is too long, a link to itself, a failing disk: no bug of ours."""
    return isinstance(error, OSError) and error.filename is not None and error.errno != ENOSPC


def _unusable(error: OSError) -> RagvaultError:
    place = f"{error.filename} cannot be used" if error.filename else "a file cannot be used"
    fix = "check it and its permissions; for ragvault's own folder, RAGVAULT_HOME can name another"
    return RagvaultError(f"{place}: {error.strerror or error}", fix=fix)


def _vault_without_option(misuse: Any, args: Sequence[str]) -> str:
    """The folder at the end of `ragvault status FOLDER`, for a command that has --vault."""
    if type(misuse) is not _Misuse or not misuse.ctx or "--vault" in args:
        return ""  # such as a mistyped option
    options = [name for each in misuse.ctx.command.params for name in each.opts]
    return args[-1] if "--vault" in options and Path(args[-1]).is_dir() else ""


def _call(args: Sequence[str]) -> int:
    vaults = picker_vaults(args)
    if vaults is not None and _can_draw():
        from ragvault.cli.pick import run_picker

        return run_picker(vaults=vaults)
    if volume_first(args)[1] == OPERATORS_HELP:
        console.show(operators_help())
        return 0
    command = typer.main.get_command(app)
    try:
        code = command.main(list(args), prog_name="ragvault", standalone_mode=False)
    except _Misuse as misuse:
        console.misuse(misuse, search=instead_of(args), vault=_vault_without_option(misuse, args))
        return 2
    except SystemExit as leaving:
        # Typer exits with 1 on a closed pipe, but 1 means "nothing found" here.
        if isinstance(leaving.__context__, BrokenPipeError):
            raise leaving.__context__ from None
        raise
    return code if isinstance(code, int) else 0


def operators_help() -> str:
    """How a query is written: what is typed, and below or beside it what it means."""
    from textwrap import wrap

    from ragvault.cli.start import WIDTH, terminal_columns
    from ragvault.query.operators import SYNTAX

    width = terminal_columns(sys.stdout) or WIDTH
    lines, below = [], " " * (TYPED + 4)
    for row in SYNTAX.strip().splitlines():
        typed, is_row, means = row.partition(" | ")
        head = f"  {typed:{TYPED}}  "
        if not is_row:
            lines.append(typed)
            continue
        if len(typed) > TYPED:
            lines.append(head.rstrip())
            head = below
        lines += wrap(means, width, initial_indent=head, subsequent_indent=below)
    return "\n".join(lines)


def _can_draw() -> bool:
    """Whether somebody sits at a terminal on which a picker can be drawn."""
    ends = (sys.stdin, sys.stdout)
    is_dumb = os.environ.get("TERM", "dumb") == "dumb" and os.name != "nt"
    return all(end is not None and end.isatty() for end in ends) and not is_dumb


def reader_left() -> int:
    """The reader closed the pipe (`| head`): not an error, and Python must not flush again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 0
