"""Commands about search quality, on judged questions or on probes of the vault.

eval   measure it
tune   find better weights for one vault; kept only if unseen questions confirm them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragvault.cli import console, options
from ragvault.cli.console import progress, table
from ragvault.errors import UsageError
from ragvault.text.printable import encode, printable

if TYPE_CHECKING:
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
    console.out(encode(found) if json else evaluation(found, full=console.is_verbose()))
    for line in warnings(found):
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
    from ragvault.evaluate.questions import read_questions
    from ragvault.vault import Vault

    opened = Vault.open(vault, flags=set_ or [])
    receipt = _tuned(opened, read_questions(questions), seed, dry_run)
    console.out(encode(receipt) if json else tuning(receipt))
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


# --- what both print ---


COLUMNS = {
    "ndcg@10": "nDCG@10",
    "mrr@10": "MRR@10",
    "success@1": "S@1",
    "p@3": "P@3",
    "p@5": "P@5",
    "recall@10": "R@10",
    "context_precision": "ctxP",
    "context_recall": "ctxR",
}
SHOWN = 10  # regressions of one profile; -v lists all


def evaluation(found: Mapping[str, Any], *, full: bool) -> str:
    """The whole report: profiles, kinds of question, differences, ablations."""
    profiles = found["profiles"]
    parts = [_sentence(found["overall"]), _overall(profiles), _kinds(found["kinds"])]
    parts += [_compared(found["comparisons"], full)] if found["comparisons"] else []
    if rows := found["ablations"]:
        parts += [_ablated(rows, found["off"]), _ablated_kinds(rows)]
    return "\n\n".join(parts)


def warnings(found: Mapping[str, Any]) -> Iterator[str]:
    """Warnings beside the numbers."""
    unknown = found["unknown_notes"]
    if unknown:
        some = ", ".join(map(printable, unknown[:3])) + (" …" if len(unknown) > 3 else "")
        yield f"{len(unknown)} judged notes are not in the index, so they cannot be found: {some}"
    for name, each in found["profiles"].items():
        if each["failed"]:
            yield f"{name}: {', '.join(each['failed'])} failed for some questions"
        for id_, why in each["refused"].items():
            yield f"{name}: {printable(id_)} was refused: {printable(why)}"


def tuning(receipt: Mapping[str, Any]) -> str:
    """What a tuning found, how it was judged, and whether it was kept."""
    judged, searched = receipt["judged"], receipt["searched"]
    lines = [
        f"searched on {searched['n']} questions: {searched['rankings']} rankings tried, "
        f"{searched['gain']:+.3f}",
        f"judged on {judged['n']} others{_unanswerable(receipt)}: "
        f"{judged['metric']} {judged['mean']:+.3f} {_interval(judged)}",
    ]
    kinds = [f"  {kind or '(none)'}: {shift:+.3f}" for kind, shift in judged["kinds"].items()]
    settings = receipt["settings"].items()
    changes = [f"  {key}: {old:g} -> {new:g}" for key, (old, new) in settings]
    return "\n".join([*lines, *changes, *kinds, _end(receipt)])


def _end(receipt: Mapping[str, Any]) -> str:
    if not receipt["accepted"]:
        return f"kept your current settings: {receipt['refusal']}"
    if receipt["dry_run"]:
        return "kept your current settings: --dry-run"
    return f"saved in {printable(receipt['file'])}; to remove it: ragvault tune --revert"


def _unanswerable(receipt: Mapping[str, Any]) -> str:
    """The questions without an answer, which have no score of their own."""
    rest = receipt["questions"] - receipt["searched"]["n"] - receipt["judged"]["n"]
    return f" (and {rest} without an answer)" if rest > 0 else ""


def _sentence(overall: Mapping[str, Any]) -> str:
    """How many questions were answered as they should be, of the first profile."""
    nothing = overall.get("unanswerable", {"n": 0, "held_back": 0.0})
    answerable = overall["n"] - nothing["n"]
    parts = []
    if answerable:
        first = round(overall["success@1"] * answerable)
        parts.append(f"The right note came first for {first:,} of {answerable:,} questions.")
    if nothing["n"]:
        held = round(nothing["held_back"] * nothing["n"])
        parts.append(
            f"{held:,} of {nothing['n']:,} questions without an answer found no good match."
        )
    return " ".join(parts)


def _overall(profiles: Mapping[str, Any]) -> str:
    head = ["profile", "n", *COLUMNS.values(), "tokens", "held", "p50 ms", "p95 ms"]
    rows = [[printable(name), *_numbers(found["overall"])] for name, found in profiles.items()]
    return table(head, rows)


def _numbers(overall: Mapping[str, Any]) -> list[str]:
    shown = [_share(overall.get(name)) for name in COLUMNS]
    held, times = overall.get("unanswerable", {}).get("held_back"), overall["latency_ms"]
    return [
        str(overall["n"]),
        *shown,
        f"{overall['tokens']:,.0f}",
        _percent(held),
        *(f"{times[name]:.1f}" if times else "-" for name in ("p50", "p95")),
    ]


def _kinds(kinds: Mapping[str, Any]) -> str:
    names = ("ndcg@10", "mrr@10", "success@1", "p@3", "recall@10", "context_recall")
    head = ["kind", "n", *(COLUMNS[name] for name in names), "held"]
    rows = [
        [
            printable(kind) or "(none)",
            str(found["n"]),
            *(_share(found.get(name)) for name in names),
            _percent(found.get("unanswerable", {}).get("held_back")),
        ]
        for kind, found in kinds.items()
    ]
    return table(head, rows)


def _compared(comparisons: Sequence[Mapping[str, Any]], full: bool) -> str:
    against = comparisons[0]["against"]
    head = [f"nDCG@10 minus {against}", "", "95 % interval", "worse"]
    rows = [
        [each["name"], f"{each['mean']:+.3f}", _interval(each), str(len(each["regressions"]))]
        for each in comparisons
    ]
    lines = [line for each in comparisons for line in _regressions(each, full)]
    return "\n".join([table(head, rows), "", *_winners(comparisons), *lines])


def _winners(comparisons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Whether the first profile wins, and by how much any other is better."""
    against = comparisons[0]["against"]
    better = [each for each in comparisons if each["mean"] > 0]
    for each in better:
        certain = "beyond chance" if each["low"] > 0 else "within chance"
        shift = f"{each['mean']:+.3f} {_interval(each)}"
        yield f"{each['name']} scores higher than {against}: {shift}, {certain}"
    if not better:
        yield f"no profile scores higher than {against}"


