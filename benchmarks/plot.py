"""Pictures of the last results: quality against latency, and growth with size.

    python -m benchmarks.plot         writes benchmarks/results/quality.svg and growth.svg

Needs matplotlib, which `make` installs. Axes of shares are cut where nothing is, and say so; time
against quality is logarithmic, and says so; growth begins at 0 on both axes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import record

OURS, THEIRS = "#31688e", "#8a8a8a"
LETTER = 4.3  # points: a letter of the labels, on average
SHIFTS = (0, 8, -8, *(side * step for step in range(14, 90, 8) for side in (1, -1)))
# Use cases and older versions of these designs are in the table only: too many labels.
SHOWN = {
    *("default", "vector leg alone", "keyword leg alone", "ragtriever", "recollection", "ragdocs"),
    *("policy", "lightrag", "lightrag-mix"),
}
CUT = 0.3  # an axis that would begin below this may as well begin at 0
RAGDOCS = {1000: 110.0, 10_000: 320.0}  # as its document states, on an unnamed machine


def quality(path: Path) -> bool:
    """nDCG@10 of our default, of each design and of peers against the median time of a search."""
    from matplotlib.figure import Figure

    ours = [each for each in _named("quality", OURS) if each[0] in SHOWN]
    rows = ours + _named("peers", THEIRS)
    points = [(name, row["overall"], colour) for name, row, colour in rows]
    if not points:
        return False
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    axis = figure.subplots()
    low = min(overall["ndcg@10"] for _, overall, _ in points)
    bottom = max(0.0, low - 0.05) if low > CUT else 0.0
    axis.set(
        xscale="log",
        xlabel="median time of a warm search in ms, log scale",
        ylabel="nDCG@10" + (f" (axis begins at {bottom:.2f})" if bottom else ""),
        title="quality against latency; blue: ragvault and its profiles, grey: other libraries",
    )
    for _, overall, colour in points:
        axis.scatter(overall["latency_ms"]["p50"], overall["ndcg@10"], color=colour, s=30)
    axis.margins(x=0.12)
    axis.set_ylim(bottom, None)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _plain(axis)
    figure.draw_without_rendering()  # where a point is on the page depends on the layout
    _label(axis, [(o["latency_ms"]["p50"], o["ndcg@10"], name) for name, o, _ in points])
    _save(figure, path)
    return True


def _label(axis: Any, points: Sequence[tuple[float, float, str]]) -> None:
    """Names beside their points, moved up or down until none covers another; a line leads back."""
    scale = 72 / axis.figure.dpi
    places = [(*(axis.transData.transform((x, y)) * scale), name) for x, y, name in points]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y, _ in places]
    for (x, y, name), at in sorted(zip(places, points, strict=True), key=lambda each: -each[0][1]):
        width = LETTER * len(name)
        offsets = [(dx, dy) for dy in SHIFTS for dx in (7, -width - 7)]
        boxes = [(x + dx, y + dy - 4, x + dx + width, y + dy + 5) for dx, dy in offsets]
        free = (at for at, box in enumerate(boxes) if not any(_meet(box, other) for other in taken))
        chosen = next(free, 0)
        taken.append(boxes[chosen])
        dx, dy = offsets[chosen]
        line = {"arrowstyle": "-", "color": THEIRS, "lw": 0.5} if dy else None
        axis.annotate(
            name,
            at[:2],
            xytext=(dx, dy),
            textcoords="offset points",
            fontsize=7.5,
            va="center",
            arrowprops=line,
        )


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def growth(path: Path) -> bool:
    """Seconds, milliseconds and megabytes against the number of notes."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    found = {tier: record.latest(f"speed-{tier}") for tier in ("static", "full")}
    known = {tier: each["rows"] for tier, each in found.items() if each}
    if not known:
        return False
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    panels = {
        "search_ms": "warm search, ms",
        "index_s": "first index, s (full: without the transformer)",
        "disk_mb": "index on disk, MB",
    }
    for axis, (key, title) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for tier, rows in known.items():
            axis.plot([r["notes"] for r in rows], [r[key] for r in rows], "o-", label=tier)
        if key == "search_ms":
            axis.plot(
                list(RAGDOCS),
                list(RAGDOCS.values()),
                "x--",
                color=THEIRS,
                label="ragdocs, as stated",
            )
        axis.set(xlim=(0, None), ylim=(0, None), xlabel="notes")
        axis.set_title(title, fontsize=10)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.legend(fontsize=8)
        _plain(axis)
    _save(figure, path)
    return True


def _named(name: str, colour: str) -> list[tuple[str, Mapping[str, Any], str]]:
    found = record.latest(name)
    rows = found["rows"] if found else []
    return [(row["profile"], row, colour) for row in rows if row["profile"] != "ragvault"]


def _save(figure: Any, path: Path) -> None:
    """Without a date or random ids, so that the same results give the same file."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "ragvault"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _plain(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
    axis.tick_params(labelsize=8)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=record.RESULTS)
    args = parser.parse_args(arguments)
    for name, draw in (("quality", quality), ("growth", growth)):
        path = args.folder / f"{name}.svg"
        print(path if draw(path) else f"{name}: not measured yet", file=sys.stderr)


if __name__ == "__main__":
    main()
