"""Repair: a new catalogue in place of a damaged one, with every vector that can still be read.

The notes are in the vault and are read again; embedding them was what took long. A vector is
trusted when its length is 1, as it must be.

    catalogue.sqlite  ->  damaged.sqlite     renamed first
    damaged.sqlite    ->  catalogue.sqlite   its vectors, a page at a time, without unreadable ones
    damaged.sqlite    ->  deleted

The next run finishes one that was interrupted. For the holder of the writer's lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragvault.errors import refused
from ragvault.store.catalogue import Catalogue
from ragvault.store.database import CatalogueDamaged, has_wal, translated_errors
from ragvault.store.layout import CATALOGUE
from ragvault.store.vectors import LITTLE_ENDIAN, Dtype

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DAMAGED = "damaged.sqlite"
PAGE = 500  # vectors read at a time: at most what one damaged place costs
UNIT = 0.01  # how far from 1 the length of a vector may be
MOST = 100_000_000  # highest id read: in a damaged file the largest id may be any number


def find_damage(folder: Path) -> str:
    """What is wrong with a catalogue, in words; empty for one that is sound or missing."""
    if not (folder / CATALOGUE).exists():
        return ""
    try:
        with Catalogue.open(folder, write=True) as catalogue:
            return catalogue.check()
    except CatalogueDamaged as error:
        return str(error)


def repair(folder: Path) -> int:
    """Put a new catalogue in place of the damaged one; returns how many vectors were saved."""
    aside = folder / DAMAGED
    try:
        if not aside.exists():
            for suffix in ("-shm", "-wal", ""):  # the main file last: it marks that all are renamed
                _move(folder / f"{CATALOGUE}{suffix}", folder / f"{DAMAGED}{suffix}")
        saved = _save(aside, folder)
        _discard_damaged(folder)
    except OSError as error:
        raise refused(folder, error) from error
    return saved


def undo_unstarted_repair(folder: Path) -> None:
    """Undo a repair that was killed after it renamed the journal and before it renamed the file.

    Without its journal the file is outdated, and nobody else would delete the renamed journal,
    which contains the text of notes.
    """
    journal = folder / f"{DAMAGED}-wal"
    try:
        if is_repair_unfinished(folder):
            return
        if (folder / CATALOGUE).exists() and not has_wal(folder):
            _move(journal, folder / f"{CATALOGUE}-wal")
        _discard_damaged(folder)
    except OSError as error:
        raise refused(folder, error) from error


def is_repair_unfinished(folder: Path) -> bool:
    """Whether a repair was stopped before it had saved everything."""
    return (folder / DAMAGED).exists()


def _discard_damaged(folder: Path) -> None:
    for suffix in ("-shm", "-wal", ""):
        (folder / f"{DAMAGED}{suffix}").unlink(missing_ok=True)


def _move(source: Path, target: Path) -> None:
    if source.exists():
        source.replace(target)


def _save(aside: Path, folder: Path) -> int:
    saved = 0
    with translated_errors(folder), Catalogue.open(folder, write=True) as catalogue:
        for model, hashes, matrix in _vectors(aside):
            catalogue.put_vectors(model.name, model.dim, hashes, matrix, model.dtype)
            saved += len(hashes)
    return saved


class _Model(NamedTuple):
    id: int
    name: str
    dim: int
    dtype: Dtype


def _vectors(aside: Path) -> Iterator[tuple[_Model, list[bytes], NDArray[np.float32]]]:
    """All vectors that can be read; none where not even the models can."""
    try:
        db = sqlite3.connect(f"{aside.absolute().as_uri()}?mode=rw", uri=True)
    except sqlite3.Error:
        return
    with closing(db):
        try:
            models = [_Model(*row) for row in db.execute("SELECT id, name, dim, dtype FROM models")]
            last = db.execute("SELECT max(id) FROM vectors").fetchone()[0] or 0
        except sqlite3.Error:
            return
        for first in range(1, min(last, MOST) + 1, PAGE):
            for model in filter(_is_sound, models):
                yield from _page(db, model, first)


def _is_sound(model: _Model) -> bool:
    """Whether a row is plausible; in a damaged file any column may contain anything."""
    known = model.dtype in LITTLE_ENDIAN and isinstance(model.name, str)
    return known and isinstance(model.dim, int) and model.dim > 0


def _page(
    db: sqlite3.Connection, model: _Model, first: int
) -> Iterator[tuple[_Model, list[bytes], NDArray[np.float32]]]:
    import numpy as np

    query = "SELECT text_hash, vector FROM vectors WHERE id >= ? AND id < ? AND +model = ?"
    size = model.dim * np.dtype(LITTLE_ENDIAN[model.dtype]).itemsize
    try:
        rows = db.execute(query, (first, first + PAGE, model.id)).fetchall()
    except sqlite3.Error:
        return
    rows = [row for row in rows if all(isinstance(part, bytes) for part in row)]
    rows = [(key, vector) for key, vector in rows if len(vector) == size]
    read = b"".join(vector for _, vector in rows)
    matrix = np.frombuffer(read, LITTLE_ENDIAN[model.dtype]).astype(np.float32)
    matrix = matrix.reshape(len(rows), model.dim)
    sound = np.abs(np.linalg.norm(matrix, axis=1) - 1) < UNIT
    if sound.any():
        hashes = [key for (key, _), good in zip(rows, sound, strict=True) if good]
        yield model, hashes, matrix[sound]
