"""Tune: better weights for one vault, kept only if unseen questions confirm them.

    split    the questions, kind by kind, into two halves
    search   on one half: change one weight at a time, and keep a change that raises the mean
    judge    on the other half: the lower end of the paired 95 % interval must be above 0, no kind
             of question may lose more than a point, and nonsense must be held back as often

The search never sees the second half, so luck on the first is no help: on shuffled labels nothing
is changed in at least 95 of 100 runs (tests/evaluate/test_tune.py).

Tuned settings are stored beside the index, never in the vault:

    tuned-NAME.toml   settings for a profile, between config.toml and the vault's own file
    tuned.jsonl       one receipt per line, also of tunings that were reverted
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from ragvault.config.schema import literal, parse_toml
from ragvault.config.settings import Config
from ragvault.errors import UsageError
from ragvault.evaluate.questions import Question
from ragvault.evaluate.report import (
    METRIC,
    Difference,
    ScoredAnswer,
    average,
    difference,
    kind_differences,
    summarize,
)
from ragvault.evaluate.run import Replay, with_values
from ragvault.ports import Progress
from ragvault.store.files import replace_file
from ragvault.store.layout import RECEIPTS, tuned_file

MIN_QUESTIONS = 20  # judged ones: with fewer, each half is too small
ROUNDS = 3
POINT = 0.01
MIN_GAIN = 1e-4  # in the mean of the first half; less is rounding
STEPS = (0.5, 0.75, 1.33, 2.0)  # factors; several rounds reach any value
START = 0.05  # the first value tried for a weight of 0: our smallest measured default

Values = Mapping[str, float]
_HEAD = (
    "# Weights that `ragvault tune` found for this vault; `ragvault tune --revert` removes them."
)


def check_questions(questions: Sequence[Question], config: Config) -> None:
    """Raises UsageError if there are too few questions or nothing to tune."""
    judged = sum(any(each.grade > 0 for each in q.relevant) for q in questions)
    if judged < MIN_QUESTIONS:
        raise UsageError(
            f"{judged} judged questions are too few to tell luck from gain; "
            f"at least {MIN_QUESTIONS} are needed",
            fix="judge more questions, or use probes of the vault: ragvault eval --write FILE",
        )
    if not knobs(config):
        raise UsageError(
            f"fuse.method = {config.fuse.method!r} has no weights", fix="choose another profile"
        )


def tune(
    replay: Replay,
    *,
    seed: int = 0,
    fixed: Collection[str] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Search on one half and judge on the other; `fixed` settings are not changed.

    Returns the receipt: everything needed to check the tuning. It has numbers only, and no text of
    a note.
    """
    config = replay.config
    first, second = halves(replay.questions, seed)
    free = [knob for knob in knobs(config) if knob.key not in fixed]
    values, gain, tried = _search(replay, free, first, seed, progress or Progress())
    base = list(replay.answers(config, second))
    now = list(replay.answers(with_values(config, values), second)) if values else base
    judged, kinds = difference(now, base, seed=seed), kind_differences(now, base)
    refusal = _refusal(judged, kinds, _held(base) - _held(now))
    if not values:
        refusal = "no other weights are better"
    return {
        "seed": seed,
        "accepted": not refusal,
        "refusal": refusal,
        "settings": {key: [setting_value(config, key), new] for key, new in values.items()},
        "searched": {"n": len(first), "rankings": tried, "gain": gain},
        "judged": {
            **judged._asdict(),
            "kinds": {kind: each.mean for kind, each in kinds.items()},
        },
        "before": summarize(base),
        "after": summarize(now),
    }


def halves(questions: Sequence[Question], seed: int) -> tuple[list[int], list[int]]:
    """The places of the questions in two halves, each kind split evenly."""
    kinds: dict[str, list[int]] = {}
    for place, question in enumerate(questions):
        kinds.setdefault(question.kind, []).append(place)
    chance = random.Random(seed)
    first: list[int] = []
    second: list[int] = []
    for places in kinds.values():
        chance.shuffle(places)
        # The odd one goes to the smaller half, so that many small kinds do not fill one half.
        small, large = sorted((first, second), key=len)
        small += places[0::2]
        large += places[1::2]
    return sorted(first), sorted(second)


def _search(
    replay: Replay,
    free: Sequence[Knob],
    places: Sequence[int],
    seed: int,
    progress: Progress,
) -> tuple[Values, float, int]:
    """Change one weight at a time while the mean rises: the values, their gain, rankings tried."""

    config = replay.config

    def mean(values: Values) -> float:
        answers = replay.answers(with_values(config, values), places)
        return average(each.scores for each in answers).get(METRIC, 0.0)

    chance = random.Random(seed)
    start = best = mean({})
    values: dict[str, float] = {}
    tried = 0
    for rounds in range(ROUNDS):
        before = best
        order = chance.sample(free, len(free))
        for done, knob in enumerate(order, rounds * len(free) + 1):
            progress.step("trying weights", done, ROUNDS * len(free))
            for number in knob.near(values.get(knob.key, setting_value(config, knob.key))):
                tried += 1
                found = mean({**values, knob.key: number})
                if found > best + MIN_GAIN:
                    best, values[knob.key] = found, number
        if best == before:
            break
    kept = {key: number for key, number in values.items() if number != setting_value(config, key)}
    return kept, best - start, tried


