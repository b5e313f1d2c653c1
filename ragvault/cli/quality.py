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
def evaluate(
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
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.png|svg", help="Draw a picture of the report."),
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

    ragvault eval --ablate --plot parts.svg
    """
    from ragvault.cli.render.evaluation import check_plot_path
    from ragvault.evaluate.evaluator import Evaluator, evaluate_profiles
    from ragvault.vault import Vault

    if plot:  # before the questions are asked, which may take an hour
        check_plot_path(plot)
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
    with progress("there is no report, and nothing was changed") as shown:
        evaluator = Evaluator(
            lambda more: Vault.open(opened.root, flags=[*flags, *more]).corpus(), asked, now, shown
        )
        found = about | evaluate_profiles(
            evaluator, names, ablate=ablate, signals=questions is None
        )
    _show(found, plot, json)


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


def _show(found: dict[str, Any], plot: Path | None, json: bool) -> None:
    from ragvault.cli.render import evaluation

    console.out(encode(found) if json else evaluation.evaluation(found, full=console.is_verbose()))
    for line in evaluation.warnings(found):
        console.report(line)
    if plot:
        evaluation.draw_report(found, plot)
        console.report(f"drew {plot}")


@app.command("tune")
def tune_command(
    questions: Annotated[
        Path | None, typer.Argument(metavar="QUESTIONS.jsonl", help="Judged questions.")
    ] = None,
    vault: options.VaultName = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Another seed splits the questions differently.")
    ] = 0,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence", help="Fit the confidence to the vault and its model, not the weights."
        ),
    ] = False,
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

    With --confidence it fits which evidence means how likely an answer, judged in the same way.
    Include questions that no note answers.

    ragvault tune questions.jsonl --dry-run

    ragvault tune questions.jsonl --confidence

    ragvault tune --revert
    """
    if revert:
        _revert(vault, questions, json)
        return
    if questions is None:
        raise UsageError("no questions were given", fix="ragvault tune QUESTIONS.jsonl")
    receipt = _tuned(questions, vault, seed, dry_run, set_ or [], confidence=confidence)
    from ragvault.cli.render import evaluation

    text = evaluation.confidence if confidence else evaluation.tuning
    console.out(encode(receipt) if json else text(receipt))
    if not receipt["accepted"]:
        raise typer.Exit(1)


def _tuned(
    path: Path, vault: str | None, seed: int, dry_run: bool, flags: list[str], *, confidence: bool
) -> dict[str, Any]:
    from ragvault.evaluate.confidence import fit_confidence
    from ragvault.evaluate.questions import read_questions
    from ragvault.evaluate.run import Replay
    from ragvault.evaluate.tune import check_questions, keep_tuning, receipt, tune
    from ragvault.vault import Vault

    opened = Vault.open(vault, flags=flags)
    asked = read_questions(path)
    if not confidence:
        check_questions(asked, opened.settings.config)
    now = datetime.now(timezone.utc)
    with progress("your settings are unchanged") as shown, opened.corpus() as index:
        revision = index.catalogue.revision
        ranking = Replay(asked, index, now, progress=shown)
        if confidence:
            found = fit_confidence(asked, ranking, index.config, seed=seed)
        else:
            fixed = _fixed(opened)
            tuning = tune(asked, ranking, index.config, seed=seed, fixed=fixed, progress=shown)
            found = receipt(tuning)
    about = {
        "vault": opened.name,
        "profile": opened.settings.config.search.profile,
        "revision": revision,
        "when": now.isoformat(timespec="seconds"),
        "questions": len(asked),
        "dry_run": dry_run,
        "file": "",
    }
    result = {**about, **found}
    if result["accepted"] and not dry_run:
        result["file"] = str(keep_tuning(opened.folder, result))
    return result


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
