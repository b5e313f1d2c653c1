"""The plan: what was understood of a query. Frozen values, without SQL and without an engine.

    QueryPlan       everything that search needs to know of a query
    Filter          which passages may be found: a tree, and every leg obeys it
    KeywordQuery    which words and phrases a keyword index looks for: a tree too

And, Or and Not join the leaves of both trees. A leaf of a filter is a condition on a note, which
then applies to each of its passages, or a condition on one passage:

    on a note      Tagged  NameContains  LinksTo  LinkedBy  Property  Dated
    on a passage   UnderHeading  InLanguage  HasPart  HasTask  MatchesWords

A filter decides passage by passage: `-tag:x` excludes every passage of the notes with that tag,
`-has:code` only the passages with code. store/filters.py finds out what a leaf matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

# --- And, Or, Not: they join the leaves of a filter and of a keyword query ---

Node = TypeVar("Node", covariant=True)


@dataclass(frozen=True, slots=True)
class And(Generic[Node]):
    """Each of its parts matches."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Generic[Node]):
    """At least one of its parts matches."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not(Generic[Node]):
    """Its part does not match. It adds nothing to a score."""

    part: Node


@overload
def leaves(  # type: ignore[overload-overlap]  # of an empty And, which has no leaf
    tree: Filter, negated: bool = True
) -> Iterator[NoteLeaf | PassageLeaf]: ...
@overload
def leaves(tree: KeywordQuery, negated: bool = True) -> Iterator[Words | Phrase]: ...
def leaves(tree: Any, negated: bool = True) -> Iterator[Any]:
    """The leaves of a tree, left to right; `negated`: those below a Not as well."""
    if isinstance(tree, (And, Or)):
        for part in tree.parts:
            yield from leaves(part, negated)
    elif not isinstance(tree, Not):
        yield tree
    elif negated:
        yield from leaves(tree.part, negated)


# --- The keyword query, what goes into a keyword index, and what it finds ---

# A pattern for characters that are words of their own: emoji, without skin tones, and flags, which
# are pairs.
PICTURES = (
    "(?:[\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
    "|[\U0001f1e6-\U0001f1ff]{2})"
)


@dataclass(frozen=True, slots=True)
class KeywordNote:
    """What a keyword index stores of a note: its title, aliases, tags and other fields.

    A field has several texts, such as two aliases; a phrase never runs from one into the next.
    `id` is the catalogue's.
    """

    id: int
    fields: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class KeywordPassage:
    """What a keyword index stores of a passage: its headers, its body and its code."""

    id: int
    note: int
    fields: Mapping[str, tuple[str, ...]]


class EngineDocument(NamedTuple):
    """A note or a passage as an engine stores it, with the texts of the engine's fields."""

    key: str  # unique: p12 for a passage, n3 for a note
    kind: str
    id: int
    note: int
    texts: dict[str, str]

    @property
    def has(self) -> str:
        return " ".join((self.kind, *self.texts))


class Spelling(NamedTuple):
    """A word of the vault to look for in place of one that is found nowhere, 0..1 sure."""

    typed: str
    word: str
    sure: float


@dataclass(frozen=True, slots=True)
class Words:
    """Free text: each of its words adds to the score, and a passage needs only one of them.

    With `every`, a passage needs all of them, in any order. `field` names the one field to look
    in; empty means all fields. `weight` scales the score; terms from expansion have less than 1.
    `spellings` are looked for in place of the words that they correct.
    """

    text: str
    field: str = ""
    every: bool = False
    weight: float = 1.0
    spellings: tuple[Spelling, ...] = ()


@dataclass(frozen=True, slots=True)
class Phrase:
    """These words as typed (not stemmed), in this order, next to each other, in one field."""

    text: str
    field: str = ""
    weight: float = 1.0


KeywordQuery = Words | Phrase | And["KeywordQuery"] | Or["KeywordQuery"] | Not["KeywordQuery"]


class KeywordHit(NamedTuple):
    """A passage that the keyword index found.

    `score` is `note_score`, from the fields of the note, plus `passage_score`, from the fields of
    the passage. `title_score` is the title's part of `note_score`. `coverage` is the share of the
    query's words that the passage and its note contain, each word counting by its rarity: 0..1.
    """

    passage: int
    note: int
    score: float
    note_score: float
    passage_score: float
    title_score: float = 0.0
    coverage: float = 0.0


@dataclass(frozen=True, slots=True)
class KeywordAnswer:
    """The hits of a keyword index, best first, and what their scores are compared with.

    `bounds` is the highest score that this query could get from each field. `complete` is False if
    the time limit was too short to find everything. `rarity` is how rare the words of the query
    are, added up: each its idf.
    """

    hits: tuple[KeywordHit, ...] = ()
    bounds: Mapping[str, float] = field(default_factory=dict)
    complete: bool = True
    rarity: float = 0.0

    @property
    def bound(self) -> float:
        """The highest score any passage could get from this query."""
        return sum(self.bounds.values())


# --- The plan ---

