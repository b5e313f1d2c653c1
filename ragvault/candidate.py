"""The nouns of ranking, frozen: what is ranked, what is known about it, and what was done to it.

    Hit            one passage as one leg found it
    LegRun         how one leg ran: when, how many hits, and why it failed
    NoteFacts      what ranking needs of a note, whatever the query
    PassageFacts   the passage that was matched
    Excerpt        text that can be shown: a section, or a passage, with the ids of its neighbours
    SectionPlace   a section that is named and not shown
    Candidate      a passage on its way to becoming a result
    Term           one reason for a score; a Step has all reasons of one stage
    Ranked         what a stage returned: the candidates it kept, in order, and those it removed
    Context        everything a stage may know beside the candidates
    LazyExcerpts, LazyVectors   values that are read when they are looked up

`best_first` is the only order. Nothing here opens a file or knows an engine. The classes of which
a search makes thousands are msgspec Structs: a frozen dataclass takes twenty times as long to copy.
`gc=False`: these cannot be part of a reference cycle, so the collector need not visit them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, Literal, overload

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from ragvault.config.settings import Config
from ragvault.plan import QueryType, UseCase
from ragvault.types import Date, Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragvault.ports import FetchVectors, Reranker

Exact = Literal["", "title", "alias", "phrase"]
# Where a passage comes from: the index, or a file that changed since.
Origin = Literal["index", "file"]
Key = tuple[float, str, int, int]


class Hit(Struct, frozen=True, gc=False):
    """One passage as one leg found it; `rank` counts from 1, `score` is in the leg's own units."""

    passage: int
    rank: int
    score: float


class LegRun(Struct, frozen=True, kw_only=True):
    """How one leg ran, in seconds since retrieval began, and why it failed, if it did.

    `hits` counts what the leg itself found; `candidates` those of them that are in the catalogue.
    `vault` is for an answer of several vaults.
    """

    vault: str | UnsetType = UNSET
    leg: str
    start: float
    end: float
    hits: int = 0
    failed: str = ""
    candidates: int = 0


class NoteFacts(Struct, frozen=True, gc=False):
    """What ranking needs of a note, whatever the query."""

    id: int
    path: str
    title: str = ""
    disk: str = ""  # the path letter for letter as the file system spells it
    names: frozenset[str] = frozenset()  # without case (text/spelling.py)
    date: Date | None = None  # when it is from
    modified: float | None = None  # last change by its properties, git or file; since 1970
    file_time: float | None = None  # when its file was written, whatever else is known
    linkers: int = 0  # notes that link to it
    links: int = 0  # links to it: a note that links twice counts twice
    community: int | None = None
    importance: str = ""
    access: int = 0  # how often it was opened
    superseded_by: tuple[int, ...] = ()  # ids of the notes that say they replace it


class PassageFacts(Struct, frozen=True):
    """The passage that was matched, with the facts of its note.

    `source` is its text, or a function that reads it: few of the hundreds that are found are shown.
    """

    id: int
    note: NoteFacts
    ordinal: int = 0  # its place in the note
    section: int = 0  # id of the section it is in
    headings: tuple[str, ...] = ()
    kind: Kind = "prose"
    source: str | Callable[[], str] = ""
    lines: tuple[int, int] = (1, 1)
    subheadings: tuple[str, ...] = ()  # below `headings`, of the short sections that share it
    origin: Origin = "index"

    @property
    def text(self) -> str:
        return self.source if isinstance(self.source, str) else self.source()


class Excerpt(Struct, frozen=True, gc=False):
    """Text that can be shown. `before` and `after` are the ids of its neighbours in the note."""

    id: int
    text: str
    lines: tuple[int, int]
    headings: tuple[str, ...] = ()
    before: int | None = None
    after: int | None = None


class SectionPlace(Struct, frozen=True, gc=False):
    """A section that is named and not shown: its headings and its lines."""

    headings: tuple[str, ...]
    lines: tuple[int, int]


