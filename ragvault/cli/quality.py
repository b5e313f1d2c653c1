"""Commands about search quality, on judged questions or on probes of the vault.

eval   measure it
tune   find better weights for one vault; kept only if unseen questions confirm them
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
from ragvault.cli.progress import progress
from ragvault.cli.render import console
from ragvault.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragvault.evaluate.questions import Question
    from ragvault.vault import Vault

app = typer.Typer()


@app.command("eval")
def eval_command(
    questions: Annotated[
        Path | None,
        typer.Argument(metavar="[QUESTIONS.jsonl]", help="Judged questions. Default: probes."),
    ] = None,
    vault: options.VaultName = None,
    profiles: Annotated[
        str | None,
        typer.Option("--profiles", metavar="A,B|all", help="Compare profiles with the first."),
    ] = None,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Switch off each leg, boost and stage in turn.")
    ] = False,
    probes: Annotated[
        int, typer.Option("--probes", metavar="N", min=1, help="Number of probes to generate.")
    ] = 500,
    seed: Annotated[int, typer.Option("--seed", help="Another seed makes other probes.")] = 0,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="Save the probes as judged questions."),
    ] = None,
    set_: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Measure search quality, on judged or generated questions.

    Without a file, it generates questions from the vault (probes): titles, aliases, headings,
    sentences, misspelt titles and the words around links must find their notes; nonsense must find
    nothing.

    ragvault eval questions.jsonl --profiles all

    ragvault eval --ablate
    """
    from ragvault.cli.render import evaluation
    from ragvault.evaluate.run import evaluate
    from ragvault.vault import Vault

    flags = set_ or []
    opened = Vault.open(vault, flags=flags)
    names = _named(profiles, opened)
    asked = _questions(questions, opened, probes, seed, write)
    if not asked:
        console.report("the vault has no title, heading or sentence to make questions from")
        raise typer.Exit(1)
    now = datetime.now().astimezone()
    source = {"file": str(questions)} if questions else {"probes": len(asked), "seed": seed}
    about = {"vault": opened.name, "now": now.isoformat(timespec="seconds"), "questions": source}
    vaults = {
        name: Vault.open(opened.root, flags=[*flags, f"search.profile={name}"]) for name in names
    }
    with progress("there is no report, and nothing was changed") as shown:
        found = about | evaluate(vaults, asked, now, ablate=ablate, progress=shown)
    console.out(encode(found) if json else evaluation.evaluation(found, full=console.is_verbose()))
    for line in evaluation.warnings(found):
        console.report(line)


def _named(profiles: str | None, opened: Vault) -> list[str]:
    """The profiles to compare; by default the one in effect."""
    from ragvault.config import profiles as known

    if profiles is None:
        return [opened.settings.config.search.profile]
    if profiles == "all":
        return list(known.names())
    names = list(dict.fromkeys(name.strip() for name in profiles.split(",") if name.strip()))
    if not names:
        raise UsageError("--profiles has no name", fix="for example: --profiles default,ragdocs")
    for name in names:
        known.config(name)  # reports a wrong name before any question is asked
    return names


def _questions(
    path: Path | None, opened: Vault, count: int, seed: int, write: Path | None
) -> Sequence[Question]:
    from ragvault.evaluate.probes import probes
    from ragvault.evaluate.questions import read_questions, write_questions

    if path is not None:
        if write is not None:
            raise UsageError(
                "--write saves probes, and questions were given",
                fix="omit the questions or --write",
            )
        return read_questions(path)
    with opened.catalogue() as catalogue:
        made = probes(catalogue, count, seed=seed)
    if len(made) < count:
        console.report(f"the vault is too small for {count} probes; using {len(made)}")
    if write is not None:
        write_questions(write, made)
        console.report(f"saved {len(made)} questions in {write}")
    return made


@app.command("tune")
def tune_command(
    questions: Annotated[
        Path | None, typer.Argument(metavar="QUESTIONS.jsonl", help="Judged questions.")
    ] = None,
    vault: options.VaultName = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Another seed splits the questions differently.")
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; change nothing.")
    ] = False,
    revert: Annotated[bool, typer.Option("--revert", help="Remove all tuned settings.")] = False,
    set_: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Find better ranking weights; keep them only if they help.

    Searches on one half of the questions and judges on the other. A change is kept if the lower end
    of its 95 % interval is above 0 and no kind of question loses more than a point. Tuned settings
    are stored beside the index; they override your config.toml, and the vault's own file overrides
    them. Exits with 1 if nothing better was found.

    ragvault tune questions.jsonl --dry-run

    ragvault tune --revert
    """
    if revert:
        _revert(vault, questions, json)
        return
    if questions is None:
        raise UsageError("no questions were given", fix="ragvault tune QUESTIONS.jsonl")
    from ragvault.cli.render import evaluation
    from ragvault.evaluate.questions import read_questions
    from ragvault.vault import Vault

    opened = Vault.open(vault, flags=set_ or [])
    receipt = _tuned(opened, read_questions(questions), seed, dry_run)
    console.out(encode(receipt) if json else evaluation.tuning(receipt))
    if not receipt["accepted"]:
        raise typer.Exit(1)


def _tuned(
    opened: Vault, questions: Sequence[Question], seed: int, dry_run: bool
) -> dict[str, Any]:
    """The receipt of a tuning, which is kept if it was accepted."""
    from ragvault.evaluate.run import Replay
    from ragvault.evaluate.tune import check_questions, keep_tuning, tune

    config, now = opened.settings.config, datetime.now(timezone.utc)
    check_questions(questions, config)
    with (
        progress("your settings are unchanged") as shown,
        Replay(opened, questions, now, progress=shown) as replay,
    ):
        found = tune(replay, seed=seed, fixed=_fixed(opened), progress=shown)
    receipt = {
        "vault": opened.name,
        "profile": config.search.profile,
        "revision": replay.revision,
        "when": now.isoformat(timespec="seconds"),
        "questions": len(questions),
        "dry_run": dry_run,
        "file": "",
        **found,
    }
    if receipt["accepted"] and not dry_run:
        receipt["file"] = str(keep_tuning(opened.folder, receipt))
    return receipt


def _fixed(opened: Vault) -> set[str]:
    """Settings that override tuned ones: tuning them would have no effect."""
    above = ("vault file", "environment")
    return {key for key, origin in opened.settings.origin.items() if origin.startswith(above)}


def _revert(vault: str | None, questions: Path | None, json: bool) -> None:
    from ragvault.config import folders
    from ragvault.config.load import data_folder
    from ragvault.evaluate.tune import revert_tuning
    from ragvault.store import layout

    if questions is not None:
        raise UsageError("--revert takes no questions", fix="ragvault tune --revert")
    # Not through Vault.open, which refuses settings that this release no longer knows.
    data = data_folder()
    folder = layout.index_folder(layout.find_vault(vault, data, folders.here()), data)
    settings = revert_tuning(folder, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    if json:
        console.out(encode({"reverted": settings}))
    else:
        console.out("\n".join(f"removed {key} = {value}" for key, value in settings.items()))
