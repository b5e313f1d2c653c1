"""Ask questions of a vault through the real read path, with its settings or with others.

    evaluate        the report of `ragvault eval`: profiles compared, and what each part is worth
    run_questions   search for every question, and score the answers
    Replay          the answers of the same questions under any settings, as often as needed
    ablations       what can be switched off: legs, boosts, stages

A note counts at the rank of its best section, so a search returns enough sections to cover ten
notes. A user sees the first n of them; context and tokens are counted on those. Every answer is
ranked in full. Whether a user would read "No good match" instead is counted apart: an answer is
held back if it is empty, or if nothing in it is likely to answer (`calibrate.likely`).

A replay is fast because a ranking depends only on the candidates and the context, and neither
depends on the settings of the stages. Ranking again takes a few milliseconds. Settings that change
which candidates are found need a new search.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, LegRun, PassageFacts
from ragvault.config.settings import Config
from ragvault.corpus import LocalCorpus
from ragvault.errors import UsageError
from ragvault.evaluate import report
from ragvault.evaluate.questions import Question
from ragvault.evaluate.report import ScoredAnswer, context_scores, score, unique_notes
from ragvault.models.load import ModelPool
from ragvault.plan import LEGS, QueryPlan
from ragvault.ports import Progress
from ragvault.rank.budget import token_counter
from ragvault.rank.limit import is_likely, result_count
from ragvault.rank.pipeline import Outcome, outcome_of, run_stages
from ragvault.retrieve.gather import retrieve
from ragvault.search import ranking_context, search, stages_of, understand_query
from ragvault.types import SearchRequest
from ragvault.vault import Vault

MIN_DEPTH = 30  # results: ten notes, with at most three sections of each
# Tables of settings that only the ranking reads.
RANKING_TABLES = (
    *("fuse", "boost", "calibrate", "dedup", "diversify"),
    *("rerank", "parents", "limit", "budget", "search"),
)
BOOSTS = (
    *("backlinks", "recency", "community", "importance", "access"),
    *("templates", "superseded"),
)
# Stages that are optional. `limit` and `budget` only shorten an answer.
OPTIONAL_STAGES = ("calibrate", "dedup", "diversify", "rerank", "parents")


def evaluate(
    vaults: Mapping[str, Vault],
    questions: Sequence[Question],
    now: datetime,
    *,
    ablate: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare each profile with the first; the others come by score, the best first.

    `vaults` has one vault, opened with each profile. `ablate` switches off each part of the first
    profile in turn.
    """
    progress, pool = progress or Progress(), ModelPool()
    answers: dict[str, list[ScoredAnswer]] = {}
    for done, (name, vault) in enumerate(vaults.items(), 1):
        if len(vaults) > 1:
            progress.step("comparing profiles", done, len(vaults))
        with vault.corpus(kit=pool) as index:
            answers[name] = list(run_questions(questions, index, now, progress=progress))
    first, base = next(iter(answers.items()))
    reports = {name: report.overall_and_kinds(of) for name, of in answers.items()}
    others = sorted(
        list(reports)[1:], key=lambda name: -reports[name]["overall"].get(report.METRIC, 0.0)
    )
    with vaults[first].catalogue() as catalogue:
        unknown, revision = report.unknown_notes(base, catalogue.files()), catalogue.revision
    return {
        "revision": revision,
        "profile": first,
        **reports[first],
        "profiles": {name: reports[name] for name in (first, *others)},
        "comparisons": [report.comparison(name, answers[name], first, base) for name in others],
        "ablations": list(_ablated(vaults[first], base, now, pool, progress)) if ablate else [],
        "off": parts_off(vaults[first].settings.config),
        "unknown_notes": unknown,
    }


def _ablated(
    vault: Vault,
    base: Sequence[ScoredAnswer],
    now: datetime,
    pool: ModelPool,
    progress: Progress,
) -> Iterator[Mapping[str, Any]]:
    """What each part is worth: the base minus what remains without it."""
    questions = [each.question for each in base]
    with Replay(vault, questions, now, pool=pool, progress=progress) as replay:
        every = list(ablations(replay.config))
        for done, each in enumerate(every, 1):
            progress.step("switching parts off", done, len(every))
            without = list(replay.answers(with_values(replay.config, each.off)))
            # The base against what is left: positive if the part helps.
            worth = report.comparison("", base, "", without)
            yield {
                "part": each.name,
                "group": each.group,
                **{key: worth[key] for key in (*report.Difference._fields, "kinds", "changed")},
                "without": report.summarize(without),
                "helps": [lost["id"] for lost in report.regressions(without, base)],
                "hurts": [lost["id"] for lost in worth["regressions"]],
            }


# --- Asking and scoring ---


