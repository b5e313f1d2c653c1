"""The program: which commands there are, and how each of them ends.

To add a command, write ragvault/cli/NAME.py with a Typer `app` in it and add one line to COMMANDS:
its name, and the first line of its help. A file with one @app.command() becomes a plain command, a
file with a callback or several becomes a group (`ragvault config show`). The file is imported only
when its command is called, so `ragvault --help` never waits for what another command needs. Shared
options are in options.py; whatever a command prints is formatted in render.py.

A command returns when it is done, raises typer.Exit(1) when it found nothing, and otherwise raises
a RagvaultError. Nothing but `main` catches those, and nothing else prints an error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ragvault import __version__
from ragvault.cli import options, render
from ragvault.errors import RagvaultError

COMMANDS = {
    "index": "Index a vault, or bring its index up to date.",
    "search": "Search your notes, by meaning, by word and by link.",
    "watch": "Keep indexes up to date while files change, and answer searches faster.",
    "status": "Tell what is indexed, skipped, broken and pending.",
    "doctor": "Check that every part works and every signal is alive; say the cure.",
    "links": "List the links of a note: outgoing, incoming, broken and ambiguous.",
    "related": "Find notes near this one: by links, by community and by meaning.",
    "forget": "Take a note out of the index, with every byte of it.",
    "purge": "Remove everything ragvault has written, after listing it.",
    "eval": "Measure how good the answers are, on judged questions or probes.",
    "tune": "Search better weights for a vault, and keep them only with a receipt.",
    "config": "Your settings: start a file, show what is in effect, check it.",
    "vaults": "The vaults it knows: list them, remove one, choose the default.",
    "models": "The models: which there are, fetching and checking them.",
}

# The class of every "called wrongly" that Typer raises; it has no public name of its own.
_Misuse: type[Any] = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """The commands by name, each a stand-in that knows its summary until it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=line) for name, line in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, _imported(name) if name in COMMANDS else command, rest


def _imported(name: str) -> Any:
    called: typer.Typer = import_module(f"ragvault.cli.{name}").app
    called.rich_markup_mode = app.rich_markup_mode
    called._add_completion = False  # offered once, by ragvault itself
    command = typer.main.get_command(called)
    command.name = name
    return command


app = typer.Typer(
    name="ragvault",
    cls=Commands,
    # Plain lines, on a terminal as in a pipe: importing Rich to draw boxes doubles the wait.
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
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Say which release.")
    ] = False,
) -> None:
    """Search your Markdown notes: by meaning, by word and by link, on this machine only."""
    if ctx.invoked_subcommand is None:
        render.out(ctx.get_help())


def main(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. Errors become two lines, never a traceback."""
    render.reset()
    try:
        code = _call(args)
        if sys.stdout:  # None when it was closed: `>&-`
            sys.stdout.flush()
    except BrokenPipeError:
        return reader_left()
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except RagvaultError as error:
        render.error(error)
        return error.exit_code
    except Exception as error:
        render.unexpected(error)
        return 4
    return code


def _call(args: Sequence[str]) -> int:
    command = typer.main.get_command(app)
    try:
        code = command.main(list(args), prog_name="ragvault", standalone_mode=False)
    except _Misuse as misuse:
        render.misuse(misuse)
        return 2
    except SystemExit as leaving:
        # Typer meets a closed pipe with exit 1, which here means that nothing was found.
        if isinstance(leaving.__context__, BrokenPipeError):
            raise leaving.__context__ from None
        raise
    return code if isinstance(code, int) else 0


def reader_left() -> int:
    """`| head` has read enough: that is no failure, and the interpreter must not flush again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 0
