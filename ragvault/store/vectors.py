"""Vectors: the embedding of every distinct text, by model and hash of the text.

What is embedded once is never embedded again, whichever note the text stands in or moves to, and
FAISS is filled from here. Rows are little-endian float16 or float32, as the model's first vectors
were stored; what is returned is always float32. No model is known here but by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sqlite3 import Connection
from typing import TYPE_CHECKING, Literal

from ragvault.store import history
from ragvault.store.read import VARIABLES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Dtype = Literal["float16", "float32"]
LITTLE_ENDIAN = {"float16": "<f2", "float32": "<f4"}


def have(db: Connection, model: str, hashes: Sequence[bytes]) -> set[bytes]:
    """Those of the hashes whose text has a vector of this model."""
    query = "SELECT text_hash FROM vectors JOIN models ON models.id = model WHERE name = ?"
    found: set[bytes] = set()
    for part in _parts(hashes):
        marks = ", ".join("?" * len(part))
        rows = db.execute(f"{query} AND text_hash IN ({marks})", (model, *part))
        found.update(text_hash for (text_hash,) in rows)
    return found


def put(
    db: Connection,
    model: str,
    dim: int,
    hashes: Sequence[bytes],
    matrix: NDArray[np.float32],
    dtype: Dtype,
) -> None:
    """Store one row of the matrix for each hash; a text that has a vector keeps it."""
    if matrix.shape != (len(hashes), dim):
        raise ValueError(f"{len(hashes)} hashes of dimension {dim}, but a matrix {matrix.shape}")
    model_id, known_dim, stored_as = _model(db, model) or _new_model(db, model, dim, dtype)
    if known_dim != dim:
        raise ValueError(f"{model} has {known_dim} dimensions here, not {dim}")
    rows = matrix.astype(LITTLE_ENDIAN[stored_as])
    values = [
        (model_id, text_hash, row.tobytes()) for text_hash, row in zip(hashes, rows, strict=True)
    ]
    statement = "INSERT OR IGNORE INTO vectors (model, text_hash, vector) VALUES (?, ?, ?)"
    db.executemany(statement, values)


def get(db: Connection, model: str, hashes: Sequence[bytes]) -> NDArray[np.float32]:
    """One row a hash, in the order given. KeyError with a hash that has no vector."""
    import numpy as np

    model_id, dim, stored_as = _model(db, model) or (0, 0, "float32")
    found: dict[bytes, bytes] = {}
    query = "SELECT text_hash, vector FROM vectors WHERE model = ?"
    for part in _parts(list(dict.fromkeys(hashes))):
        marks = ", ".join("?" * len(part))
        found.update(db.execute(f"{query} AND text_hash IN ({marks})", (model_id, *part)))
    joined = b"".join([found[text_hash] for text_hash in hashes])
    matrix = np.frombuffer(joined, dtype=LITTLE_ENDIAN[stored_as])
    return matrix.astype(np.float32).reshape(len(hashes), dim)


def dims(db: Connection) -> dict[str, int]:
    """The models there are vectors of, and how many numbers each vector has."""
    return dict(db.execute("SELECT name, dim FROM models").fetchall())


def chunk_ids(db: Connection) -> NDArray[np.int64]:
    """Every chunk there is, ascending."""
    import numpy as np

    found = db.execute("SELECT id FROM chunks ORDER BY id").fetchall()
    return np.array(found, np.int64).reshape(-1)


def count_chunks(db: Connection) -> int:
    """How many chunks there are."""
    return int(db.execute("SELECT count(*) FROM chunks").fetchone()[0])


def lacking(db: Connection, models: Sequence[str]) -> list[int]:
    """Ids of the chunks whose text has a vector of none of these models, ascending."""
    query, known = _lacking(db, models)
    return [chunk for (chunk,) in db.execute(f"{query} ORDER BY id", known)]


def is_lacking(db: Connection, models: Sequence[str]) -> bool:
    """Whether there is such a chunk: the newest first, which is mostly the one."""
    query, known = _lacking(db, models)
    return db.execute(f"{query} ORDER BY id DESC LIMIT 1", known).fetchone() is not None


def _lacking(db: Connection, models: Sequence[str]) -> tuple[str, list[int]]:
    known = [found[0] for model in models if (found := _model(db, model))]
    query = f"""
        SELECT id FROM chunks WHERE NOT EXISTS (
            SELECT 1 FROM vectors WHERE model IN ({", ".join("?" * len(known))})
            AND vectors.text_hash = chunks.text_hash)"""
    return query, known


def of_chunks(db: Connection, model: str, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """One row an id, in the order given; NaN for a chunk that is gone or has no vector."""
    import numpy as np

    model_id, dim, stored_as = _model(db, model) or (-1, 1, "float32")
    found: dict[int, bytes] = {}
    # CROSS JOIN keeps the order: chunks by id, then each one's vector. SQLite would rather go
    # through all vectors of the model.
    query = """
        SELECT chunks.id, vector FROM chunks
        CROSS JOIN vectors ON model = ? AND vectors.text_hash = chunks.text_hash
        WHERE chunks.id IN ({})"""
    wanted: list[int] = ids.tolist()
    for first in range(0, len(wanted), VARIABLES - 1):
        part = wanted[first : first + VARIABLES - 1]
        found.update(db.execute(query.format(", ".join("?" * len(part))), (model_id, *part)))
    stored = np.dtype(LITTLE_ENDIAN[stored_as])
    absent = np.full(dim, np.nan, stored).tobytes()
    rows = b"".join([found.get(chunk, absent) for chunk in wanted])
    matrix: NDArray[np.float32] = np.frombuffer(rows, stored).reshape(-1, dim).astype(np.float32)
    return matrix


def embedded(db: Connection, model: str, better: str = "") -> NDArray[np.int64]:
    """Chunks whose text has a vector of this model and none of the better one, ascending."""
    import numpy as np

    has = "EXISTS (SELECT 1 FROM vectors WHERE model = ? AND vectors.text_hash = chunks.text_hash)"
    ids = [found[0] if (found := _model(db, name)) else -1 for name in (model, better)]
    query = f"SELECT id FROM chunks WHERE {has} AND NOT {has} ORDER BY id"
    return np.array(db.execute(query, ids).fetchall(), np.int64).reshape(-1)


def last(db: Connection) -> int:
    """The id of the newest vector, of any model."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM vectors").fetchone()[0])


