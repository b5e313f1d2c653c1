"""Names: what notes are called, and whether a query is one of their names.

Compared without case, and with every run of white space as one space. A query is compared as it
was typed, with the signs that made operators of its words, and as what was understood of it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ragvault.candidate import Exact, PassageFacts
from ragvault.plan import QueryPlan
from ragvault.store.links import file_stem
from ragvault.store.notes import NoteRow
from ragvault.store.values import fold_case

LENGTH = 300  # characters: a longer query is nobody's name
_QUOTED = re.compile(r'["\u201c](.*)["\u201d]', re.DOTALL)


class Names:
    """The titles, file names and aliases of notes, as they are learnt."""

    def __init__(self) -> None:
        self._own: dict[int, frozenset[str]] = {}
        self._aliases: dict[int, frozenset[str]] = {}

    def learn(self, fact: NoteRow) -> None:
        self._own[fact.id], self._aliases[fact.id] = _own(fact), _aliases(fact)

    def of(self, note: int) -> frozenset[str]:
        """All names of a note."""
        return self._own[note] | self._aliases[note]

    def has(self, note: int, query: str) -> bool:
        """Is the query, as it was typed or without its quotes, a name of this note?"""
        return not names_in(query).isdisjoint(self.of(note))

    def exact(self, plan: QueryPlan, passage: PassageFacts) -> Exact:
        """Whether the query is the very name of a passage's note, or a phrase that stands in it."""
        asked, note = _asked(plan.query, plan.text), passage.note.id
        if not asked.isdisjoint(self._own[note]):
            return "title"
        if not asked.isdisjoint(self._aliases[note]):
            return "alias"
        return "phrase" if plan.phrases and self._holds(plan, passage) else ""

    def _holds(self, plan: QueryPlan, passage: PassageFacts) -> bool:
        """Does each phrase stand in the passage, or name its note?"""
        text, names = _plain(passage.text), self.of(passage.note.id)
        return all(each in text or each in names for each in map(_folded, plan.phrases))


def names_of(note: NoteRow) -> frozenset[str]:
    """All names of a note, as they are compared."""
    return _own(note) | _aliases(note)


def _own(note: NoteRow) -> frozenset[str]:
    return frozenset((_plain(note.title), _plain(file_stem(note.path))))


def _aliases(note: NoteRow) -> frozenset[str]:
    return frozenset(map(_plain, note.aliases)) - {""}


@lru_cache(maxsize=64)
def names_in(query: str) -> frozenset[str]:
    """A query as a name: as it was typed, and what stands in quotes that are around all of it."""
    quoted = _QUOTED.fullmatch(query.strip())
    return frozenset((_plain(query), _plain(quoted[1]) if quoted else "")) - {""}


@lru_cache(maxsize=64)
def _asked(query: str, text: str) -> frozenset[str]:
    return (names_in(query) | {_plain(text)}) - {""}


def _plain(text: str) -> str:
    return " ".join(fold_case(text).split())


_folded = lru_cache(maxsize=64)(_plain)  # of the query itself, which is compared with many
