"""ragvault eval: how good the answers are, on judged questions or on the vault's own exam."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ragvault.cli import options, render
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
        typer.Argument(metavar="[QUESTIONS.jsonl]", help="Judged questions; left out, probes."),
    ] = None,
    vault: options.VaultName = None,
    profiles: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--profiles", metavar="A,B|all", help="Compare rankings with the first."),
    ] = None,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Take each leg, boost and stage away in turn.")
    ] = False,
    probes: Annotated[
        int, typer.Option("--probes", metavar="N", min=1, help="How many the vault asks itself.")
    ] = 500,
    seed: Annotated[int, typer.Option("--seed", help="Other probes of the same vault.")] = 0,
    write: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--write", metavar="FILE", help="Keep the probes as judged questions."),
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
    """Measure how good the answers are, on judged questions or probes.

    Without questions the vault writes its own exam: titles, aliases, headings, sentences, misspelt
    titles and the words around links must find their notes, and nonsense must find nothing.

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
        render.talk("nothing to ask: no note of this vault has a title, heading or sentence")
        raise typer.Exit(1)
    now = datetime.now().astimezone()
    examiner = Examiner(
        lambda more: Vault.open(opened.root, flags=[*flags, *more]).reading(), asked, now
    )
    source = {"file": str(questions)} if questions else {"probes": len(asked), "seed": seed}
    about = {"vault": opened.name, "now": now.isoformat(timespec="seconds"), "questions": source}
    found = about | examine(
        examiner, names, parts=ablate, signals=questions is None, tell=render.detail
    )
    _show(found, plot, json)


def _named(profiles: str | None, opened: Vault) -> list[str]:
    """The profiles to compare; left out, the one in effect."""
    from ragvault.config import profiles as known

    if profiles is None:
        return [opened.settings.config.search.profile]
    if profiles == "all":
        return list(known.names())
    names = list(dict.fromkeys(name.strip() for name in profiles.split(",") if name.strip()))
    if not names:
        raise UsageError("--profiles names none", fix="for example: --profiles default,ragdocs")
    for name in names:
        known.config(name)  # a name that is wrong is told before anything is asked
    return names


def _questions(
    path: Path | None, opened: Vault, count: int, seed: int, write: Path | None
) -> Sequence[Question]:
    from ragvault.evaluate.probes import probes
    from ragvault.evaluate.questions import read_questions, write_questions

    if path is not None:
        if write is not None:
            raise UsageError("--write keeps probes", fix="leave out the questions or --write")
        return read_questions(path)
    with opened.catalogue() as catalogue:
        exam = probes(catalogue, count, seed=seed)
    if len(exam) < count:
        render.talk(f"the vault has {len(exam)} probes in it, fewer than the {count} asked for")
    if write is not None:
        write_questions(write, exam)
        render.talk(f"{write} holds {len(exam)} questions")
    return exam


def _show(found: dict[str, Any], plot: Path | None, json: bool) -> None:
    from ragvault.cli import scores

    render.out(render.as_json(found) if json else scores.as_text(found, full=render.is_verbose()))
    for line in scores.about(found):
        render.talk(line)
    if plot:
        from ragvault.evaluate.picture import draw

        draw(found, plot)
        render.talk(f"{plot} is the picture")


def _check_plot(path: Path) -> None:
    """Before an hour of questions is asked, not after."""
    from ragvault.evaluate.picture import check

    check(path)
