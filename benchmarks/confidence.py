"""How honest an answer is: numbers, bands, and whether it says that nothing was found.

    python -m benchmarks.confidence                     the state of the code now
    python -m benchmarks.confidence --before COMMIT     an older state as well, in the same run
    python -m benchmarks.confidence --threshold         `calibrate.likely`, each vault left out
    python -m benchmarks.confidence --fit               the curve, each corpus left out in turn

Asked are all judged questions of seven vaults, `questions/garden-typed.jsonl`, and questions that
a vault cannot answer: its own unanswerable ones and some about the next vault, by rule:

    30   every second judged question of the other vault, from the first on; fewer if it has fewer
    20   names of its notes, by chance (seed 0), of at least two words that are together in no
         note of the vault that is asked, and without underscores (those are names of test files)

The first table has for each state how many of them were held back ("No good match"), whether
numbers and bands fall with the rank, and how often one note has two of the first three places. The
third has the Brier score of the first three results (mean square of confidence minus truth).

The second has a row for each vault and tier. The promise is that at most 10 % of the questions that
a vault can answer are held back, whether it has static or full vectors. The rule leaves a margin
for a vault that nobody has seen: the highest threshold that holds back at most 5 % of the
answerable questions of each of the other vaults, in each tier. The default is the lowest of those
that are chosen so, one for each vault left out.
"""

from __future__ import annotations

import argparse
import os
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks import corpora, data, record
from benchmarks.compare_states import State, checkout
from ragvault.config.settings import Config
from ragvault.evaluate.questions import Question
from ragvault.evaluate.run import Replay
from ragvault.rank.calibrate import STEEPNESS, THRESHOLD, evidence_parts, sigmoid
from ragvault.rank.limit import is_likely
from ragvault.rank.pipeline import outcome_of
from ragvault.search import search
from ragvault.types import SearchRequest, Tier
from ragvault.vault import Vault

OTHER = dict(zip(corpora.VAULTS, (*corpora.VAULTS[1:], corpora.VAULTS[0]), strict=True))
COLLECTIONS = (
    *("ir/cranfield", "ir/cacm", "ir/med"),
    *("ir/mtrag-fiqa-pool@2500", "ir/mtrag-clapnq-pool@2500"),
)
QUESTIONS, NAMES = 30, 20  # made of another vault
MOST_HELD = 0.05  # of the answerable questions of a vault: half of what is promised
TIERS: tuple[Tier, ...] = ("static", "full")
THRESHOLDS = [step / 400 for step in range(121)]
BANDS = ("excellent", "good", "moderate", "weak", "unlikely", "noise")
WORD = re.compile(r"[^\W\d_]{3,}")
FIRST = 3  # results of each question that count for the curve
STEPS = 50  # of Newton's method; it needs about ten
PRIOR = 0.01  # pulls the steepness to 0, so that results that can be told apart have a curve too
# With it only an answer with every word of the query, a name or a phrase is likely.
NEVER_LIKELY = msgspec.convert({"calibrate": {"likely": 1.0}}, Config)


class Asked(NamedTuple):
    """A query: `group` is judged, typed, own (unanswerable) or made (unanswerable)."""

    group: str
    question: Question

    @property
    def is_answerable(self) -> bool:
        return self.group in ("judged", "typed")


# --- What is asked ---


def asked_of(name: str) -> list[Asked]:
    """Everything that one vault is asked."""
    judged = corpora.corpus(name).questions
    found = [Asked("judged" if each.relevant else "own", each) for each in judged]
    for other, vault in corpora.VAULT_OF.items():
        if vault == name:
            found += [Asked("typed", each) for each in corpora.corpus(other).questions]
    return found + [Asked("made", each) for each in unanswerable(name)]


