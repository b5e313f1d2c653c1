"""ragvault index: index a vault, or update its index."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.progress import progress
from ragvault.cli.render import console

app = typer.Typer()


class Tier(str, Enum):
    """How far a vault is indexed."""

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
            help="Folder with notes. Default: the vault around the current folder.",
        ),
    ] = None,
    tier: Annotated[
        Tier,
        typer.Option(
            "--tier", help="Keywords only, with quick static vectors, or with full vectors."
        ),
    ] = Tier.full,
    no_vectors: Annotated[
        bool, typer.Option("--no-vectors", help="Same as --tier keyword.")
    ] = False,
    time_limit: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--for",
            metavar="TIME",
            help="Stop embedding full vectors after this time, such as 90s, 5m or 1h. "
            "Run it again to continue.",
        ),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Rebuild all indexes, reusing stored embeddings.")
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help="Accept an empty vault (otherwise treated as an unmounted disk).",
        ),
    ] = False,
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--model",
            metavar="NAME",
            autocompletion=options.model_names,
            help="Embed with this model from now on.",
        ),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Download nothing; use the installed models.")
    ] = False,
    set_: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Index a vault, or update its index.

    Reads only files that changed and embeds only new text. Never writes to the vault. You can
    search as soon as the first tier is done. Ctrl-C keeps what is done; run the same command again
    to continue. Notes that changed lately, or that many others link to, get full vectors first.

    ragvault index sample_vault

    ragvault index sample_vault --tier static --offline
    """
    from ragvault.cli.render import reports
    from ragvault.errors import VaultNotFound
    from ragvault.service.process import pause_watcher
    from ragvault.vault import Vault

    seconds = options.seconds(time_limit)
    flags = [*(set_ or ()), *([f"models.embedder={model}"] if model else ())]
    try:
        opened = Vault.open(vault, flags=flags)
    except VaultNotFound as unknown:  # its fix names --vault, which `index` does not have
        raise VaultNotFound(str(unknown), fix="ragvault index FOLDER") from None
    how_far: Any = "keyword" if no_vectors else tier.value
    try:
        with pause_watcher(opened.root) as watcher, progress() as shown:
            if watcher:
                console.report(f"pausing the watcher (pid {watcher.pid}) during this run")
            how: Any = {"rebuild": rebuild, "allow_empty": allow_empty, "offline": offline}
            how["time_limit"] = seconds
            report = opened.index(how_far, progress=shown, **how)
    except KeyboardInterrupt:
        console.report("stopped; finished work is kept. Run the same command again to continue")
        raise
    looked_for = opened.settings.config.walk.extensions
    console.out(encode(report) if json else reports.index_report(opened.name, report, looked_for))
    for warning in report.warnings:
        console.report(f"warning: {warning}")
    for skip in report.skipped:
        why = ", ".join(filter(None, (skip.reason, skip.detail)))
        console.detail(f"skipped {skip.path}: {why}")
