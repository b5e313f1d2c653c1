"""Score: a plan against a view, one term at a time, every passage at once.

Terms are read rarest first, so that what the time limit leaves out is what tells least. Scores are
kept per field and level; a passage's score is its own fields' plus those of its note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragvault.index.keyword_bm25 import BM25, idf
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_plan import Every, Has, Match, Plan, Row, Term, Without
from ragvault.index.keyword_time import Deadline
from ragvault.index.keyword_view import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEAR_COVERS = 0.5  # how much of a word a near spelling covers


@dataclass(frozen=True, slots=True)
class Scores:
    """What some passages earned, in the order of their rows; `fields` is one array a field."""

    fields: dict[str, NDArray[np.float64]]
    coverage: NDArray[np.float64]
    bounds: dict[str, float]

    def of(self, which: NDArray[np.bool_]) -> Scores:
        """The same of fewer passages."""
        fields = {name: own[which] for name, own in self.fields.items()}
        return Scores(fields, self.coverage[which], self.bounds)

    def of_fields(self, names: Iterable[str]) -> NDArray[np.float64]:
        """What these fields gave together."""
        total = np.zeros(len(self.coverage))
        for name in names:
            total += self.fields.get(name, 0.0)
        return total


class Scorer:
    """Scores and matches one query; what the deadline comes before is left out."""

    def __init__(self, view: View, fields: Fields, bm25: BM25, deadline: Deadline) -> None:
        self._view, self._fields, self._bm25, self._deadline = view, fields, bm25, deadline
        self._boosts = fields.boosts
        self._masks: dict[Has | Row, NDArray[np.bool_]] = {}

    def scores(self, plan: Plan) -> Callable[[NDArray[np.int64]], Scores]:
        """Add up every term of the plan, rarest first, until the time is over.

        Returns what says it of some rows: a field of notes is looked up for those alone.
        """
        view = self._view
        by_field = {
            name: np.zeros(len(view.ids[level]) + (level == "note"))
            for name, level in view.level_of.items()
        }
        out = Scores(by_field, np.zeros(len(view.ids["passage"])), dict.fromkeys(by_field, 0.0))
        whole = 0.0
        for term in self._rarest_first(plan.terms):
            if self._deadline.over():
                break
            self._add(term, out)
            whole += self._cover(term, out)
        return lambda rows: self._at(rows, out, whole or 1.0)

    def _at(self, rows: NDArray[np.int64], out: Scores, whole: float) -> Scores:
        places = {"passage": rows, "note": self._view.note_of[rows]}
        of = self._view.level_of
        fields = {name: own[places[of[name]]] for name, own in out.fields.items()}
        return Scores(fields, np.minimum(out.coverage[rows] / whole, 1.0), out.bounds)

    def _rarest_first(self, terms: tuple[Term, ...]) -> list[Term]:
        main = self._fields.main
        holders = {term: self._view.holders(term.field or main, term.text) for term in terms}
        return sorted(terms, key=lambda term: (holders[term], term.text))

    def _add(self, term: Term, out: Scores) -> None:
        for name in self._names(term.field):
            found = self._view.found(name, term.text)
            if not len(found.rows):
                continue
            rarity = idf(len(found.rows), self._view.documents[self._view.level_of[name]])
            scale = term.weight * self._boosts[name]
            lengths = self._view.lengths[name][found.rows]
            own = self._bm25.scores(rarity, found.counts, lengths, self._view.averages[name])
            out.fields[name][found.rows] += scale * own
            out.bounds[name] += scale * self._bm25.bound(rarity)

    def _cover(self, term: Term, out: Scores) -> float:
        """Note which passages hold the term; returns what it weighs in the whole query."""
        if not term.counts:
            return 0.0
        field = term.field or self._fields.main
        holders = len(self._view.found(field, term.text).rows)
        rarity = term.weight * idf(holders, self._view.documents[self._view.level_of[field]])
        mask = self._look_up(Has(term.text, term.field))
        out.coverage[mask] += NEAR_COVERS * rarity if term.near else rarity
        return 0.0 if term.near or (term.optional and not mask.any()) else rarity

    def _names(self, field: str) -> list[str]:
        return [field] if field else list(self._boosts)

    def mask(self, match: Match, unread: bool = False) -> NDArray[np.bool_]:
        """Which passages a tree matches; removed ones may be among them.

        A word or phrase that there was no time to read counts as `unread` says: as missing where
        it is wanted, and as there where it is not, so that nothing is found by mistake.
        """
        if isinstance(match, Has | Row):
            return self._leaf(match, unread)
        if isinstance(match, Without):
            return ~self.mask(match.part, not unread)
        every = isinstance(match, Every)
        found = np.full(len(self._view.ids["passage"]), every)
        for part in match.parts:
            mask = self.mask(part, unread)
            (np.logical_and if every else np.logical_or)(found, mask, out=found)
        return found

    def _leaf(self, match: Has | Row, unread: bool) -> NDArray[np.bool_]:
        if match not in self._masks and self._deadline.over():
            return np.full(len(self._view.ids["passage"]), unread)
        return self._look_up(match)

    def _look_up(self, match: Has | Row) -> NDArray[np.bool_]:
        if match not in self._masks:
            found = self._has(match) if isinstance(match, Has) else self._row(match)
            self._masks[match] = found
        return self._masks[match]

    def _has(self, match: Has) -> NDArray[np.bool_]:
        own, notes = self._blank()
        for name in self._names(match.field):
            mask = notes if self._view.level_of[name] == "note" else own
            mask[self._view.found(name, match.text).rows] = True
        return own | notes[self._view.note_of]

    def _row(self, match: Row) -> NDArray[np.bool_]:
        own, notes = self._blank()
        for name in self._names(match.field):
            mask = notes if self._view.level_of[name] == "note" else own
            mask[self._phrase(name, match)] = True
        return own | notes[self._view.note_of]

    def _phrase(self, name: str, match: Row) -> NDArray[np.int64]:
        """The rows where a field holds the terms at their places: beginnings all terms agree on."""
        beginnings: NDArray[np.int64] | None = None
        for term, place in sorted(match.places, key=lambda p: self._view.holders(name, p[0])):
            keys = self._view.places(name, term) - place
            beginnings = keys if beginnings is None else _both(beginnings, keys)
            if not len(beginnings):
                break
        if beginnings is None:
            return np.zeros(0, np.int64)
        rows = beginnings >> 16  # ascending; np.unique would import numpy.ma for it
        return rows[np.flatnonzero(np.diff(rows, prepend=-1))]

    def _blank(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Nothing found yet: among the passages, and among the notes."""
        ids = self._view.ids
        return np.zeros(len(ids["passage"]), dtype=bool), np.zeros(len(ids["note"]) + 1, dtype=bool)


def _both(few: NDArray[np.int64], many: NDArray[np.int64]) -> NDArray[np.int64]:
    """What stands in both sorted rows."""
    if not len(many):
        return many
    at = np.minimum(np.searchsorted(many, few), len(many) - 1)
    both: NDArray[np.int64] = few[many[at] == few]
    return both
