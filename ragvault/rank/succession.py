"""Succession: a note that another one replaces gives way to it, where both were found.

    replaced    the new note takes the place of the old one, which then stands just behind it
    replacing   the old note falls just behind the new one, wherever that stands

A query that finds the old note by its words is answered by the new one, whatever words that uses:
so the new note's best passage inherits the old one's score. What is asked for by its very name
keeps its place, and nothing passes an exact hit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nextafter

from ragvault.candidate import Candidate, Term, key


def give_way(
    order: Sequence[Candidate], terms: list[list[Term]], scores: list[float], *, inherits: bool
) -> None:
    """Change scores, and say so in terms, so that no replaced note is before its successor."""
    field = _Field(order, terms, scores)
    replaced = {c.note.id: c.note.superseded_by for c in order if c.note.superseded_by}
    newest_first = _newest_first(replaced)
    if inherits:  # the oldest first, so that a place is handed on
        for note in reversed(newest_first):
            field.inherit(note, replaced[note])
    for note in newest_first:
        field.step_back(note, replaced[note])


@dataclass(frozen=True, slots=True)
class _Field:
    """The candidates with the scores that are being changed, and the reasons for them."""

    order: Sequence[Candidate]
    terms: list[list[Term]]
    scores: list[float]

    def inherit(self, note: int, successors: Sequence[int]) -> None:
        """The best passage of a successor gets the best score of the note it replaces."""
        new, old = self._passages(successors), self._plain([note])
        if not new or not old:
            return
        place = min(self.scores[old[0]], self._ceiling())
        if self.scores[new[0]] < place:
            title = self.order[old[0]].note.title
            self._put(new[0], place, f"takes the place of {title}, which it replaces")

    def step_back(self, note: int, successors: Sequence[int]) -> None:
        """Passages of a replaced note stand behind the best passage of a note replacing it."""
        new = self._passages(successors)
        best = self.scores[new[0]] if new else inf
        for at in self._plain([note]):
            if self.scores[at] >= best:
                best = nextafter(best, -inf)
                self._put(at, best, "a newer note is found")

    def _put(self, at: int, score: float, why: str) -> None:
        self.terms[at].append(Term("superseded", score - self.scores[at], why=why))
        self.scores[at] = score

    def _passages(self, of: Sequence[int]) -> list[int]:
        """Where the passages of some notes are, the best first."""
        found = [at for at, each in enumerate(self.order) if each.note.id in of]
        return sorted(found, key=lambda at: key(self.order[at], self.scores[at]))

    def _plain(self, of: Sequence[int]) -> list[int]:
        """Without what was asked for by its name: that is neither held back nor handed on."""
        return [at for at in self._passages(of) if not self.order[at].exact]

    def _ceiling(self) -> float:
        """Just below every exact hit."""
        exact = [s for s, each in zip(self.scores, self.order, strict=True) if each.exact]
        return nextafter(min(exact), -inf) if exact else inf


def _newest_first(replaced: Mapping[int, Sequence[int]]) -> list[int]:
    """Successors before the notes they replace; notes that replace each other stay as they are."""
    done: list[int] = []
    rings: set[int] = set()

    def visit(note: int, path: tuple[int, ...]) -> None:
        if note in path:
            rings.update(path[path.index(note) :])
        elif note in replaced and note not in done:
            for successor in sorted(replaced[note]):
                visit(successor, (*path, note))
            if note not in done:
                done.append(note)

    for note in sorted(replaced):
        visit(note, ())
    return [note for note in done if note not in rings]
