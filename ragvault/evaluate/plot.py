"""A report as a picture: bars for profiles, kinds of question and parts.

    profiles   nDCG@10 of each, with its latency
    kinds      nDCG@10 of each kind of question
    parts      what each is worth, with its 95 % interval; left of the line it does harm

Drawn with matplotlib, which only this module needs (the extra `eval`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragvault.errors import UsageError

SUFFIXES = (".png", ".svg")
BLUE, RED, GREY = "#31688e", "#b5403a", "#8a8a8a"
ROW = 0.32  # inches per bar


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
            fix="pip install 'ragvault[eval]'",
        ) from error


def draw_report(found: Mapping[str, Any], path: Path) -> None:
    """Draw the profiles, kinds and ablations of a report."""
    check_plot_path(path)
    from matplotlib.figure import Figure

    panels = [
        (panel, len(found[key]))
        for key, panel in (("profiles", _profiles), ("kinds", _kinds), ("ablations", _parts))
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


def _profiles(found: Mapping[str, Any], axis: Any) -> None:
    reports = found["profiles"]
    overall = [each["overall"] for each in reports.values()]
    values = [each.get("ndcg@10", 0.0) for each in overall]
    notes = [
        f"{v:.3f}   {o['latency_ms']['p50']:.0f} ms" for v, o in zip(values, overall, strict=True)
    ]
    _bars(axis, list(reports), values, notes)
    axis.set(xlim=(0, 1.22), xlabel="nDCG@10 (and median latency)", title="profiles")


def _kinds(found: Mapping[str, Any], axis: Any) -> None:
    kinds = {kind: of for kind, of in found["kinds"].items() if "ndcg@10" in of}
    values = [of["ndcg@10"] for of in kinds.values()]
    notes = [f"{of['ndcg@10']:.3f}   n = {of['n']}" for of in kinds.values()]
    _bars(axis, [kind or "(none)" for kind in kinds], values, notes)
    axis.set(xlim=(0, 1.22), xlabel="nDCG@10", title=f"kinds of question, {found['profile']}")


def _parts(found: Mapping[str, Any], axis: Any) -> None:
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