def run_questions(
    questions: Sequence[Question],
    index: LocalCorpus,
    now: datetime,
    *,
    progress: Progress | None = None,
) -> Iterator[ScoredAnswer]:
    """Search for every question in turn."""
    progress, screen = progress or Progress(), _screen(index.config, index.facts.median_length)
    for place, question in enumerate(questions):
        progress.step("asking questions", place + 1, len(questions))
        if place == 0:
            _search(question, index, now, screen)  # loads the models, which must not be timed
        yield _search(question, index, now, screen)


def _search(question: Question, index: LocalCorpus, now: datetime, screen: Context) -> ScoredAnswer:
    try:
        response = search(_request(question, now, screen), index)
    except UsageError as error:
        return _refused(question, str(error))
    return _scored(
        question,
        response.results,
        screen,
        took_ms=response.took_ms,
        failed=tuple(response.failed),
    )


def _screen(config: Config, note_length: float) -> Context:
    """What says how many results a user with these settings sees, and how many tokens they have."""
    return Context(settings=config, note_length=note_length)


def _request(question: Question, now: datetime, screen: Context) -> SearchRequest:
    depth = max(MIN_DEPTH, result_count(screen))
    return SearchRequest(question.query, now, depth, widen=False, verify=False, all_matches=True)


def _scored(
    question: Question,
    results: Sequence[Candidate],
    screen: Context,
    *,
    took_ms: float = 0.0,
    failed: tuple[str, ...] = (),
) -> ScoredAnswer:
    """The scores of results, as a user would see them."""
    results = [each for each in results if each.note.path not in question.without]
    shown, tokens = results[: result_count(screen)], token_counter(screen)
    return ScoredAnswer(
        question,
        _scores(question, results, shown),
        tuple(unique_notes(each.note.path for each in results)),
        shown[0].confidence if shown else None,
        not is_likely(shown, screen.settings),
        sum(tokens(each.text) for each in shown),
        took_ms,
        failed,
    )


def _refused(question: Question, why: str) -> ScoredAnswer:
    """A query that cannot be asked is scored as having found nothing."""
    return ScoredAnswer(question, _scores(question, (), ()), refused=why)


def _scores(
    question: Question, results: Sequence[Candidate], shown: Sequence[Candidate]
) -> report.Scores:
    ranking = [each.note.path for each in results]
    return score(ranking, question.grades) | context_scores(shown, question)


# --- Other settings ---


class PreparedSearch(NamedTuple):
    """A question with all its candidates, before anything is ranked."""

    question: Question
    plan: QueryPlan
    candidates: Sequence[Candidate]
    context: Context
    runs: Sequence[LegRun]


class Replay:
    """The answers of the same questions under any settings. The caller closes it.

    Each question is searched once, and ranked as often as needed. Passages, vectors and sections
    are in memory once, however many questions found them.
    """

    def __init__(
        self,
        vault: Vault,
        questions: Sequence[Question],
        now: datetime,
        *,
        pool: ModelPool | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.questions, self.config = questions, vault.settings.config
        self._vault, self._now = vault, now
        self._pool, self._progress = pool or ModelPool(), progress or Progress()
        self._index = vault.corpus(kit=self._pool)
        self.revision, self._length = self._index.facts.revision, self._index.facts.median_length
        self._sections = self._index.excerpts("section")
        self._excerpts = self._index.excerpts("passage")
        self._passages: dict[int, PassageFacts] = {}
        self._vectors: dict[int, Any] = {}
        self._searches: list[PreparedSearch | ScoredAnswer] = []
        for done, each in enumerate(questions, 1):
            self._searches.append(self._prepared(each))
            self._progress.step("finding candidates", done, len(questions))
        self.missing = self._index.missing

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *failure: object) -> None:
        self._index.close()

    def can_rank(self, config: Config) -> bool:
        """Whether a search with these settings would find the same candidates."""
        tables = (name for name in config.__struct_fields__ if name not in RANKING_TABLES)
        same = all(getattr(config, name) == getattr(self.config, name) for name in tables)
        return same and config.rerank.enabled <= self.config.rerank.enabled

    def answers(self, config: Config, only: Sequence[int] | None = None) -> Iterator[ScoredAnswer]:
        """The answers under these settings, one by one; with `only`, of the questions there.

        They are ranked again if the candidates stay the same, else searched again.
        """
        searches = self._searches if only is None else [self._searches[at] for at in only]
        if not self.can_rank(config):
            yield from self._searched([each.question for each in searches], config)
            return
        screen = _screen(config, self._length)
        for each in searches:
            yield each if isinstance(each, ScoredAnswer) else self._ranked(each, screen)

    def traces(self) -> Iterator[tuple[PreparedSearch, tuple[Outcome, ...]]]:
        """Every question that can be asked, with what each stage returns."""
        for each in self._searches:
            if isinstance(each, PreparedSearch):
                yield each, _stages(each, self.config)

    def _prepared(self, question: Question) -> PreparedSearch | ScoredAnswer:
        """The candidates of a question, as the read path has them (search.py)."""
        request = _request(question, self._now, _screen(self.config, self._length))
        try:
            with self._index.snapshot():  # notes may change before they are ranked
                plan = understand_query(request, self._index, {})
                found = retrieve(plan, request, self._index)
                context = ranking_context(plan, found.candidates, request, self._index, {})
                candidates = [self._shared(each) for each in found.candidates]
                vectors = dict(context.vectors)
        except UsageError as error:
            return _refused(question, str(error))
        for id_, vector in vectors.items():
            # A copy: a row of a matrix would keep the whole matrix in memory.
            vectors[id_] = self._vectors.setdefault(id_, vector.copy())
        context = replace(
            context, vectors=vectors, sections=self._sections, passages=self._excerpts
        )
        return PreparedSearch(question, plan, candidates, context, found.runs)

    def _shared(self, candidate: Candidate) -> Candidate:
        """The candidate with the one passage of this id that is in memory, its text too."""
        passage = self._passages.get(candidate.id)
        if passage is None:
            passage = replace(candidate.passage, source=candidate.passage.text)
            self._passages[candidate.id] = passage
        return replace(candidate, passage=passage)

    def _searched(self, questions: Sequence[Question], config: Config) -> Iterator[ScoredAnswer]:
        vault = self._vault
        settings = dataclasses.replace(vault.settings, config=config)
        with Vault(vault.root, vault.folder, settings).corpus(kit=self._pool) as index:
            yield from run_questions(questions, index, self._now, progress=self._progress)

    def _ranked(self, prepared: PreparedSearch, screen: Context) -> ScoredAnswer:
        results = outcome_of("budget", _stages(prepared, screen.settings)).kept
        failed = tuple(run.leg for run in prepared.runs if run.failed)
        return _scored(prepared.question, results, screen, failed=failed)


