"""ragvault index: read a vault into its index, or bring the index up to date."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Optional

import typer

from ragvault.cli import options, render
from ragvault.cli.progress import progress

app = typer.Typer()


class Tier(str, Enum):
    """How far an index goes."""

    keyword = "keyword"
    static = "static"
    full = "full"


@app.command()
def index(
    vault: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            metavar="[VAULT]",
            autocompletion=options.vault_names,
            help="The folder of notes; left out, the vault around this folder.",
        ),
    ] = None,
    tier: Annotated[
        Tier, typer.Option("--tier", help="How far to go: words, rough meaning, or all of it.")
    ] = Tier.full,
    no_vectors: Annotated[
        bool, typer.Option("--no-vectors", help="The same as --tier keyword.")
    ] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make all indexes again; embeds nothing known.")
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Take over that no note is left; else it is refused."),
    ] = False,
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--model",
            metavar="NAME",
            autocompletion=options.model_names,
            help="The model to embed with from now on.",
        ),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Fetch nothing; go on with the models that are here.")
    ] = False,
    set_: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Index a vault, or bring its index up to date.

    Only what changed is read, and only new text is embedded. The vault itself is never written
    to. It can be searched as soon as the first tier is done; Ctrl-C keeps what is there, and the
    same command goes on from there.

    ragvault index sample_vault

    ragvault index sample_vault --tier static --offline
    """
    from ragvault.cli import pages
    from ragvault.models.progress import stderr_reporter
    from ragvault.service.process import pause_watcher
    from ragvault.vault import Vault

    flags = [*(set_ or ()), *([f"models.embedder={model}"] if model else ())]
    opened = Vault.open(vault, flags=flags)
    how_far: Any = "keyword" if no_vectors else tier.value
    try:
        with pause_watcher(opened.root) as watcher, progress() as tell:
            if watcher:
                render.talk(f"the watcher (pid {watcher.pid}) lets this run write, then goes on")
            talk = stderr_reporter(quiet=render.is_quiet())
            how: Any = {"rebuild": rebuild, "allow_empty": allow_empty, "offline": offline}
            report = opened.index(how_far, tell=tell, talk=talk, **how)
    except KeyboardInterrupt:
        render.talk("stopped; what was done is kept, and the same command goes on from there")
        raise
    render.out(render.as_json(report) if json else pages.index_report(opened.name, report))
    for warning in report.warnings:
        render.talk(f"warning: {warning}")
    for skip in report.skipped:
        why = ", ".join(filter(None, (skip.reason, skip.detail)))
        render.detail(f"skipped {skip.path}: {why}")