def unanswerable(name: str) -> list[Question]:
    """Questions about another vault, by the rule above."""
    other = OTHER[name]
    judged = [each.query for each in corpora.corpus(other).questions if each.relevant]
    files = sorted(data.folder("vaults", name).rglob("*.md"))
    known = [_words(f"{path.stem} {path.read_text('utf-8', 'replace')}") for path in files]
    stems = sorted({path.stem for path in data.folder("vaults", other).rglob("*.md")})
    unknown = [each for each in stems if _is_foreign(each, known)]
    names = random.Random(0).sample(unknown, min(NAMES, len(unknown)))
    queries = [*judged[::2][:QUESTIONS], *names]
    return [Question(f"{other}:{at}", query, ()) for at, query in enumerate(queries)]


def _is_foreign(name: str, known: Sequence[set[str]]) -> bool:
    words = _words(name)
    return "_" not in name and len(words) >= 2 and not any(words <= each for each in known)


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.lower()))


# --- What a state of the code answers ---


def figures(answers: Sequence[tuple[Asked, Mapping[str, Any]]]) -> dict[str, Any]:
    """The figures of one state; `rows` of an answer are note, confidence and band."""

    def held(*groups: str) -> list[bool]:
        return [not answer["likely"] for asked, answer in answers if asked.group in groups]

    with_two = [answer for _, answer in answers if len(answer["rows"]) > 1]
    return {
        "own": _share(held("own")),
        "made": _share(held("made")),
        "unanswerable": _share(held("own", "made")),
        "answerable": _share(held("judged", "typed")),
        "numbers_fall": _share([_falls(answer["rows"], 1) for answer in with_two]),
        "bands_fall": _share([_falls(answer["rows"], 2) for answer in with_two]),
        "same_note": _share(
            [len({note for note, _, _ in answer["rows"][:3]}) < 3 for answer in with_two]
        ),
        "asked": len(answers),
    }


def _share(found: Sequence[bool]) -> list[int]:
    return [sum(found), len(found)]


def _falls(rows: Sequence[Sequence[Any]], column: int) -> bool:
    """Whether the confidence, or the band, never rises from one row to the next."""
    values = [row[column] for row in rows if row[1] is not None]
    ranks = [-BANDS.index(value) if column == 2 else value for value in values]
    return all(above >= below for above, below in pairwise(ranks))


def compare(trees: Mapping[str, Path]) -> list[dict[str, Any]]:
    """One row for each state of the code."""
    rows = []
    for name, tree in trees.items():
        answers = []
        for vault in OTHER:
            asked = asked_of(vault)
            queries = [each.question.query for each in asked]
            task = {"root": str(corpora.corpus(vault).root), "flags": [corpora.PATIENT]}
            state = State(tree, {**task, "queries": queries, "limit": None, "timed": False})
            answers += [(each, state(at)) for at, each in enumerate(asked)]
            state.close()
        rows.append({"state": name, **figures(answers)})
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = {
        "own": "their own unanswerable",
        "made": "about another vault",
        "unanswerable": "**both held back**",
        "answerable": "**answerable held back**",
        "numbers_fall": "numbers never rise",
        "bands_fall": "bands never rise",
        "same_note": "a note twice in the first three",
    }
    lines = [f"| state | {' | '.join(columns.values())} |", f"|---|{'---:|' * len(columns)}"]
    for row in rows:
        cells = [f"{row[key][0] / max(row[key][1], 1):.0%} of {row[key][1]}" for key in columns]
        lines.append(f"| {row['state']} | {' | '.join(cells)} |")
    return "\n".join(lines)


# --- The threshold ---


class Held(NamedTuple):
    """A question: whether its vault can answer it, and below which threshold it is held back.

    `confidence` is 1 where no threshold holds it back: a result has every word of the query.
    """

    answerable: bool
    confidence: float


def thresholds() -> list[dict[str, Any]]:
    """One row for each vault and tier: the threshold chosen on the others, and what it does."""
    asked = {name: {tier: list(_held(name, tier)) for tier in TIERS} for name in OTHER}
    default = corpora.corpus(next(iter(OTHER))).vault().settings.config.calibrate.likely
    rows = []
    for name, own in asked.items():
        others = [each for other, of in asked.items() if other != name for each in of.values()]
        chosen = chosen_threshold(others)
        rows += [_threshold_row(name, tier, own[tier], chosen, default) for tier in TIERS]
    return rows


