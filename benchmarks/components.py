"""The evaluation in RAGtriever's design document: ten questions, one component added at a time.

    python -m benchmarks.components

The baseline is RAGtriever's weighted sum of raw scores without boosts. Each component of its design
is added alone, then all of them together; then our default. Its criteria: MRR at least 10 % above
the baseline, no question worse, P@3 kept. The questions are about the sample vault and were fixed
before any of this was measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from benchmarks import corpora, record
from ragvault.evaluate.report import ScoredAnswer, average

BASE = ("search.profile=ragtriever-weighted", "boost.enabled=false")
BACKLINKS = (
    "boost.enabled=true",
    "boost.backlinks.enabled=true",
    "boost.recency.enabled=false",
)
RECENCY = (
    "boost.enabled=true",
    "boost.backlinks.enabled=false",
    "boost.recency.enabled=true",
)
STEPS = {
    "baseline: weighted sum, no boosts": BASE,
    "+ rank fusion": ("search.profile=ragtriever", "boost.enabled=false"),
    "+ backlinks": ("search.profile=ragtriever-weighted", *BACKLINKS),
    "+ recency": ("search.profile=ragtriever-weighted", *RECENCY),
    "all of RAGtriever's": ("search.profile=ragtriever",),
    "ours: evidence, no boosts": ("boost.enabled=false",),
    "ours: default": (),
}


def measure() -> list[dict[str, Any]]:
    """One row a step: MRR@10, P@3, and the questions that were answered better and worse."""
    corpus = corpora.corpus("sample")
    corpus.index()
    answered = {name: corpus.ask(*flags) for name, flags in STEPS.items()}
    base = next(iter(answered.values()))
    return [_row(name, found, base) for name, found in answered.items()]


def _row(name: str, found: Sequence[ScoredAnswer], base: Sequence[ScoredAnswer]) -> dict[str, Any]:
    shifts = {
        now.question.id: now.scores["mrr@10"] - before.scores["mrr@10"]
        for now, before in zip(found, base, strict=True)
    }
    return {
        "step": name,
        **average(each.scores for each in found),
        "ranks": {each.question.id: round(each.scores["mrr@10"], 3) for each in found},
        "better": [id_ for id_, shift in shifts.items() if shift > 0],
        "worse": [id_ for id_, shift in shifts.items() if shift < 0],
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    base = rows[0]["mrr@10"]
    lines = ["| | MRR@10 | | P@3 | nDCG@10 | better | worse |", "|---|---:|---:|---:|---:|---|---|"]
    for row in rows:
        shift = f"{row['mrr@10'] / base - 1:+.0%}" if base else ""
        numbers = f"{row['mrr@10']:.3f} | {shift} | {row['p@3']:.3f} | {row['ndcg@10']:.3f}"
        named = " | ".join(", ".join(row[key]) or "–" for key in ("better", "worse"))
        lines.append(f"| {row['step']} | {numbers} | {named} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(arguments)
    rows = measure()
    print(table(rows))
    record.save("components", rows)


if __name__ == "__main__":
    main()
