"""ragvault search: find passages, and show the sections they are in.

`asked` is the command line and nothing else: it makes an Ask of what was typed. The command answers
it here; `parse` is for a process that answers searches typed in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import replace
from enum import Enum
from functools import cache, wraps
from typing import Annotated, Any, Optional

import typer

from ragvault.cli import options, render
from ragvault.cli.around import Surroundings, surroundings
from ragvault.cli.ask import Ask, found
from ragvault.cli.dashes import Queried
from ragvault.cli.reply import write
from ragvault.errors import UsageError

app = typer.Typer()


class Format(str, Enum):
    """How results are written."""

    text = "text"
    json = "json"
    jsonl = "jsonl"
    paths = "paths"
    grep = "grep"
    markdown = "markdown"
    context = "context"


def asked(
    query: Annotated[str, typer.Argument(help="A question, words you remember, or operators.")],
    vaults: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--vault",
            metavar="PATH|NAME",
            autocompletion=options.vault_names,
            help="A vault, repeatable; left out, the one around this folder, else the only or the "
            "default one.",
        ),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--limit", "-n", min=1, help="How many results."),
    ] = None,
    profile: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--profile", metavar="NAME", help="A ranking by name."),
    ] = None,
    set_: options.Set = None,
    rerank: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option("--rerank/--no-rerank", help="Have a second model read the best results."),
    ] = None,
    hypothesis: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--hypothesis", metavar="TEXT", help="A likely answer, to search by it."),
    ] = None,
    budget: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--budget", metavar="TOKENS", min=1, help="Return what fits into so many."),
    ] = None,
    per_note: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--per-note", metavar="N", min=1, help="At most so many passages a note."),
    ] = None,
    passages: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option("--passages/--sections", help="Show what matched, or its section."),
    ] = None,
    neighbours: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--neighbours", metavar="N", min=0, help="Join what stands before and after."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show why, stage by stage.")] = False,
    require_fresh: Annotated[
        bool,
        typer.Option("--require-fresh", help="Exit 3 when files changed since they were indexed."),
    ] = False,
    format_: Annotated[
        Format, typer.Option("--format", help="How results are written.")
    ] = Format.text,
    nul: Annotated[
        bool, typer.Option("-0", help="Paths, each ended by NUL, for xargs -0.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> Ask:
    """Search your notes, by meaning, by word and by link.

    ragvault search "why is my loaf dense?"

    ragvault search "rye tag:recipe since:2024" -n 3 --explain

    ragvault search "feeding a starter" --format context --budget 2000

    ragvault search gluten --format paths -0 | xargs -0 wc -w

    ragvault search "-tag:recipe rye"
    """
    flags = [
        *([f"search.profile={profile}"] if profile else ()),
        *([f"rerank.enabled={str(rerank).lower()}"] if rerank is not None else ()),
        *(["budget.enabled=true", f"budget.tokens={budget}"] if budget else ()),
        *(_few_a_note(per_note) if per_note else ()),
        *(_of_stage("parents", unit=_UNITS[passages]) if passages is not None else ()),
        *(_of_stage("parents", neighbours=neighbours) if neighbours is not None else ()),
        *(set_ or ()),
    ]
    return Ask(
        query=query,
        vaults=tuple(vaults or ()),
        flags=tuple(flags),
        limit=limit,
        hypothesis=hypothesis,
        format=_format(format_, json, nul),
        explain=explain,
        nul=nul,
        require_fresh=require_fresh,
        quiet=quiet,
        verbose=verbose,
    )


_UNITS = {True: "passage", False: "section"}


def _few_a_note(most: int) -> list[str]:
    return _of_stage("diversify", method="per-note", per_note=most, relax="false")


def _of_stage(stage: str, **settings: Any) -> list[str]:
    """Settings of a stage, which a profile may have switched off."""
    pairs = {"enabled": "true", **settings}
    return [f"{stage}.{key}={value}" for key, value in pairs.items()]


def _format(named: Format, json: bool, nul: bool) -> str:
    wanted = Format.json if json else named
    if nul and wanted not in (Format.text, Format.paths):
        raise UsageError(f"-0 ends paths, and --format is {wanted.value}", fix="leave one out")
    return Format.paths.value if nul else wanted.value


@app.command(cls=Queried)
@wraps(asked)
def search(**typed: Any) -> None:
    reply = found(_as_loud(asked(**typed)), surroundings())
    write(reply)
    if reply.code:
        raise typer.Exit(reply.code)


def parse(args: Sequence[str], around: Surroundings) -> Ask | None:
    """What `ragvault ARGS` asks; None for anything but a plain search that can be meant.

    Help, mistakes and a wish for tracebacks are for the process in which they were typed.
    """
    if not args or args[0] != "search" or around.environ.get("RAGVAULT_DEBUG"):
        return None
    try:
        # A copy of the context: how loud this process is stays as it is.
        return copy_context().run(_parsed, args[1:])
    except Exception:
        return None


def _parsed(args: Sequence[str]) -> Ask | None:
    render.reset()
    ask = _parser().main(list(args), "search", standalone_mode=False)
    return _as_loud(ask) if isinstance(ask, Ask) else None


def _as_loud(ask: Ask) -> Ask:
    """Of -q and -v, wherever they stand, the last one counts."""
    return replace(ask, quiet=render.is_quiet(), verbose=render.is_verbose())


@cache
def _parser() -> Any:
    """The same command line without its help, which would be printed here."""
    plain = typer.Typer(add_completion=False)
    plain.command(cls=Queried)(asked)
    command = typer.main.get_command(plain)
    command.add_help_option = False
    return command
