"""Exact names: notes whose name is the query itself, whatever else the query could mean.

`Foo (bar)`, `[WIP] Build` and `Kettle -rye` contain operators and may still be names. If the whole
query as typed, or the text in its quotes, is the title, an alias or the file name of a note, that
note comes first, even if it does not pass the query's filter. All other results obey the query as
it was understood. Names are compared without case, with every run of white space as one space.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec.structs import replace

from ragvault.candidate import Candidate, Exact, PassageFacts
from ragvault.plan import QueryPlan
from ragvault.ports import Corpus
from ragvault.text.fold import plain_name

MAX_LENGTH = 300  # characters: no name is longer
MAX_WORDS = 12  # no title has more
FIRST = 2.0  # score of a named note in a list by date, in which the newest note has 1
WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W_]")  # a name without one is in no index
_QUOTED = re.compile(r'["\u201c](.*)["\u201d]', re.DOTALL)


def exact_match(plan: QueryPlan, passage: PassageFacts, corpus: Corpus) -> Exact:
    """Whether the query is a name of the passage's note, or all its phrases are in the passage."""
    names, wanted = corpus.note_names(passage.note.id), _query_names(plan.query, plan.text)
    if not wanted.isdisjoint(names.own):
        return "title"
    if not wanted.isdisjoint(names.aliases):
        return "alias"
    if not plan.phrases:
        return ""
    text, known = plain_name(passage.text), names.own | names.aliases
    phrases = map(_plain_phrase, plan.phrases)
    return "phrase" if all(each in text or each in known for each in phrases) else ""


def notes_named(query: str, corpus: Corpus) -> list[int]:
    """Every note whose name is the query, as typed or without its quotes."""
    return corpus.notes_named(query, names_in(query)) if 0 < len(query) <= MAX_LENGTH else []


def exact_names(
    candidates: list[Candidate], plan: QueryPlan, corpus: Corpus, *, all_notes: bool
) -> tuple[list[Candidate], list[Candidate], list[str]]:
    """Candidates with the notes that the query names; the added ones; warnings.

    `all_notes`: the legs may have missed notes of this name, so every note is looked at.
    """
    named = _named(candidates, plan, corpus, all_notes)
    if not named:
        return candidates, [], []
    known = {each.note.id for each in candidates}
    new = [
        Candidate(each, exact=exact_match(plan, each, corpus))
        for each in corpus.first_passages([note for note in named if note not in known])
    ]
    every = [*new, *(_without_name(each, named) for each in candidates)]
    warnings = []
    if plan.listing or (new and plan.filter is not None):
        paths = sorted({each.note.path for each in every if each.note.id in named})
        warnings = [f"“{plan.query}” is also the name of a note: {', '.join(paths)}"]
    return _first_in_list(every, named) if plan.listing else every, new, warnings


def _named(
    candidates: list[Candidate], plan: QueryPlan, corpus: Corpus, all_notes: bool
) -> set[int]:
    """Notes of this name: among the candidates, and those that no leg could find by it."""
    names = names_in(plan.query)
    exact = {each.note.id for each in candidates if each.exact}
    named = {note for note in exact if not names.isdisjoint(_names_of(note, corpus))}
    if all_notes or _is_hidden(plan):
        return named | set(notes_named(plan.query, corpus))
    return named | set(corpus.blank_notes_named(names))


def _names_of(note: int, corpus: Corpus) -> frozenset[str]:
    names = corpus.note_names(note)
    return names.own | names.aliases


def _is_hidden(plan: QueryPlan) -> bool:
    """Whether no leg searches for this name: the query was understood as something else."""
    words = WORD.findall(plan.query)
    as_typed = words == WORD.findall(plan.text) and 0 < len(words) <= MAX_WORDS
    return plan.filter is not None or plan.listing or not (as_typed and _LETTER.search(plan.text))


def _without_name(each: Candidate, named: set[int]) -> Candidate:
    """A note named by only the words of the query is not named by the whole of it."""
    other = each.exact in ("title", "alias") and each.note.id not in named
    return replace(each, exact="") if other else each


def _first_in_list(candidates: list[Candidate], named: set[int]) -> list[Candidate]:
    first = [each for each in candidates if each.note.id in named]
    rest = [each for each in candidates if each.note.id not in named]
    return [*(replace(each, exact="title", score=FIRST) for each in first), *rest]


@lru_cache(maxsize=64)
def names_in(query: str) -> frozenset[str]:
    """A query as names: as typed, and the text in quotes that are around all of it."""
    quoted = _QUOTED.fullmatch(query.strip())
    return frozenset((plain_name(query), plain_name(quoted[1]) if quoted else "")) - {""}


@lru_cache(maxsize=64)
def _query_names(query: str, text: str) -> frozenset[str]:
    return (names_in(query) | {plain_name(text)}) - {""}


_plain_phrase = lru_cache(maxsize=64)(plain_name)  # of the query, compared with many passages