class Term(Struct, frozen=True, gc=False):
    """One reason for a score. `multiply` adds amount times its size, `add` adds amount.

    Its size, so that what is boosted never falls: (1 + amount) times a score below 0 would be less.
    """

    name: str
    value: float
    weight: float = 1.0
    how: Literal["multiply", "add"] = "add"
    why: str = ""

    @property
    def amount(self) -> float:
        return self.value * self.weight


class Step(Struct, frozen=True, gc=False):
    """What one stage did to one candidate: the score it had, the reasons, the score it got.

    `before` is 0 for a stage that makes a new score of its terms alone.
    """

    stage: str
    before: float
    score: float
    terms: tuple[Term, ...] = ()
    why: str = ""

    @property
    def total(self) -> float:
        """The score by the terms; it equals `score` but for rounding."""
        return total(self.before, self.terms)


SAYS_NOTHING = 0.0  # score of a note in a list by date that is a template or without text


class Candidate(Struct, frozen=True):
    """A passage on its way to becoming a result.

    `ranks` says where each leg placed it: 1 is best, and a leg that missed it is absent. `scores`
    are the legs' own, also of a leg that missed it where the score was computed all the same.
    `evidence` is measured against the most it could be: 0..1. `score` orders the candidates of one
    query and means nothing between two; `confidence` may be compared.
    """

    passage: PassageFacts
    ranks: Mapping[str, int] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, float] = field(default_factory=dict)
    exact: Exact = ""
    score: float = 0.0
    confidence: float | None = None
    band: str = ""
    steps: tuple[Step, ...] = ()
    shown: Excerpt | None = None  # in place of the passage
    merged: tuple[int, ...] = ()  # ids of passages that are shown with this one
    also: tuple[SectionPlace, ...] = ()  # other sections of its note that matched
    cut: bool = False  # shown in part, to fit a budget
    queries: tuple[int, ...] = ()  # places of the queries that found it, if there are several

    @property
    def id(self) -> int:
        return self.passage.id

    @property
    def note(self) -> NoteFacts:
        return self.passage.note

    @property
    def lifted(self) -> bool:
        """Whether `fuse` put it first because the query is its exact name or phrase."""
        return any(term.name == "exact" for step in self.steps[:1] for term in step.terms)

    @property
    def text(self) -> str:
        return self.shown.text if self.shown else self.passage.text

    @property
    def lines(self) -> tuple[int, int]:
        return self.shown.lines if self.shown else self.passage.lines

    @property
    def headings(self) -> tuple[str, ...]:
        return self.shown.headings if self.shown else self.passage.headings

    def after(
        self, stage: str, terms: Sequence[Term], *, before: float | None = None, why: str = ""
    ) -> Candidate:
        """A copy with the score that its terms make, and the step that explains it."""
        start = self.score if before is None else before
        return self.placed(stage, total(start, terms), terms, before=start, why=why)

    def placed(
        self,
        stage: str,
        score: float,
        terms: Sequence[Term] = (),
        *,
        before: float | None = None,
        why: str = "",
    ) -> Candidate:
        """A copy with a score that was computed already."""
        start = self.score if before is None else before
        step = Step(stage, start, score, tuple(terms), why)
        return replace(self, score=score, steps=(*self.steps, step))


class Removal(Struct, frozen=True):
    """A candidate that a stage removed, why, and which candidate replaces it, if one does."""

    candidate: Candidate
    reason: str
    by: Candidate | None = None


@dataclass(frozen=True, slots=True)
class Ranked(Sequence[Candidate]):
    """What a stage returned. Each candidate it was given is in `kept` or in `removed`.

    `warnings` are sentences for the reader: a reranker that failed, what a budget left out.
    """

    kept: tuple[Candidate, ...]
    removed: tuple[Removal, ...] = ()
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.kept)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.kept)

    @overload
    def __getitem__(self, at: int) -> Candidate: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, at: int | slice) -> Candidate | tuple[Candidate, ...]:
        return self.kept[at]


