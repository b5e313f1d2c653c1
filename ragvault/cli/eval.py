"""ragvault eval: search quality, on judged questions or on questions made from the vault."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ragvault.answer.json_output import encode
from ragvault.cli import options
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
        typer.Argument(
            metavar="[QUESTIONS.jsonl]",
            help="Judged questions. Default: questions made from the vault.",
        ),
    ] = None,
    vault: options.VaultName = None,
    profiles: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--profiles", metavar="A,B|all", help="Compare these profiles with the first."
        ),
    ] = None,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Turn off each leg, boost and stage in turn.")
    ] = False,
    probes: Annotated[
        int, typer.Option("--probes", metavar="N", min=1, help="How many questions to make.")
    ] = 500,
    seed: Annotated[int, typer.Option("--seed", help="Make other questions.")] = 0,
    write: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--write", metavar="FILE", help="Save the questions that were made."),
    ] = None,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--plot", metavar="FILE.png|svg", help="Draw a chart of the report."),
    ] = None,
    set_: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Measure search quality, on judged questions or on generated ones.

    Without questions it makes some from the vault: titles, aliases, headings, sentences, misspelt
    titles and words around links should find their notes, and nonsense should find nothing.

    ragvault eval questions.jsonl --profiles all

    ragvault eval --ablate --plot parts.svg
    """
    from ragvault.evaluate.examine import Examiner, examine
    from ragvault.vault import Vault

    if plot:
        _check_plot(plot)
    flags = set_ or []
    opened = Vault.open(vault, flags=flags)
    names = _named(profiles, opened)
    asked = _questions(questions, opened, probes, seed, write)
    if not asked:
        console.report("no questions could be made: no note has a title, heading or sentence")
        raise typer.Exit(1)
    now = datetime.now().astimezone()
    examiner = Examiner(
        lambda more: Vault.open(opened.root, flags=[*flags, *more]).reading(), asked, now
    )
    source = {"file": str(questions)} if questions else {"probes": len(asked), "seed": seed}
    about = {"vault": opened.name, "now": now.isoformat(timespec="seconds"), "questions": source}
    found = about | examine(
        examiner, names, parts=ablate, signals=questions is None, tell=console.detail
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
        raise UsageError("--profiles is empty", fix="for example: --profiles default,ragdocs")
    for name in names:
        known.config(name)  # report a wrong name before any search runs
    return names


def _questions(
    path: Path | None, opened: Vault, count: int, seed: int, write: Path | None
) -> Sequence[Question]:
    from ragvault.evaluate.probes import probes
    from ragvault.evaluate.questions import read_questions, write_questions

    if path is not None:
        if write is not None:
            raise UsageError(
                "--write saves generated questions, but questions were given",
                fix="leave out the questions or --write",
            )
        return read_questions(path)
    with opened.catalogue() as catalogue:
        exam = probes(catalogue, count, seed=seed)
    if len(exam) < count:
        console.report(
            f"only {len(exam)} questions could be made from this vault, instead of {count}"
        )
    if write is not None:
        write_questions(write, exam)
        console.report(f"saved {len(exam)} questions in {write}")
    return exam


def _show(found: dict[str, Any], plot: Path | None, json: bool) -> None:
    from ragvault.cli.render import evaluation

    console.out(encode(found) if json else evaluation.evaluation(found, full=console.is_verbose()))
    for line in evaluation.warnings(found):
        console.report(line)
    if plot:
        from ragvault.evaluate.picture import draw

        draw(found, plot)
        console.report(f"saved the chart in {plot}")


def _check_plot(path: Path) -> None:
    """Fail before an hour of searches, not after."""
    from ragvault.evaluate.picture import check

    check(path)
