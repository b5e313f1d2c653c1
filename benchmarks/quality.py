"""How good the answers are: profiles, single legs and parts, on every corpus there is.

    python -m benchmarks.quality                                  default and single legs
    python -m benchmarks.quality --profiles all                   every profile
    python -m benchmarks.quality --ablate                         what each part is worth
    python -m benchmarks.quality --kinds                          each kind: default against legs
    python -m benchmarks.quality --corpora ir/cranfield,ir/cacm   collections in BEIR layout
    python -m benchmarks.quality --set boost.max_rise=0 …         other settings; nothing is stored

Without RAGVAULT_BENCH_DATA the sample vault is measured. The questions of all corpora are pooled;
every difference is against the first profile, with the 95 % interval
of a paired bootstrap. For BEIR collections the table has a column for each one: a mean over all
would hide that a ranking wins on one and loses on another.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as changed
from typing import Any

from msgspec.structs import replace

from benchmarks import corpora, record
from benchmarks.corpora import Corpus
from ragvault.config import profiles
from ragvault.evaluate import report
from ragvault.evaluate.report import ScoredAnswer
from ragvault.evaluate.run import ablations, with_values


def leg_alone(leg: str) -> tuple[str, ...]:
    """The settings that show a leg's own list as the answer: nothing adds to it or reorders it.

    At most three sections of a note, as in the default, so that ten notes can be seen.
    """
    return (
        f'retrieve.legs=["{leg}"]',
        "retrieve.fill=[]",
        'fuse.method="rrf"',
        "fuse.exponent=0",
        "fuse.exact=0",
        "boost.enabled=false",
        "dedup.enabled=false",
        "diversify.enabled=true",
        "diversify.mmr_lambda=1",
        "diversify.per_note=3",
        "rerank.enabled=false",
        "budget.enabled=false",
    )


# The other legs find nothing for most questions.
LEGS = {f"{leg} leg alone": leg_alone(leg) for leg in ("vector", "keyword")}
ALL = "all"
Results = Mapping[str, Sequence[ScoredAnswer]]  # profile -> its answers
SHOWN = ("ndcg@10", "mrr@10", "success@1", "p@3", "recall@10", "context_precision")


def compare(
    some: Sequence[Corpus], names: Sequence[str], flags: Sequence[str]
) -> dict[str, list[ScoredAnswer]]:
    """What each profile answers to the questions of every corpus."""
    return {
        name: [
            each for corpus in some for each in with_own_ids(corpus, corpus.ask(*flags, *_of(name)))
        ]
        for name in names
    }


def _of(name: str) -> tuple[str, ...]:
    return LEGS.get(name) or (f"search.profile={name}",)


def with_own_ids(corpus: Corpus, answered: Iterable[ScoredAnswer]) -> list[ScoredAnswer]:
    """Ids of their own, so that questions of two corpora never meet."""
    return [
        changed(each, question=replace(each.question, id=f"{corpus.name}:{each.question.id}"))
        for each in answered
    ]


def rows(results: Mapping[str, Sequence[ScoredAnswer]]) -> list[dict[str, Any]]:
    """One row a profile: its numbers, and its difference to the first."""
    first, base = next(iter(results.items()))
    return [
        {
            "profile": name,
            **report.overall_and_kinds(found),
            "against": report.comparison(name, found, first, base),
        }
        for name, found in results.items()
    ]


def part_rows(some: Sequence[Corpus], flags: Sequence[str]) -> list[dict[str, Any]]:
    """What each part of the default is worth, with the reranker beside them."""
    base: list[ScoredAnswer] = []
    without: dict[tuple[str, str], list[ScoredAnswer]] = {}
    for corpus in some:
        print(f"{corpus.name}: ranking without each part", file=sys.stderr, flush=True)
        with corpus.replay(*flags) as replay:
            base += with_own_ids(corpus, replay.answers(replay.config))
            for part in ablations(replay.config):
                again = replay.answers(with_values(replay.config, part.off))
                key = (part.name, part.group)
                without.setdefault(key, []).extend(with_own_ids(corpus, again))
    return [
        {"part": name, "group": group, "ndcg@10": report.summarize(found).get("ndcg@10"),
         **_short(report.comparison("", base, "", found))}
        for (name, group), found in without.items()
    ]  # fmt: skip


def kind_rows(results: Results) -> list[dict[str, Any]]:
    """One row for all questions and one for each kind, over all corpora together.

    Each has the nDCG@10 of every ranking, and what the first one gains over each of the others.
    """
    first, base = next(iter(results.items()))
    reports = {name: report.overall_and_kinds(found) for name, found in results.items()}
    gains = {
        name: report.comparison(first, base, name, found)
        for name, found in results.items()
        if name != first
    }
    judged = next(iter(gains.values()))["kinds"]
    return [
        {
            "kind": kind,
            "n": next(iter(gains.values()))["n"] if kind == ALL else judged[kind]["n"],
            "first": first,
            "ndcg@10": {name: _of_kind(each, kind)["ndcg@10"] for name, each in reports.items()},
            "gains": {
                name: _ends(each if kind == ALL else each["kinds"][kind])
                for name, each in gains.items()
            },
        }
        for kind in (ALL, *judged)
    ]


def _of_kind(found: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    numbers: Mapping[str, Any] = found["overall"] if kind == ALL else found["kinds"][kind]
    return numbers


def _ends(difference: Mapping[str, Any]) -> dict[str, float]:
    return {key: difference[key] for key in ("mean", "low", "high")}


def kind_table(found: Sequence[Mapping[str, Any]]) -> str:
    """A line a kind: each ranking, and what the first gains over it. `**`: beyond its interval."""
    first = found[0]["first"]
    head = ["nDCG@10", "n", first]
    for name in found[0]["gains"]:
        head += [name, f"{first} minus it [95 %]"]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for row in found:
        cells = [str(row["n"]), f"{row['ndcg@10'][first]:.3f}"]
        for name, gain in row["gains"].items():
            shift = f"{gain['mean']:+.3f} [{gain['low']:+.3f}, {gain['high']:+.3f}]"
            certain = gain["low"] > 0 or gain["high"] < 0
            cells += [f"{row['ndcg@10'][name]:.3f}", f"**{shift}**" if certain else shift]
        lines.append(f"| {row['kind'] or '(none)'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(comparison: Mapping[str, Any]) -> dict[str, Any]:
    return {key: comparison[key] for key in ("n", "mean", "low", "high", "kinds", "changed")}


def table(found: Sequence[Mapping[str, Any]]) -> str:
    first = found[0]["profile"]
    head = ["profile", *SHOWN, f"difference to {first} [95 %]", "held back", "p50 ms"]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for row in found:
        overall, against = row["overall"], row["against"]
        held = overall.get("unanswerable", {}).get("held_back")
        cells = [f"{overall.get(name, 0.0):.3f}" for name in SHOWN]
        cells += [f"{against['mean']:+.3f} [{against['low']:+.3f}, {against['high']:+.3f}]"]
        cells += ["–" if held is None else f"{held:.0%}", f"{overall['latency_ms']['p50']:.0f}"]
        lines.append(f"| {row['profile']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parts_table(found: Sequence[Mapping[str, Any]]) -> str:
    """One row per part, most valuable first; parts that changed no order share the last row."""
    lines = ["| without | | nDCG@10 | worth [95 %] |", "|---|---|---:|---:|"]
    # Results of before this was counted have only the score.
    changed_some = [row for row in found if row.get("changed", row["low"] or row["high"])]
    for row in sorted(changed_some, key=lambda each: -each["mean"]):
        worth = f"{row['mean']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}]"
        lines.append(f"| {row['part']} | {row['group']} | {row['ndcg@10']:.4f} | {worth} |")
    same = [row for row in found if row not in changed_some]
    if same:
        names = ", ".join(row["part"] for row in same)
        none = "changes no order" if "changed" in same[0] else "no change"
        lines.append(f"| {names} | | {same[0]['ndcg@10']:.4f} | {none} |")
    return "\n".join(lines)


def collection_rows(of_corpus: Mapping[str, Results]) -> list[dict[str, Any]]:
    """One row for each profile on each collection, and on all questions together."""
    found = [
        _collection_row(corpus, row) for corpus, each in of_corpus.items() for row in rows(each)
    ]
    if len(of_corpus) > 1:
        found += [_collection_row(ALL, row) for row in rows(pooled(list(of_corpus.values())))]
    return found


def pooled(some: Sequence[Results]) -> dict[str, list[ScoredAnswer]]:
    """Every profile's answers to the questions of all collections."""
    return {name: [answer for each in some for answer in each[name]] for name in some[0]}