def _refusal(judged: Difference, kinds: Mapping[str, Difference], lost: float) -> str:
    """Why a change is refused; empty if it is accepted. `lost` of the held back are no more."""
    if judged.low <= 0:
        return (
            f"the change in {METRIC} ({judged.mean:+.3f}) is within chance "
            f"(95 % interval {judged.low:+.3f} to {judged.high:+.3f})"
        )
    for kind, each in sorted(kinds.items(), key=lambda item: item[1].mean):
        if each.mean < -POINT:
            return f"questions of the kind {kind or '(none)'} lose {-each.mean:.3f}"
    return f"unanswerable questions are held back less often, by {lost:.0%}" if lost > POINT else ""


def _held(answers: Iterable[ScoredAnswer]) -> float:
    """The share of the unanswerable questions that are held back."""
    held = [each.held_back for each in answers if not each.question.relevant]
    return sum(held) / len(held) if held else 1.0


# --- Which weights can be tuned ---


class Knob(NamedTuple):
    """One setting that may be tuned, within its bounds."""

    key: str
    low: float = 0.0
    high: float = 4.0
    whole: bool = False

    def near(self, value: float) -> Iterator[float]:
        """The values to try next."""
        found = [value * step for step in STEPS] if value else [START]
        found += [] if value < START else [0.0]
        tried = {self._bounded(each) for each in found} - {value}
        yield from sorted(tried)

    def _bounded(self, value: float) -> float:
        bounded = min(max(value, self.low), self.high)
        return round(bounded) if self.whole else round(bounded, 4)


_FUSION = {
    "rrf": (
        Knob("fuse.weights.keyword"),
        Knob("fuse.weights.graph"),
        Knob("fuse.k", 1, 200, True),
        Knob("fuse.exponent", 0, 4),
    ),
    "weighted": (Knob("fuse.weights.keyword"),),
    "features": tuple(
        Knob(f"fuse.features.{part}") for part in ("recency", "hierarchy", "adjacency")
    ),
    "union": (),
}
_BOOSTS = {
    "backlinks": Knob("boost.backlinks.weight", 0, 0.1),
    "recency": Knob("boost.recency.bias", 0, 1),
    "access": Knob("boost.access.weight", 0, 0.1),
}


def knobs(config: Config) -> list[Knob]:
    """The weights that can be tuned: those of the fusion in use, and of boosts that are on.

    Each is a setting of the ranking alone, so the candidates of a question stay the same.
    """
    found = list(_FUSION[config.fuse.method])
    if config.boost.enabled:
        found += [knob for name, knob in _BOOSTS.items() if getattr(config.boost, name).enabled]
        if config.boost.bounded:
            found.append(Knob("boost.max_rise", 0, 1))
    return found


def setting_value(config: Config, key: str) -> float:
    found: Any = reduce(getattr, key.split("."), config)
    return float(found)


# --- Storing tuned settings ---


def keep_tuning(folder: Path, receipt: Mapping[str, Any]) -> Path:
    """Store the settings of a receipt over earlier ones, and append the receipt."""
    path = tuned_file(folder, receipt["profile"])
    changed = {key: pair[1] for key, pair in receipt["settings"].items()}
    settings = {**_read_tuned(path), **changed}
    lines = [
        _HEAD,
        f"# {_gain(receipt['judged'])} that the search did not see;",
        f"# seed {receipt['seed']}, revision {receipt['revision']}, {receipt['when']}",
        *(f"{key} = {literal(number)}" for key, number in sorted(settings.items())),
    ]
    _append_receipt(folder, receipt)
    replace_file(path, ("\n".join(lines) + "\n").encode())
    return path


def _gain(judged: Mapping[str, Any]) -> str:
    interval = f"[{judged['low']:+.4f}, {judged['high']:+.4f}]"
    return f"{judged['metric']} {judged['mean']:+.4f} {interval} on {judged['n']} questions"


def revert_tuning(folder: Path, when: str) -> dict[str, Any]:
    """Delete all tuned settings and return them. Raises UsageError if there are none."""
    files = sorted(folder.glob(tuned_file(folder, "*").name))
    if not files:
        raise UsageError(
            "nothing to revert: this vault has not been tuned",
            fix="ragvault tune QUESTIONS.jsonl",
        )
    settings = {key: value for path in files for key, value in _read_tuned(path).items()}
    _append_receipt(folder, {"when": when, "reverted": settings})
    for path in files:
        path.unlink()
    return settings


def _read_tuned(path: Path) -> dict[str, Any]:
    """Dotted key -> value; empty if there is no file or it is not TOML."""
    try:
        return dict(_flat(parse_toml(path.read_text("utf-8")), ""))
    except (OSError, ValueError):
        return {}


def _flat(tree: Mapping[str, Any], above: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        name = f"{above}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return found


def _append_receipt(folder: Path, receipt: Mapping[str, Any]) -> None:
    path = folder / RECEIPTS
    before = path.read_bytes() if path.exists() else b""
    replace_file(path, before + json.dumps(receipt).encode() + b"\n")
