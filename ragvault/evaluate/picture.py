"""A picture of a report: one bar a profile, a kind or a part, with its interval.

    profiles   nDCG@10 of each, and latency beside it
    kinds      nDCG@10 of each kind of question
    parts      what each is worth, with its 95 % interval; left of the line it does harm

Drawn with matplotlib, which is the extra `eval`; nothing else needs it. Axes begin at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragvault.errors import UsageError

SUFFIXES = (".png", ".svg")
BLUE, RED, GREY = "#31688e", "#b5403a", "#8a8a8a"
ROW = 0.32  # inches a bar


def check(path: Path) -> None:
    """Raises UsageError where no picture could be drawn to this path."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path} is no picture: its name ends in neither .png nor .svg",
                         fix="--plot report.svg")  # fmt: skip
    if not path.resolve().parent.is_dir():
        raise UsageError(f"there is no folder {path.resolve().parent}", fix="make it first")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "a picture needs matplotlib, which is not installed",
            fix="pip install 'ragvault[eval]'",
        ) from error


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Draw a report: its profiles and kinds, and its parts where it was taken apart."""
    check(path)
    from matplotlib.figure import Figure

    panels = [
        (panel, len(found[key]))
        for key, panel in (("profiles", _profiles), ("kinds", _kinds), ("ablations", _parts))
        # One profile is told by its kinds.
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
    axis.set(
        xlabel="nDCG@10 that is lost without it, 95 % interval", title="what each part is worth"
    )


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
