"""Vectors of the catalogue: the embedding of every distinct text, and of the vault's vocabulary.

A text is embedded once, whichever note it is in or moves to; FAISS is filled from here. Vectors are
stored as little-endian float16 or float32, as the first vectors of the model were; what is returned
is always float32. A model is known here only by its name.

The vocabulary has the words that the vault is about. Its vectors are all of one model.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragvault.ports import CacheBroken, VectorChanges, VectorFileRow
from ragvault.store.caches import vector_cache
from ragvault.store.database import Database, meta, reading, select_in, set_meta, writing
from ragvault.store.values import from_sql, to_sql

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragvault.store.catalogue import Catalogue

Dtype = Literal["float16", "float32"]
LITTLE_ENDIAN = {"float16": "<f2", "float32": "<f4"}
TERM_DTYPE = "<f2"
LENGTH_ERROR = 0.01  # float16 makes a vector longer or shorter by 0.0005


@dataclass(frozen=True, slots=True)
class Chosen:
    """When the terms were chosen: at which revision, of how many passages, for which model."""

    revision: int = 0
    passages: int = 0
    model: str = ""


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
        self,
        model: str,
        dim: int,
        hashes: Sequence[bytes],
        matrix: NDArray[np.float32],
        dtype: Dtype = "float16",
    ) -> None:
        """Store one row of the matrix for each hash; a text that has a vector keeps it."""
        if matrix.shape != (len(hashes), dim):
            raise ValueError(
                f"{len(hashes)} hashes of dimension {dim}, not a matrix {matrix.shape}"
            )
        known = _model(self._db, model) or _new_model(self._db, model, dim, dtype)
        if known.dim != dim:
            raise ValueError(f"{model} has {known.dim} dimensions here, not {dim}")
        rows = matrix.astype(LITTLE_ENDIAN[known.dtype])
        values = [
            (known.id, text_hash, row.tobytes())
            for text_hash, row in zip(hashes, rows, strict=True)
        ]
        statement = "INSERT OR IGNORE INTO vectors (model, text_hash, vector) VALUES (?, ?, ?)"
        self._db.executemany(statement, values)

    @reading
    def have(self, model: str, hashes: Sequence[bytes]) -> set[bytes]:
        """Those of the hashes whose text has a vector of this model."""
        query = """
            SELECT text_hash FROM vectors JOIN models ON models.id = model
            WHERE name = ? AND text_hash IN (*)"""
        return {row[0] for row in select_in(self._db, query, hashes, model)}

    @reading
    def get_vectors(self, model: str, hashes: Sequence[bytes]) -> NDArray[np.float32]:
        """One row a hash, in the order given. KeyError with a hash that has no vector."""
        import numpy as np

        known = _model(self._db, model) or _NO_MODEL
        query = "SELECT text_hash, vector FROM vectors WHERE model = ? AND text_hash IN (*)"
        found = dict(select_in(self._db, query, hashes, known.id))
        joined = b"".join([found[text_hash] for text_hash in hashes])
        matrix = np.frombuffer(joined, LITTLE_ENDIAN[known.dtype])
        return matrix.astype(np.float32).reshape(len(hashes), known.dim)

    @reading
    def passage_vectors(self, model: str, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """One row a passage, in the order given; NaN for one without a sound vector."""
        import numpy as np

        known = _model(self._db, model) or _NO_MODEL
        # CROSS JOIN keeps the order: passages by id, then each one's vector. SQLite would rather go
        # through all vectors of the model.
        query = """
            SELECT passages.id, vector FROM passages
            CROSS JOIN vectors ON model = ? AND vectors.text_hash = passages.text_hash
            WHERE passages.id IN (*)"""
        wanted: list[int] = ids.tolist()
        found: dict[int, bytes] = dict(select_in(self._db, query, wanted, known.id))
        stored = np.dtype(LITTLE_ENDIAN[known.dtype])
        absent = np.full(known.dim, np.nan, stored).tobytes()
        joined = b"".join([found.get(passage, absent) for passage in wanted])
        matrix: NDArray[np.float32] = np.frombuffer(joined, stored).astype(np.float32)
        matrix = matrix.reshape(-1, known.dim)
        matrix[~_sound(matrix)] = np.nan
        return matrix

    @reading
    def embedded_passages(self, model: str, better: str = "") -> NDArray[np.int64]:
        """Passages with a vector of this model and none of the better one, ascending."""
        import numpy as np

        has = """EXISTS (
            SELECT 1 FROM vectors WHERE model = ? AND vectors.text_hash = passages.text_hash)"""
        query = f"SELECT id FROM passages WHERE {has} AND NOT {has} ORDER BY id"
        models = [(_model(self._db, name) or _NO_MODEL).id for name in (model, better)]
        return np.array(self._db.execute(query, models).fetchall(), np.int64).reshape(-1)

    # What is new for a vector index that has all vectors up to an id and a revision.

    @reading
    def last_vector(self) -> int:
        """The id of the newest vector, of any model."""
        return int(self._db.execute("SELECT coalesce(max(id), 0) FROM vectors").fetchone()[0])

    @reading
    def vectors_since(
        self, model: str, revision: int, upto: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Passages that were added or embedded since, ascending, and their vectors."""
        import numpy as np

        known = _model(self._db, model) or _NO_MODEL
        query = _SINCE.format("passages.id, vector")
        found = dict(self._db.execute(query, (known.id, upto, revision)))
        ids = np.array(sorted(found), np.int64)
        joined = b"".join([found[passage] for passage in ids.tolist()])
        matrix = np.frombuffer(joined, LITTLE_ENDIAN[known.dtype]).astype(np.float32)
        matrix = matrix.reshape(-1, known.dim)
        sound = _sound(matrix)
        return ids[sound], matrix[sound]

    @reading
    def count_vectors_since(self, model: str, revision: int, upto: int) -> int:
        """How many passages `vectors_since` would return, if all vectors are sound."""
        known = _model(self._db, model) or _NO_MODEL
        query = f"SELECT count(*) FROM ({_SINCE.format('passages.id')})"
        return int(self._db.execute(query, (known.id, upto, revision)).fetchone()[0])

    @reading
    def unembedded(self, *models: str) -> list[int]:
        """The passages whose text has no vector of any of these models, ascending."""
        query, known = self._unembedded(models)
        # Sorted afterwards: SQLite then reads both tables in the order of the texts, twice as fast.
        return [passage for (passage,) in self._db.execute(f"{query} ORDER BY +id", known)]

    @reading
    def has_unembedded(self, *models: str) -> bool:
        """Whether there is such a passage; quick where it is one of the newest."""
        query, known = self._unembedded(models)
        return self._db.execute(f"{query} ORDER BY id DESC LIMIT 1", known).fetchone() is not None

    def _unembedded(self, models: Sequence[str]) -> tuple[str, list[int]]:
        known = [found.id for model in models if (found := _model(self._db, model))]
        query = f"""
            SELECT id FROM passages WHERE NOT EXISTS (
                SELECT 1 FROM vectors WHERE model IN ({", ".join("?" * len(known))})
                AND vectors.text_hash = passages.text_hash)"""
        return query, known

    # Deleting; each returns how many vectors were deleted.

    @writing
    def drop_superseded_vectors(self, model: str, by: str) -> int:
        """Delete a model's vectors of texts that have one of a better model."""
        worse, better = _model(self._db, model), _model(self._db, by)
        if not worse or not better or worse == better:
            return 0
        statement = """
            DELETE FROM vectors WHERE model = ? AND text_hash IN
            (SELECT text_hash FROM vectors WHERE model = ?)"""
        return self._db.execute(statement, (worse.id, better.id)).rowcount

    @writing
    def drop_model(self, model: str) -> int:
        """Delete all vectors of a model, and the model."""
        known = _model(self._db, model)
        if not known:
            return 0
        dropped = self._db.execute("DELETE FROM vectors WHERE model = ?", (known.id,)).rowcount
        self._db.execute("DELETE FROM models WHERE id = ?", (known.id,))
        return dropped

    @writing
    def drop_unused_vectors(self, removed_before: float | None = None) -> int:
        """Delete the vectors of texts that no passage has any more.

        With a moment, only those of texts whose last removal is known and was before it.
        """
        if removed_before is None:
            unused = "text_hash NOT IN (SELECT text_hash FROM passages)"
            dropped = self._db.execute(f"DELETE FROM vectors WHERE {unused}").rowcount
        else:
            dropped = self._drop_removed(removed_before)
        self._db.execute("DELETE FROM models WHERE id NOT IN (SELECT model FROM vectors)")
        return dropped

    def _drop_removed(self, before: float) -> int:
        query = "SELECT text_hash FROM removed_passages GROUP BY 1 HAVING max(removed_at) < ?"
        removed = [text_hash for (text_hash,) in self._db.execute(query, (before,))]
        if not removed:
            return 0
        used = {text_hash for (text_hash,) in self._db.execute("SELECT text_hash FROM passages")}
        models = self._db.execute("SELECT id FROM models").fetchall()
        values = [(model, each) for (model,) in models for each in removed if each not in used]
        statement = "DELETE FROM vectors WHERE model = ? AND text_hash = ?"
        return self._db.executemany(statement, values).rowcount

    # The vocabulary.

    @reading
    def vocabulary(self) -> Vocabulary:
        """All terms with a sound vector; no terms before the first were chosen."""
        import numpy as np

        rows = self._db.execute("SELECT term, vector FROM terms ORDER BY term").fetchall()
        joined = np.frombuffer(b"".join(vector for _, vector in rows), TERM_DTYPE)
        matrix = joined.astype(np.float32).reshape(len(rows), -1 if rows else 0)
        sound = _sound(matrix)
        terms = tuple(from_sql(row[0]) for row, good in zip(rows, sound, strict=True) if good)
        return Vocabulary(self.vocabulary_chosen().model, terms, matrix[sound])

    @reading
    def terms(self) -> list[str]:
        """The terms without their vectors, in alphabetical order."""
        found = self._db.execute("SELECT term FROM terms ORDER BY term")
        return [from_sql(term) for (term,) in found]

    @reading
    def vocabulary_chosen(self) -> Chosen:
        """When the terms were last chosen; all zero before the first time."""
        found = str(meta(self._db, "vocabulary chosen") or "0 0")
        revision, _, passages = found.partition(" ")
        model = str(meta(self._db, "vocabulary model") or "")
        return Chosen(int(revision), int(passages), model)

    @writing
    def change_vocabulary(
        self, now: Chosen, new: Sequence[str], matrix: NDArray[np.float32], gone: Iterable[str]
    ) -> None:
        """Add terms with their vectors, one row a term, and drop others."""
        _drop_terms(self._db, gone)
        rows = zip(new, matrix.astype(TERM_DTYPE), strict=True)
        values = sorted((to_sql(term), row.tobytes()) for term, row in rows)
        self._db.executemany("INSERT OR REPLACE INTO terms VALUES (?, ?)", values)
        set_meta(self._db, "vocabulary model", now.model)
        set_meta(self._db, "vocabulary chosen", f"{now.revision} {now.passages}")

    @writing
    def drop_terms(self, gone: Iterable[str]) -> None:
        """Delete terms that are in no passage any more, and their vectors."""
        _drop_terms(self._db, gone)


