"""The weights of `ragvault related`, measured on hidden links.

    python -m benchmarks.related [--pairs 200]

Two linked notes are related. For a fixed random sample of such pairs, every link between the two is
hidden, and the second must be found from the first by links through other notes, by vectors, and by
community (which was computed with the hidden link in place: a small leak). Other directly linked
notes are also right, so they are left out of the ranking.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import corpora, quality, record
from benchmarks.corpora import Corpus
from ragvault.answer import related
from ragvault.evaluate.report import bootstrap_interval, recall, reciprocal_rank

UNIT = 1 / (related.K + 1)  # what rank 1 of a list earns
DEFAULT = {"between": related.BETWEEN, "meaning": 1.0, "community": related.COMMUNITY / UNIT}
# One weight changed at a time.
TRIED = [
    DEFAULT,
    *(DEFAULT | {"between": weight} for weight in (0.0, 0.25, 1.0, 2.0)),
    *(DEFAULT | {"meaning": weight} for weight in (0.0, 0.5, 2.0)),
    *(DEFAULT | {"community": weight} for weight in (0.0, 0.5, 1.0)),
]
Lists = tuple[Mapping[int, Any], Mapping[int, Any], Mapping[int, Any], Mapping[int, Any]]


class Hidden:
    """A catalogue in which no link joins two notes."""

    def __init__(self, catalogue: Any, pair: frozenset[int]) -> None:
        self._catalogue, self._pair = catalogue, pair

    def link_rows(self, notes: Sequence[int]) -> list[Any]:
        rows = self._catalogue.link_rows(notes)
        return [row for row in rows if frozenset(row[:2]) != self._pair]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalogue, name)


def lists(corpus: Corpus, count: int) -> Iterator[tuple[Lists, int]]:
    """What is near to the first of each pair, list by list, and the second."""
    vault = corpus.index()
    with vault.catalogue() as catalogue:
        joined = [pair for pair in catalogue.linked_notes() if pair[0] != pair[1]]
        engines = vault.engines()
        for one, other in random.Random(0).sample(joined, min(count, len(joined))):
            hidden: Any = Hidden(catalogue, frozenset((one, other)))
            links = related._by_links(hidden, one)
            direct = {note: each for note, each in links.items() if each.value == 1}
            between = {note: each for note, each in links.items() if each.value > 1}
            meaning, _ = related._by_vector(hidden, engines, one)
            yield (direct, between, meaning, related._by_community(hidden, one)), other


def order(found: Lists, weights: Mapping[str, float]) -> list[int]:
    """The notes as `related` would list them with these weights, without the direct links."""
    direct, between, meaning, community = found
    scored: dict[int, Any] = {}
    related._rank(scored, direct)
    related._rank(scored, between, weights["between"])
    related._rank(scored, meaning, weights["meaning"])
    related._add(scored, community, weights["community"] * UNIT)
    others = (note for note in scored if note not in direct)
    return sorted(others, key=lambda note: (-scored[note][0], note))


def rows(asked: Sequence[tuple[Lists, int]]) -> list[dict[str, Any]]:
    """One row for each choice of weights, with its difference to the default."""
    found: list[dict[str, Any]] = []
    base: list[float] = []
    for weights in TRIED:
        orders = [(order(found, weights), other) for found, other in asked]
        ranks = [reciprocal_rank(notes, {other}, 10) for notes, other in orders]
        base = base or ranks
        low, high = bootstrap_interval([a - b for a, b in zip(ranks, base, strict=True)])
        mean = sum(ranks) / len(ranks)
        found.append(
            {
                **weights,
                "mrr@10": mean,
                "recall@10": sum(recall(n[:10], {o}, 10) for n, o in orders) / len(orders),
                "against": {"mean": mean - sum(base) / len(base), "low": low, "high": high},
                "n": len(orders),
            }
        )
    return found


def table(found: Sequence[Mapping[str, Any]]) -> str:
    head = "| via one note | vectors | community | MRR@10 | R@10 | difference to default [95 %] |"
    lines = [head, "|---:|---:|---:|---:|---:|---:|"]
    for row in found:
        weights = " | ".join(f"{row[name]:g}" for name in DEFAULT)
        shift = row["against"]
        difference = f"{shift['mean']:+.3f} [{shift['low']:+.3f}, {shift['high']:+.3f}]"
        lines.append(f"| {weights} | {row['mrr@10']:.3f} | {row['recall@10']:.3f} | {difference} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200, help="of each vault")
    parser.add_argument("--corpora", default="", help="names, with commas between")
    args = parser.parse_args(arguments)
    names = args.corpora.split(",") if args.corpora else quality.default_corpora()
    some = [corpora.corpus(name) for name in names]
    pairs = []
    for corpus in some:
        print(f"{corpus.name}: hiding links", file=sys.stderr, flush=True)
        pairs += list(lists(corpus, args.pairs))
    found = rows(pairs)
    print(table(found))
    name = "related" if corpora.available() else "related-sample"
    record.save(name, found, vaults=names)


if __name__ == "__main__":
    main()