def _regressions(comparison: Mapping[str, Any], full: bool) -> Iterator[str]:
    lost = comparison["regressions"]
    shown = lost if full else lost[:SHOWN]
    if shown:
        yield f"\nworse under {comparison['name']} than under {comparison['against']}:"
    for each in shown:
        places = f"{_place(each['rank_before'])} -> {_place(each['rank_after'])}"
        loss = f"{each['after'] - each['before']:+.2f}"
        yield f"  {loss}  rank {places:8}  {printable(each['id'])}  {printable(each['query'])}"
    if len(lost) > len(shown):
        yield f"  and {len(lost) - len(shown)} more; -v lists them"


def _ablated(rows: Sequence[Mapping[str, Any]], off: Sequence[str]) -> str:
    head = ["without", "", "nDCG@10", "worth", "95 % interval", "helps", "hurts"]
    cells = [
        [
            each["part"],
            each["group"],
            _share(each["without"].get("ndcg@10")),
            *_worth(each),
            str(len(each["helps"])),
            str(len(each["hurts"])),
        ]
        for each in rows
    ]
    off_line = f"\nalready off: {', '.join(off)}" if off else ""
    return table(head, cells) + off_line


def _worth(row: Mapping[str, Any]) -> tuple[str, str]:
    """What a part is worth. One that changed the order of no answer has no interval to read."""
    if not row["changed"]:
        return "none", "changes no order"
    return f"{row['mean']:+.3f}", _interval(row)


def _ablated_kinds(rows: Sequence[Mapping[str, Any]]) -> str:
    """What each part is worth for each kind of question that it changes."""
    head = ["without", "kind", "n", "worth", "95 % interval", ""]
    cells = [
        [
            each["part"],
            printable(kind) or "(none)",
            str(shift["n"]),
            f"{shift['mean']:+.3f}",
            _interval(shift),
            _certainty(shift),
        ]
        for each in rows
        for kind, shift in each["kinds"].items()
        if shift["low"] or shift["high"]
    ]
    if not cells:
        return "no part changes the score of any kind of question"
    return (
        table(head, cells) + "\nkinds of question whose score a part does not change are left out"
    )


def _certainty(shift: Mapping[str, Any]) -> str:
    if shift["low"] > 0:
        return "helps"
    return "hurts" if shift["high"] < 0 else ""


def _interval(each: Mapping[str, Any]) -> str:
    return f"[{each['low']:+.3f}, {each['high']:+.3f}]"


def _place(rank: int) -> str:
    return str(rank) if rank else "none"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
