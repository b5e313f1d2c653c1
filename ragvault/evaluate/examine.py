"""Examine: the same questions, asked of one index under different settings, become one report.

    examiner = Examiner(reading, questions, now)
    examiner.ask("search.profile=ragdocs")         every question, with some settings changed
    examine(examiner, ["default", "ragdocs"])      the report, as JSON and tables show it

`reading` opens the index with settings laid over those in effect. A model that one run has loaded
is kept for the next: what it costs to load is no part of any comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ragvault.config.settings import Config
from ragvault.evaluate import ablation, report
from ragvault.evaluate.answers import Answer, answers
from ragvault.evaluate.liveness import liveness
from ragvault.evaluate.questions import Question
from ragvault.evaluate.rehearse import Rehearsal
from ragvault.opened import Embedders, Opened

Reading = Callable[[Sequence[str]], Opened]
Tell = Callable[[str], None]


class Examiner:
    """Asks, and keeps what it takes to ask again."""

    def __init__(self, reading: Reading, questions: Sequence[Question], now: datetime) -> None:
        self.questions = questions
        self._reading, self.now = reading, now
        self._models: Embedders | None = None

    def ask(self, *flags: str) -> list[Answer]:
        """Every question, with these settings changed."""
        with self.opened(*flags) as index:
            return list(answers(self.questions, index, self.now))

    def rehearsal(self, *flags: str) -> Rehearsal:
        """The questions with what is found for them, to be ranked again and again."""
        return Rehearsal(self.questions, self.opened(*flags), self.now)

    def settings(self, *flags: str) -> Config:
        """The settings in effect with these changed."""
        with self.opened(*flags) as index:
            return index.config

    def opened(self, *flags: str) -> Opened:
        """The index with these settings; closed by whoever asked for it."""
        index = self._reading(flags)
        if self._models is not None:
            index.embedders = self._models
        self._models = index.embedders
        return index


def examine(
    examiner: Examiner,
    profiles: Sequence[str],
    *,
    parts: bool = False,
    signals: bool = False,
    tell: Tell = lambda line: None,
) -> dict[str, Any]:
    """Every profile held against the first.

    With `parts` the first one is taken apart; with `signals` each of its signals is counted.
    """
    answered: dict[str, list[Answer]] = {}
    for name in profiles:
        tell(f"{name}: asking {len(examiner.questions)} questions")
        answered[name] = examiner.ask(_profile(name))
    first, base = next(iter(answered.items()))
    reports = {name: report.report(found) for name, found in answered.items()}
    with examiner.opened(_profile(first)) as index:
        off = ablation.off(index.config)
        unknown = report.unknown_notes(base, index.catalogue.files())
        revision = index.catalogue.revision
    return {
        "revision": revision,
        "profile": first,
        **reports[first],
        "profiles": reports,
        "comparisons": [
            report.comparison(name, found, first, base)
            for name, found in answered.items()
            if name != first
        ],
        "ablations": _ablations(examiner, first, base, tell) if parts else [],
        "signals": _signals(examiner, first, tell) if signals else [],
        "off": off,
        "unknown_notes": unknown,
    }


def _ablations(
    examiner: Examiner, profile: str, base: Sequence[Answer], tell: Tell
) -> list[Mapping[str, Any]]:
    """What every part is worth: the base less what is left without it."""
    with examiner.rehearsal(_profile(profile)) as rehearsal:
        rows: list[Mapping[str, Any]] = []
        for variant in ablation.variants(rehearsal.config):
            tell(f"{profile} without {variant.name}")
            flags = (_profile(profile), *variant.flags)
            config = examiner.settings(*flags)
            again = rehearsal.under(config) if rehearsal.fits(config) else examiner.ask(*flags)
            rows.append(_worth(variant, base, again))
    return rows


def _worth(
    variant: ablation.Variant, base: Sequence[Answer], without: Sequence[Answer]
) -> Mapping[str, Any]:
    # The base against the variant: what the part gains is positive.
    worth = report.comparison("", base, "", without)
    lost = report.comparison("", without, "", base)
    return {
        "part": variant.name,
        "group": variant.group,
        **{key: worth[key] for key in ("metric", "n", "mean", "low", "high", "kinds")},
        "without": report.summary(without),
        "helps": [each["id"] for each in lost["regressions"]],
        "hurts": [each["id"] for each in worth["regressions"]],
    }


def _signals(examiner: Examiner, profile: str, tell: Tell) -> list[Mapping[str, Any]]:
    tell(f"{profile}: counting what fires")
    with examiner.opened(_profile(profile)) as index:
        found = liveness(index, examiner.questions, examiner.now)
    return [{**asdict(each), "state": each.state} for each in found]


def _profile(name: str) -> str:
    return f"search.profile={name}"
