"""Words as a keyword index knows them: what is put in, what is sought, what is found.

KeywordNote, KeywordPassage    the fields of a note and of a passage
Words, Phrase                  what is sought
AllOf, AnyOf, Not              join these, and the parts of a query as it was typed
KeywordHit, KeywordAnswer      what was found, and what a score may be measured against
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

Part = TypeVar("Part", covariant=True)

# An expression for the signs that are words of their own: emoji, without tones of skin, and flags,
# which are pairs.
PICTURES = (
    "(?:[\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
    "|[\U0001f1e6-\U0001f1ff]{2})"
)


@dataclass(frozen=True, slots=True)
class KeywordNote:
    """The fields of a note that are looked up once a note: title, aliases, tags and the like.

    A field holds several texts (two aliases are two texts): a phrase never runs from one into
    the next. `id` is the catalogue's number for the note.
    """

    id: int
    fields: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class KeywordPassage:
    """The fields of a chunk that are looked up once a passage: its headers and its body."""

    id: int
    note: int
    fields: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Words:
    """Free text: each of its words adds to the score, and one of them is enough to be found.

    With `every`, all of them must be there, wherever they stand. `field` names the one field to
    look in; empty is all of them. `weight` scales the score, less than 1 for expanded terms.
    """

    text: str
    field: str = ""
    every: bool = False
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Phrase:
    """These words, unstemmed, in this order, next to each other, in one field."""

    text: str
    field: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class AllOf(Generic[Part]):
    """Found by each of its parts."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Generic[Part]):
    """Found by at least one of its parts."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Not(Generic[Part]):
    """Found by everything that its part does not find. Adds nothing to a score."""

    part: Part


Sought = Words | Phrase | AllOf["Sought"] | AnyOf["Sought"] | Not["Sought"]


class KeywordHit(NamedTuple):
    """One passage found by word.

    What the note's own fields gave is `note_score`, the title's part of it `title_score`; what the
    passage's fields gave is `passage_score`, and notes and passages make `score`. A hit that only
    near spellings found is `fuzzy`, and then its score is below that of every exact hit.
    """

    passage: int
    note: int
    score: float
    note_score: float
    passage_score: float
    title_score: float = 0.0
    fuzzy: bool = False


class Covered(NamedTuple):
    """A term that a passage may hold, and what it weighs in the query: its rarity.

    `term` is as the analyzer has it, `field` the one it is sought in (empty: any). A `near` one
    is a guessed spelling of another term.
    """

    term: str
    field: str
    weight: float
    near: bool = False


@dataclass(frozen=True, slots=True)
class KeywordAnswer:
    """What a keyword index found, best first, and what a score may be measured against.

    `bounds` is the highest score this query could get from each field: the words it holds,
    endlessly often, in no space. `spellings` are the near spellings that were looked up for words
    no passage holds. `complete` is False when the time limit was too short to find everything.
    `terms` are what the coverage of a passage is counted by (index/keyword/evidence.py).
    """

    hits: tuple[KeywordHit, ...] = ()
    bounds: Mapping[str, float] = field(default_factory=dict)
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complete: bool = True
    terms: tuple[Covered, ...] = ()

    @property
    def bound(self) -> float:
        """The highest score any passage could get from this query."""
        return sum(self.bounds.values())
