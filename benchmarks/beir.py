"""Quality on collections in BEIR layout, told for each of them and for all together.

One mean over collections would hide that a ranking wins on one and loses on another, so every cell
has its own difference to the first profile and the 95 % interval of a paired bootstrap. Called by
quality.py; the documents become notes in corpora.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import quality
from ragvault.evaluate.run import ScoredAnswer

ALL = "all"
Results = Mapping[str, Sequence[ScoredAnswer]]  # what each profile answers


def rows(of_corpus: Mapping[str, Results]) -> list[dict[str, Any]]:
    """One row for each profile on each collection, and on all questions together."""
    found = [_row(corpus, row) for corpus, each in of_corpus.items() for row in quality.rows(each)]
    if len(of_corpus) > 1:
        found += [_row(ALL, row) for row in quality.rows(pooled(list(of_corpus.values())))]
    return found


def pooled(some: Sequence[Results]) -> dict[str, list[ScoredAnswer]]:
    """Every profile's answers to the questions of all collections."""
    return {name: [answer for each in some for answer in each[name]] for name in some[0]}


def _row(corpus: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Without the list of lost questions: hundreds a profile, and nobody reads them."""
    against = {name: value for name, value in row["against"].items() if name != "regressions"}
    return {"corpus": corpus, **row, "against": against}


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """A line a profile and a column a collection: nDCG@10, and the difference to the first."""
    corpora = list(dict.fromkeys(row["corpus"] for row in found))
    names = list(dict.fromkeys(row["profile"] for row in found))
    cells = {(row["profile"], row["corpus"]): row for row in found}
    head = [_titled(corpus, cells[names[0], corpus]) for corpus in corpora]
    lines = [f"| nDCG@10 | {' | '.join(head)} |", f"|---|{'---:|' * len(corpora)}"]
    for name in names:
        told = " | ".join(_cell(cells[name, each], first=name == names[0]) for each in corpora)
        lines.append(f"| {name} | {told} |")
    return "\n".join(lines)


def _titled(corpus: str, row: Mapping[str, Any]) -> str:
    return f"{corpus.removeprefix('ir/')} ({row['overall']['n']})"


def _cell(row: Mapping[str, Any], *, first: bool) -> str:
    mean, against = row["overall"]["ndcg@10"], row["against"]
    if first:
        return f"{mean:.3f}"
    return f"{mean:.3f}, {against['mean']:+.3f} [{against['low']:+.3f}, {against['high']:+.3f}]"