def _stages(prepared: PreparedSearch, config: Config) -> tuple[Outcome, ...]:
    """What each stage returns for these candidates under these settings."""
    context = replace(prepared.context, settings=config)
    return run_stages(prepared.candidates, context, stages_of(prepared.plan))[1]


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """The settings with these values, by their dotted names."""
    for key, value in values.items():
        config = _put(config, key.split("."), value)
    return config


def _put(table: Any, path: Sequence[str], value: Any) -> Any:
    name, *rest = path
    return replace(table, **{name: _put(getattr(table, name), rest, value) if rest else value})


# --- What can be switched off ---


class Ablation(NamedTuple):
    """One part of a search that is on: its name, its group, and the settings that switch it off."""

    name: str
    group: str
    off: Mapping[str, Any]


def ablations(config: Config) -> Iterator[Ablation]:
    """Every part that is on and that a search can do without.

    leg     one leg
    query   words that are added to the query
    boost   one boost
    fuse    the lift for exact names, and scores filled in by other legs
    stage   one ranking stage; without `fuse`, the lists are concatenated
    """
    legs = _legs(config)
    for leg in legs:
        others = [other for other in legs if other != leg]
        if set(others) - {"graph"}:  # the graph leg finds nothing alone
            yield Ablation(leg, "leg", {"retrieve.legs": others})
    if config.fuse.method != "union":
        yield Ablation("fuse", "stage", {"fuse.method": "union"})
    if config.fuse.exact:
        yield Ablation("exact", "fuse", {"fuse.exact": 0.0})
    if config.retrieve.fill:
        yield Ablation("fill", "fuse", {"retrieve.fill": []})
    if config.query.expand.method != "off":
        yield Ablation("expansion", "query", {"query.expand.method": "off"})
    boosts = [name for name in BOOSTS if getattr(config.boost, name).enabled]
    if config.boost.enabled and boosts:
        for name in boosts:
            yield Ablation(name, "boost", {f"boost.{name}.enabled": False})
        yield Ablation("boost", "stage", {"boost.enabled": False})
    for stage in OPTIONAL_STAGES:
        if getattr(config, stage).enabled:
            yield Ablation(stage, "stage", {f"{stage}.enabled": False})


def parts_off(config: Config) -> list[str]:
    """The parts that these settings already switch off."""
    legs = [leg for leg in LEGS if leg not in _legs(config)]
    boosts = [name for name in BOOSTS if not getattr(config.boost, name).enabled]
    expansion = ["expansion"] if config.query.expand.method == "off" else []
    stages = [name for name in ("boost", *OPTIONAL_STAGES) if not getattr(config, name).enabled]
    return [*legs, *boosts, *expansion, *stages]


def _legs(config: Config) -> list[str]:
    return [leg for leg in config.retrieve.legs if leg != "code" or config.code.enabled]
