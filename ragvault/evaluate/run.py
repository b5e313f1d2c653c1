"""Ask questions of an open index through the real read path, and score the answers.

    run_questions   search for every question
    Replay          search once for every question, then rank again with other settings

A note counts at the rank of its best section, so a search returns enough sections to cover ten
notes. A user sees the first n of them; context and tokens are counted on those. Every answer is
ranked in full. Whether a user would read "No good match" instead is counted apart: an answer is
held back if it is empty, or if nothing in it is likely to answer (`calibrate.likely`).

A replay works because a ranking depends only on the candidates and the context, and neither depends
on the settings of the stages. Ranking again takes a few milliseconds. Settings that change which
candidates are found need a new search; `Replay.can_rank` distinguishes them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, LegRun, PassageFacts
from ragvault.config.settings import Config
from ragvault.corpus import LocalCorpus
from ragvault.errors import UsageError
from ragvault.evaluate.metrics import RELEVANT, Scores, context_scores, score, unique_notes
from ragvault.evaluate.questions import Question
from ragvault.plan import QueryPlan
from ragvault.ports import NoProgress, Progress
from ragvault.query.understand import understand
from ragvault.rank.budget import token_counter
from ragvault.rank.limit import is_likely, result_count
from ragvault.rank.pipeline import Outcome, outcome_of, run_stages
from ragvault.retrieve.gather import retrieve
from ragvault.search import ranking_context, search, stages_of, understand_query
from ragvault.types import SearchRequest

ASKING, FINDING = "asking questions", "finding candidates"  # steps of their progress
MIN_DEPTH = 30  # results: ten notes, with at most three sections of each
# Tables of settings that only the ranking reads.
RANKING_TABLES = (
    *("fuse", "boost", "calibrate", "dedup", "diversify"),
    *("rerank", "parents", "limit", "budget", "search"),
)


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One question and the scores of its answer. `notes` are the notes found, best first.

    `confidence` is that of the first result, None if it has none. `refused` says why the query
    could not be asked; `failed` names the legs that failed.
    """

    question: Question
    scores: Scores
    notes: tuple[str, ...] = ()
    confidence: float | None = None
    held_back: bool = True
    tokens: int = 0
    took_ms: float = 0.0
    failed: tuple[str, ...] = ()
    refused: str = ""


class AnswerScorer:
    """Scores results as a user with these settings would see them."""

    def __init__(self, config: Config, note_length: float, relevant: int = RELEVANT) -> None:
        self.config, self._relevant = config, relevant
        context = Context(settings=config, note_length=note_length)
        self._shown = result_count(context)
        self._tokens = token_counter(context)

    @property
    def depth(self) -> int:
        """How many results to ask for."""
        return max(MIN_DEPTH, self._shown)

    def scored(
        self,
        question: Question,
        results: Sequence[Candidate],
        *,
        took_ms: float = 0.0,
        failed: Iterable[str] = (),
    ) -> ScoredAnswer:
        results = [each for each in results if each.note.path not in question.without]
        shown = results[: self._shown]
        return ScoredAnswer(
            question,
            self._scores(question, results),
            tuple(unique_notes(each.note.path for each in results)),
            shown[0].confidence if shown else None,
            is_held_back(shown, self.config),
            sum(self._tokens(each.text) for each in shown),
            took_ms,
            tuple(failed),
        )

    def refused(self, question: Question, why: str) -> ScoredAnswer:
        """A query that cannot be asked is scored as having found nothing."""
        return ScoredAnswer(question, self._scores(question, ()), refused=why)

    def _scores(self, question: Question, results: Sequence[Candidate]) -> Scores:
        ranking = [each.note.path for each in results]
        scores = score(ranking, question.grades, relevant=self._relevant)
        shown = results[: self._shown]
        return scores | context_scores(shown, question, relevant=self._relevant)


def is_held_back(results: Sequence[Candidate], config: Config) -> bool:
    """Whether the user would read that nothing matches the question."""
    return not is_likely(results, config)


def run_questions(
    questions: Sequence[Question],
    index: LocalCorpus,
    now: datetime,
    *,
    relevant: int = RELEVANT,
    progress: Progress | None = None,
) -> Iterator[ScoredAnswer]:
    """Search for every question in turn."""
    progress = progress or NoProgress()
    scorer = AnswerScorer(index.config, index.catalogue.median_length(), relevant)
    for place, question in enumerate(questions):
        progress.step(ASKING, place + 1, len(questions))
        if place == 0:
            _search(question, index, now, scorer)  # loads the models, which must not be timed
        yield _search(question, index, now, scorer)


def _search(
    question: Question, index: LocalCorpus, now: datetime, scorer: AnswerScorer
) -> ScoredAnswer:
    try:
        request = SearchRequest(
            question.query, now, scorer.depth, widen=False, verify=False, all_matches=True
        )
        response = search(request, index)
    except UsageError as error:
        return scorer.refused(question, str(error))
    took, failed = response.took_ms, response.failed
    return scorer.scored(question, response.results, took_ms=took, failed=failed)


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """A query with all its candidates, before anything is ranked."""

    plan: QueryPlan
    candidates: Sequence[Candidate]
    context: Context
    runs: Sequence[LegRun]


