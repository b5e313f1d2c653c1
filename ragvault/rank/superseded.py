"""Superseded: where a note and its replacement were both found, the replacement comes first.

    replaced    the new note takes the place of the old one, which moves just behind it
    replacing   the old note moves just behind the new one, wherever that is

A query that finds the old note by its words should be answered by the new one, even if that uses
other words. So with `replaced` the new note's best passage inherits the old one's score. An exact
hit on the old note keeps its place, and nothing passes an exact hit. The last step of `boost`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nextafter

from ragvault.candidate import Candidate, Term, key


def demote_superseded(
    order: Sequence[Candidate], terms: list[list[Term]], scores: list[float], *, inherits: bool
) -> None:
    """Change scores and add terms so that no replaced note is above its replacement."""
    scoring = _Scoring(order, terms, scores)
    replaced = {c.note.id: c.note.superseded_by for c in order if c.note.superseded_by}
    newest_first = _newest_first(replaced)
    if inherits:  # the oldest first, so that a place is handed on along a chain
        for note in reversed(newest_first):
            scoring.inherit(note, replaced[note])
    for note in newest_first:
        scoring.step_back(note, replaced[note])


@dataclass(frozen=True, slots=True)
class _Scoring:
    """The candidates with the scores that are being changed, and the terms that say why."""

    order: Sequence[Candidate]
    terms: list[list[Term]]
    scores: list[float]

    def inherit(self, note: int, successors: Sequence[int]) -> None:
        """Give the best passage of a successor the best score of the note it replaces."""
        new, old = self._passages(successors), self._inexact([note])
        if not new or not old:
            return
        place = min(self.scores[old[0]], self._ceiling())
        if self.scores[new[0]] < place:
            title = self.order[old[0]].note.title
            self._set(new[0], place, f"replaces {title} and takes its place")

    def step_back(self, note: int, successors: Sequence[int]) -> None:
        """Move the passages of a replaced note behind the best passage of a note replacing it."""
        new = self._passages(successors)
        best = self.scores[new[0]] if new else inf
        for at in self._inexact([note]):
            if self.scores[at] >= best:
                best = nextafter(best, -inf)
                self._set(at, best, "replaced by a note that was also found")

    def _set(self, at: int, score: float, why: str) -> None:
        self.terms[at].append(Term("superseded", score - self.scores[at], why=why))
        self.scores[at] = score

    def _passages(self, notes: Sequence[int]) -> list[int]:
        """The positions of some notes' passages, best first."""
        found = [at for at, each in enumerate(self.order) if each.note.id in notes]
        return sorted(found, key=lambda at: key(self.order[at], self.scores[at]))

    def _inexact(self, notes: Sequence[int]) -> list[int]:
        """The same without exact hits, which neither step back nor hand on their place."""
        return [at for at in self._passages(notes) if not self.order[at].exact]

    def _ceiling(self) -> float:
        """Just below every exact hit."""
        exact = [s for s, each in zip(self.scores, self.order, strict=True) if each.exact]
        return nextafter(min(exact), -inf) if exact else inf


def _newest_first(replaced: Mapping[int, Sequence[int]]) -> list[int]:
    """Successors before the notes they replace. Notes that replace each other are left out."""
    done: list[int] = []
    cycles: set[int] = set()

    def visit(note: int, path: tuple[int, ...]) -> None:
        if note in path:
            cycles.update(path[path.index(note) :])
        elif note in replaced and note not in done:
            for successor in sorted(replaced[note]):
                visit(successor, (*path, note))
            if note not in done:
                done.append(note)

    for note in sorted(replaced):
        visit(note, ())
    return [note for note in done if note not in cycles]
