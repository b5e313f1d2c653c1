"""Counts: what `status` says about an index, without loading a model or a cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from ragvault.store import history
from ragvault.store.values import text


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of everything an index holds, at one revision.

    A link that waits to be looked up is counted under `waiting`. `bytes` has one entry for each
    file and folder of the index folder; a folder counts all that is in it.
    """

    notes: int
    sections: int
    chunks: int
    characters: int
    links: Mapping[str, int]  # by status
    skipped: Mapping[str, int]  # by reason
    warned: int  # notes that have warnings
    vectors: Mapping[str, int]  # by model
    bytes: Mapping[str, int]
    revision: int
    format: int
    last_run: Mapping[str, Any]


def counts(db: Connection, folder: Path) -> Counts:
    """Count everything in one pass over each table."""
    notes, characters = db.execute(
        "SELECT count(*), coalesce(sum(length), 0) FROM notes"
    ).fetchone()
    return Counts(
        notes=notes,
        sections=_count(db, "sections"),
        chunks=_count(db, "chunks"),
        characters=characters,
        links=_by(db, "SELECT coalesce(status, 'waiting'), count(*) FROM links GROUP BY 1"),
        skipped=_by(db, "SELECT reason, count(*) FROM skipped GROUP BY 1"),
        warned=_count(db, "notes WHERE warnings != '[]'"),
        vectors=_by(
            db, "SELECT name, count(*) FROM vectors JOIN models ON models.id = model GROUP BY 1"
        ),
        bytes=sizes(folder),
        revision=history.revision(db),
        format=db.execute("PRAGMA user_version").fetchone()[0],
        last_run=history.last_run(db),
    )


def sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file in a folder, and of each folder in it with all it holds."""
    found = {}
    for entry in sorted(folder.iterdir()):
        inside = entry.rglob("*") if entry.is_dir() else [entry]
        found[entry.name] = sum(_size(path) for path in inside)
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0  # a -wal file goes when the last reader closes


def _count(db: Connection, what: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {what}").fetchone()[0])


def _by(db: Connection, query: str) -> dict[str, int]:
    return {text(word): number for word, number in db.execute(query)}
