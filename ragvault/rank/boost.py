"""Boost: raise or lower notes by what is known of them, whatever the query.

    backlinks    weight * min(n, cap); on a log scale the same at the cap, and more before it
    recency      the first tier that includes the age, scaled by the bias
    community    the note shares a community with another of the top notes
    importance   what rank 1 of RRF is worth above rank 11: 1/(k + 1) - 1/(k + 1 + 10)
    access       weight * (opened + 1) / (most opened + 1)
    templates    a factor below 1 for notes in a folder of templates
    superseded   a replaced note moves behind its replacement

Each boost is one Term: 0.2 multiplies the score by 1.2; that of importance is added. Unbounded, as
RAGtriever has them, ten backlinks lift a note from rank 61 of a flat RRF list over an unlinked rank
1. With `boost.bounded`, boosts decide only what the evidence leaves open: a score rises by at most
`max_rise` times the distance between the best result and the last one wanted, and nothing passes an
exact title, alias or quoted phrase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log1p, nextafter
from typing import Literal, NamedTuple

from ragvault.candidate import (
    Candidate,
    Context,
    NoteFacts,
    Ranked,
    Term,
    best_first,
    key,
    total,
)
from ragvault.config.settings import Backlinks, Recency, Templates
from ragvault.rank.limit import rank_mode, result_count

NoteBoost = Callable[[NoteFacts], "Term | None"]
DAY = 86_400.0  # seconds
IMPORTANT = 10  # ranks of RRF that importance is worth, as recollection has it


def boost(candidates: Sequence[Candidate], ctx: Context) -> Ranked:
    """Raise and lower candidates by what is known of their notes."""
    settings = ctx.settings.boost
    if not settings.enabled:
        return Ranked(tuple(candidates))
    order = best_first(candidates)
    terms = _boost_terms(order, ctx)
    scores = [total(c.score, t) for c, t in zip(order, terms, strict=True)]
    if settings.bounded:
        _bound(order, terms, scores, ctx)
    if settings.superseded.enabled:
        demote_superseded(order, terms, scores)
    ranked = sorted(range(len(order)), key=lambda at: key(order[at], scores[at]))
    return Ranked(
        tuple(_boosted(order[at], scores[at], terms[at], at, to) for to, at in enumerate(ranked))
    )


def _boosted(
    candidate: Candidate, score: float, terms: list[Term], before: int, after: int
) -> Candidate:
    """The candidate with its new score, and the move that its boosts made, if they made one."""
    moved = f"boosts moved it from {before + 1} to {after + 1}" if before != after else ""
    return candidate.placed("boost", score, terms, why=moved) if terms else candidate


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
        verb = "note links here" if by_notes else "link points here"
        verbs = "notes link here" if by_notes else "links point here"
        why = f"{count} {verb if count == 1 else verbs}"
        value = backlink_value(count, settings)
        return Term("backlinks", value, settings.weight, "multiply", why)

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
}


def _recency(order: Sequence[Candidate], ctx: Context) -> NoteBoost:
    settings = ctx.settings.boost.recency

    def of_note(note: NoteFacts) -> Term | None:
        age = note_age(note, settings.date, ctx.now)
        if age is None:
            return None
        # A bias of 0.5 takes the tiers as written, 0 switches them off, 1 doubles them.
        value, weight = tier_factor(age.days, settings) - 1, settings.bias / 0.5
        if not value * weight:
            return None
        return Term("recency", value, weight, "multiply", age.why)

    return of_note


class Age(NamedTuple):
    """Days since a note's date, and where that date comes from."""

    days: float
    source: str

    @property
    def why(self) -> str:
        return f"{self.days:.0f} days old by its {_DATE_SOURCES[self.source]}"


def note_age(note: NoteFacts, which: Literal["note", "modified"], now: float) -> Age | None:
    """None for a note without that date. A date in the future counts as today.

    `modified` is the time of the file, whatever its frontmatter or git say.
    """
    if which == "modified":
        at, source = note.file_time, "mtime"
    else:
        at, source = (note.date.at, note.date.source) if note.date else (None, "")
    return None if at is None else Age(max(0.0, (now - at) / DAY), source)


def half_life_decay(days: float, half_life: float) -> float:
    """1 today, 0.5 after one half-life, 0.25 after two."""
    return float(0.5 ** (days / half_life))


def tier_factor(days: float, settings: Recency) -> float:
    """The factor of the first tier that includes this age, before the bias."""
    for most, factor in settings.tiers:
        if days < most or (settings.inclusive and days == most):
            return factor
    return settings.older


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
        return Term("community", settings.factor - 1, 1.0, "multiply", why)

    return of_note


def _importance(order: Sequence[Candidate], ctx: Context) -> NoteBoost:
    settings = ctx.settings.boost.importance
    k = rank_mode(ctx.settings.fuse, ctx.note_length).k
    value = 1 / (k + 1) - 1 / (k + 1 + IMPORTANT)

    def of_note(note: NoteFacts) -> Term | None:
        if note.importance not in settings.levels:
            return None
        return Term("importance", value, 1.0, "add", note.importance)

    return of_note


def _access(order: Sequence[Candidate], ctx: Context) -> NoteBoost:
    settings = ctx.settings.boost.access
    most = max((each.note.access for each in order), default=0)

    def of_note(note: NoteFacts) -> Term | None:
        if not most:
            return None
        value = (note.access + 1) / (most + 1)
        return Term("access", value, settings.weight, "multiply", f"opened {note.access} times")

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


def _bound(
    order: Sequence[Candidate], terms: list[list[Term]], scores: list[float], ctx: Context
) -> None:
    """Reduce the scores of those that rose too far, or above an exact hit that was above them."""
    share = ctx.settings.boost.max_rise
    room = share * _spread(order, result_count(ctx))
    ceiling = inf  # just below the exact hits so far
    for at, each in enumerate(order):
        allowed = ceiling if each.exact else min(each.score + room, ceiling)
        if scores[at] > allowed:
            terms[at].append(Term("bound", allowed - scores[at], why="boost capped"))
            scores[at] = allowed
        if each.exact:
            ceiling = min(ceiling, nextafter(scores[at], -inf))


def _spread(order: Sequence[Candidate], wanted: int) -> float:
    """From the best score to the last one wanted. Exact hits are lifted, so they do not count."""
    found = [each.score for each in order if not each.exact]
    return found[0] - found[min(wanted, len(found)) - 1] if found else 0.0


# --- Superseded notes ---

# The new note takes the place of the old one, which moves just behind it. A query that finds the
# old note by its words should be answered by the new one, even if that uses other words. So the new
# note's best passage inherits the old one's score. An exact hit on the old note keeps its place,
# and nothing passes an exact hit.


def demote_superseded(
    order: Sequence[Candidate], terms: list[list[Term]], scores: list[float]
) -> None:
    """Change scores and add terms so that no replaced note is above its replacement."""
    scoring = _Scoring(order, terms, scores)
    replaced = {c.note.id: c.note.superseded_by for c in order if c.note.superseded_by}
    newest_first = _newest_first(replaced)
    for note in reversed(newest_first):  # so that a place is handed on along a chain
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
