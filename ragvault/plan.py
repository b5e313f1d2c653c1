"""The plan: what was understood of a query, and the one filter that every leg obeys. Frozen.

A filter is a tree. Its leaves ask something of a note, which then holds for each of its passages,
or of one passage:

    of a note      Tagged  Named  LinksTo  LinkedBy  Property  Dated
    of a passage   Under  Written  Has  Task  Holds

Every, Either and Except join them, passage by passage: without a tag means without any passage of
the notes that have it, while without code leaves the other passages of a note in. What a leaf
matches is decided where the notes are (filters.py); nothing here knows SQL or a keyword index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, Literal, NamedTuple, TypeVar

# --- Words to look for, what goes into a keyword index, and what it finds ---

Inner = TypeVar("Inner", covariant=True)

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
class AllOf(Generic[Inner]):
    """Found by each of its parts."""

    parts: tuple[Inner, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Generic[Inner]):
    """Found by at least one of its parts."""

    parts: tuple[Inner, ...]


@dataclass(frozen=True, slots=True)
class Not(Generic[Inner]):
    """Found by everything that its part does not find. Adds nothing to a score."""

    part: Inner


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


# --- The plan ---

QueryType = Literal["factual", "navigational", "exploratory", "plain"]
NoteText = Literal["path", "file", "title", "alias"]
Part = Literal["code", "table", "task", "image"]
DateField = Literal["created", "modified", "date"]
Comparison = Literal["there", "empty", "=", "<", "<=", ">", ">=", ".."]

LEGS = ("vector", "keyword", "code", "graph")
PARTS: tuple[Part, ...] = ("code", "table", "task", "image")


class Moment(NamedTuple):
    """A point in time, twice, in seconds since 1970.

    A date without a time is that day wherever you are, and a time without a zone what the clock
    said: both are compared with `day`, which takes your clock for UTC. The rest has its `instant`.
    """

    day: float
    instant: float


# --- Leaves that ask something of a note ---


@dataclass(frozen=True, slots=True)
class Tagged:
    """Has this tag or one below it: inbox is had by #inbox/to-read. No case, no #."""

    tag: str


@dataclass(frozen=True, slots=True)
class Named:
    """Holds this text in its path, file name, title or an alias; `*` stands for anything."""

    where: NoteText
    text: str


@dataclass(frozen=True, slots=True)
class LinksTo:
    """Links to the note of this name, path, title or alias, or to no note by that name."""

    note: str
    anchor: tuple[str, ...] = ()  # and to these headings in it, or to this ^block

    def __str__(self) -> str:
        return "#".join((self.note, *self.anchor))


@dataclass(frozen=True, slots=True)
class LinkedBy:
    """Is linked to by the note of this name, path, title or alias."""

    note: str


@dataclass(frozen=True, slots=True)
class Value:
    """A property's value as typed, and the number and the stretch of time it can be read as."""

    text: str
    number: float | None = None
    since: Moment | None = None
    until: Moment | None = None  # the first moment after it


@dataclass(frozen=True, slots=True)
class Property:
    """Has a property with a value that compares like this; `last` ends a range.

    Numbers compare with numbers, dates with dates, and text is equal without case.
    """

    name: str
    test: Comparison = "there"
    value: Value | None = None
    last: Value | None = None


@dataclass(frozen=True, slots=True)
class Dated:
    """Its date is not before `since` and before `until`; None is open."""

    date: DateField
    since: Moment | None = None
    until: Moment | None = None


# --- Leaves that ask something of one passage ---


@dataclass(frozen=True, slots=True)
class Under:
    """Stands under, or holds, a heading with this text; `*` stands for anything."""

    heading: str


@dataclass(frozen=True, slots=True)
class Written:
    """Has code in one of these languages: the names that mean the one that was asked for."""

    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Has:
    """Holds code, a table, a task or an image."""

    part: Part


@dataclass(frozen=True, slots=True)
class Task:
    """Holds a task whose line has this text, any text when it is empty."""

    text: str
    state: Literal["any", "todo", "done"] = "any"


@dataclass(frozen=True, slots=True)
class Holds:
    """Is found by these words or this phrase, in the keyword index or in that of code."""

    sought: Sought
    index: Literal["keyword", "code"] = "keyword"


# --- What joins them ---


@dataclass(frozen=True, slots=True)
class Every:
    """Kept by each of its parts."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Kept by at least one of its parts."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Except:
    """Everything that its part does not keep."""

    part: Filter


NoteLeaf = Tagged | Named | LinksTo | LinkedBy | Property | Dated
PassageLeaf = Under | Written | Has | Task | Holds
Filter = NoteLeaf | PassageLeaf | Every | Either | Except

PASSAGE_LEAVES = (Under, Written, Has, Task, Holds)


def leaves(tree: Filter) -> Iterator[NoteLeaf | PassageLeaf]:
    """The leaves of a filter, left to right."""
    if isinstance(tree, (Every, Either)):
        for part in tree.parts:
            yield from leaves(part)
    elif isinstance(tree, Except):
        yield from leaves(tree.part)
    else:
        yield tree


def of_notes(tree: Filter) -> bool:
    """Does it say the same of all passages of a note?"""
    return not any(isinstance(leaf, PASSAGE_LEAVES) for leaf in leaves(tree))


# --- The plan ---


class Expansion(NamedTuple):
    """A term of the vault's own vocabulary that is near to the query."""

    term: str
    cosine: float
    weight: float  # of a word of the query's own: 1


_EVEN: Mapping[str, float] = MappingProxyType(dict.fromkeys(LEGS, 1.0))


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What was understood of a query.

    `text` is what was asked in words, without operators and unwanted words; `sought` the same for
    a keyword index, with the unwanted words. `filter` holds for every leg and is None when there
    is none. With a filter (or only a vault) and no text this is a `listing`: notes by date, newest
    first. `weights` multiply the legs' own. `expandable` says that terms may be added to the query.
    """

    query: str
    type: QueryType = "plain"
    text: str = ""
    sought: Sought | None = None
    filter: Filter | None = None
    phrases: tuple[str, ...] = ()  # those in quotes, without them
    vaults: tuple[str, ...] = ()  # named by in:
    weights: Mapping[str, float] = field(default_factory=lambda: _EVEN)
    hypothesis: str = ""
    expandable: bool = False
    expansions: tuple[Expansion, ...] = ()
    embed_expansions: bool = False
    listing: bool = False
    parse: str = ""  # all of this in words
    warnings: tuple[str, ...] = ()

    @property
    def embed(self) -> str:
        """What is embedded: the hypothesis as it is where there is one, otherwise the text."""
        if self.hypothesis or not self.embed_expansions:
            return self.hypothesis or self.text
        return " ".join([self.text, *(each.term for each in self.expansions)])

    def expanded(
        self, expansions: tuple[Expansion, ...], sought: Sought | None, embed: bool
    ) -> QueryPlan:
        """The same plan with terms added to it."""
        return replace(self, expansions=expansions, sought=sought, embed_expansions=embed)