def _prepare(
    request: SearchRequest, index: LocalCorpus, plan: QueryPlan | None = None
) -> PreparedSearch:
    """The read path up to ranking (search.py); with `plan`, of that plan."""
    plan = plan or understand_query(request, index).plan
    found = retrieve(plan, request, index)
    context, _ = ranking_context(plan, found.candidates, request, index)
    return PreparedSearch(plan, found.candidates, context, found.runs)


class Replay:
    """Questions with all their candidates. Closes the index it was given.

    Passages, vectors and sections are held once, however many questions found them.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        index: LocalCorpus,
        now: datetime,
        relevant: int = RELEVANT,
        progress: Progress | None = None,
    ) -> None:
        self.config = index.config
        self._relevant = relevant
        self._index = index
        self._length = index.catalogue.median_length()
        self._depth = AnswerScorer(self.config, self._length).depth
        self._shared = _SharedPassages(index)
        self._searches: list[tuple[Question, PreparedSearch | str]] = []
        for each in questions:
            self._searches.append((each, self._prepared(each, now)))
            (progress or NoProgress()).step(FINDING, len(self._searches), len(questions))

    def can_rank(self, config: Config) -> bool:
        """Whether a search with these settings would find the same candidates."""
        tables = (name for name in config.__struct_fields__ if name not in RANKING_TABLES)
        same = all(getattr(config, name) == getattr(self.config, name) for name in tables)
        return same and config.rerank.enabled <= self.config.rerank.enabled

    def answers(self, config: Config, only: Sequence[int] | None = None) -> list[ScoredAnswer]:
        """Every answer as these settings rank it; with `only`, the questions at those places."""
        scorer = AnswerScorer(config, self._length, self._relevant)
        places = range(len(self._searches)) if only is None else only
        return [self._answer(*self._searches[place], scorer) for place in places]

    def traces(
        self, config: Config
    ) -> Iterator[tuple[Question, PreparedSearch, tuple[Outcome, ...]]]:
        """Every question that can be asked, with what each stage returned."""
        for question, prepared in self._searches:
            if isinstance(prepared, PreparedSearch):
                yield question, prepared, self.rank(prepared, prepared.candidates, config)

    def rank(
        self, prepared: PreparedSearch, candidates: Sequence[Candidate], config: Config
    ) -> tuple[Outcome, ...]:
        """What each stage returns for these candidates."""
        context = replace(prepared.context, settings=config)
        return run_stages(candidates, context, stages_of(prepared.plan))[1]

    def unexpanded(self, question: Question, now: datetime) -> PreparedSearch:
        """The same question without words that were added to it. Raises UsageError."""
        plan = understand(question.query, self.config.query, now=now)
        with self._index.snapshot():
            request = self._request(question, now)
            return self._shared.share(_prepare(request, self._index, plan))

    def _request(self, question: Question, now: datetime) -> SearchRequest:
        return SearchRequest(question.query, now, self._depth, widen=False, all_matches=True)

    def _answer(
        self, question: Question, prepared: PreparedSearch | str, scorer: AnswerScorer
    ) -> ScoredAnswer:
        if isinstance(prepared, str):
            return scorer.refused(question, prepared)
        stages = self.rank(prepared, prepared.candidates, scorer.config)
        failed = [run.leg for run in prepared.runs if run.failed]
        return scorer.scored(question, outcome_of("budget", stages).kept, failed=failed)

    def _prepared(self, question: Question, now: datetime) -> PreparedSearch | str:
        """The candidates of a question, or why it cannot be asked."""
        try:
            with self._index.snapshot():  # notes may change before they are ranked
                request = self._request(question, now)
                return self._shared.share(_prepare(request, self._index))
        except UsageError as error:
            return str(error)

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *failure: object) -> None:
        self._index.close()


class _SharedPassages:
    """Passages, sections and vectors that many questions have in common."""

    def __init__(self, index: LocalCorpus) -> None:
        self._sections, self._excerpts = index.sections(), index.excerpts()
        self._passages: dict[int, PassageFacts] = {}
        self._vectors: dict[int, Any] = {}

    def share(self, prepared: PreparedSearch) -> PreparedSearch:
        candidates = [
            replace(each, passage=self._passage(each.passage)) for each in prepared.candidates
        ]
        context = replace(
            prepared.context,
            vectors=self._share_vectors(prepared.context.vectors),
            sections=self._sections,
            passages=self._excerpts,
        )
        return dataclasses.replace(prepared, candidates=candidates, context=context)

    def _passage(self, passage: PassageFacts) -> PassageFacts:
        if passage.id not in self._passages:
            self._passages[passage.id] = replace(passage, source=passage.text)
        return self._passages[passage.id]

    def _share_vectors(self, vectors: Mapping[int, Any]) -> dict[int, Any]:
        # A copy: a row of a matrix would keep the whole matrix in memory.
        for id_, vector in vectors.items():
            if id_ not in self._vectors:
                self._vectors[id_] = vector.copy()
        return {id_: self._vectors[id_] for id_ in vectors}