QueryType = Literal["factual", "navigational", "exploratory", "plain"]
UseCase = Literal["", "historical", "current", "definitions"]
NoteText = Literal["path", "file", "title", "alias"]
Part = Literal["code", "table", "task", "image"]
DateField = Literal["created", "modified", "date"]
Comparison = Literal["there", "empty", "=", "<", "<=", ">", ">=", ".."]

LEGS = ("name", "vector", "keyword", "code", "graph")
PARTS: tuple[Part, ...] = ("code", "table", "task", "image")


class Moment(NamedTuple):
    """A point in time as two numbers, both in seconds since 1970.

    `day` reads the user's clock as if it were UTC. It is compared with dates without a time and
    with times without a zone. `instant` is compared with everything else.
    """

    day: float
    instant: float


# --- Conditions on a note ---


@dataclass(frozen=True, slots=True)
class Tagged:
    """Has this tag or one below it: inbox matches #inbox/to-read. Case does not matter; no #."""

    tag: str


@dataclass(frozen=True, slots=True)
class NameContains:
    """Its path, file name, title or an alias contains this text; `*` matches anything."""

    where: NoteText
    text: str


@dataclass(frozen=True, slots=True)
class LinksTo:
    """Links to the note with this name, path, title or alias; a broken link counts by its name."""

    note: str
    anchor: tuple[str, ...] = ()  # and to these headings in it, or to this ^block

    def __str__(self) -> str:
        return "#".join((self.note, *self.anchor))


@dataclass(frozen=True, slots=True)
class LinkedBy:
    """The note with this name, path, title or alias links to it."""

    note: str


@dataclass(frozen=True, slots=True)
class Value:
    """A property's value as typed, and the number and the range of time it can be read as."""

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
    """Its date is at or after `since` and before `until`; None means no limit."""

    date: DateField
    since: Moment | None = None
    until: Moment | None = None


# --- Conditions on one passage ---


@dataclass(frozen=True, slots=True)
class UnderHeading:
    """Is under a heading with this text, or contains one; `*` matches anything."""

    heading: str


@dataclass(frozen=True, slots=True)
class InLanguage:
    """Contains code in a language; `languages` are all names of that one language."""

    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HasPart:
    """Contains code, a table, a task or an image."""

    part: Part


@dataclass(frozen=True, slots=True)
class HasTask:
    """Contains a task with this text in its line; an empty text matches every task."""

    text: str
    state: Literal["any", "todo", "done"] = "any"


@dataclass(frozen=True, slots=True)
class MatchesWords:
    """The keyword index finds it by these words; `index` says whether in text or in code."""

    query: KeywordQuery
    index: Literal["keyword", "code"] = "keyword"


NoteLeaf = Tagged | NameContains | LinksTo | LinkedBy | Property | Dated
PassageLeaf = UnderHeading | InLanguage | HasPart | HasTask | MatchesWords
Filter = NoteLeaf | PassageLeaf | And["Filter"] | Or["Filter"] | Not["Filter"]

PASSAGE_LEAVES = (UnderHeading, InLanguage, HasPart, HasTask, MatchesWords)


def of_notes(tree: Filter) -> bool:
    """Whether it is the same for all passages of a note: it has only conditions on notes."""
    return not any(isinstance(leaf, PASSAGE_LEAVES) for leaf in leaves(tree))


# --- The plan ---


class Expansion(NamedTuple):
    """A term of the vault's own vocabulary that is near the query."""

    term: str
    cosine: float
    weight: float  # a word of the query itself has 1


_EVEN: Mapping[str, float] = MappingProxyType(dict.fromkeys(LEGS, 1.0))


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What was understood of a query.

    `text` is the text to search for, without operators and excluded words; `corrected` is the same
    with its misspelt words corrected, if any. `keyword_query` is the
    same for a keyword index, with the excluded words. Every leg obeys `filter`; None means no
    filter. A query with a filter or a vault and without text is a `listing`: notes by date, newest
    first. `weights` multiply the weights of the legs; `use_case` names those of the features.
    `expandable`: terms may be added to it.
    """

    query: str
    type: QueryType = "plain"
    text: str = ""
    corrected: str = ""
    keyword_query: KeywordQuery | None = None
    filter: Filter | None = None
    phrases: tuple[str, ...] = ()  # without their quotes
    vaults: tuple[str, ...] = ()  # named by in:
    weights: Mapping[str, float] = field(default_factory=lambda: _EVEN)
    use_case: UseCase = ""
    hypothesis: str = ""
    expandable: bool = False
    expansions: tuple[Expansion, ...] = ()
    embed_expansions: bool = False
    listing: bool = False
    parse: str = ""  # the plan as a sentence
    warnings: tuple[str, ...] = ()

    @property
    def embed(self) -> str:
        """The text to embed: the hypothesis if there is one, otherwise the text of the query."""
        text = self.corrected or self.text
        if self.hypothesis or not self.embed_expansions:
            return self.hypothesis or text
        return " ".join([text, *(each.term for each in self.expansions)])
