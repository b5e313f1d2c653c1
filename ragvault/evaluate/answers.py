"""Answers: questions asked of an open index through the real read path, each with its scores.

A note counts where its best section stands, so the index is asked for enough sections to hold ten
notes; what a reader gets is the first n of them, and context and tokens are counted on those. An
answer is held back when it is empty, or when the confidence of its first result is not above the
band `moderate`: the reader is told that it is weak.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragvault.candidate import Candidate, Context
from ragvault.config.settings import Config
from ragvault.errors import UsageError
from ragvault.evaluate.context import context
from ragvault.evaluate.metrics import RELEVANT, Scores, best_passages, score
from ragvault.evaluate.questions import Question
from ragvault.opened import Opened
from ragvault.rank.budget import token_counter
from ragvault.rank.limit import result_count
from ragvault.search import Asked, search

DEEP = 30  # results: ten notes, with the three sections that one note may have


@dataclass(frozen=True, slots=True)
class Answer:
    """One question as it was answered. `notes` are those found, each once, best first.

    `confidence` is that of the first result, None where nothing says it. `refused` is why the
    query could not be asked at all; `failed` names legs that did not answer.
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


class Reader:
    """Somebody who searches with these settings, and what they get to see of an answer."""

    def __init__(self, config: Config, note_length: float, relevant: int = RELEVANT) -> None:
        self.config, self.relevant = config, relevant
        about = Context(settings=config, note_length=note_length)
        self.count = result_count(about)
        self.tokens = token_counter(about)

    @property
    def deep(self) -> int:
        """How many results to ask for."""
        return max(DEEP, self.count)

    def answer(
        self,
        question: Question,
        results: Sequence[Candidate],
        *,
        took_ms: float = 0.0,
        failed: Iterable[str] = (),
    ) -> Answer:
        results = [each for each in results if each.note.path not in question.without]
        shown = results[: self.count]
        return Answer(
            question,
            self._scores(question, results),
            tuple(best_passages(each.note.path for each in results)),
            shown[0].confidence if shown else None,
            is_held_back(shown, self.config),
            sum(self.tokens(each.text) for each in shown),
            took_ms,
            tuple(failed),
        )

    def refused(self, question: Question, why: str) -> Answer:
        """A query that cannot be asked found nothing."""
        return Answer(question, self._scores(question, ()), refused=why)

    def _scores(self, question: Question, results: Sequence[Candidate]) -> Scores:
        ranking = [each.note.path for each in results]
        told = score(ranking, question.grades, relevant=self.relevant)
        return told | context(results[: self.count], question, relevant=self.relevant)


def answers(
    questions: Sequence[Question], index: Opened, now: datetime, *, relevant: int = RELEVANT
) -> Iterator[Answer]:
    """Every question in turn. A model that must be loaded first is no question's fault."""
    reader = Reader(index.config, index.catalogue.median_length(), relevant)
    for place, question in enumerate(questions):
        if place == 0:
            _ask(question, index, now, reader)
        yield _ask(question, index, now, reader)


def _ask(question: Question, index: Opened, now: datetime, reader: Reader) -> Answer:
    try:
        response = search(Asked(question.query, now, reader.deep, widen=False), index)
    except UsageError as error:
        return reader.refused(question, str(error))
    took, failed = response.took_ms, response.failed
    return reader.answer(question, response.results, took_ms=took, failed=failed)


def is_held_back(results: Sequence[Candidate], config: Config) -> bool:
    """Whether a reader is told that this is no answer."""
    if not results:
        return True
    sure = results[0].confidence
    return sure is not None and sure <= config.calibrate.bands.moderate
