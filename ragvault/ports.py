"""Ports: what the core asks of engines, as protocols.

Embedder, Reranker            models
KeywordIndex, KeywordWriter   words: Whoosh or tantivy
VectorSource                  vectors of the catalogue, for FAISS
Corpus                        an indexed vault, as the read path asks it (local: corpus.py)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Union, runtime_checkable

from ragvault.errors import RagvaultError

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ragvault.candidate import Excerpt, NoteFacts, PassageFacts
    from ragvault.config.settings import Config
    from ragvault.plan import (
        EngineDocument,
        Filter,
        KeywordAnswer,
        KeywordNote,
        KeywordPassage,
        KeywordQuery,
    )
    from ragvault.text.analyze import Analyzer
    from ragvault.text.name_index import NameIndex
    from ragvault.types import Head

Role = Literal["query", "passage"]


class Progress:
    """Receives the progress of long work, and may cancel it. This one ignores it all.

    `step`, `checkpoint` and `download` may raise to cancel: what was finished is kept, and the next
    run continues from there.
    """

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        """How many items of a step are done; a total of 0 is not known."""

    def checkpoint(self) -> None:
        """Nothing new: only a moment at which the work can be cancelled."""

    def download(self, done: int, total: int) -> None:
        """Bytes downloaded so far, of how many. Each download starts again from a small number."""

    def download_ended(self) -> None:
        """The download has ended; a later one may follow."""

    def info(self, text: str) -> None:
        """One message for the user, a whole line."""


class Interrupted(Exception):
    """A run was ended by its Progress; what was finished is kept."""


class InterruptingProgress(Progress):
    """Ends a run when `interrupt` returns True; passes on messages for the user."""

    def __init__(
        self, interrupt: Callable[[], bool], info: Callable[[str], None] = lambda text: None
    ) -> None:
        self._interrupt, self._info = interrupt, info

    def info(self, text: str) -> None:
        self._info(text)

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        self.checkpoint()

    def download(self, done: int, total: int) -> None:
        self.checkpoint()

    def checkpoint(self) -> None:
        if self._interrupt():
            raise Interrupted


class Embedder(Protocol):
    """Turns texts into unit vectors. Does not know where they are stored."""

    @property
    def name(self) -> str:
        """Names the weights and how they are used: two embedders of one name agree."""
        ...

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        ...

    @property
    def max_tokens(self) -> int:
        """How many tokens are read at once; 0 means any number.

        Nothing is cut off: a longer text is read in windows of this size, and its vector is
        their mean.
        """
        ...

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        """One row a text, in the order given, each of length 1.

        The vector of a text does not depend on its neighbours (beyond rounding). An empty text
        has a vector too. Raises ModelUnusable when the weights cannot be run.
        """
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """What an embedder with its own tokenizer can do as well."""

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, however long it is."""
        ...


class Reranker(Protocol):
    """Reads a query and a passage together and says how well one answers the other."""

    @property
    def name(self) -> str: ...

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """One number a passage, in the order given, higher is better; 0..1 where it says so."""
        ...


# --- Looking up by word ---


# The passages a search may return, ascending; None is all of them.
Allowed = Union["NDArray[np.int64]", None]


class KeywordIndex(Protocol):
    """Finds passages by the words in them and in their notes.

    A passage's score is the sum, over the query's words and the fields, of boost x BM25(word,
    field); fields of the note count for each of its passages. Ids are the catalogue's. A search
    sees one commit, whole, and never waits for a writer. CacheBroken is raised for what the
    engine cannot read.
    """

    @property
    def analyzers(self) -> Mapping[str, Analyzer]:
        """What cuts texts and queries into words: for code, and for everything else ("")."""
        ...

    def search(
        self,
        query: KeywordQuery,
        *,
        limit: int,
        allowed: Allowed = None,
        coverage: bool = True,
    ) -> KeywordAnswer:
        """The best `limit` of the allowed passages; equal scores by id.

        Without `coverage`, that of every hit is 0.
        """
        ...

    def score_of(self, query: KeywordQuery, passages: Sequence[int]) -> KeywordAnswer:
        """The same for given passages: those of them that are found, with their true scores."""
        ...

    def corrected(self, query: KeywordQuery, is_word: Callable[[str], bool] = ...) -> KeywordQuery:
        """The query with near spellings of its words that are found nowhere, the best first.

        None of a text that is a word of its language (`is_word`).
        """
        ...

    def matching(self, query: KeywordQuery) -> NDArray[np.int64] | None:
        """Every passage that is found, ascending; None when there was too little time."""
        ...

    def highlight(self, text: str, query: KeywordQuery) -> list[tuple[int, int]]:
        """Where `text` matches the query: spans in order and apart."""
        ...

    def passages(self) -> NDArray[np.int64]:
        """Every passage that can be found, ascending."""
        ...

    def words(self) -> dict[str, int]:
        """Every word of the bodies, and how many passages contain it.

        Passages that were removed may count until the engine merges its segments.
        """
        ...

    def holders(self, word: str) -> int:
        """The same for one word; 0 if no passage contains it."""
        ...

    def share(self, word: str) -> float:
        """The share of all passages that contain a word in any of its forms, 0..1."""
        ...

    def refresh(self) -> None:
        """See the newest commit from now on."""
        ...

    def close(self) -> None:
        """Let go of the files."""
        ...


