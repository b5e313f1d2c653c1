"""ragvault list: what a vault holds, with counts."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console

app = typer.Typer()


class Listable(str, Enum):
    """What can be listed."""

    tags = "tags"
    folders = "folders"
    properties = "properties"
    notes = "notes"


@app.command()
def list_command(
    kind: Annotated[
        Optional[Listable],  # noqa: UP045
        typer.Argument(
            metavar="[tags|folders|properties|notes]",
            help="What to list. Default: how many there are of each.",
            show_default=False,
        ),
    ] = None,
    words: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            metavar="[FILTER]",
            help="Words in the name, and conditions on notes such as path:journal or tag:recipe.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--limit", "-n", min=1, help="Maximum number of lines. Default: all."),
    ] = None,
    cursor: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--cursor", metavar="NEXT", help="Continue where a page with --limit ended."),
    ] = None,
    vault: options.VaultName = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the tags, folders, properties or notes of a vault.

    Each with the number of its notes; a tag and a folder also count what is below them. Exits with
    1 if there is nothing to list. Loads no model and writes nothing.

    ragvault list tags

    ragvault list properties path:Recipes

    ragvault list notes rye tag:recipe --json
    """
    from ragvault.cli.render import reports
    from ragvault.cli.search import joined
    from ragvault.cli.start import this_caller
    from ragvault.vault import Vault

    caller, opened = this_caller(), Vault.open(vault)
    if kind is None:
        totals = {each.value: opened.list(each.value).total for each in Listable}
        counts = "\n".join(f"{number:6,}  {what}" for what, number in totals.items())
        console.out(encode({"vault": opened.name, **totals}) if json else counts)
        return
    what: Any = kind.value
    found = opened.list(
        what, joined(words or []), limit=limit, cursor=cursor, now=caller.local_time()
    )
    if json:
        console.out(encode(found.to_dict()))
    else:
        console.show(reports.contents_text(found))
    if not found.items:
        fit = f" fit {joined(words)}" if words else ""
        console.report(f"no {kind.value}{fit}")
        raise typer.Exit(1)
    if found.next:
        shown = len(found.items)
        console.report(
            f"{shown:,} of {found.total:,} {kind.value}; to continue: --cursor {found.next}"
        )
