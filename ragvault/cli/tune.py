"""ragvault tune: better weights for one vault, only with a receipt."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ragvault.cli import options, render
from ragvault.errors import UsageError

if TYPE_CHECKING:
    from ragvault.evaluate.tune import Tuning
    from ragvault.vault import Vault

app = typer.Typer()


@app.command()
def tune(
    questions: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(metavar="QUESTIONS.jsonl", help="Judged questions."),
    ] = None,
    vault: options.VaultName = None,
    seed: Annotated[int, typer.Option("--seed", help="Another way to split the questions.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would change, and change nothing.")
    ] = False,
    revert: Annotated[
        bool, typer.Option("--revert", help="Take back what was tuned before.")
    ] = False,
    set_: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Search better weights for a vault, and keep them only with a receipt.

    Searches on one half of the questions and judges on the other: a change is kept when the lower
    end of its 95 % interval is above 0 and no kind of question loses more than a point. It is kept
    beside the index, between your config.toml and the vault's own file. Exit 1 when nothing better
    was found.

    ragvault tune questions.jsonl --dry-run

    ragvault tune --revert
    """
    if revert:
        _revert(vault, questions, json)
        return
    if questions is None:
        raise UsageError("questions are missing", fix="ragvault tune QUESTIONS.jsonl")
    receipt = _tuned(questions, vault, seed, dry_run, set_ or [])
    from ragvault.cli import scores

    render.out(render.as_json(receipt) if json else scores.tuning(receipt))
    if not receipt["accepted"]:
        raise typer.Exit(1)


def _tuned(
    path: Path, vault: str | None, seed: int, dry_run: bool, flags: list[str]
) -> dict[str, Any]:
    from ragvault.evaluate import tuned
    from ragvault.evaluate.questions import read_questions
    from ragvault.evaluate.rehearse import Rehearsal
    from ragvault.evaluate.tune import check, receipt, tune
    from ragvault.vault import Vault

    opened = Vault.open(vault, flags=flags)
    asked = read_questions(path)
    check(asked, opened.settings.config)
    now = datetime.now(timezone.utc)
    render.detail(f"asking {len(asked)} questions of {opened.name}")
    with opened.reading() as index:
        revision = index.catalogue.revision
        ranking = Rehearsal(asked, index, now)
        found: Tuning = tune(
            asked, ranking, index.config, seed=seed, fixed=_fixed(opened), tell=render.detail
        )
    about = {
        "vault": opened.name,
        "profile": opened.settings.config.search.profile,
        "revision": revision,
        "when": now.isoformat(timespec="seconds"),
        "questions": len(asked),
        "dry_run": dry_run,
        "file": "",
    }
    told = receipt(found, about)
    if found.accepted and not dry_run:
        told["file"] = str(tuned.keep(opened.folder, told))
    return told


def _fixed(opened: Vault) -> set[str]:
    """Settings that something above what is tuned has set: turning them would change nothing."""
    above = ("vault file", "environment")
    return {key for key, origin in opened.settings.origin.items() if origin.startswith(above)}


def _revert(vault: str | None, questions: Path | None, json: bool) -> None:
    from ragvault.config import folders
    from ragvault.evaluate import tuned
    from ragvault.store import layout, registry
    from ragvault.vault import data_folder

    if questions is not None:
        raise UsageError("--revert asks no questions", fix="ragvault tune --revert")
    # Not through Vault.open: settings that a release no longer knows can be taken back too.
    data = data_folder()
    folder = layout.index_folder(registry.find(vault, data, folders.here()), data)
    settings = tuned.revert(folder, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    if json:
        render.out(render.as_json({"reverted": settings}))
    else:
        render.out("\n".join(f"took back {key} = {value}" for key, value in settings.items()))
