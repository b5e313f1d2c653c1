"""Boost: raise or lower notes by what is known of them, whatever the query.

    backlinks    weight * min(n, cap); on a log scale the same at the cap, and more before it
    recency      the first tier that includes the age, or a half-life; scaled by the bias
    community    the note shares a community with another of the top notes
    importance   what rank 1 of RRF is worth above rank 11: 1/(k + 1) - 1/(k + 1 + ranks)
    access       weight * (opened + 1) / (most opened + 1)
    templates    a factor below 1 for notes in a folder of templates
    superseded   a replaced note moves behind its replacement (superseded.py)

Each boost is one Term: 0.2 multiplies the score by 1.2, or adds 0.2 to it. Unbounded, as the seeds
have them, ten backlinks lift a note from rank 61 of a flat RRF list over an unlinked rank 1. With
`boost.bounded`, a result rises at most `max_rise` ranks, and nothing passes an exact title, alias
or quoted phrase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf, log1p, nextafter

from ragvault.candidate import (
    Candidate,
    Context,
    Key,
    NoteFacts,
    Ranked,
    Term,
    best_first,
    key,
    total,
)
from ragvault.config.ranking import Backlinks, Templates
from ragvault.rank.leg_weights import rank_mode
from ragvault.rank.recency import half_life_decay, note_age, tier_factor
from ragvault.rank.superseded import demote_superseded

NoteBoost = Callable[[NoteFacts], "Term | None"]


def boost(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Raise and lower candidates by what is known of their notes."""
    settings = ctx.settings.boost
    if not settings.enabled:
        return Ranked(tuple(candidates))
    order = best_first(candidates)
    terms = _boost_terms(order, ctx)
    scores = [total(c.score, t) for c, t in zip(order, terms, strict=True)]
    if settings.bounded:
        _hold_back(order, terms, scores, settings.max_rise)
    if settings.superseded.enabled:
        inherits = settings.superseded.place == "replaced"
        demote_superseded(order, terms, scores, inherits=inherits)
    return Ranked(tuple(best_first(map(_boosted, order, scores, terms))))


def _boosted(candidate: Candidate, score: float, terms: list[Term]) -> Candidate:
    return candidate.placed("boost", score, terms) if terms else candidate


def _boost_terms(order: Sequence[Candidate], ctx: Context) -> list[list[Term]]:
    """The boosts of each candidate; `order` is best first."""
    settings = ctx.settings.boost
    active: list[NoteBoost] = [
        make(order, ctx)
        for make, enabled in (
            (_backlinks, settings.backlinks.enabled),
            (_recency, settings.recency.enabled),
            (_community, settings.community.enabled),
            (_importance, settings.importance.enabled),
            (_access, settings.access.enabled),
            (_templates, settings.templates.enabled),
        )
        if enabled
    ]
    known: dict[int, list[Term]] = {}  # the passages of a note share its boosts
    for each in order:
        note = each.passage.note
        if note.id not in known:
            known[note.id] = [term for of_note in active if (term := of_note(note))]
    return [known[each.passage.note.id].copy() for each in order]


# --- The boosts, one function each ---


def _backlinks(order: Sequence[Candidate], ctx: Context) -> NoteBoost:
    settings = ctx.settings.boost.backlinks
    by_notes = settings.count == "notes"

    def of_note(note: NoteFacts) -> Term | None:
        count = note.linkers if by_notes else note.links
        if not count:
            return None
        why = f"{count} notes link here" if by_notes else f"{count} links point here"
        return Term(
            "backlinks", backlink_value(count, settings), settings.weight, settings.how, why
        )

    return of_note


def backlink_value(count: int, settings: Backlinks) -> float:
    """What a number of backlinks is worth, before the weight."""
    counted = min(count, settings.cap)
    if settings.scale == "linear":
        return float(counted)
    # The first links count most, and the cap is worth the same on both scales.
    return settings.cap * log1p(counted) / log1p(settings.cap)


# Where the date of a note comes from, as --explain says it.
_DATE_SOURCES = {
    "name": "date in its file name",
    "frontmatter": "frontmatter date",
    "git": "last commit",
    "mtime": "file time",
    "modified": "file time",
}


