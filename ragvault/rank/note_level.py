"""Fusing notes instead of passages: the best passage of a note stands for all of it.

A note whose one passage the vector leg found and whose other passage the keyword leg found was
found by both. Its ranks are counted in notes, so that one with ten passages does not push the next
one down by ten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Term, key, total

Terms = list[list[Term]]
Method = Callable[[Sequence[Candidate], Context], Terms]


def by_note(candidates: Sequence[Candidate], terms: Terms, method: Method, ctx: Context) -> Terms:
    """The terms of each candidate: its note's for the best passage of a note.

    The other passages keep what they have by themselves.
    """
    best = _best_of_notes(candidates, terms)
    notes = _as_notes(candidates, best)
    found = dict(zip(best.values(), map(_among_notes, method(notes, ctx)), strict=True))
    return [
        found[at] if at in found and total(0.0, found[at]) > total(0.0, own) else own
        for at, own in enumerate(terms)
    ]


def _among_notes(terms: list[Term]) -> list[Term]:
    """A rank that is counted in notes says so: the legs' own are shown beside it."""
    return [
        replace(term, why=f"{term.why} among notes") if term.why.startswith("rank ") else term
        for term in terms
    ]


def _best_of_notes(candidates: Sequence[Candidate], terms: Terms) -> dict[int, int]:
    """Note -> where its best passage is."""
    best: dict[int, int] = {}
    for at in sorted(range(len(terms)), key=lambda i: key(candidates[i], total(0.0, terms[i]))):
        best.setdefault(candidates[at].note.id, at)
    return best


def _as_notes(candidates: Sequence[Candidate], best: Mapping[int, int]) -> list[Candidate]:
    """One candidate a note, with the best of every leg."""
    passages: dict[int, list[Candidate]] = defaultdict(list)
    for each in candidates:
        passages[each.note.id].append(each)
    ranks = _note_ranks(passages)
    return [
        replace(
            candidates[at],
            ranks=ranks[note],
            scores=_most(c.scores for c in passages[note]),
            evidence=_most(c.evidence for c in passages[note]),
        )
        for note, at in best.items()
    ]


def _note_ranks(passages: Mapping[int, Sequence[Candidate]]) -> dict[int, dict[str, int]]:
    """Where each leg placed each note, counted in notes; notes of one best rank share a place."""
    first: dict[str, dict[int, int]] = defaultdict(dict)
    for note, found in passages.items():
        for leg in {leg for each in found for leg in each.ranks}:
            first[leg][note] = min(each.ranks[leg] for each in found if leg in each.ranks)
    ranks: dict[int, dict[str, int]] = {note: {} for note in passages}
    for leg, of_note in first.items():
        places = {rank: place for place, rank in enumerate(sorted(set(of_note.values())), 1)}
        for note, rank in of_note.items():
            ranks[note][leg] = places[rank]
    return ranks


def _most(found: Iterable[Mapping[str, float]]) -> dict[str, float]:
    most: dict[str, float] = {}
    for each in found:
        for name, value in each.items():
            most[name] = max(value, most.get(name, value))
    return most
