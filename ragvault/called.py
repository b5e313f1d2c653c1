"""Called: the notes whose very name a query is, whatever else it could mean.

`Foo (bar)`, `[WIP] Build` and `Kettle -rye` are queries with signs in them, and may be names. Where
the whole query as it was typed, or what stands in its quotes, is the title, an alias or the file
name of a note, that note comes first, past conditions nobody meant. All other results obey the
query as it was understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace as again

from msgspec.structs import replace

from ragvault.candidate import Candidate
from ragvault.errors import UsageError
from ragvault.library import Library
from ragvault.listing import tiers_of
from ragvault.opened import Opened
from ragvault.plan import QueryPlan
from ragvault.retrieve.gather import Gathered
from ragvault.retrieve.legs import NAME_WORDS

WORD = re.compile(r"\w+")
LETTER = re.compile(r"[^\W_]")  # without one, no index has a word of it
FIRST = 2.0  # the score of a note in a list by date that stands before the newest, which has 1


def or_a_name(query: str, index: Opened, understand: Callable[[str], QueryPlan]) -> QueryPlan:
    """The plan of a query; of its words, where it cannot be meant and a note is called so."""
    try:
        return understand(query)
    except UsageError:
        words = " ".join(WORD.findall(query))
        if not words or not index.library().called(query):
            raise
    plan = understand(words)
    said = f"“{query}” cannot be a query, and is the name of a note"
    return again(plan, query=query, warnings=(*plan.warnings, said))


def names_first(gathered: Gathered, plan: QueryPlan, index: Opened) -> None:
    """Add the notes a query is the very name of, and let no other be one."""
    library = index.library()
    named = _named(gathered, plan, library)
    if not named:
        return
    known = {each.note.id for each in gathered.candidates}
    new = _added([note for note in named if note not in known], plan, library)
    gathered.tiers.update(tiers_of([each.passage for each in new], index))
    every = [*new, *(_unnamed(each, named) for each in gathered.candidates)]
    gathered.candidates = _listed(every, named) if plan.listing else every
    if plan.listing or (new and plan.filter is not None):
        paths = sorted({each.note.path for each in every if each.note.id in named})
        gathered.said.append(f"“{plan.query}” is also the name of a note: {', '.join(paths)}")


def _named(gathered: Gathered, plan: QueryPlan, library: Library) -> set[int]:
    """Notes of this name: among what was found, and those that could not be found by it."""
    exact = {each.note.id for each in gathered.candidates if each.exact}
    named = {note for note in exact if library.is_called(note, plan.query)}
    unsure = gathered.crowded or _is_hidden(plan)
    looked = library.called(plan.query) if unsure else library.blank_called(plan.query)
    return named | set(looked)


def _is_hidden(plan: QueryPlan) -> bool:
    """Whether no leg would find a note of this name: the query was understood as something else."""
    words = WORD.findall(plan.query)
    as_asked = words == WORD.findall(plan.text) and 0 < len(words) <= NAME_WORDS
    return plan.filter is not None or plan.listing or not (as_asked and LETTER.search(plan.text))


def _added(notes: list[int], plan: QueryPlan, library: Library) -> list[Candidate]:
    firsts = {note: next(iter(library.passage_ids(note)), None) for note in notes}
    passages = library.firsts(firsts)
    return [Candidate(each, exact=library.exact(plan, each)) for each in passages]


def _unnamed(each: Candidate, named: set[int]) -> Candidate:
    """What only the words of the query are the name of is not what the whole of it names."""
    other = each.exact in ("title", "alias") and each.note.id not in named
    return replace(each, exact="") if other else each


def _listed(candidates: list[Candidate], named: set[int]) -> list[Candidate]:
    first = [each for each in candidates if each.note.id in named]
    rest = [each for each in candidates if each.note.id not in named]
    return [*(replace(each, exact="title", score=FIRST) for each in first), *rest]