# CROSS JOIN keeps the order: first what is new, then what belongs to it.
_SINCE = """
    SELECT {0} FROM vectors CROSS JOIN passages ON passages.text_hash = vectors.text_hash
    WHERE vectors.id > ?2 AND +vectors.model = ?1 AND passages.revision <= ?3
    UNION ALL
    SELECT {0} FROM passages CROSS JOIN vectors
    ON vectors.model = ?1 AND vectors.text_hash = passages.text_hash
    WHERE passages.revision > ?3"""


def _sound(matrix: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which rows have length 1. What damage made longer would be the best answer to every query."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        sound: NDArray[np.bool_] = np.abs(np.linalg.norm(matrix, axis=1) - 1) < LENGTH_ERROR
    return sound


class _Model(NamedTuple):
    id: int
    dim: int
    dtype: str


_NO_MODEL = _Model(-1, 1, "float32")


def _model(db: Connection, name: str) -> _Model | None:
    found = db.execute("SELECT id, dim, dtype FROM models WHERE name = ?", (name,)).fetchone()
    return _Model(*found) if found else None


def _new_model(db: Connection, name: str, dim: int, dtype: Dtype) -> _Model:
    statement = "INSERT INTO models (name, dim, dtype) VALUES (?, ?, ?)"
    return _Model(db.execute(statement, (name, dim, dtype)).lastrowid or 0, dim, dtype)


def _drop_terms(db: Connection, gone: Iterable[str]) -> None:
    db.executemany("DELETE FROM terms WHERE term = ?", [(to_sql(term),) for term in gone])


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
        self._own.check_cache(cache, thorough=False)  # FAISS trusts what it maps
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
        if len(new) == len(wanted):
            return self._keep(new, self._read(ids))
        rows = self._keep(new, self._read(np.array(new, np.int64))) if new else ()
        read = dict(zip(new, rows, strict=True))
        found = [read[id_] if id_ in read else kept[id_] for id_ in wanted]
        if len({len(row) for row in found}) > 1:  # the model was dropped meanwhile
            raise CacheBroken("its vectors have been deleted")
        return np.array(found)

    def close(self) -> None:
        """Close what was opened here. A leg that nobody waits for any more reads nothing after."""
        with self._turn:
            self._closed = True
            if self._others is not None:
                self._others.close()
                self._others = None

    def _keep(self, ids: list[int], rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Keep what is there; not thousands at once, which are read once."""
        import numpy as np

        if len(self._kept) + len(ids) > KEPT:
            self._kept = {}
        if len(ids) <= KEPT // 4:
            there = np.flatnonzero(~np.isnan(rows[:, 0]))
            self._kept.update((ids[at], rows[at]) for at in there.tolist())
        return rows

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