def _recency(order: Sequence[Candidate], ctx: Context) -> NoteBoost:
    settings = ctx.settings.boost.recency

    def of_note(note: NoteFacts) -> Term | None:
        age = note_age(note, settings.date, ctx.now)
        if age is None:
            return None
        if settings.shape == "tiers":
            # A bias of 0.5 takes the tiers as written, 0 switches them off, 1 doubles them.
            value, weight = tier_factor(age.days, settings) - 1, settings.bias / 0.5
        else:
            value, weight = half_life_decay(age.days, settings.half_life), settings.weight
        if not value * weight:
            return None
        why = f"{age.days:.0f} days old by its {_DATE_SOURCES[age.source]}"
        return Term("recency", value, weight, settings.how, why)

    return of_note


def _community(order: Sequence[Candidate], ctx: Context) -> NoteBoost:
    settings = ctx.settings.boost.community
    top: dict[int, int | None] = {}
    for each in order:
        if len(top) == settings.top:
            break
        top.setdefault(each.note.id, each.note.community)
    notes: dict[int, set[int]] = {}
    for note, community in top.items():
        if community is not None:
            notes.setdefault(community, set()).add(note)

    def of_note(note: NoteFacts) -> Term | None:
        own = note.community
        # A top note does not boost itself: it needs another top note of its community.
        if own not in notes or notes[own] == {note.id}:
            return None
        why = f"shares community {own} with one of the top {len(top)} notes"
        return Term("community", settings.factor - 1, 1.0, settings.how, why)

    return of_note


def _importance(order: Sequence[Candidate], ctx: Context) -> NoteBoost:
    settings = ctx.settings.boost.importance
    k = rank_mode(ctx.settings.fuse, ctx.note_length).k
    value = 1 / (k + 1) - 1 / (k + 1 + settings.ranks)

    def of_note(note: NoteFacts) -> Term | None:
        if note.importance not in settings.levels:
            return None
        return Term("importance", value, 1.0, settings.how, note.importance)

    return of_note


def _access(order: Sequence[Candidate], ctx: Context) -> NoteBoost:
    settings = ctx.settings.boost.access
    most = max((each.note.access for each in order), default=0)

    def of_note(note: NoteFacts) -> Term | None:
        if not most:
            return None
        value = (note.access + 1) / (most + 1)
        return Term("access", value, settings.weight, settings.how, f"opened {note.access} times")

    return of_note


def _templates(order: Sequence[Candidate], ctx: Context) -> NoteBoost:
    settings = ctx.settings.boost.templates
    folder_of = template_folder(settings)

    def of_note(note: NoteFacts) -> Term | None:
        folder = folder_of(note.path)
        if not folder:
            return None
        why = f"a template in {folder}"
        return Term("templates", settings.factor - 1, 1.0, "multiply", why)

    return of_note


def template_folder(settings: Templates) -> Callable[[str], str]:
    """A function from a note's path to the template folder it is in; empty if in none."""
    names = {name.casefold() for name in settings.folders}
    known: dict[str, str] = {}  # many notes share a folder

    def of_path(path: str) -> str:
        folder = path.rpartition("/")[0]
        if folder not in known:
            parts = folder.split("/")
            known[folder] = next((part for part in parts if part.casefold() in names), "")
        return known[folder]

    return of_path


# --- The bound ---


def _hold_back(
    order: list[Candidate], terms: list[list[Term]], scores: list[float], max_rise: int
) -> None:
    """Change the scores of those that would rise too far: just below the one they may not pass."""
    above = (-inf, "", 0, 0)
    keys = [key(each, score) for each, score in zip(order, scores, strict=True)]
    for at in _allowed_order(order, keys, max_rise):
        here = keys[at]
        if here < above:
            held = nextafter(-above[0], -inf)
            why = f"may rise at most {max_rise} ranks and pass no exact hit"
            terms[at].append(Term("bound", held - scores[at], why=why))
            scores[at] = held
            here = key(order[at], held)
        above = here


def _allowed_order(order: Sequence[Candidate], keys: Sequence[Key], max_rise: int) -> list[int]:
    """For each place, the best of those that may stand there."""
    waiting: list[tuple[Key, int]] = []
    placed: list[int] = []
    entered, barrier = 0, -1  # an exact hit without a place yet: nobody behind it may enter
    while len(placed) < len(order):
        while entered < len(order) and entered <= len(placed) + max_rise and barrier < 0:
            heappush(waiting, (keys[entered], entered))
            barrier = entered if order[entered].exact else -1
            entered += 1
        at = heappop(waiting)[1]
        barrier = -1 if at == barrier else barrier
        placed.append(at)
    return placed
