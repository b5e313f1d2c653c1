"""What `ragvault eval` and `ragvault tune` print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragvault.cli.render.text import table
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


def evaluation(found: Mapping[str, Any], *, full: bool) -> str:
    """The whole report: profiles, kinds of question, differences, ablations, signals."""
    profiles = found["profiles"]
    parts = [_overall(profiles), _kinds(found["kinds"])]
    parts += [_compared(found["comparisons"], full)] if found["comparisons"] else []
    parts += [_ablated(found["ablations"], found["off"])] if found["ablations"] else []
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
        f"judged on {judged['n']} others: {judged['metric']} {judged['mean']:+.3f} "
        f"{_interval(judged)}",
    ]
    lines += [f"  {key}: {old:g} -> {new:g}" for key, (old, new) in receipt["settings"].items()]
    lines += [f"  {kind or '(none)'}: {shift:+.3f}" for kind, shift in judged["kinds"].items()]
    if not receipt["accepted"]:
        lines.append(f"nothing changed: {receipt['refusal']}")
    elif receipt["dry_run"]:
        lines.append("nothing changed: --dry-run")
    else:
        lines.append(f"kept in {printable(receipt['file'])}; ragvault tune --revert removes it")
    return "\n".join(lines)


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
    return "\n".join([table(head, rows), *lines])


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
            f"{each['mean']:+.3f}",
            _interval(each),
            str(len(each["helps"])),
            str(len(each["hurts"])),
        ]
        for each in rows
    ]
    said = f"\nalready off: {', '.join(off)}" if off else ""
    return table(head, cells) + said


def _signals(signals: Sequence[Mapping[str, Any]]) -> str:
    head = ["signal", "", "state", "fired", "asked", "moved"]
    rows = [
        [each["name"], each["group"], each["state"], *map(str, _counts(each))] for each in signals
    ]
    return table(head, rows)


def _counts(signal: Mapping[str, Any]) -> tuple[int, int, int]:
    return signal["fired"], signal["asked"], signal["moved"]


def _interval(each: Mapping[str, Any]) -> str:
    return f"[{each['low']:+.3f}, {each['high']:+.3f}]"


def _place(rank: int) -> str:
    return str(rank) if rank else "none"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
