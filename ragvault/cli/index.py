"""ragvault index: index vaults, or update their indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.progress import progress
from ragvault.cli.render import console

if TYPE_CHECKING:
    from ragvault.update.notes import Report
    from ragvault.vault import Vault

app = typer.Typer()


class Tier(str, Enum):
    """How far a vault is indexed."""

    keyword = "keyword"
    static = "static"
    full = "full"


@app.command()
def index(
    vaults: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VAULT]...",
            autocompletion=options.vault_names,
            help="Folders with notes. Default: the vault around the current folder.",
        ),
    ] = None,
    tier: Annotated[
        Tier | None,
        typer.Option(
            "--tier",
            help="Keywords only, with quick static vectors, or with full vectors. "
            "Remembered; at first full.",
        ),
    ] = None,
    no_vectors: Annotated[
        bool, typer.Option("--no-vectors", help="Same as --tier keyword.")
    ] = False,
    time_limit: Annotated[
        str | None,
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
            "--allow-empty", help="Accept an empty vault (otherwise treated as an unmounted disk)."
        ),
    ] = False,
    model: Annotated[
        str | None,
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
    """Index vaults, or update their indexes.

    Reads only files that changed and embeds only new text. Never writes to the vault. You can
    search as soon as the first tier is done. Ctrl-C keeps what is done; run the same command again
    to continue. Notes that changed lately, or that many others link to, get full vectors first.

    ragvault index sample_vault

    ragvault index sample_vault --tier static --offline
    """
    flags = [*(set_ or ()), *([f"models.embedder={model}"] if model else ())]
    asked = Tier.keyword if no_vectors else tier or (Tier.full if model else None)
    how: Any = {
        "tier": asked and asked.value,
        "rebuild": rebuild,
        "allow_empty": allow_empty,
        "offline": offline,
    }
    until = monotonic() + options.seconds(time_limit)
    named: list[str | None] = [*(vaults or ())] or [None]
    opened = [_opened(vault, flags) for vault in named]  # every mistake before any work
    reports = [(vault, _indexed(vault, how, until, json)) for vault in opened]
    if json:
        found = [{"vault": vault.name, **asdict(report)} for vault, report in reports]
        console.out(encode(reports[0][1] if len(reports) == 1 else {"vaults": found}))
    if not any(report.notes for _, report in reports) and not allow_empty:
        raise typer.Exit(1)


def _opened(vault: str | None, flags: Sequence[str]) -> Vault:
    from ragvault.errors import VaultNotFound
    from ragvault.vault import Vault

    try:
        return Vault.open(vault, flags=flags)
    except VaultNotFound as unknown:  # its fix may name --vault, which `index` does not have
        meant = unknown.fix.startswith("did you mean")
        raise VaultNotFound(
            str(unknown), fix=unknown.fix if meant else "ragvault index FOLDER"
        ) from None


def _indexed(vault: Vault, how: Mapping[str, Any], until: float, json: bool) -> Report:
    """Index one vault and print what was done. `until`: the clock at which --for ends."""
    from ragvault.cli.render import reports
    from ragvault.service.process import pause_watcher

    first = not vault.folder.exists()
    kept = "finished work is kept. Run the same command again to continue"
    with pause_watcher(vault.root) as watcher, progress(kept) as shown:
        if watcher:
            console.report(f"pausing the watcher (pid {watcher.pid}) during this run")
        report = vault.index(progress=shown, time_limit=max(0.0, until - monotonic()), **how)
    if first:
        _say_neighbours(vault)
    looked_for = vault.settings.config.walk.extensions
    if how["tier"] is None and vault.tier != "full":
        only = {"keyword": "keywords", "static": "static vectors"}[vault.tier]
        console.report(f"{only} only, as asked before; for all: ragvault index --tier full")
    if not json:
        console.show(reports.index_report(vault.name, report, looked_for))
    for warning in report.warnings:
        console.report(f"warning: {warning}")
    for skip in report.skipped:
        why = ", ".join(filter(None, (skip.reason, skip.detail)))
        console.detail(f"skipped {skip.path}: {why}")
    return report


def _say_neighbours(vault: Vault) -> None:
    """A vault that is new: say which others have its folder's name, or share notes with it."""
    from ragvault.vault import known

    root = vault.root.resolve()
    for other in known():
        if other.folder == vault.folder:
            continue
        if other.name.casefold() == root.name.casefold() != vault.name.casefold():
            console.report(
                f"this vault is called {vault.name}: {other.name} is the one in {other.root}"
            )
        if root.is_relative_to(other.root) or other.root.is_relative_to(root):
            inner, outer = sorted((root, other.root), key=lambda each: -len(each.parts))
            console.report(
                f"warning: {inner} is inside the vault {outer}: its notes are in both indexes. "
                f"To keep one: ragvault vaults remove NAME"
            )