def _collection_row(corpus: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {"corpus": corpus, **row}


def collection_table(found: Sequence[Mapping[str, Any]]) -> str:
    """A line a profile and a column a collection: nDCG@10, and the difference to the first."""
    columns = list(dict.fromkeys(row["corpus"] for row in found))
    names = list(dict.fromkeys(row["profile"] for row in found))
    cells = {(row["profile"], row["corpus"]): row for row in found}
    head = [_titled(corpus, cells[names[0], corpus]) for corpus in columns]
    lines = [f"| nDCG@10 | {' | '.join(head)} |", f"|---|{'---:|' * len(columns)}"]
    for name in names:
        line = " | ".join(_cell(cells[name, each], first=name == names[0]) for each in columns)
        lines.append(f"| {name} | {line} |")
    return "\n".join(lines)


def _titled(corpus: str, row: Mapping[str, Any]) -> str:
    return f"{corpus.removeprefix('ir/')} ({row['overall']['n']})"


def _cell(row: Mapping[str, Any], *, first: bool) -> str:
    mean, against = row["overall"]["ndcg@10"], row["against"]
    if first:
        return f"{mean:.3f}"
    return f"{mean:.3f}, {against['mean']:+.3f} [{against['low']:+.3f}, {against['high']:+.3f}]"


def measure(
    names: Sequence[str],
    wanted: Sequence[str],
    flags: Sequence[str],
    *,
    ablate: bool,
    kinds: bool,
    limit: int,
) -> None:
    """Index what is needed, ask, print, and keep the result unless settings were changed."""
    some = [corpora.corpus(name, limit) for name in names]
    for corpus in some:
        corpus.index(*flags)
    about = {"corpora": {each.name: len(each.questions) for each in some}}
    kind = "beir" if all(name.startswith("ir/") for name in names) else "quality"
    if ablate:
        found = part_rows(some, flags)
        print(parts_table(found), flush=True)
        _keep(f"{kind}-parts", found, flags, about)
        return
    if kinds:
        found = kind_rows(compare(some, wanted, flags))
        print(kind_table(found), flush=True)
        _keep("kinds", found, flags, about)
        return
    if kind == "beir":
        found = collection_rows({each.name: compare([each], wanted, flags) for each in some})
        print(collection_table(found), flush=True)
    else:
        found = rows(compare(some, wanted, flags))
        print(table(found), flush=True)
    _keep(kind, found, flags, about)


def _keep(name: str, found: Any, flags: Sequence[str], about: Mapping[str, Any]) -> None:
    if not flags:
        record.save(name if corpora.available() else f"{name}-sample", found, **about)


def default_corpora() -> list[str]:
    if corpora.available():
        return list(corpora.JUDGED)
    print("RAGVAULT_BENCH_DATA is not set: measuring the sample vault", file=sys.stderr)
    return ["sample"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpora", default="", help="names, with commas between")
    parser.add_argument("--profiles", default="default", help="names, or all")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--kinds", action="store_true", help="one row for each kind of question")
    parser.add_argument("--limit", type=int, default=0, help="questions of a BEIR collection")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args(arguments)
    names = args.corpora.split(",") if args.corpora else default_corpora()
    wanted = list(profiles.names()) if args.profiles == "all" else args.profiles.split(",")
    measure(
        names,
        [*wanted, *LEGS],
        args.set,
        ablate=args.ablate,
        kinds=args.kinds,
        limit=args.limit,
    )


if __name__ == "__main__":
    main()
