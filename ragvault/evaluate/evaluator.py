"""One report over the same questions, searched in one index with different settings.

    evaluator = Evaluator(open_index, questions, now)
    evaluator.run("search.profile=ragdocs")       every question, with some settings changed
    evaluate_profiles(evaluator, ["default"])     the report that `ragvault eval` prints
    variants(config)                              the settings with one part switched off, each

`open_index` opens the index with settings laid over those in effect. Models that one run has
loaded are reused by the next, so loading them is not part of any comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ragvault.config.settings import Config
from ragvault.corpus import LocalCorpus
from ragvault.engines import Embedders
from ragvault.evaluate import report
from ragvault.evaluate.questions import Question
from ragvault.evaluate.run import Replay, ScoredAnswer, run_questions
from ragvault.evaluate.signals import BOOSTS, OPTIONAL_STAGES, count_signals
from ragvault.plan import LEGS

OpenIndex = Callable[[Sequence[str]], LocalCorpus]
Progress = Callable[[str], None]


class Evaluator:
    """Runs the questions, and stores what is needed to run them again."""

    def __init__(self, open_index: OpenIndex, questions: Sequence[Question], now: datetime) -> None:
        self.questions = questions
        self._open_index, self.now = open_index, now
        self._models: Embedders | None = None

    def run(self, *flags: str) -> list[ScoredAnswer]:
        """Ask every question, with these settings changed."""
        with self.opened(*flags) as index:
            return list(run_questions(self.questions, index, self.now))

    def replay(self, *flags: str) -> Replay:
        """The questions with their candidates, to be ranked again and again."""
        return Replay(self.questions, self.opened(*flags), self.now)

    def settings(self, *flags: str) -> Config:
        """The settings in effect, with these changed."""
        with self.opened(*flags) as index:
            return index.config

    def opened(self, *flags: str) -> LocalCorpus:
        """The index with these settings changed. The caller closes it."""
        index = self._open_index(flags)
        if self._models is not None:
            index.embedders = self._models
        self._models = index.embedders
        return index


def evaluate_profiles(
    evaluator: Evaluator,
    profiles: Sequence[str],
    *,
    ablate: bool = False,
    signals: bool = False,
    progress: Progress = lambda line: None,
) -> dict[str, Any]:
    """Run every profile and compare each with the first.

    `ablate` switches off each part of the first profile in turn; `signals` counts how often each of
    its signals fires.
    """
    answers: dict[str, list[ScoredAnswer]] = {}
    for name in profiles:
        progress(f"{name}: asking {len(evaluator.questions)} questions")
        answers[name] = evaluator.run(_profile(name))
    first, base = next(iter(answers.items()))
    reports = {name: report.overall_and_kinds(of) for name, of in answers.items()}
    with evaluator.opened(_profile(first)) as index:
        off = parts_off(index.config)
        unknown = report.unknown_notes(base, index.catalogue.files())
        revision = index.catalogue.revision
    return {
        "revision": revision,
        "profile": first,
        **reports[first],
        "profiles": reports,
        "comparisons": [
            report.comparison(name, of, first, base)
            for name, of in answers.items()
            if name != first
        ],
        "ablations": _ablations(evaluator, first, base, progress) if ablate else [],
        "signals": _signals(evaluator, first, progress) if signals else [],
        "off": off,
        "unknown_notes": unknown,
    }


def _ablations(
    evaluator: Evaluator, profile: str, base: Sequence[ScoredAnswer], progress: Progress
) -> list[Mapping[str, Any]]:
    """What each part is worth: the base minus what remains without it."""
    with evaluator.replay(_profile(profile)) as replay:
        rows: list[Mapping[str, Any]] = []
        for variant in variants(replay.config):
            progress(f"{profile} without {variant.name}")
            flags = (_profile(profile), *variant.flags)
            config = evaluator.settings(*flags)
            again = replay.answers(config) if replay.can_rank(config) else evaluator.run(*flags)
            rows.append(_worth(variant, base, again))
    return rows


def _worth(
    variant: Variant, base: Sequence[ScoredAnswer], without: Sequence[ScoredAnswer]
) -> Mapping[str, Any]:
    # The base against the variant: positive if the part helps.
    worth = report.comparison("", base, "", without)
    lost = report.comparison("", without, "", base)
    return {
        "part": variant.name,
        "group": variant.group,
        **{key: worth[key] for key in ("metric", "n", "mean", "low", "high", "kinds")},
        "without": report.summarize(without),
        "helps": [each["id"] for each in lost["regressions"]],
        "hurts": [each["id"] for each in worth["regressions"]],
    }


def _signals(evaluator: Evaluator, profile: str, progress: Progress) -> list[Mapping[str, Any]]:
    progress(f"{profile}: counting signals")
    with evaluator.opened(_profile(profile)) as index:
        found = count_signals(index, evaluator.questions, evaluator.now)
    return [{**asdict(each), "state": each.state} for each in found]


def _profile(name: str) -> str:
    return f"search.profile={name}"


# --- which parts can be switched off ---

#     leg      without one leg
#     boost    without one boost
#     fuse     without the lift for exact names, or without scores filled in by other legs
#     stage    without one ranking stage; without `fuse`, the lists are concatenated


@dataclass(frozen=True, slots=True)
class Variant:
    """One part switched off: its name, its group, and the settings that do it."""

    name: str
    group: str
    flags: tuple[str, ...]


def variants(config: Config) -> Iterator[Variant]:
    """One variant for every part that is on."""
    legs = config.retrieve.legs
    for leg in legs:
        left = [f'"{other}"' for other in legs if other != leg]
        if set(left) - {'"graph"'}:  # the graph leg finds nothing alone
            yield Variant(leg, "leg", (f"retrieve.legs=[{', '.join(left)}]",))
    yield from _fusion(config)
    if config.boost.enabled:
        on = [name for name in BOOSTS if getattr(config.boost, name).enabled]
        for name in on:
            yield Variant(name, "boost", (f"boost.{name}.enabled=false",))
        if on:
            yield Variant("boost", "stage", ("boost.enabled=false",))
    for stage in OPTIONAL_STAGES:
        if getattr(config, stage).enabled:
            yield Variant(stage, "stage", (f"{stage}.enabled=false",))


def parts_off(config: Config) -> list[str]:
    """The parts that these settings already switch off."""
    boosts = [name for name in BOOSTS if not getattr(config.boost, name).enabled]
    stages = [name for name in ("boost", *OPTIONAL_STAGES) if not getattr(config, name).enabled]
    legs = [leg for leg in LEGS if leg not in config.retrieve.legs]
    return [*legs, *boosts, *stages]


def _fusion(config: Config) -> Iterator[Variant]:
    if config.fuse.method != "union":
        yield Variant("fuse", "stage", ('fuse.method="union"',))
    if config.fuse.exact:
        yield Variant("exact", "fuse", ("fuse.exact=0",))
    if config.retrieve.fill != "off":
        yield Variant("fill", "fuse", ('retrieve.fill="off"',))
