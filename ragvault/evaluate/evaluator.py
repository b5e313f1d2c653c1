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
from ragvault.ports import NoProgress, Progress

OpenIndex = Callable[[Sequence[str]], LocalCorpus]


class Evaluator:
    """Runs the questions, and stores what is needed to run them again."""

    def __init__(
        self,
        open_index: OpenIndex,
        questions: Sequence[Question],
        now: datetime,
        progress: Progress | None = None,
    ) -> None:
        self.questions = questions
        self.progress = progress or NoProgress()
        self._open_index, self.now = open_index, now
        self._models: Embedders | None = None

    def run(self, *flags: str) -> list[ScoredAnswer]:
        """Ask every question, with these settings changed."""
        with self.opened(*flags) as index:
            return list(run_questions(self.questions, index, self.now, progress=self.progress))

    def replay(self, *flags: str) -> Replay:
        """The questions with their candidates, to be ranked again and again."""
        return Replay(self.questions, self.opened(*flags), self.now, progress=self.progress)

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
) -> dict[str, Any]:
    """Run every profile and compare each with the first; the others come by score, the best first.

    `ablate` switches off each part of the first profile in turn, and searches with each leg alone;
    `signals` counts how often each of its signals fires and changes an answer.
    """
    answers: dict[str, list[ScoredAnswer]] = {}
    for done, name in enumerate(profiles, 1):
        if len(profiles) > 1:
            evaluator.progress.step("comparing profiles", done, len(profiles))
        answers[name] = evaluator.run(_profile(name))
    first, base = next(iter(answers.items()))
    reports = _by_score({name: report.overall_and_kinds(of) for name, of in answers.items()})
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
            report.comparison(name, answers[name], first, base) for name in reports if name != first
        ],
        "ablations": _ablations(evaluator, first, base) if ablate else [],
        "legs": _legs_alone(evaluator, first, base) if ablate else [],
        "signals": _signals(evaluator, first) if signals else [],
        "off": off,
        "unknown_notes": unknown,
    }


def _by_score(reports: Mapping[str, report.Summary]) -> dict[str, report.Summary]:
    """The first report, then the others by their score, the best first."""
    first, *others = reports
    others.sort(key=lambda name: -reports[name]["overall"].get(report.METRIC, 0.0))
    return {name: reports[name] for name in (first, *others)}


def _ablations(
    evaluator: Evaluator, profile: str, base: Sequence[ScoredAnswer]
) -> list[Mapping[str, Any]]:
    """What each part is worth: the base minus what remains without it."""
    with evaluator.replay(_profile(profile)) as replay:
        rows: list[Mapping[str, Any]] = []
        every = list(variants(replay.config))
        for variant in every:
            evaluator.progress.step("switching parts off", len(rows) + 1, len(every))
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
        **{key: worth[key] for key in ("metric", "n", "mean", "low", "high", "kinds", "changed")},
        "without": report.summarize(without),
        "helps": [each["id"] for each in lost["regressions"]],
        "hurts": [each["id"] for each in worth["regressions"]],
    }


def _legs_alone(
    evaluator: Evaluator, profile: str, base: Sequence[ScoredAnswer]
) -> list[Mapping[str, Any]]:
    """What the whole ranking is worth over each leg that can find something alone."""
    rows: list[Mapping[str, Any]] = []
    for leg in evaluator.settings(_profile(profile)).retrieve.legs:
        if leg in LEGS_ALONE:
            alone = evaluator.run(_profile(profile), *leg_alone(leg))
            found = report.comparison(profile, base, f"{leg} leg alone", alone)
            rows.append({"leg": leg, "alone": report.overall_and_kinds(alone), **found})
    return rows


def _signals(evaluator: Evaluator, profile: str) -> list[Mapping[str, Any]]:
    with evaluator.opened(_profile(profile)) as index:
        found = count_signals(
            index, evaluator.questions, evaluator.now, progress=evaluator.progress
        )
    return [{**asdict(each), "state": each.state} for each in found]


def _profile(name: str) -> str:
    return f"search.profile={name}"


# --- one leg alone ---

LEGS_ALONE = ("vector", "keyword")  # the others find nothing for most questions


def leg_alone(leg: str) -> tuple[str, ...]:
    """The settings that show a leg's own list as the answer: nothing adds to it or reorders it.

    At most three sections of a note, as in the default, so that ten notes can be seen.
    """
    return (
        f'retrieve.legs=["{leg}"]',
        'retrieve.fill="off"',
        'fuse.method="rrf"',
        "fuse.exponent=0",
        "fuse.exact=0",
        "boost.enabled=false",
        "dedup.enabled=false",
        "diversify.enabled=true",
        'diversify.method="per-note"',
        "diversify.per_note=3",
        "rerank.enabled=false",
        "budget.enabled=false",
    )


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
