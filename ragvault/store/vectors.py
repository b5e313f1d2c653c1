"""Vectors of the catalogue: the embedding of every distinct text, and of the vault's vocabulary.

A text is embedded once, whichever note it is in or moves to; FAISS is filled from here. Vectors are
stored as little-endian float16; what is returned is float32. A model is known here only by its
name. A rebuilt catalogue takes over the vectors of the one before, as far as they can be read.

The vocabulary has the words that the vault is about. Its vectors are all of one model.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragvault.ports import CacheBroken, VectorChanges, VectorFileRow
from ragvault.store.database import Database, Facts, Row, reading, writing
from ragvault.store.schema import vector_cache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragvault.store.catalogue import Catalogue

DTYPE = "<f2"  # float16, little-endian: half the room, and cosines differ by less than 0.001
LENGTH_ERROR = 0.01  # float16 makes a vector longer or shorter by 0.0005
PAGE = 200  # vectors taken over at a time: at most what damage costs beside itself


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The terms in alphabetical order, a unit vector for each, and their model."""

    model: str
    terms: tuple[str, ...]
    matrix: NDArray[np.float32]


class Vectors(Database):
    """Stores and reads what models made of the texts."""

    @reading
    def model_dims(self) -> dict[str, int]:
        """The models that have vectors here, and their dimensions."""
        return dict(self._db.execute("SELECT name, dim FROM models").fetchall())

    @writing
    def put_vectors(
        self, model: str, dim: int, hashes: Sequence[bytes], matrix: NDArray[np.float32]
    ) -> None:
        """Store one row of the matrix for each hash; a text that has a vector keeps it."""
        if matrix.shape != (len(hashes), dim):
            raise ValueError(
                f"{len(hashes)} hashes of dimension {dim}, not a matrix {matrix.shape}"
            )
        self._db.execute("INSERT OR IGNORE INTO models (name, dim) VALUES (?, ?)", (model, dim))
        known, its_dim = self._model(model)
        if its_dim != dim:
            raise ValueError(f"{model} has {its_dim} dimensions here, not {dim}")
        rows = zip(hashes, matrix.astype(DTYPE), strict=True)
        values = [(known, text_hash, row.tobytes()) for text_hash, row in rows]
        statement = "INSERT OR IGNORE INTO vectors (model, text_hash, vector) VALUES (?, ?, ?)"
        self._db.executemany(statement, values)

    def _model(self, name: str) -> tuple[int, int]:
        """The id and the dimension of a model; an id that no vector has for an unknown one."""
        query = "SELECT id, dim FROM models WHERE name = ?"
        found: tuple[int, int] = self._db.execute(query, (name,)).fetchone() or (-1, 1)
        return found

    @reading
    def have(self, model: str, hashes: Sequence[bytes]) -> set[bytes]:
        """Those of the hashes whose text has a vector of this model."""
        query = "SELECT text_hash FROM vectors WHERE model = ? AND text_hash IN (*)"
        return {row[0] for row in self._select_in(query, hashes, self._model(model)[0])}

    @reading
    def passage_vectors(self, model: str, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """One row a passage, in the order given; NaN for one without a sound vector."""
        import numpy as np

        known, dim = self._model(model)
        # CROSS JOIN keeps the order: passages by id, then each one's vector. SQLite would rather go
        # through all vectors of the model.
        query = """
            SELECT passages.id, vector FROM passages
            CROSS JOIN vectors ON model = ? AND vectors.text_hash = passages.text_hash
            WHERE passages.id IN (*)"""
        wanted: list[int] = ids.tolist()
        found: dict[int, bytes] = dict(self._select_in(query, wanted, known))
        absent = np.full(dim, np.nan, DTYPE).tobytes()
        matrix = _matrix([found.get(passage, absent) for passage in wanted], dim)
        matrix[~_sound(matrix)] = np.nan
        return matrix

    @reading
    def embedded_passages(self, model: str) -> NDArray[np.int64]:
        """Passages with a vector of this model, ascending."""
        import numpy as np

        query = """SELECT id FROM passages WHERE EXISTS (
            SELECT 1 FROM vectors WHERE model = ? AND vectors.text_hash = passages.text_hash)
            ORDER BY id"""
        return np.array(self._column(query, self._model(model)[0]), np.int64)

    # What is new for a vector index that has all vectors up to an id and a revision.

    def last_vector(self) -> int:
        """The id of the newest vector, of any model."""
        return int(self._value("SELECT coalesce(max(id), 0) FROM vectors"))

    @reading
    def vectors_since(
        self, model: str, revision: int, upto: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Passages that were added or embedded since, ascending, and their vectors."""
        import numpy as np

        known, dim = self._model(model)
        query = _SINCE.format("passages.id, vector")
        found = sorted(dict(self._db.execute(query, (known, upto, revision))).items())
        matrix = _matrix([vector for _, vector in found], dim)
        sound = _sound(matrix)
        return np.array([passage for passage, _ in found], np.int64)[sound], matrix[sound]

    @reading
    def count_vectors_since(self, model: str, revision: int, upto: int) -> int:
        """How many passages `vectors_since` would return, if all vectors are sound."""
        query = f"SELECT count(*) FROM ({_SINCE.format('passages.id')})"
        return int(self._value(query, self._model(model)[0], upto, revision))

    @reading
    def unembedded(self, *models: str) -> list[int]:
        """The passages whose text has no vector of any of these models, ascending."""
        known = [self._model(model)[0] for model in models]
        # Sorted afterwards: SQLite then reads both tables in the order of the texts, twice as fast.
        return self._column(f"{_unembedded(len(known))} ORDER BY +id", *known)

    @reading
    def has_unembedded(self, *models: str) -> bool:
        """Whether there is such a passage; quick where it is one of the newest."""
        known = [self._model(model)[0] for model in models]
        query = f"{_unembedded(len(known))} ORDER BY id DESC LIMIT 1"
        return self._value(query, *known) is not None

    # Taking over.

    def take_over(self, old: Path) -> int:
        """Store the vectors of another catalogue, and which models they are of.

        Of a damaged one as much as can be read. Returns how many vectors of passages that were.
        """
        saved = 0
        # To read and write: SQLite may have to finish what a killed process left in the journal.
        uri = f"{old.absolute().as_uri()}?mode=rw"
        unreadable = (sqlite3.Error, msgspec.DecodeError)
        with suppress(*unreadable), closing(sqlite3.connect(uri, uri=True)) as db:
            for model, dim, rows in _readable_vectors(db):
                matrix = _matrix([vector for _, vector in rows], dim)
                sound = _sound(matrix)
                hashes = [each for (each, _), good in zip(rows, sound, strict=True) if good]
                self.put_vectors(model, dim, hashes, matrix[sound])
                saved += len(hashes)
            for (facts,) in db.execute("SELECT facts FROM meta").fetchall():
                terms = db.execute("SELECT term, vector FROM terms").fetchall()
                self._take_over(msgspec.json.decode(facts, type=Facts), terms)
        return saved

    @writing
    def _take_over(self, was: Facts, terms: Sequence[Row]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO terms VALUES (?, ?)", terms)
        self.set_facts(
            models=was.models,
            embedding=was.embedding,
            unrelated=was.unrelated,
            replaced=was.replaced,
            vocabulary_model=was.vocabulary_model,
        )

    # Deleting; each returns how many vectors were deleted.

    @writing
    def drop_superseded_vectors(self, model: str, by: str) -> int:
        """Delete a model's vectors of texts that have one of a better model."""
        worse, better = self._model(model)[0], self._model(by)[0]
        statement = """
            DELETE FROM vectors WHERE model = ?1 AND ?1 != ?2 AND text_hash IN
            (SELECT text_hash FROM vectors WHERE model = ?2)"""
        return self._db.execute(statement, (worse, better)).rowcount

    @writing
    def drop_model(self, model: str) -> int:
        """Delete all vectors of a model, and the model."""
        known = self._model(model)[0]
        dropped = self._db.execute("DELETE FROM vectors WHERE model = ?", (known,)).rowcount
        self._db.execute("DELETE FROM models WHERE id = ?", (known,))
        return dropped

    @writing
    def drop_unused_vectors(self, removed_before: float | None = None) -> int:
        """Delete the vectors of texts that no passage has any more.

        With a moment, only those of texts whose last removal is known and was before it.
        """
        # By model and text, as the table's index is.
        unused = "model IN (SELECT id FROM models)"
        unused += " AND text_hash NOT IN (SELECT text_hash FROM passages)"
        values: Row = ()
        if removed_before is not None:
            values = (removed_before,)
            query = "SELECT text_hash FROM removed_passages GROUP BY 1 HAVING max(removed_at) < ?"
            unused += f" AND text_hash IN ({query})"
        dropped = self._db.execute(f"DELETE FROM vectors WHERE {unused}", values).rowcount
        self._db.execute("DELETE FROM models WHERE id NOT IN (SELECT model FROM vectors)")
        return dropped

    # The vocabulary.

    @reading
    def vocabulary(self) -> Vocabulary:
        """All terms with a sound vector; no terms before the first were chosen."""
        rows = self._db.execute("SELECT term, vector FROM terms ORDER BY term").fetchall()
        matrix = _matrix([vector for _, vector in rows], len(rows[0][1]) // 2 if rows else 1)
        sound = _sound(matrix)
        terms = tuple(term for (term, _), good in zip(rows, sound, strict=True) if good)
        return Vocabulary(self.facts.vocabulary_model, terms, matrix[sound])

    def terms(self) -> list[str]:
        """The terms without their vectors, in alphabetical order."""
        return self._column("SELECT term FROM terms ORDER BY term")

    @writing
    def change_terms(
        self, new: Sequence[str], matrix: NDArray[np.float32], gone: Iterable[str]
    ) -> None:
        """Add terms with their vectors, one row a term, and drop others."""
        self.drop_terms(gone)
        rows = zip(new, matrix.astype(DTYPE), strict=True)
        values = sorted((term, row.tobytes()) for term, row in rows)
        self._db.executemany("INSERT OR REPLACE INTO terms VALUES (?, ?)", values)

    @writing
    def drop_terms(self, gone: Iterable[str]) -> None:
        """Delete terms that are in no passage any more, and their vectors."""
        self._db.executemany("DELETE FROM terms WHERE term = ?", [(term,) for term in list(gone)])


# CROSS JOIN keeps the order: first what is new, then what belongs to it.
_SINCE = """
    SELECT {0} FROM vectors CROSS JOIN passages ON passages.text_hash = vectors.text_hash
    WHERE vectors.id > ?2 AND +vectors.model = ?1 AND passages.revision <= ?3
    UNION ALL
    SELECT {0} FROM passages CROSS JOIN vectors
    ON vectors.model = ?1 AND vectors.text_hash = passages.text_hash
    WHERE passages.revision > ?3"""


def _readable_vectors(db: sqlite3.Connection) -> Iterator[tuple[str, int, list[Row]]]:
    """Pages of (text hash, vector) of each model, with its dimension.

    In a damaged file any column may have anything in it, and reading ends at the first page that
    cannot be read: so a table is read from its end as well. Then a single damaged place costs
    little. What is read twice does no harm.
    """
    models = """
        SELECT id, name, dim FROM models
        WHERE typeof(name) = 'text' AND typeof(dim) = 'integer' AND dim > 0"""
    for model, name, dim in db.execute(models).fetchall():
        for order in ("ASC", "DESC"):
            query = f"""
                SELECT text_hash, vector FROM vectors WHERE +model = ? AND length(vector) = ?
                AND typeof(vector) = 'blob' AND typeof(text_hash) = 'blob' ORDER BY id {order}"""
            with suppress(sqlite3.Error):
                rows = db.execute(query, (model, 2 * dim))
                while page := rows.fetchmany(PAGE):
                    yield name, dim, page
                break


def _unembedded(models: int) -> str:
    """A query for the passages whose text has no vector of any of so many models."""
    return f"""
        SELECT id FROM passages WHERE NOT EXISTS (
            SELECT 1 FROM vectors WHERE model IN ({", ".join("?" * models)})
            AND vectors.text_hash = passages.text_hash)"""


def _matrix(vectors: Sequence[bytes], dim: int) -> NDArray[np.float32]:
    """Stored vectors, one a row."""
    import numpy as np

    return np.frombuffer(b"".join(vectors), DTYPE).astype(np.float32).reshape(len(vectors), dim)


def _sound(matrix: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which rows have length 1. What damage made longer would be the best answer to every query."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        sound: NDArray[np.bool_] = np.abs(np.linalg.norm(matrix, axis=1) - 1) < LENGTH_ERROR
    return sound


# --- The vectors of one model ---

KEPT = 4096  # vectors: those of a dozen searches, 6 MB


class ModelVectors:
    """What a vector index reads: new vectors, and those of given passages (ports.VectorSource).

    The thread that opened the catalogue reads through it. All other threads take turns on one
    second connection: each reads a few hundred vectors, and only one leg reads any.

    Fetched vectors are cached: a search needs the vectors of its hits up to three times, to score
    them, to score the hits of other legs, and to compare them with each other. The cache cannot be
    wrong: a passage with the same id always has the same text, and no index returns a removed
    passage.
    """

    def __init__(self, catalogue: Catalogue, model: str, dim: int) -> None:
        self.model, self.dim, self._own = model, dim, catalogue
        self._owner = threading.get_ident()
        self._others: Catalogue | None = None
        self._turn, self._closed = threading.Lock(), False
        self._kept: dict[int, NDArray[np.float32]] = {}

    def file(self) -> VectorFileRow | None:
        cache = self._own.cache(vector_cache(self.model))
        if cache is None:
            return None
        return VectorFileRow(self._own.cache_folder(cache), cache.revision, cache.upto)

    def moment(self) -> tuple[int, int]:
        with self._own.snapshot():
            return self._own.revision, self._own.last_vector()

    def since(self, revision: int, upto: int) -> VectorChanges:
        with self._own.snapshot():
            ids, vectors = self._own.vectors_since(self.model, revision, upto)
            if vectors.shape[1] != self.dim:
                raise CacheBroken("its vectors have been deleted")
            return VectorChanges(ids, vectors, *self.moment())

    def gone(self, ids: NDArray[np.int64], revision: int) -> NDArray[np.bool_]:
        return self._own.gone(ids, revision)

    def fetch(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        import numpy as np

        wanted: list[int] = ids.tolist()
        kept = self._kept  # another thread may put an empty one in its place
        new = [id_ for id_ in wanted if id_ not in kept]
        read = dict(zip(new, self._read(np.array(new, np.int64)), strict=True)) if new else {}
        found = [read[id_] if id_ in read else kept[id_] for id_ in wanted]
        if any(len(row) != self.dim for row in found):  # the model was dropped meanwhile
            raise CacheBroken("its vectors have been deleted")
        if len(kept) + len(new) > KEPT:
            self._kept = {}
        if len(new) <= KEPT // 4:  # not thousands at once, which are read once
            there = {id_: row for id_, row in read.items() if not np.isnan(row[0])}
            self._kept.update(there)
        return np.array(found, np.float32).reshape(-1, self.dim)

    def close(self) -> None:
        """Close what was opened here. A leg that nobody waits for any more reads nothing after."""
        with self._turn:
            self._closed = True
            if self._others is not None:
                self._others.close()
                self._others = None

    def _read(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        if threading.get_ident() == self._owner:
            return self._own.passage_vectors(self.model, ids)
        with self._turn:
            return self._shared().passage_vectors(self.model, ids)

    def _shared(self) -> Catalogue:
        if self._closed:
            raise CacheBroken("the vectors have been closed")
        if self._others is None:
            self._others = type(self._own).open(self._own.folder, shared=True)
        return self._others