def chosen_threshold(vaults: Sequence[Sequence[Held]]) -> float:
    """The highest one that holds back few enough of the answerable questions of each vault."""
    return max(
        each
        for each in THRESHOLDS
        if all(_held_share(of, each, answerable=True) <= MOST_HELD for of in vaults)
    )


def _threshold_row(
    name: str, tier: Tier, own: Sequence[Held], chosen: float, default: float
) -> dict[str, Any]:
    row: dict[str, Any] = {"vault": name, "tier": tier, "chosen": chosen, "default": default}
    for at in ("chosen", "default"):
        row[f"answerable at {at}"] = _held_share(own, row[at], answerable=True)
        row[f"unanswerable at {at}"] = _held_share(own, row[at], answerable=False)
    row["n"] = [sum(e.answerable for e in own), sum(not e.answerable for e in own)]
    return row


def _held(name: str, tier: Tier) -> Iterator[Held]:
    corpus = corpora.corpus(name)
    environ = {**os.environ, "RAGVAULT_HOME": str(_home(tier))}
    flags = [corpora.PATIENT, "calibrate.likely=0"]
    vault = Vault.open(corpus.root, flags=flags, environ=environ)
    vault.index(tier)
    with vault.corpus() as index:
        for each in asked_of(name):
            found = search(SearchRequest(each.question.query, corpora.NOW), index).results
            sure = 1.0 if is_likely(found, NEVER_LIKELY) else found[0].confidence if found else 0.0
            yield Held(each.is_answerable, sure or 0.0)


def _home(tier: Tier) -> Path:
    """A home of its own for vaults with static vectors: a vault that has full ones is asked by
    them. It has the same models.
    """
    if tier == "full":
        return record.home()
    home = record.home() / tier
    home.mkdir(exist_ok=True)
    if not (home / "models").exists():
        (home / "models").symlink_to(record.home() / "models")
    return home


def _held_share(asked: Sequence[Held], threshold: float, *, answerable: bool) -> float:
    own = [each.confidence < threshold for each in asked if each.answerable == answerable]
    return sum(own) / max(1, len(own))


def threshold_table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| vault left out | vectors | answerable | unanswerable | threshold chosen on the others "
        "| holds back: answerable | unanswerable | the default | answerable | unanswerable |",
        f"|---|---|{'---:|' * 8}",
    ]
    for row in rows:
        cells = [row["vault"], row["tier"], *map(str, row["n"])]
        for at in ("chosen", "default"):
            shares = (f"{row[f'{kind} at {at}']:.0%}" for kind in ("answerable", "unanswerable"))
            cells += [f"{row[at]:.4g}", *shares]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# --- The curve ---


class Shown(NamedTuple):
    """One result: the sum of its evidence, and whether it is right."""

    evidence: float
    right: bool


class Curve(NamedTuple):
    """The evidence that means 0.5, and how fast the confidence changes around it."""

    threshold: float
    steepness: float

    def confidence(self, evidence: float) -> float:
        return sigmoid(evidence, self.threshold, self.steepness)


DEFAULT_CURVE = Curve(THRESHOLD, STEEPNESS)


def shown_evidence(replay: Replay, relevant: int) -> Iterator[Shown]:
    """The first results of each question. A query that is an exact name needs no curve."""
    for prepared, stages in replay.traces():
        if prepared.plan.listing:
            continue
        ranked = outcome_of("boost", stages).kept
        parts = zip(ranked, evidence_parts(ranked, prepared.context), strict=True)
        evidence = {each.id: sum(of.values()) for each, of in parts}
        for each in outcome_of("budget", stages).kept[:FIRST]:
            if not each.exact:
                right = prepared.question.grades.get(each.note.path, 0) >= relevant
                yield Shown(evidence[each.id], right)