class KeywordWriter(Protocol):
    """Changes a keyword index. Closed without a commit, nothing has happened."""

    def put(self, notes: Iterable[KeywordNote], passages: Iterable[KeywordPassage]) -> None:
        """Add, or replace by id. Nothing is seen by a search before `commit`."""
        ...

    def add(self, documents: Iterable[EngineDocument]) -> None:
        """As `put`, for documents that another process has made of notes and passages."""
        ...

    def remove(self, notes: Iterable[int], passages: Iterable[int]) -> None:
        """Take out by id; an id that is not there is no mistake."""
        ...

    def commit(self) -> None:
        """Make all changes visible at once."""
        ...

    def close(self) -> None: ...


# --- Vector index ---


class CacheBroken(RagvaultError):
    """A cache of the catalogue that is missing, damaged, or of another model or format.

    Nothing is lost: the cache is rebuilt from the catalogue, and the user sees a message.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why, fix="ragvault index")


# Vectors of passages as the catalogue has them, one row an id, in the order given; NaN for an id
# that it no longer knows. They may be rounded to half precision.
FetchVectors = Callable[["NDArray[np.int64]"], "NDArray[np.float32]"]


class VectorFileRow(NamedTuple):
    """The current FAISS file of a model, as the catalogue names it."""

    folder: Path
    revision: int  # of the catalogue, as the file reflects it
    upto: int  # the last vector it has taken in


class VectorChanges(NamedTuple):
    """What happened to the vectors of one model after a moment, and the moment it reaches."""

    ids: NDArray[np.int64]  # passages that have a vector since then, ascending
    vectors: NDArray[np.float32]  # a row each
    revision: int
    upto: int


class VectorSource(Protocol):
    """The catalogue's vectors of one model, as a vector index asks for them.

    `fetch` may be called by any thread, everything else by the one that opened the catalogue.
    """

    @property
    def model(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def file(self) -> VectorFileRow | None:
        """The current file, if there is one. Raises CacheBroken when it was changed or cut."""
        ...

    def moment(self) -> tuple[int, int]:
        """The catalogue's revision and its last vector: when neither has changed, nothing has."""
        ...

    def since(self, revision: int, upto: int) -> VectorChanges:
        """What came after a moment."""
        ...

    def gone(self, ids: NDArray[np.int64], revision: int) -> NDArray[np.bool_]:
        """Which of these passages, all there at that revision, are there no more; they ascend."""
        ...

    def fetch(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of passages: see FetchVectors."""
        ...

    def close(self) -> None: ...


# --- An indexed vault ---

# The passages that a filter leaves, in a form that only the corpus knows; None is all of them.
Scope = Any


# `folder`: a title together with its folder; `initials`: made of a name's words.
NameKind = Literal["title", "file", "alias", "folder", "initials"]


class NoteName(NamedTuple):
    """One name of a note: its words, the keys by which they are compared, and how it is written.

    Names of a note that have the same words are one, such as `C` and `C++`: `texts` has each.
    """

    note: int
    texts: tuple[str, ...]
    kind: NameKind
    words: tuple[str, ...]
    keys: tuple[str, ...]


class NoteOnDisk(NamedTuple):
    """A note's file now. A changed one is read again: its passages have the origin "file"."""

    state: Literal["same", "gone", "changed", "unreadable"]
    passages: Sequence[PassageFacts] = ()
    sections: Mapping[int, Excerpt] = {}
    excerpts: Mapping[int, Excerpt] = {}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A note that links lead to.

    `rank` is that of the best hit it was reached from, divided by the weights of the links on the
    way: one link of a long list makes a neighbour of a hit as good as a plain link of a hit much
    further down. `shared` counts the notes one step nearer that lead here. `section` is where the
    link points (direction out) or contains it (direction in).
    """

    note: int
    rank: float
    shared: int
    steps: int
    seed: int
    kind: Literal["link", "embed", "alias", "property"]
    direction: Literal["out", "in"]
    section: int | None


@dataclass(frozen=True, slots=True)
class VaultFacts:
    """What is known of a vault at one state of its index, whatever the query."""

    revision: int = 0
    tier: str = "keyword"  # the one that answers: keyword, static or full
    searchable: frozenset[str] = frozenset()  # what can be searched now, of: vector, keyword
    missing: Mapping[str, str] = field(default_factory=dict)  # parts that cannot be used, and why
    behind: str = ""  # why the index does not cover all notes as they should be; empty if it does
    remedy: str = ""  # what then helps: a run of `ragvault index`, or the end of one
    unfinished: str = ""  # why notes may never have been indexed; empty if the first run finished
    notes: int = 0
    passages: int = 0
    median_length: float = 0.0  # of a note, in characters
    unrelated_cosine: float = 0.0  # unrelated texts stay below it, by the model that answers
    # Between which times most files were written, if that was within minutes: when the vault was
    # copied or cloned, not when a note was written.
    copied: tuple[float, float] | None = None


class Corpus(Protocol):
    """An indexed vault, as the read path asks it.

    Ids of passages, sections and notes are opaque. Searching and scoring by vector and by word may
    be called by any thread, everything else by the thread that opened the corpus.
    """

    @property
    def config(self) -> Config: ...

    @property
    def facts(self) -> VaultFacts: ...

    @property
    def pool(self) -> Executor:
        """Threads for the legs; they live as long as the corpus is open."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """All reads inside see the newest state; a nested snapshot is part of the outer one."""
        ...

    def heads(self) -> Sequence[Head]:
        """The names, tags and properties of all notes."""
        ...

    # Filters

    def scope(self, tree: Filter | None, newest: int = 0) -> Scope:
        """The passages that a filter keeps; those of them among the newest, if so many are given.

        New is what was opened or written. Raises RagvaultError if it needs a missing index.
        """
        ...

    def within(self, passages: Iterable[int], scope: Scope) -> set[int]:
        """Those of some passages that are in the scope."""
        ...

    def notes_by_date(
        self, tree: Filter | None, limit: int
    ) -> tuple[Sequence[tuple[PassageFacts, bool]], int]:
        """At most `limit` of the notes that a filter keeps, newest first, and how many it keeps.

        Each is its first matching passage, and whether it says nothing: a template, or without
        text. Those come last.
        """
        ...

    # By vector

    @property
    def model_is_loaded(self) -> bool:
        """Whether a query was embedded before; the first one waits for its model."""
        ...

    def embed_query(self, text: str, role: Role) -> NDArray[np.float32]:
        """The vector of a text, by the model of the tier that answers."""
        ...

    def nearest(
        self, vector: NDArray[np.float32], limit: int, scope: Scope
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The nearest passages of the scope and their cosines, best first."""
        ...

    def cosines(self, vector: NDArray[np.float32], passages: Sequence[int]) -> NDArray[np.float64]:
        """The cosine of each passage; NaN for one without a vector."""
        ...

    def vectors(self, passages: Sequence[int]) -> Mapping[int, NDArray[np.float32]]:
        """Those of these passages that have one, read when one is looked up."""
        ...

    # By word, by name and by link

    @property
    def words(self) -> KeywordIndex:
        """Raises CacheBroken without a keyword index: see `facts.searchable`."""
        ...

    def corrected(self, query: KeywordQuery) -> KeywordQuery:
        """The query with near spellings: see KeywordIndex.corrected."""
        ...

    def written(self, word: str) -> str:
        """A folded word as most of the notes that have it write it."""
        ...

    def near_terms(
        self, text: str, count: int, *, percentile: float, exclude: frozenset[str]
    ) -> tuple[Sequence[tuple[str, float]], float]:
        """The terms of the vault's vocabulary nearest to a text, with their cosines, best first.

        And the cosine that a share of all pairs (`percentile`, 0..1) stays below: what near means
        depends on the model. Raises RagvaultError when that cannot be used.
        """
        ...

    def query_cosines(self, query: str, texts: Sequence[str]) -> list[float] | None:
        """How near texts are to a query by the vectors of the vault's own words.

        Loads no model. None if none of the query's words has a vector.
        """
        ...

    def names(self) -> NameIndex:
        """The names of all notes."""
        ...

    def neighbours(self, seeds: Mapping[int, int], depth: int) -> list[Neighbour]:
        """Notes at most `depth` links from the seeds, which are notes with ranks; best first.

        A seed that another seed links is a neighbour too.
        """
        ...

    # Passages and texts

    def passages_of(self, parts: Sequence[tuple[int, int | None]]) -> list[list[int]]:
        """The passages of some sections, in order: each a note and a section, None for all."""
        ...

    def passages(
        self, passages: Sequence[int], texts: Iterable[int] = ()
    ) -> dict[int, PassageFacts]:
        """The facts of passages; one that is gone is absent. Reads the text of those in `texts`."""
        ...

    def load_texts(self, passages: Sequence[PassageFacts]) -> None:
        """Read the texts of these passages now: after the snapshot they could be gone."""
        ...

    def excerpts(self, of: Literal["section", "passage"]) -> Mapping[int, Excerpt]:
        """Every section, or every passage, by its id, read when it is looked up."""
        ...

    def property_lines(self, note: int) -> list[str]:
        """The properties of a note that its words can be found in: `name: value`."""
        ...

    def note_text(self, note: int) -> str:
        """The whole text of a note as it was indexed."""
        ...

    # Files

    def check_files(self) -> None:
        """Raise VaultUnreadable if the vault's folder is gone, unreadable or empty."""
        ...

    def note_on_disk(self, note: NoteFacts) -> NoteOnDisk:
        """How a note's file differs from what was indexed."""
        ...

    def left_out(self, name: str) -> str:
        """Why a file of this name is not indexed; empty if there is none. Walks the vault."""
        ...

    # Models

    def reranker(self) -> Reranker:
        """Raises RagvaultError when it cannot be used."""
        ...

    def count_tokens(self) -> Callable[[str], int] | None:
        """The tokenizer of the model that answers, if it is loaded and has one."""
        ...
