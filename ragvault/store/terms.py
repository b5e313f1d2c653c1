"""Terms: the vault's vocabulary with its vectors, for finding words near a query.

All vectors are of one model, which is kept beside them, with the state of the vault that the terms
were chosen at. A change is one transaction, and writes only the terms that come or go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import TYPE_CHECKING

from ragvault.store import history
from ragvault.store.values import sql, text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL, CHOSEN = "vocabulary model", "vocabulary chosen"  # in `meta`
KEPT_AS = "<f2"


@dataclass(frozen=True, slots=True)
class Chosen:
    """When the terms were chosen: at which revision, of how many passages, for which model."""

    revision: int = 0
    passages: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The terms in the order of the alphabet, a unit row for each, and the model of the rows."""

    model: str
    terms: tuple[str, ...]
    matrix: NDArray[np.float32]


def vocabulary(db: Connection) -> Vocabulary:
    """Everything there is; no terms, and no columns, before the first were chosen."""
    import numpy as np

    rows = db.execute("SELECT term, vector FROM terms ORDER BY term").fetchall()
    joined = np.frombuffer(b"".join(vector for _, vector in rows), KEPT_AS)
    matrix = joined.astype(np.float32).reshape(len(rows), -1 if rows else 0)
    return Vocabulary(chosen(db).model, tuple(text(term) for term, _ in rows), matrix)


def terms(db: Connection) -> list[str]:
    """The terms alone, in the order of the alphabet."""
    return [text(term) for (term,) in db.execute("SELECT term FROM terms ORDER BY term")]


def chosen(db: Connection) -> Chosen:
    """When the terms were last chosen; all nothing before the first time."""
    found = history.fact(db, CHOSEN)
    revision, _, passages = str(found or "0 0").partition(" ")
    return Chosen(int(revision), int(passages), str(history.fact(db, MODEL) or ""))


def change(
    db: Connection,
    now: Chosen,
    new: Sequence[str],
    matrix: NDArray[np.float32],
    gone: Iterable[str],
) -> None:
    """Add terms with their vectors and drop others, so that those of `now` are there."""
    drop(db, gone)
    rows = zip(new, matrix.astype(KEPT_AS), strict=True)
    values = sorted((sql(term), row.tobytes()) for term, row in rows)
    db.executemany("INSERT OR REPLACE INTO terms VALUES (?, ?)", values)
    history.set_fact(db, MODEL, now.model)
    history.set_fact(db, CHOSEN, f"{now.revision} {now.passages}")


def drop(db: Connection, gone: Iterable[str]) -> None:
    """Delete terms and their vectors."""
    db.executemany("DELETE FROM terms WHERE term = ?", [(sql(term),) for term in gone])
