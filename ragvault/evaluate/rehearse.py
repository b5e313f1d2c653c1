"""Rehearse: search once, rank as often as you like.

A ranking is a function of the candidates and the context, and neither depends on the settings of
the stages. So each question is searched for once, and other weights, boosts and stages are tried on
what was found, in a few milliseconds each. Settings that change what is found need a new search:
`fits` says which ones do not.

Passages, vectors and sections are kept once, however many questions found them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from ragvault.candidate import Candidate, Passage
from ragvault.config.settings import Config
from ragvault.errors import UsageError
from ragvault.evaluate.answers import Answer, Reader
from ragvault.evaluate.metrics import RELEVANT
from ragvault.evaluate.questions import Question
from ragvault.opened import Opened
from ragvault.rank.pipeline import SHOWING_STAGES, STAGES, Outcome, outcome_of, run_stages
from ragvault.search import Asked, Prepared, prepare

# The tables that only ranking reads.
RANKING = (
    *("fuse", "boost", "calibrate", "dedup", "diversify"),
    *("rerank", "parents", "limit", "budget", "search"),
)


class Rehearsal:
    """Questions with all that was found for them. Closes the index it was given."""

    def __init__(
        self,
        questions: Sequence[Question],
        index: Opened,
        now: datetime,
        relevant: int = RELEVANT,
    ) -> None:
        self.config = index.config
        self._relevant = relevant
        self._index = index
        self._length = index.catalogue.median_length()
        self._kept = _Kept(index)
        self._found = [(each, self._prepared(each, now)) for each in questions]

    def fits(self, config: Config) -> bool:
        """Whether these settings would find the same candidates."""
        tables = (name for name in config.__struct_fields__ if name not in RANKING)
        same = all(getattr(config, name) == getattr(self.config, name) for name in tables)
        return same and config.rerank.enabled <= self.config.rerank.enabled

    def under(self, config: Config, only: Sequence[int] | None = None) -> list[Answer]:
        """Every answer, or those of some places, as these settings rank it."""
        reader = Reader(config, self._length, self._relevant)
        places = range(len(self._found)) if only is None else only
        return [self._answer(*self._found[place], reader) for place in places]

    def traced(self, config: Config) -> Iterator[tuple[Question, Prepared, tuple[Outcome, ...]]]:
        """Every question that can be asked, with what each stage returned."""
        for question, prepared in self._found:
            if isinstance(prepared, Prepared):
                yield question, prepared, self.rank(prepared, prepared.candidates, config)

    def rank(
        self, prepared: Prepared, candidates: Sequence[Candidate], config: Config
    ) -> tuple[Outcome, ...]:
        """What each stage returns of some candidates."""
        context = replace(prepared.context, settings=config)
        stages = SHOWING_STAGES if prepared.plan.listing else STAGES
        return run_stages(candidates, context, stages)[1]

    def _answer(self, question: Question, prepared: Prepared | str, reader: Reader) -> Answer:
        if isinstance(prepared, str):
            return reader.refused(question, prepared)
        stages = self.rank(prepared, prepared.candidates, reader.config)
        failed = [leg.leg for leg in prepared.gathered.runs if leg.failed]
        return reader.answer(question, outcome_of("budget", stages).kept, failed=failed)

    def _prepared(self, question: Question, now: datetime) -> Prepared | str:
        """What is found for a question, or why it cannot be asked."""
        deep = Reader(self.config, self._length).deep
        try:
            with self._index.catalogue.snapshot():  # it is ranked later, when notes have changed
                asked = Asked(question.query, now, deep, widen=False)
                return self._kept.shared(prepare(asked, self._index))
        except UsageError as error:
            return str(error)

    def __enter__(self) -> Rehearsal:
        return self

    def __exit__(self, *failure: object) -> None:
        self._index.close()


class _Kept:
    """What many questions found, once."""

    def __init__(self, index: Opened) -> None:
        library = index.library()
        self._sections, self._stretches = library.sections(), library.stretches()
        self._passages: dict[int, Passage] = {}
        self._vectors: dict[int, Any] = {}

    def shared(self, prepared: Prepared) -> Prepared:
        candidates = [
            replace(each, passage=self._passage(each.passage)) for each in prepared.candidates
        ]
        context = replace(
            prepared.context,
            vectors=self._shared(prepared.context.vectors),
            sections=self._sections,
            passages=self._stretches,
        )
        # Without the candidates as they were found: they are kept here, with shared passages.
        gathered = dataclasses.replace(prepared.gathered, candidates=[])
        return dataclasses.replace(
            prepared, candidates=candidates, context=context, gathered=gathered
        )

    def _passage(self, passage: Passage) -> Passage:
        if passage.id not in self._passages:
            self._passages[passage.id] = replace(passage, source=passage.text)
        return self._passages[passage.id]

    def _shared(self, vectors: Mapping[int, Any]) -> dict[int, Any]:
        # A copy: a row of a matrix would keep the whole matrix.
        for id_, vector in vectors.items():
            if id_ not in self._vectors:
                self._vectors[id_] = vector.copy()
        return {id_: self._vectors[id_] for id_ in vectors}
