"""ragvault search: find passages, and show the sections they are in."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Optional

import typer

from ragvault.cli import options, render

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


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="A question, words you remember, or operators.")],
    vault: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--vault", metavar="PATH|NAME", help="The vault; left out, the one around."),
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
        bool, typer.Option("--passages/--sections", help="Show what matched, or its section.")
    ] = False,
    neighbours: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--neighbours", metavar="N", min=0, help="Join what stands before and after."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show why, stage by stage.")] = False,
    format_: Annotated[
        Format, typer.Option("--format", help="How results are written.")
    ] = Format.text,
    nul: Annotated[bool, typer.Option("-0", help="End paths with NUL, for xargs -0.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Search your notes, by meaning, by word and by link.

    ragvault search "why is my loaf dense?"

    ragvault search "rye tag:recipe since:2024" -n 3 --explain

    ragvault search "feeding a starter" --format context --budget 2000
    """
    from ragvault.cli import results
    from ragvault.vault import Vault

    flags = [
        *([f"search.profile={profile}"] if profile else ()),
        *([f"rerank.enabled={str(rerank).lower()}"] if rerank is not None else ()),
        *(["budget.enabled=true", f"budget.tokens={budget}"] if budget else ()),
        *(['diversify.method="per-note"', f"diversify.per_note={per_note}"] if per_note else ()),
        *(["parents.unit=passage"] if passages else ()),
        *([f"parents.neighbours={neighbours}"] if neighbours is not None else ()),
        *(set_ or ()),
    ]
    opened = Vault.open(vault, flags=flags)
    response = opened.search(query, limit=limit, hypothesis=hypothesis)
    wanted = "json" if json else format_.value
    shown = results.Shown(opened.name, opened.root, opened.settings.config, response)
    text = results.FORMATS[wanted](shown, explain)
    if wanted == "paths" and nul:
        typer.echo(text.replace("\n", "\0") + "\0" if text else "", nl=False)
    else:
        render.out(text)
    for line in results.about(shown):
        render.talk(line)
    if not response.results:
        raise typer.Exit(1)
