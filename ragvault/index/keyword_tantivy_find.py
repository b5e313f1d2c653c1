"""Find: a search on tantivy whose scores are sums over two indexes.

The best passages by sum need not be among the best of either index. So both lists are read from
the top, what one list knows is looked up in the other, and reading goes on, further down each
time, until nothing unread could still pass (Fagin's threshold algorithm). Numbers are added here,
in double precision, from what tantivy gives for each index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragvault.index.ids import among
from ragvault.index.keyword_pick import best
from ragvault.index.keyword_plan import Match, Plan
from ragvault.index.keyword_tantivy_query import Asking, filtered, unscored
from ragvault.index.keyword_time import Deadline

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

    def and_also(self, others: Picked) -> Picked:
        """These, and those of the others that are not among them."""
        new = others.at(~among(others.ids, np.sort(self.ids)))
        return Picked(*(np.concatenate(columns) for columns in zip(self, new, strict=True)))


class NoteScores(NamedTuple):
    """Scores of notes; ids ascend."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float64]

    def least(self, score: float) -> NDArray[np.int64]:
        """Those with at least this score."""
        return self.ids[self.scores >= score]

    def has(self, notes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of them are among these."""
        return among(notes, self.ids)

    def of(self, notes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Their scores, 0 for one that is not among these."""
        if not len(self.ids):
            return np.zeros(len(notes))
        at = np.minimum(np.searchsorted(self.ids, notes), len(self.ids) - 1)
        return np.where(self.ids[at] == notes, self.scores[at], 0.0)


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

    def __init__(self, asking: Asking, plan: Plan, allow: Allow, deadline: Deadline) -> None:
        self._asking, self._plan, self._deadline = asking, plan, deadline
        self._few, self._test = allow
        self._sums = Sums(asking, plan)

    def best(self, match: Match, limit: int, per_note: int) -> Picked:
        """The best, in order."""
        plain = self._asking.scores_matches(match, self._plan.terms)
        constraint = None if plain else self._asking.matching(match, self._deadline)
        size = max(FIRST, 2 * limit)
        while True:
            found, edge = self._read(constraint, size, limit, per_note)
            enough = edge < 0 or (len(found.ids) == limit and _passes(found.scores[-1], edge))
            if enough or self._deadline.over():
                return found
            size *= 4

    def lowest(self, match: Match) -> float | None:
        """The lowest score of all that match."""
        everything, every_note = (
            max(1, level.searcher.num_docs) for level in (self._asking.passages, self._asking.notes)
        )
        constraint = self._asking.matching(match, self._deadline)
        own, _, notes = self._passages(constraint, None, everything)
        scores = own + self._sums.best_notes(every_note).of(notes)
        return float(scores.min()) if len(scores) else None

    def _read(
        self, constraint: Any | None, size: int, limit: int, per_note: int
    ) -> tuple[Picked, float]:
        """The best that were read, and the most that anything unread can have (-1: nothing is)."""
        rows = self._passages(constraint, None, size)
        # Fewer than were asked for: what else matches is found by the words of its note alone.
        every = len(rows[0]) < size
        notes = NO_NOTES if every and constraint else self._sums.best_notes(size)
        all_notes = len(notes.ids) < size
        rest = 0.0 if every else float(rows[0][-1])  # the most that an unread passage has itself
        found = _best(self._added_up(rows, notes), limit, per_note)
        wanted = notes.least(found.scores[-1] - rest if len(found.ids) == limit else 0.0)
        if len(wanted):
            near = self._added_up(self._passages(constraint, wanted.tolist(), NEAR), notes)
            found = _best(found.and_also(near), limit, per_note)
        edge = rest + (0.0 if all_notes else float(notes.scores.min()))
        return found, -1.0 if every and all_notes else edge

    def _added_up(self, rows: _Rows, notes: NoteScores) -> Picked:
        """Passages that are allowed, with the scores of their notes."""
        own, ids, theirs = (column[self._test(rows[1])] for column in rows)
        unknown = self._sums.of_notes(theirs[~notes.has(theirs)])
        return Picked(ids, theirs, own, notes.of(theirs) + unknown.of(theirs))

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


def _passes(score: float, edge: float) -> bool:
    """Equal ones go by id, so those unread must be lower; where nothing scores, any will do."""
    return score > edge or edge == 0


def _best(found: Picked, limit: int, per_note: int) -> Picked:
    return found.at(best(found.scores, found.ids, found.notes, limit, per_note))


_Rows = tuple["NDArray[Any]", ...]  # scores, passages, notes
_NONE: _Rows = (np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