class Context(Struct, frozen=True):
    """Everything a stage may know beside the candidates: settings, query, clock, look-ups, models.

    The mappings may be lazy: a value is read when a stage looks it up.
    """

    settings: Config = field(default_factory=Config)
    query: str = ""
    type: QueryType = "plain"
    weights: Mapping[str, float] = field(default_factory=dict)  # the plan's factor for each leg
    use_case: UseCase = ""  # names the weights of the features
    now: float = 0.0  # seconds since 1970
    limit: int | None = None  # the caller's n
    all_matches: bool = False  # show n results even if none is likely to answer
    note_length: float | None = None  # the vault's median, in characters
    unrelated: float = 0.0  # the cosine that unrelated texts stay below, of this model
    vectors: Mapping[int, Any] = field(default_factory=dict)  # passage -> its unit vector
    sections: Mapping[int, Excerpt] = field(default_factory=dict)
    passages: Mapping[int, Excerpt] = field(default_factory=dict)
    reranker: Reranker | None = None
    count_tokens: Callable[[str], int] | None = None


def cosine_evidence(cosine: float, unrelated: float) -> float:
    """A cosine above that of unrelated texts, as a share of what is left up to 1."""
    return max(0.0, cosine - unrelated) / (1.0 - unrelated)


def total(before: float, terms: Iterable[Term]) -> float:
    """The score that terms make: first those that multiply, then those that add."""
    parts = [before]
    for term in terms:
        if term.how == "add":
            parts.append(term.value * term.weight)
        else:
            amount = term.value * term.weight
            parts[0] *= 1 + amount if parts[0] >= 0 else 1 - amount
    # fsum: plain addition would let the order of the legs break a tie.
    return fsum(parts)


def key(candidate: Candidate, score: float | None = None) -> Key:
    """The sort key: by score; equal scores by note and position in it."""
    passage = candidate.passage
    shown = candidate.score if score is None else score
    return (-shown, passage.note.path, passage.ordinal, passage.id)


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates in the one order there is, so that two runs agree."""
    return sorted(candidates, key=key)


# --- Values that are read when they are looked up ---


class LazyExcerpts(Mapping[int, Excerpt]):
    """Excerpts by id, each read when it is first looked up."""

    def __init__(self, read: Callable[[int], Excerpt | None]) -> None:
        self._read = read
        self._known: dict[int, Excerpt | None] = {}  # None: there is no such excerpt

    def __getitem__(self, key: int) -> Excerpt:
        if key not in self._known:
            self._known[key] = self._read(key)
        value = self._known[key]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class LazyVectors(Mapping[int, "NDArray[np.float32]"]):
    """Vectors of a fixed set of passages: those that are fetched, or all at the first look-up."""

    def __init__(self, read: FetchVectors, ids: Sequence[int]) -> None:
        self._read, self._ids = read, list(ids)
        self._known: dict[int, NDArray[np.float32] | None] = {}  # None: it has no vector

    def fetch(self, ids: Sequence[int]) -> None:
        import numpy as np

        new = [id_ for id_ in ids if id_ not in self._known]
        for id_, row in zip(new, self._read(np.array(new, np.int64)), strict=True):
            self._known[id_] = None if np.isnan(row[0]) else row

    def __getitem__(self, key: int) -> NDArray[np.float32]:
        if key not in self._known:
            self.fetch(self._ids)
        found = self._known.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[int]:
        self.fetch(self._ids)
        return (id_ for id_ in self._ids if self._known[id_] is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def prefetch(values: Mapping[int, Any], ids: Sequence[int]) -> None:
    """Read some values of a lazy mapping in one go; does nothing to other mappings."""
    fetch: Callable[[Sequence[int]], None] | None = getattr(values, "fetch", None)
    if fetch is not None:
        fetch(ids)
