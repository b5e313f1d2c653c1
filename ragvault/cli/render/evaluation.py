"""What `ragvault eval` and `ragvault tune` print, and the picture that `eval --plot` draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragvault.cli.render.console import table
from ragvault.errors import UsageError, install_command, with_extra
from ragvault.text.printable import printable

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
SUFFIXES = (".png", ".svg")
BLUE, RED, GREY = "#31688e", "#b5403a", "#8a8a8a"
ROW = 0.32  # inches per bar


def evaluation(found: Mapping[str, Any], *, full: bool) -> str:
    """The whole report: profiles, kinds of question, differences, ablations, signals."""
    profiles = found["profiles"]
    parts = [_sentence(found["overall"]), _overall(profiles), _kinds(found["kinds"])]
    parts += [_compared(found["comparisons"], full)] if found["comparisons"] else []
    parts += [_ablated(found["ablations"], found["off"])] if found["ablations"] else []
    parts += [_ablated_kinds(found["ablations"])] if found["ablations"] else []
    parts += [_legs(found["legs"])] if found["legs"] else []
    parts += [_signals(found["signals"])] if found["signals"] else []
    return "\n\n".join(parts)


def warnings(found: Mapping[str, Any]) -> Iterator[str]:
    """Warnings beside the numbers."""
    unknown = found["unknown_notes"]
    if unknown:
        some = ", ".join(map(printable, unknown[:3])) + (" …" if len(unknown) > 3 else "")
        yield f"{len(unknown)} judged notes are not in the index, so they cannot be found: {some}"
    for each in found["signals"]:
        if each["state"] == "dead":
            yield f"{each['name']} never fired, though the notes give it cause; see ragvault doctor"
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
    return "\n".join([*lines, *_changes(receipt), *kinds, _end(receipt)])


def confidence(receipt: Mapping[str, Any]) -> str:
    """How a confidence fits before and after, and whether the new curve was kept."""
    judged = receipt["judged"]
    line = (
        f"judged on {judged['n']} results of unseen questions: the squared error of the confidence "
        f"goes from {judged['before']:.3f} to {judged['after']:.3f}"
    )
    return "\n".join([line, *_changes(receipt), _end(receipt)])


def _changes(receipt: Mapping[str, Any]) -> list[str]:
    return [f"  {key}: {old:g} -> {new:g}" for key, (old, new) in receipt["settings"].items()]


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


def _legs(legs: Sequence[Mapping[str, Any]]) -> str:
    """A row for all questions and one for each kind: the ranking, and what it gains over a leg."""
    first = legs[0]["name"]
    head = ["nDCG@10", "n", first]
    for each in legs:
        head += [each["against"], f"{first} minus it", "95 % interval"]
    overall = [_leg_cells(each, each["alone"]["overall"]) for each in legs]
    rows = [["all", *_leg_row(overall)]]
    for kind in legs[0]["kinds"]:
        cells = [_leg_cells(e["kinds"][kind], e["alone"]["kinds"][kind]) for e in legs]
        rows.append([printable(kind) or "(none)", *_leg_row(cells)])
    return table(head, rows)


def _leg_cells(shift: Mapping[str, Any], alone: Mapping[str, Any]) -> list[str]:
    score = alone["ndcg@10"]
    whole = f"{score + shift['mean']:.3f}"
    return [str(shift["n"]), whole, _share(score), f"{shift['mean']:+.3f}", _interval(shift)]


def _leg_row(cells: Sequence[Sequence[str]]) -> list[str]:
    number, whole = cells[0][:2]
    return [number, whole, *(cell for each in cells for cell in each[2:])]


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


def _signals(signals: Sequence[Mapping[str, Any]]) -> str:
    head = ["signal", "", "state", "fired", "asked", "moved"]
    rows = [[each["name"], each["group"], each["state"], *_counts(each)] for each in signals]
    return table(head, rows)


def _counts(signal: Mapping[str, Any]) -> tuple[str, str, str]:
    moved = f"{signal['moved']} of {signal['tried']}" if signal["tried"] else "-"
    return str(signal["fired"]), str(signal["asked"]), moved


def _interval(each: Mapping[str, Any]) -> str:
    return f"[{each['low']:+.3f}, {each['high']:+.3f}]"


def _place(rank: int) -> str:
    return str(rank) if rank else "none"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


# --- the picture ---

# Drawn with matplotlib, which only this needs (the extra `eval`):
#
#     profiles   nDCG@10 of each, with its latency
#     kinds      nDCG@10 of each kind of question
#     parts      what each is worth, with its 95 % interval; left of the line it does harm


def check_plot_path(path: Path) -> None:
    """Raises UsageError if no picture can be written to this path."""
    if path.suffix.lower() not in SUFFIXES:
        why = f"cannot draw {path}: its name must end in .png or .svg"
        raise UsageError(why, fix="--plot report.svg")
    if not path.resolve().parent.is_dir():
        raise UsageError(f"there is no folder {path.resolve().parent}", fix="create it first")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "--plot needs matplotlib, which is not installed",
            fix=install_command(with_extra("eval")),
        ) from error


def draw_report(found: Mapping[str, Any], path: Path) -> None:
    """Draw the profiles, kinds and ablations of a report."""
    check_plot_path(path)
    from matplotlib.figure import Figure

    panels = [
        (panel, len(found[key]))
        for key, panel in (
            ("profiles", _profile_bars),
            ("kinds", _kind_bars),
            ("ablations", _part_bars),
        )
        # A single profile needs no panel: its kinds show it.
        if len(found[key]) > (key == "profiles")
    ]
    sizes = [count + 2 for _, count in panels]
    figure = Figure(figsize=(8, ROW * sum(sizes) + 0.9 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=sizes)[:, 0]
    for (panel, _), axis in zip(panels, axes, strict=True):
        panel(found, axis)
    asked = found["overall"]["n"]
    figure.suptitle(
        f"{found['vault']}: {asked} questions, revision {found['revision']}", fontsize=11
    )
    figure.savefig(path, dpi=144)


def _profile_bars(found: Mapping[str, Any], axis: Any) -> None:
    reports = found["profiles"]
    overall = [each["overall"] for each in reports.values()]
    values = [each.get("ndcg@10", 0.0) for each in overall]
    notes = [
        f"{v:.3f}   {o['latency_ms']['p50']:.0f} ms" for v, o in zip(values, overall, strict=True)
    ]
    _bars(axis, list(reports), values, notes)
    axis.set(xlim=(0, 1.22), xlabel="nDCG@10 (and median latency)", title="profiles")


def _kind_bars(found: Mapping[str, Any], axis: Any) -> None:
    kinds = {kind: of for kind, of in found["kinds"].items() if "ndcg@10" in of}
    values = [of["ndcg@10"] for of in kinds.values()]
    notes = [f"{of['ndcg@10']:.3f}   n = {of['n']}" for of in kinds.values()]
    _bars(axis, [kind or "(none)" for kind in kinds], values, notes)
    axis.set(xlim=(0, 1.22), xlabel="nDCG@10", title=f"kinds of question, {found['profile']}")


def _part_bars(found: Mapping[str, Any], axis: Any) -> None:
    rows = sorted(found["ablations"], key=lambda each: -each["mean"])
    values = [each["mean"] for each in rows]
    reach = [[e["mean"] - e["low"] for e in rows], [e["high"] - e["mean"] for e in rows]]
    colours = [_colour(each) for each in rows]
    names = [f"{each['part']} ({each['group']})" for each in rows]
    axis.barh(names, values, xerr=reach, color=colours, ecolor="black", capsize=2, height=0.65)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.invert_yaxis()
    _plain(axis)
    axis.set(xlabel="nDCG@10 lost without it, 95 % interval", title="what each part is worth")


def _colour(row: Mapping[str, Any]) -> str:
    if row["low"] > 0:
        return BLUE
    return RED if row["high"] < 0 else GREY


def _bars(axis: Any, names: Sequence[str], values: Sequence[float], notes: Sequence[str]) -> None:
    bars = axis.barh(names, values, color=BLUE, height=0.65)
    axis.bar_label(bars, notes, padding=4, fontsize=8)
    axis.invert_yaxis()
    axis.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    _plain(axis)


def _plain(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)
    axis.xaxis.label.set_fontsize(9)
    axis.title.set_fontsize(10)
