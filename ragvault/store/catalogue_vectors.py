"""Vectors of the catalogue: of every distinct text, and of the words a vault is about.

How they are kept is in vectors.py and terms.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ragvault.store import terms, vectors
from ragvault.store.door import Door
from ragvault.store.terms import Chosen, Vocabulary
from ragvault.store.vectors import Dtype

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Vectors(Door):
    """What models made of the texts."""

    def model_dims(self) -> dict[str, int]:
        """The models that vectors are kept of, and their dimensions."""
        return self._read(vectors.dims)

    def have(self, model: str, hashes: Sequence[bytes]) -> set[bytes]:
        """Those of the hashes whose text has a vector of this model."""
        return self._read(vectors.have, model, hashes)

    def put_vectors(
        self,
        model: str,
        dim: int,
        hashes: Sequence[bytes],
        matrix: NDArray[np.float32],
        dtype: Dtype = "float16",
    ) -> None:
        """Store one row of the matrix for each hash."""
        self._write(vectors.put, model, dim, hashes, matrix, dtype)

    def get_vectors(self, model: str, hashes: Sequence[bytes]) -> NDArray[np.float32]:
        """One row a hash, in the order given. KeyError with a hash that has no vector."""
        return self._read(vectors.get, model, hashes)

    def chunk_ids(self) -> NDArray[np.int64]:
        """Every chunk there is, ascending."""
        return self._read(vectors.chunk_ids)

    def chunk_count(self) -> int:
        """How many chunks there are."""
        return self._read(vectors.count_chunks)

    def lacking(self, *models: str) -> list[int]:
        """Ids of the chunks whose text has a vector of none of these models."""
        return self._read(vectors.lacking, models)

    def is_lacking(self, *models: str) -> bool:
        """Whether there is such a chunk; at once where it is one of the newest."""
        return self._read(vectors.is_lacking, models)

    def chunk_vectors(self, model: str, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """One row a chunk, in the order given; NaN for one that is gone or has no vector."""
        return self._read(vectors.of_chunks, model, ids)

    def embedded(self, model: str, better: str = "") -> NDArray[np.int64]:
        """Chunks that have a vector of this model and none of the better one, ascending."""
        return self._read(vectors.embedded, model, better)

    def last_vector(self) -> int:
        """The id of the newest vector, of any model."""
        return self._read(vectors.last)

    def vectors_since(
        self, model: str, revision: int, upto: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Chunks that came or got their vector after a moment, ascending, and those vectors."""
        return self._read(vectors.since, model, revision, upto)

    def count_vectors_since(self, model: str, revision: int, upto: int) -> int:
        """How many those are."""
        return self._read(vectors.count_since, model, revision, upto)

    def gone(self, ids: NDArray[np.int64], revision: int) -> NDArray[np.bool_]:
        """Which of these chunks, ascending and all there at a revision, are there no more."""
        return self._read(vectors.gone, ids, revision)

    def drop_outdone_vectors(self, model: str, by: str) -> int:
        """Delete a model's vectors of texts that have one of a better model."""
        return self._write(vectors.drop_outdone, model, by)

    def drop_model(self, model: str) -> int:
        """Delete all vectors of a model; how many those were."""
        return self._write(vectors.drop_model, model)

    def drop_unused_vectors(self, removed_before: float | None = None) -> int:
        """Delete the vectors of texts no chunk holds any more, or of those gone before a moment."""
        return self._write(vectors.drop_unused, removed_before)

    def vocabulary(self) -> Vocabulary:
        """The words the vault is about, with their vectors and the model those are of."""
        return self._read(terms.vocabulary)

    def terms(self) -> list[str]:
        """The same without the vectors."""
        return self._read(terms.terms)

    def vocabulary_chosen(self) -> Chosen:
        """At which state of the vault the terms were chosen."""
        return self._read(terms.chosen)

    def change_vocabulary(
        self, now: Chosen, new: Sequence[str], matrix: NDArray[np.float32], gone: Iterable[str]
    ) -> None:
        """Add terms with their vectors, one row a term, and drop others."""
        self._write(terms.change, now, new, matrix, gone)

    def drop_terms(self, gone: Iterable[str]) -> None:
        """Delete terms that stand in no passage any more, and their vectors."""
        self._write(terms.drop, gone)
