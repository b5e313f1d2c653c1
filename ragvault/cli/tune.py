"""ragvault tune: better ranking weights for a vault, kept only if they help."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.render import console
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
    seed: Annotated[int, typer.Option("--seed", help="Split the questions differently.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
    revert: Annotated[bool, typer.Option("--revert", help="Undo earlier tuning.")] = False,
    set_: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Find better ranking weights for a vault; keep them only if they help.

    Finds weights on one half of the questions and judges them on the other. They are kept if the
    lower end of the 95 % interval of the gain is above 0 and no kind of question loses more than
    0.01. They are saved beside the index; the vault's own settings file overrides them, and they
    override your config.toml. Exits with 1 if nothing better was found.

    ragvault tune questions.jsonl --dry-run

    ragvault tune --revert
    """
    if revert:
        _revert(vault, questions, json)
        return
    if questions is None:
        raise UsageError("no questions were given", fix="ragvault tune QUESTIONS.jsonl")
    receipt = _tuned(questions, vault, seed, dry_run, set_ or [])
    from ragvault.cli.render import evaluation

    console.out(encode(receipt) if json else evaluation.tuning(receipt))
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
    console.detail(f"searching {opened.name} for {len(asked)} questions")
    with opened.reading() as index:
        revision = index.catalogue.revision
        ranking = Rehearsal(asked, index, now)
        found: Tuning = tune(
            asked, ranking, index.config, seed=seed, fixed=_fixed(opened), tell=console.detail
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
    summary = receipt(found, about)
    if found.accepted and not dry_run:
        summary["file"] = str(tuned.keep(opened.folder, summary))
    return summary


def _fixed(opened: Vault) -> set[str]:
    """Settings that the vault file or the environment sets: tuning them would have no effect."""
    above = ("vault file", "environment")
    return {key for key, origin in opened.settings.origin.items() if origin.startswith(above)}


def _revert(vault: str | None, questions: Path | None, json: bool) -> None:
    from ragvault.config import folders
    from ragvault.evaluate import tuned
    from ragvault.store import layout
    from ragvault.vault import data_folder

    if questions is not None:
        raise UsageError("--revert takes no questions", fix="ragvault tune --revert")
    # Not through Vault.open, which refuses settings that this release no longer knows.
    data = data_folder()
    folder = layout.index_folder(layout.find_vault(vault, data, folders.here()), data)
    settings = tuned.revert(folder, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    if json:
        console.out(encode({"reverted": settings}))
    else:
        console.out("\n".join(f"undid {key} = {value}" for key, value in settings.items()))
