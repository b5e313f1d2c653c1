"""Dedup: what says the same as a better candidate is removed, and named after it.

    hash     the same text
    ngram    character n-grams: shared by both against held by either (Jaccard)
    cosine   nearly the same vector

One after the other, each among those the one before left (alike.py). Of copies the best stays, or
the newest, which then takes the place of the best: a copy is no less relevant for being found lower
down. Candidates are looked at until `reach` times the wanted results are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from msgspec.structs import replace

from ragvault.candidate import Candidate, Context, Ranked, Removal, Term, best_first
from ragvault.rank.alike import Alike, SameGrams, same_meaning, same_text
from ragvault.rank.limit import wanted

_Way = Callable[[Sequence[Candidate]], Alike]


def dedup(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Remove what repeats a candidate that stays."""
    settings = ctx.settings.dedup
    if not settings.enabled:
        return Ranked(tuple(candidates))
    enough = _enough(len(candidates), ctx)
    kept: list[Candidate] = []
    removed: list[Removal] = []
    rest, ways = list(candidates), _ways(ctx)
    while rest and len(kept) < enough:
        more = enough - len(kept)
        kept, gone = _distinct([*kept, *rest[:more]], ways, settings.keep == "newest")
        removed += gone
        rest = rest[more:]
    return Ranked((*kept, *rest), tuple(removed))


def _enough(count: int, ctx: Context) -> int:
    reach, rerank = ctx.settings.dedup.reach, ctx.settings.rerank
    return reach * max(wanted(ctx), rerank.n if rerank.enabled else 0) or count


def _ways(ctx: Context) -> list[_Way]:
    settings = ctx.settings.dedup
    ways: list[_Way] = []
    if settings.hash:
        ways.append(same_text)
    if settings.ngram:
        ways.append(SameGrams(settings.n, settings.jaccard))
    if settings.cosine:
        ways.append(lambda kept: same_meaning(kept, ctx.vectors, settings.similarity))
    return ways


def _distinct(
    candidates: list[Candidate], ways: Sequence[_Way], newest: bool
) -> tuple[list[Candidate], list[Removal]]:
    kept, removed = candidates, []
    for way in ways:
        order = sorted(kept, key=_newest_first) if newest else kept
        alike = way(order)
        if alike:
            kept, gone = _without_copies(order, alike, newest)
            removed += gone
    return kept, removed


def _without_copies(
    order: list[Candidate], alike: Alike, newest: bool
) -> tuple[list[Candidate], list[Removal]]:
    """The first of each group of copies, and the others with its name."""
    kept: dict[int, Candidate] = {}
    copies: list[tuple[int, int, str]] = []
    for at, each in enumerate(order):
        of = next((before for before in sorted(alike.get(at, ())) if before in kept), None)
        if of is None:
            kept[at] = each
        else:
            copies.append((at, of, alike[at][of]))
    for at, of, _ in copies if newest else ():
        kept[of] = _in_place_of(kept[of], order[at])
    gone = [Removal(order[at], why, kept[of]) for at, of, why in copies]
    return best_first(kept.values()) if newest else list(kept.values()), gone


def _newest_first(candidate: Candidate) -> tuple[bool, float]:
    """But what was asked for by its very name gives way to no copy."""
    return not candidate.lifted, -candidate.note.date.at if candidate.note.date else inf


def _in_place_of(newest: Candidate, copy: Candidate) -> Candidate:
    """The newest with the score and the confidence of the best of its copies."""
    if copy.score <= newest.score:
        return newest
    why = f"in place of an older copy in {copy.note.path}"
    raised = newest.placed("dedup", copy.score, [Term("copy", copy.score - newest.score, why=why)])
    return replace(raised, confidence=copy.confidence, band=copy.band)
