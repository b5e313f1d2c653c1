"""The boosts, one function each: what a note is, and by how much that changes its score.

    backlinks    weight * min(n, cap), or on a log scale the same at the cap and more before it
    recency      the first tier that holds the age, or a half-life; scaled by the bias
    community    the note shares a community with another of the top notes
    importance   as many ranks as rank 1 is above rank 11: 1/(k + 1) - 1/(k + 1 + ranks)
    access       weight * (opened + 1) / (most opened + 1)
    templates    factor, below 1, for what lies in a folder of templates

A Term of 0.2 multiplies the score by 1.2, or adds 0.2 to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log1p

from ragvault.candidate import Candidate, Context, NoteFacts, Term
from ragvault.config.ranking import Backlinks, Recency, Templates
from ragvault.rank import ages, weights

Boosting = Callable[[NoteFacts], "Term | None"]


def boosts(order: Sequence[Candidate], ctx: Context) -> list[list[Term]]:
    """The boosts of each candidate; `order` is best first."""
    settings = ctx.settings.boost
    active: list[Boosting] = [
        make(order, ctx)
        for make, wanted in (
            (_backlinks, settings.backlinks.enabled),
            (_recency, settings.recency.enabled),
            (_community, settings.community.enabled),
            (_importance, settings.importance.enabled),
            (_access, settings.access.enabled),
            (_templates, settings.templates.enabled),
        )
        if wanted
    ]
    known: dict[int, list[Term]] = {}  # passages of one note have the same
    for each in order:
        note = each.passage.note
        if note.id not in known:
            known[note.id] = [term for of in active if (term := of(note))]
    return [known[each.passage.note.id].copy() for each in order]


def linked(count: int, settings: Backlinks) -> float:
    """What so many backlinks are worth, before the weight."""
    counted = min(count, settings.cap)
    if settings.scale == "linear":
        return float(counted)
    # The first links say most, and the cap is worth the same on both scales.
    return settings.cap * log1p(counted) / log1p(settings.cap)


def tier(days: float, settings: Recency) -> float:
    """The factor of the first tier that holds this age, before the bias."""
    for most, factor in settings.tiers:
        if days < most or (settings.inclusive and days == most):
            return factor
    return settings.older


def _backlinks(order: Sequence[Candidate], ctx: Context) -> Boosting:
    settings = ctx.settings.boost.backlinks
    by_notes = settings.count == "notes"

    def of(note: NoteFacts) -> Term | None:
        count = note.linkers if by_notes else note.links
        if not count:
            return None
        why = f"{count} notes link here" if by_notes else f"{count} links lead here"
        return Term("backlinks", linked(count, settings), settings.weight, settings.how, why)

    return of


def _recency(order: Sequence[Candidate], ctx: Context) -> Boosting:
    settings = ctx.settings.boost.recency

    def of(note: NoteFacts) -> Term | None:
        found = ages.age(note, settings.date, ctx.now)
        if found is None:
            return None
        if settings.shape == "tiers":
            # A bias of 0.5 is the tiers as they are written, 0 is none, 1 is twice as much.
            value, weight = tier(found.days, settings) - 1, settings.bias / 0.5
        else:
            value, weight = ages.halved(found.days, settings.half_life), settings.weight
        if not value * weight:
            return None
        why = f"{found.days:.0f} days old by its {_SOURCES[found.source]}"
        return Term("recency", value, weight, settings.how, why)

    return of


_SOURCES = {
    "name": "name",
    "frontmatter": "frontmatter",
    "git": "last commit",
    "mtime": "file's time",
    "modified": "file's time",
}


def _community(order: Sequence[Candidate], ctx: Context) -> Boosting:
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

    def of(note: NoteFacts) -> Term | None:
        mine = note.community
        # A top note is not its own company: it is boosted by another of its community.
        if mine not in notes or notes[mine] == {note.id}:
            return None
        why = f"in community {mine}, like one of the top {len(top)} notes"
        return Term("community", settings.factor - 1, 1.0, settings.how, why)

    return of


def _importance(order: Sequence[Candidate], ctx: Context) -> Boosting:
    settings = ctx.settings.boost.importance
    k, _ = weights.damping(ctx.settings.fuse, ctx.note_length)
    value = 1 / (k + 1) - 1 / (k + 1 + settings.ranks)

    def of(note: NoteFacts) -> Term | None:
        if note.importance not in settings.levels:
            return None
        return Term("importance", value, 1.0, settings.how, note.importance)

    return of


def _access(order: Sequence[Candidate], ctx: Context) -> Boosting:
    settings = ctx.settings.boost.access
    most = max((each.note.access for each in order), default=0)

    def of(note: NoteFacts) -> Term | None:
        if not most:
            return None
        value = (note.access + 1) / (most + 1)
        return Term("access", value, settings.weight, settings.how, f"opened {note.access}x")

    return of


def in_templates(settings: Templates) -> Callable[[str], str]:
    """Which folder of templates a note lies in, by its path; nothing where in none."""
    names = {name.casefold() for name in settings.folders}
    kept: dict[str, str] = {}  # many notes lie in one folder

    def of(path: str) -> str:
        folder = path.rpartition("/")[0]
        if folder not in kept:
            kept[folder] = next(
                (part for part in folder.split("/") if part.casefold() in names), ""
            )
        return kept[folder]

    return of


def _templates(order: Sequence[Candidate], ctx: Context) -> Boosting:
    settings = ctx.settings.boost.templates
    folder = in_templates(settings)

    def of(note: NoteFacts) -> Term | None:
        found = folder(note.path)
        if not found:
            return None
        return Term("templates", settings.factor - 1, 1.0, "multiply", f"a template, in {found}")

    return of
