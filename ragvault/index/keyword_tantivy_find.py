"""Find: a search on tantivy whose scores are sums over two indexes.

The best passages by sum need not be among the best of either index. So both lists are read from
the top, what one list knows is looked up in the other, and reading goes on, further down each
time, until nothing unread could still pass (Fagin's threshold algorithm). Numbers are added here,
in double precision, from what tantivy gives for each index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragvault.index.keyword_pick import best
from ragvault.index.keyword_plan import Match, Plan
from ragvault.index.keyword_tantivy_query import Asking, filtered, only_words, unscored

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST = 128  # hits read from each list at first; four times as many each time after
SET = 20_000  # up to here a filter is a set of ids in the query; above, hits are tested one by one
NEAR = 1 << 16  # passages read of notes that were found: all, in any vault but a strange one

Allow = tuple["NDArray[np.int64] | None", Callable[["NDArray[np.int64]"], "NDArray[np.bool_]"]]


class Picked(NamedTuple):
    """Passages, with what their own fields gave them and what those of their notes did."""

    ids: NDArray[np.int64]
    notes: NDArray[np.int64]
    own: NDArray[np.float64]
    of_notes: NDArray[np.float64]

    @property
    def scores(self) -> NDArray[np.float64]:
        return self.own + self.of_notes

    def at(self, rows: NDArray[Any]) -> Picked:
        """Some of them, in this order."""
        return Picked(*(column[rows] for column in self))


class NoteScores(NamedTuple):
    """Scores of notes; ids ascend."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]

    def has(self, notes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of them are among these."""
        if not len(self.ids):
            return np.zeros(len(notes), bool)
        known: NDArray[np.bool_] = self.ids[self._at(notes)] == notes
        return known

    def of(self, notes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Their scores, 0 for one that is not among these."""
        if not len(self.ids):
            return np.zeros(len(notes))
        return np.where(self.has(notes), self.scores[self._at(notes)], 0.0)

    def _at(self, notes: NDArray[np.int64]) -> NDArray[np.intp]:
        return np.minimum(np.searchsorted(self.ids, notes), len(self.ids) - 1)


NO_NOTES = NoteScores(np.empty(0, np.int64), np.empty(0))


class Sums:
    """What the words of a plan give to passages and to notes, each by one query."""

    def __init__(self, asking: Asking, plan: Plan) -> None:
        self._asking = asking
        self._by_note = asking.notes.scoring(plan.terms)
        self.by_passage = asking.passages.scoring(plan.terms)

    def of(self, passages: Sequence[int]) -> Picked:
        """Those of some passages; one that is not there is left out."""
        level = self._asking.passages
        query = filtered(self.by_passage, unscored(level.of("id", passages)))
        own, ids, notes = level.ask(query, len(passages), "id", "note")
        return Picked(ids, notes, own, self.of_notes(notes).of(notes))

    def best_notes(self, size: int) -> NoteScores:
        """The notes with the highest scores."""
        return NO_NOTES if self._by_note is None else self._notes(self._by_note, size)

    def of_notes(self, notes: NDArray[np.int64]) -> NoteScores:
        """Scores of these notes."""
        wanted = sorted(set(notes.tolist()))
        if self._by_note is None or not wanted:
            return NO_NOTES
        these = unscored(self._asking.notes.of("id", wanted))
        return self._notes(filtered(self._by_note, these), len(wanted))

    def _notes(self, query: Any, size: int) -> NoteScores:
        scores, ids = self._asking.notes.ask(query, size, "id")
        order = np.argsort(ids)
        return NoteScores(ids[order], scores[order])


class Search:
    """One search: a plan, a filter, a deadline."""

    def __init__(self, asking: Asking, plan: Plan, allow: Allow, deadline: float) -> None:
        self._asking, self._plan, self._deadline = asking, plan, deadline
        self._few, self._test = allow
        self._sums = Sums(asking, plan)
        self.complete = True

    def best(self, match: Match, limit: int, per_note: int) -> Picked:
        """The best, in order."""
        # Without near spellings, what any word of a plain query scores is what it matches.
        plain = only_words(match) and not any(term.near for term in self._plan.terms)
        constraint = None if plain else self._asking.matching(match)
        size = max(FIRST, 2 * limit)
        while True:
            found, edge = self._read(constraint, size)
            scores = found.scores
            order = best(scores, found.ids, found.notes, limit, per_note)
            enough = edge < 0 or (len(order) == limit and scores[order[-1]] >= edge)
            if not enough and time.monotonic() > self._deadline:
                self.complete, enough = False, True
            if enough:
                return found.at(order)
            size *= 4

    def _read(self, constraint: Any | None, size: int) -> tuple[Picked, float]:
        """Candidates, and the most that anything unread can have (-1: nothing is)."""
        own = self._passages(constraint, None, size)
        # Fewer than were asked for: what else matches is found by the words of its note alone.
        every = len(own[0]) < size
        notes = NO_NOTES if every and constraint else self._sums.best_notes(size)
        near = self._passages(constraint, notes.ids.tolist(), NEAR) if len(notes.ids) else _NONE
        all_notes = len(notes.ids) < size
        edge = (0.0 if every else own[0][-1]) + (0.0 if all_notes else notes.scores.min())
        found = self._added_up(own, near, notes)
        kept = found.at(self._test(found.ids))
        return kept, -1.0 if every and all_notes else edge

    def _added_up(self, own: _Rows, near: _Rows, notes: NoteScores) -> Picked:
        """Passages of notes that were found are all in `near`; those of others are in `own`."""
        other = ~notes.has(own[2])
        scores, ids, theirs = (
            np.concatenate([a[other], b]) for a, b in zip(own, near, strict=True)
        )
        of_notes = notes.of(theirs)
        of_notes[: other.sum()] = self._sums.of_notes(own[2][other]).of(own[2][other])
        return Picked(ids, theirs, scores, of_notes)

    def _passages(self, constraint: Any | None, notes: Sequence[int] | None, size: int) -> _Rows:
        """The best passages, of all notes or of given ones."""
        level, scoring = self._asking.passages, self._sums.by_passage
        of_notes = unscored(level.of("note", notes)) if notes else None
        few = None if self._few is None else unscored(level.of("id", self._few.tolist()))
        if constraint is not None or of_notes is not None:
            query = filtered(scoring, constraint, of_notes, few)
        elif scoring is not None:
            query = filtered(None, scoring, few)
        else:
            return _NONE
        return level.ask(query, size, "id", "note")


_Rows = tuple["NDArray[Any]", ...]  # scores, passages, notes
_NONE: _Rows = (np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