def since(
    db: Connection, model: str, revision: int, upto: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Chunks, ascending, that came or got their vector after a moment, and those vectors."""
    import numpy as np

    model_id, dim, stored_as = _model(db, model) or (-1, 1, "float32")
    found = dict(db.execute(_SINCE.format("chunks.id, vector"), (model_id, upto, revision)))
    ids = np.array(sorted(found), np.int64)
    rows = b"".join([found[chunk] for chunk in ids.tolist()])
    matrix = np.frombuffer(rows, LITTLE_ENDIAN[stored_as]).reshape(-1, dim).astype(np.float32)
    return ids, matrix


def count_since(db: Connection, model: str, revision: int, upto: int) -> int:
    """How many those are."""
    model_id = (_model(db, model) or (-1,))[0]
    query = f"SELECT count(*) FROM ({_SINCE.format('chunks.id')})"
    return int(db.execute(query, (model_id, upto, revision)).fetchone()[0])


# CROSS JOIN keeps the order: first what is new, then what belongs to it.
_SINCE = """
    SELECT {0} FROM vectors CROSS JOIN chunks ON chunks.text_hash = vectors.text_hash
    WHERE vectors.id > ?2 AND +vectors.model = ?1 AND chunks.revision <= ?3
    UNION ALL
    SELECT {0} FROM chunks CROSS JOIN vectors
    ON vectors.model = ?1 AND vectors.text_hash = chunks.text_hash
    WHERE chunks.revision > ?3"""


def gone(db: Connection, ids: NDArray[np.int64], revision: int) -> NDArray[np.bool_]:
    """Which of these chunks, ascending and all there at a revision, are there no more."""
    import numpy as np

    try:
        return np.isin(ids, history.removed_since(db, revision), assume_unique=True)
    except ValueError:  # removals of so long ago have been forgotten
        return np.isin(ids, chunk_ids(db), assume_unique=True, invert=True)


def drop_outdone(db: Connection, model: str, by: str) -> int:
    """Delete a model's vectors of texts that have one of a better model; how many those were."""
    worse, better = _model(db, model), _model(db, by)
    if not worse or not better or worse == better:
        return 0
    outdone = "text_hash IN (SELECT text_hash FROM vectors WHERE model = ?)"
    values = (worse[0], better[0])
    return db.execute(f"DELETE FROM vectors WHERE model = ? AND {outdone}", values).rowcount


def drop_model(db: Connection, model: str) -> int:
    """Delete all vectors of a model, and that it was ever known; how many those were."""
    known = _model(db, model)
    if not known:
        return 0
    dropped = db.execute("DELETE FROM vectors WHERE model = ?", known[:1]).rowcount
    db.execute("DELETE FROM models WHERE id = ?", known[:1])
    return dropped


def drop_unused(db: Connection, removed_before: float | None = None) -> int:
    """Delete the vectors of texts no chunk holds any more; returns how many those were.

    With a moment, only those of texts that were last removed before it and are remembered.
    """
    if removed_before is None:
        unused = "text_hash NOT IN (SELECT text_hash FROM chunks)"
        dropped = db.execute(f"DELETE FROM vectors WHERE {unused}").rowcount
    else:
        dropped = _drop(db, [text for (text,) in db.execute(_REMOVED, (removed_before,))])
    db.execute("DELETE FROM models WHERE id NOT IN (SELECT model FROM vectors)")
    return dropped


_REMOVED = "SELECT text_hash FROM removed_chunks GROUP BY text_hash HAVING max(removed_at) < ?"


def _drop(db: Connection, hashes: Sequence[bytes]) -> int:
    if not hashes:
        return 0
    held = {text_hash for (text_hash,) in db.execute("SELECT text_hash FROM chunks")}
    models = db.execute("SELECT id FROM models").fetchall()
    values = [(model, each) for (model,) in models for each in hashes if each not in held]
    return db.executemany("DELETE FROM vectors WHERE model = ? AND text_hash = ?", values).rowcount


def _model(db: Connection, name: str) -> tuple[int, int, str] | None:
    found: tuple[int, int, str] | None = db.execute(
        "SELECT id, dim, dtype FROM models WHERE name = ?", (name,)
    ).fetchone()
    return found


def _new_model(db: Connection, name: str, dim: int, dtype: Dtype) -> tuple[int, int, str]:
    statement = "INSERT INTO models (name, dim, dtype) VALUES (?, ?, ?)"
    return db.execute(statement, (name, dim, dtype)).lastrowid or 0, dim, dtype


def _parts(hashes: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """As many at a time as one statement takes, one place being the model's."""
    step = VARIABLES - 1
    return (hashes[first : first + step] for first in range(0, len(hashes), step))
