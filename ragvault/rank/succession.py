"""Succession: a note that another one replaces gives way to it, where both were found.

    replaced    the new note takes the place of the old one, which then stands just behind it
    replacing   the old note falls just behind the new one, wherever that stands

A query that finds the old note by its words is answered by the new one, whatever words that uses:
so the new note's best passage inherits the old one's score. What is asked for by its very name
keeps its place, and nothing passes an exact hit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nextafter

from ragvault.candidate import Candidate, Term, key


def give_way(
    order: Sequence[Candidate], terms: list[list[Term]], scores: list[float], *, inherits: bool
) -> None:
    """Change scores, and say so in terms, so that no replaced note is before its successor."""
    replaced = {c.note.id: c.note.superseded_by for c in order if c.note.superseded_by}
    newest_first = _newest_first(replaced)
    if inherits:  # the oldest first, so that a place is handed on
        for note in reversed(newest_first):
            _inherit(order, terms, scores, note, replaced[note])
    for note in newest_first:
        _step_back(order, terms, scores, note, replaced[note])


def _inherit(
    order: Sequence[Candidate],
    terms: list[list[Term]],
    scores: list[float],
    note: int,
    successors: Sequence[int],
) -> None:
    """The best passage of a successor gets the best score of the note it replaces."""
    new = _passages(order, scores, successors)
    old = _plain(order, _passages(order, scores, [note]))
    if not new or not old:
        return
    place = min(scores[old[0]], _ceiling(order, scores))
    if scores[new[0]] < place:
        why = f"takes the place of {order[old[0]].note.title}, which it replaces"
        terms[new[0]].append(Term("superseded", place - scores[new[0]], why=why))
        scores[new[0]] = place


def _step_back(
    order: Sequence[Candidate],
    terms: list[list[Term]],
    scores: list[float],
    note: int,
    successors: Sequence[int],
) -> None:
    """Passages of a replaced note stand behind the best passage of a note replacing it."""
    new = _passages(order, scores, successors)
    best = scores[new[0]] if new else inf
    for at in _plain(order, _passages(order, scores, [note])):
        if scores[at] >= best:
            best = nextafter(best, -inf)
            terms[at].append(Term("superseded", best - scores[at], why="a newer note is found"))
            scores[at] = best


def _passages(order: Sequence[Candidate], scores: Sequence[float], of: Sequence[int]) -> list[int]:
    """Where the passages of some notes are, the best first."""
    found = [at for at, each in enumerate(order) if each.note.id in of]
    return sorted(found, key=lambda at: key(order[at], scores[at]))


def _plain(order: Sequence[Candidate], places: Sequence[int]) -> list[int]:
    """Without what was asked for by its name: that is neither held back nor handed on."""
    return [at for at in places if not order[at].exact]


def _ceiling(order: Sequence[Candidate], scores: Sequence[float]) -> float:
    """Just below every exact hit."""
    exact = [score for score, each in zip(scores, order, strict=True) if each.exact]
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
