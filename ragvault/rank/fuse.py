"""Fuse: several ranked lists become one score.

`fuse.method` names the formula (fuse_methods.py). This stage then applies what all methods share:

    level   with "note", ranks and scores are counted in notes, not passages
    exact   an exact title, alias or quoted phrase goes to the top
    keep    candidates far below the wanted number of results are dropped here
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Term, key, total
from ragvault.rank.fuse_methods import METHODS, Method, Terms
from ragvault.rank.limit import result_count

EXACT_MATCHES = {
    "title": "the query is its title",
    "alias": "the query is one of its aliases",
    "phrase": "contains the quoted phrase",
}


def fuse(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Score every candidate by what the legs know of it, best first."""
    settings = ctx.settings.fuse
    method = METHODS[settings.method]
    terms = method(candidates, ctx)
    if settings.level == "note":
        terms = _by_note(candidates, terms, method, ctx)
    if settings.exact:
        terms = _exact_first(candidates, terms, settings.exact)
    scores = [total(0.0, each) for each in terms]
    order = sorted(range(len(scores)), key=lambda at: key(candidates[at], scores[at]))
    most = settings.keep * max(result_count(ctx), ctx.settings.limit.n) or len(order)
    kept = (candidates[at].placed("fuse", scores[at], terms[at], before=0.0) for at in order[:most])
    reason = f"not among the best {most}"
    return Ranked(tuple(kept), tuple(Removal(candidates[at], reason) for at in order[most:]))


# --- Exact hits ---


def _exact_first(candidates: Sequence[Candidate], terms: Terms, lift: float) -> Terms:
    """Put exact hits above everything else, in their own order, and names above phrases.

    A title or an alias names a note and not a passage, so only its best passage is lifted so far.
    """
    if not any(each.exact for each in candidates):
        return terms
    scores = [total(0.0, each) for each in terms]
    lifts = _lifts(candidates, scores)
    above = lift + max(scores, default=0.0) - min(scores, default=0.0)
    return [
        [*each, Term("exact", above, lifts[at], why=EXACT_MATCHES[candidates[at].exact])]
        if at in lifts
        else each
        for at, each in enumerate(terms)
    ]


def _lifts(candidates: Sequence[Candidate], scores: Sequence[float]) -> dict[int, float]:
    """How many times each is lifted above all others: a name twice if phrases are lifted too.

    If the phrase is also a note's name, the note's other passages stand with the phrase's passages.
    """
    exact = [at for at, each in enumerate(candidates) if each.exact]
    quoted = any(each.exact == "phrase" for each in candidates)
    named: set[int] = set()
    lifts: dict[int, float] = {}
    for at in sorted(exact, key=lambda i: key(candidates[i], scores[i])):
        each = candidates[at]
        if each.exact != "phrase" and each.note.id not in named:
            named.add(each.note.id)
            lifts[at] = 2.0 if quoted else 1.0
        elif quoted:
            lifts[at] = 1.0
    return lifts


# --- Notes instead of passages (`fuse.level = "note"`) ---


def _by_note(candidates: Sequence[Candidate], terms: Terms, method: Method, ctx: Context) -> Terms:
    """Give the best passage of each note the terms of the whole note; others keep their own.

    If the vector leg found one passage of a note and the keyword leg another, both legs found the
    note. Ranks are counted in notes: one with ten passages does not push the next one down by ten.
    """
    best = _best_of_notes(candidates, terms)
    of_notes = method(_notes_as_candidates(candidates, best), ctx)
    found = dict(zip(best.values(), map(_among_notes, of_notes), strict=True))
    return [
        found[at] if at in found and total(0.0, found[at]) > total(0.0, own) else own
        for at, own in enumerate(terms)
    ]


def _among_notes(terms: list[Term]) -> list[Term]:
    """Say that a rank was counted in notes: --explain shows the legs' own beside it."""
    return [
        replace(term, why=f"{term.why} among notes") if term.why.startswith("rank ") else term
        for term in terms
    ]


def _best_of_notes(candidates: Sequence[Candidate], terms: Terms) -> dict[int, int]:
    """Note -> the position of its best passage."""
    best: dict[int, int] = {}
    for at in sorted(range(len(terms)), key=lambda i: key(candidates[i], total(0.0, terms[i]))):
        best.setdefault(candidates[at].note.id, at)
    return best


def _notes_as_candidates(
    candidates: Sequence[Candidate], best: Mapping[int, int]
) -> list[Candidate]:
    """One candidate per note, with the best of every leg."""
    passages: dict[int, list[Candidate]] = defaultdict(list)
    for each in candidates:
        passages[each.note.id].append(each)
    ranks = _note_ranks(passages)
    return [
        replace(
            candidates[at],
            ranks=ranks[note],
            scores=_highest(c.scores for c in passages[note]),
            evidence=_highest(c.evidence for c in passages[note]),
        )
        for note, at in best.items()
    ]


def _note_ranks(passages: Mapping[int, Sequence[Candidate]]) -> dict[int, dict[str, int]]:
    """The rank of each note in each leg, counted in notes; equal best ranks share one."""
    first: dict[str, dict[int, int]] = defaultdict(dict)
    for note, found in passages.items():
        for leg in {leg for each in found for leg in each.ranks}:
            first[leg][note] = min(each.ranks[leg] for each in found if leg in each.ranks)
    ranks: dict[int, dict[str, int]] = {note: {} for note in passages}
    for leg, best_rank in first.items():
        places = {rank: place for place, rank in enumerate(sorted(set(best_rank.values())), 1)}
        for note, rank in best_rank.items():
            ranks[note][leg] = places[rank]
    return ranks


def _highest(found: Iterable[Mapping[str, float]]) -> dict[str, float]:
    highest: dict[str, float] = {}
    for each in found:
        for name, value in each.items():
            highest[name] = max(value, highest.get(name, value))
    return highest
