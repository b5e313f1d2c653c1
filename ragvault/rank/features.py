"""A sum of four features in place of fusion, each from 0 to 1.

    similarity   the cosine
    recency      0.5^(age / half_life)
    hierarchy    what the section is called, and what form the passage has
    adjacency    how many of its two neighbours were found as well

The seed's years (2024 = 0.9, 2022 = 0.6, 2020 = 0.4) lie on one curve: two years are always worth
two thirds, which is a half-life of 2 ln 2 / ln 1.5 years, 1,249 days.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragvault.candidate import Candidate, Context, Passage, Term
from ragvault.config.ranking import Features, Hierarchy
from ragvault.rank import ages, weights

# Words of a heading, in the order in which the first that fits decides.
_CALLED = (
    ("definitions", re.compile(r"\b(definitions?|terminology|terms|glossary)\b", re.I)),
    ("overview", re.compile(r"\b(overview|introduction|intro|background)\b", re.I)),
    ("policy", re.compile(r"\b(polic(y|ies)|rules?|requirements?|regulations?)\b", re.I)),
    ("summary", re.compile(r"\b(conclusions?|summary|takeaways?)\b", re.I)),
)
_NUMBERED = re.compile(r"^\s*\d+[.)]\s", re.M)
_REFERENCE = re.compile(r"\[\[|\]\(|\u00a7|\bsee (also|section|chapter|appendix)\b", re.I)
_HEADER = re.compile(r"^#{1,6}\s", re.M)


def features(candidates: Sequence[Candidate], ctx: Context) -> list[list[Term]]:
    """The terms of each candidate."""
    settings = ctx.settings.fuse.features
    places = {(c.note.id, c.passage.ordinal) for c in candidates}
    return [
        [
            Term("similarity", min(1.0, max(0.0, weights.cosine(each))), settings.similarity),
            _recency(each, settings, ctx.now),
            _hierarchy(each.passage, settings),
            _adjacency(each, settings, places),
        ]
        for each in candidates
    ]


def hierarchy(passage: Passage, scores: Hierarchy) -> tuple[float, str]:
    """What a passage is worth by its headings and its form, and the reasons."""
    called = _called((*passage.headings, *passage.subheadings))
    forms = [
        name
        for name, there in (
            ("table", passage.kind == "table"),
            ("numbered", bool(_NUMBERED.search(passage.text))),
            ("reference", bool(_REFERENCE.search(passage.text))),
            ("header", bool(_HEADER.search(passage.text))),
        )
        if there
    ]
    names = [called, *forms]
    return min(1.0, sum(getattr(scores, name) for name in names)), ", ".join(names)


def _called(headings: Sequence[str]) -> str:
    found = (name for name, words in _CALLED if any(map(words.search, headings)))
    return next(found, "regular")


def _hierarchy(passage: Passage, settings: Features) -> Term:
    value, why = hierarchy(passage, settings.sections)
    return Term("hierarchy", value, settings.hierarchy, why=why)


def _recency(candidate: Candidate, settings: Features, now: float) -> Term:
    found = ages.age(candidate.note, settings.date, now)
    if found is None:
        return Term("recency", settings.undated, settings.recency, why="undated")
    value = ages.halved(found.days, settings.half_life)
    return Term("recency", value, settings.recency, why=f"{found.days:.0f} days, {found.source}")


def _adjacency(candidate: Candidate, settings: Features, places: set[tuple[int, int]]) -> Term:
    note, ordinal = candidate.note.id, candidate.passage.ordinal
    count = ((note, ordinal - 1) in places) + ((note, ordinal + 1) in places)
    steps = settings.neighbours
    value = (steps.none, steps.one, steps.both)[count]
    return Term("adjacency", value, settings.adjacency, why=f"{count} of 2 neighbours found")
