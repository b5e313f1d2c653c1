"""Pictures of the newest results: quality against latency, and growth with size.

    python -m benchmarks.plot         writes benchmarks/results/quality.svg and growth.svg

Needs matplotlib (`pip install 'ragvault[eval]'`). Axes of shares are cut where nothing is, and say
so; time against quality is logarithmic, and says so; growth begins at 0 on both axes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import record

OURS, THEIRS = "#31688e", "#8a8a8a"
SEEDS = {1000: 125.0, 10_000: 320.0}  # the seeds' own figures; 125 is the middle of 100–150 ms


def quality(path: Path) -> bool:
    """nDCG@10 of every profile and peer against the median time of a search."""
    from matplotlib.figure import Figure

    rows = _named("quality", OURS) + _named("peers", THEIRS)
    points = [(name, row["overall"], colour) for name, row, colour in rows]
    if not points:
        return False
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axis = figure.subplots()
    for name, overall, colour in points:
        x, y = overall["latency_ms"]["p50"], overall["ndcg@10"]
        axis.scatter(x, y, color=colour, s=36)
        axis.annotate(name, (x, y), xytext=(5, 3), textcoords="offset points", fontsize=8)
    axis.set_xscale("log")
    low = min(overall["ndcg@10"] for _, overall, _ in points)
    axis.set(
        xlabel="median time of a search in ms, log scale",
        ylabel=f"nDCG@10 (axis begins at {max(0.0, low - 0.05):.2f})",
        ylim=(max(0.0, low - 0.05), None),
        title="quality against latency; blue is ragvault, grey are peers",
    )
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.margins(x=0.12)
    _plain(axis)
    figure.savefig(path)
    return True


def growth(path: Path) -> bool:
    """Seconds, milliseconds and megabytes against the number of notes."""
    from matplotlib.figure import Figure

    found = {tier: record.latest(f"speed-{tier}") for tier in ("static", "full")}
    known = {tier: each["rows"] for tier, each in found.items() if each}
    if not known:
        return False
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = {
        "search_ms": "search of an open index, ms",
        "index_s": "first index, s",
        "disk_mb": "index on disk, MB",
    }
    for axis, (key, title) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for tier, rows in known.items():
            axis.plot([r["notes"] for r in rows], [r[key] for r in rows], "o-", label=tier)
        if key == "search_ms":
            axis.plot(list(SEEDS), list(SEEDS.values()), "x--", color=THEIRS, label="the seeds say")
        axis.set(xlim=(0, None), ylim=(0, None), xlabel="notes")
        axis.set_title(title, fontsize=10)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.legend(fontsize=8)
        _plain(axis)
    figure.savefig(path)
    return True


def _named(name: str, colour: str) -> list[tuple[str, Mapping[str, Any], str]]:
    found = record.latest(name)
    rows = found["rows"] if found else []
    return [(row["profile"], row, colour) for row in rows if row["profile"] != "ragvault"]


def _plain(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.25)
    axis.tick_params(labelsize=8)


def main(arguments: Sequence[str] | None = None) -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--folder", type=Path, default=record.RESULTS)
    args = asked.parse_args(arguments)
    for name, draw in (("quality", quality), ("growth", growth)):
        path = args.folder / f"{name}.svg"
        print(path if draw(path) else f"{name}: nothing was measured yet", file=sys.stderr)


if __name__ == "__main__":
    main()
