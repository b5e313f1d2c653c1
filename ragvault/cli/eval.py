"""ragvault eval: search quality, on judged questions or on probes of the vault."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

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


@app.command()
def evaluate(
    questions: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(metavar="[QUESTIONS.jsonl]", help="Judged questions. Default: probes."),
    ] = None,
    vault: options.VaultName = None,
    profiles: Annotated[
        Optional[str],  # noqa: UP045
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
        Optional[Path],  # noqa: UP045
        typer.Option("--write", metavar="FILE", help="Save the probes as judged questions."),
    ] = None,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
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