def fit_curve(shown: Sequence[Shown]) -> Curve:
    """The curve with the highest likelihood, and at least a little steep: logistic regression."""
    slope, offset = 1.0, 0.0
    for _ in range(STEPS):
        # Gradient and Hessian of the negative log likelihood, with a small prior on the slope.
        gradient = [PRIOR * slope, 0.0]
        hessian = [PRIOR, 0.0, 1e-9]
        for each in shown:
            p = sigmoid(slope * each.evidence, -offset, 1.0)
            error, spread = p - each.right, p * (1 - p)
            gradient[0] += error * each.evidence
            gradient[1] += error
            hessian[0] += spread * each.evidence**2
            hessian[1] += spread * each.evidence
            hessian[2] += spread
        det = hessian[0] * hessian[2] - hessian[1] ** 2
        if det <= 0:
            break
        slope -= (hessian[2] * gradient[0] - hessian[1] * gradient[1]) / det
        offset -= (hessian[0] * gradient[1] - hessian[1] * gradient[0]) / det
    steepness = min(max(slope, 0.5), 50.0)
    return Curve(min(max(-offset / steepness, 0.0), 5.0), steepness)


def brier(shown: Sequence[Shown], curve: Curve) -> float:
    """The mean square of confidence minus truth; lower is better."""
    errors = [(curve.confidence(each.evidence) - each.right) ** 2 for each in shown]
    return sum(errors) / max(len(errors), 1)


def fitted(names: Sequence[str]) -> list[dict[str, Any]]:
    """One row a corpus: the curve fitted on the others, judged on this one."""
    shown = {name: list(_shown(name)) for name in names}
    default = DEFAULT_CURVE
    rows = []
    for name, own in shown.items():
        others = fit_curve([each for other in shown if other != name for each in shown[other]])
        rows.append(_row(name, own, others, default))
    every = [each for own in shown.values() for each in own]
    return [*rows, _row("all", every, fit_curve(every), default)]


def _shown(name: str) -> Iterator[Shown]:
    corpus = corpora.corpus(name, 60 if name.startswith("ir/") else 0)
    questions = list(corpus.questions)
    if name in OTHER:
        questions = [each.question for each in asked_of(name)]
    with Replay(corpus.vault(), questions, corpora.NOW) as replay:
        yield from shown_evidence(replay, corpus.relevant)


def _row(name: str, shown: Sequence[Shown], chosen: Curve, default: Curve) -> dict[str, Any]:
    share = sum(each.right for each in shown) / len(shown)
    return {
        "corpus": name,
        "results": len(shown),
        "right": share,
        "chosen": brier(shown, chosen),
        "default": brier(shown, default),
        "best_here": brier(shown, fit_curve(shown)),
        "base_rate": share * (1 - share),
        "threshold": chosen.threshold,
        "steepness": chosen.steepness,
    }


def fit_table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| Brier score on | results | right | fitted on the others | its threshold, steepness "
        "| default | fitted here | always the mean |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        curve = f"{row['threshold']:.2f}, {row['steepness']:.1f}"
        costs = [f"{row[key]:.3f}" for key in ("default", "best_here", "base_rate")]
        cells = [row["corpus"], str(row["results"]), f"{row['right']:.0%}", f"{row['chosen']:.3f}"]
        lines.append(f"| {' | '.join([*cells, curve, *costs])} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", metavar="COMMIT", help="an older state of the code")
    parser.add_argument("--threshold", action="store_true", help="choose the threshold instead")
    parser.add_argument("--fit", action="store_true", help="fit the curve instead")
    parser.add_argument("--corpora", default=",".join((*OTHER, *COLLECTIONS)))
    args = parser.parse_args(arguments)
    for name in args.corpora.split(",") if args.fit else OTHER:
        corpora.corpus(name).index()
    if args.threshold:
        rows = thresholds()
        print(threshold_table(rows), flush=True)
        record.save("confidence-threshold", rows)
        return
    if args.fit:
        rows = fitted(args.corpora.split(","))
        print(fit_table(rows), flush=True)
        record.save("confidence-fit", rows)
        return
    with ExitStack() as stack:
        trees = {args.before: stack.enter_context(checkout(args.before))} if args.before else {}
        rows = compare({**trees, "now": Path(__file__).parent.parent})
    print(table(rows), flush=True)
    record.save("confidence", rows)


if __name__ == "__main__":
    main()
