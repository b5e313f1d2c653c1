"""What the core asks of the world. Each promise is kept by a real engine and by a small fake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Union, runtime_checkable

from ragvault.errors import RagvaultError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ragvault.plan import KeywordAnswer, KeywordNote, KeywordPassage, Sought
    from ragvault.text.analyze import Analyzer

Role = Literal["query", "passage"]


class Progress(Protocol):
    """Receives the progress of long work, and may cancel it.

    `step`, `checkpoint` and `download` may raise to cancel: what was finished is kept, and the next
    run continues from there.
    """

    def step(self, name: str, done: int = 0, total: int = 0) -> None:
        """How many items of a step are done; a total of 0 is not known."""
        ...

    def checkpoint(self) -> None:
        """Nothing new: only a moment at which the work can be cancelled."""
        ...

    def download(self, done: int, total: int) -> None:
        """Bytes downloaded so far, of how many. Each download starts again from a small number."""
        ...

    def download_ended(self) -> None:
        """The download has ended; a later one may follow."""
        ...

    def info(self, text: str) -> None:
        """One message for the user, a whole line."""
        ...


class NoProgress:
    """Ignores all progress and cancels nothing."""

    def step(self, name: str, done: int = 0, total: int = 0) -> None: ...

    def checkpoint(self) -> None: ...

    def download(self, done: int, total: int) -> None: ...

    def download_ended(self) -> None: ...

    def info(self, text: str) -> None: ...


class Embedder(Protocol):
    """Turns texts into unit vectors. Says nothing about where they are kept."""

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
    """What an embedder with a tokenizer of its own can do besides."""

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
        sought: Sought,
        *,
        limit: int,
        allowed: Allowed = None,
        per_note: int = 0,
        fuzzy: bool = True,
        boosts: Mapping[str, float] | None = None,
        seconds: float | None = None,
    ) -> KeywordAnswer:
        """The best `limit` of the allowed passages; equal scores by id.

        `per_note` keeps at most that many passages of one note (0: all). `fuzzy` allows near
        spellings of words that are found nowhere. `boosts` of fields and `seconds` of time
        override the settings.
        """
        ...

    def score_of(
        self, sought: Sought, passages: Sequence[int], *, boosts: Mapping[str, float] | None = None
    ) -> KeywordAnswer:
        """The same for given passages: those of them that are found, with their true scores."""
        ...

    def matching(self, sought: Sought, seconds: float | None = None) -> NDArray[np.int64] | None:
        """Every passage that is found, ascending; None when there was too little time."""
        ...

    def highlight(self, text: str, sought: Sought) -> list[tuple[int, int]]:
        """Where `text` holds what was sought: spans in order and apart."""
        ...

    def passages(self) -> NDArray[np.int64]:
        """Every passage that can be found, ascending."""
        ...

    def words(self) -> dict[str, int]:
        """Every word of the bodies, and in how many passages it stands.

        Passages that were removed may count until the engine merges its segments.
        """
        ...

    def holders(self, word: str) -> int:
        """The same for one word; 0 for one that stands nowhere."""
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

    def remove(self, notes: Iterable[int], passages: Iterable[int]) -> None:
        """Take out by id; an id that is not there is no mistake."""
        ...

    def commit(self) -> None:
        """Make all changes visible at once."""
        ...

    def close(self) -> None: ...


class VectorStore(Protocol):
    """Keeps one vector for each (model, text); `model` is an Embedder's name.

    A text is known by its key only: see ragvault.models.embed.
    """

    def have(self, model: str, hashes: Sequence[bytes]) -> set[bytes]:
        """Those of `hashes` that have a vector of this model."""
        ...

    def put_vectors(
        self, model: str, dim: int, hashes: Sequence[bytes], matrix: NDArray[np.float32]
    ) -> None:
        """Keep one row a hash, all or none of them. Once this returns they survive a crash."""
        ...

    def get_vectors(self, model: str, hashes: Sequence[bytes]) -> NDArray[np.float32]:
        """One row a hash, in the order given. Every hash must be there: see `have`."""
        ...


# --- Looking up by meaning ---


class CacheBroken(RagvaultError):
    """A cache of the catalogue that is missing, damaged, or of another model or format.

    Nothing is lost by it. Whoever meets it makes the cache again from the catalogue and says so.
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


class VectorIndex(Protocol):
    """Finds passages by their unit vectors, all of one model. Ids are the catalogue's.

    It reflects the catalogue as it was at the last `refresh`. Any number of threads may search.
    Scores are cosines from the catalogue's own vectors.
    """

    @property
    def model(self) -> str:
        """Name of the embedder whose vectors these are."""
        ...

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        ...

    @property
    def revision(self) -> int:
        """The catalogue's revision that this index reflects."""
        ...

    def __len__(self) -> int:
        """How many passages can be found."""
        ...

    def ids(self) -> NDArray[np.int64]:
        """All passages that can be found, ascending."""
        ...

    def search(
        self,
        query: NDArray[np.float32],
        *,
        limit: int,
        allowed: Allowed = None,
        without: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The `limit` nearest passages and their cosines, best first; equal ones by id.

        `allowed` are the passages that may be found, `without` those that may not; both ascend.
        """
        ...

    def scores_of(
        self, query: NDArray[np.float32], passages: Sequence[int] | NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The cosine of each given passage, in the order given; NaN where it is not here."""
        ...

    def vectors_of(self, passages: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float32]:
        """The vector of each given passage, a row each; NaN where the catalogue has none."""
        ...

    def refresh(self) -> None:
        """See the catalogue as it is now. Raises CacheBroken."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...
