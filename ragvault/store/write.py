"""Writing: one file's change, inside a transaction that catalogue.py opens.

    put      a note that was read, new or changed
    move     a note whose path changed and whose contents did not
    touch    a note whose stat or dates changed and nothing else
    remove   a note that is gone

Each leaves behind what the next run needs to set right: links to look up, names in `dirty`,
tombstones for caches. So a crash after any of them loses nothing. Links are in links.py.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from ragvault.store import links, rows
from ragvault.store.keys import fold, keys_of
from ragvault.store.match import match
from ragvault.store.values import fields, int64, sql, unwords
from ragvault.types import Chunk, Date, File, Note, Section

STAT = "path, disk, size, mtime_ns, indexed_ns, date, date_source, created, modified"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file as it was when it was read, and what is known of its dates.

    `indexed_ns` is the clock before the file was read: a file whose mtime is not older than that
    may have changed since without showing it.
    """

    file: File
    date: Date
    created: float
    modified: float
    indexed_ns: int

    def row(self) -> tuple[Any, ...]:
        """Columns STAT."""
        file, date = self.file, self.date
        times = (int64(file.mtime_ns), int64(self.indexed_ns))
        dates = (date.at, date.source, self.created, self.modified)
        return (sql(file.path), sql(file.disk), file.size, *times, *dates)


@dataclass(frozen=True, slots=True)
class Cut:
    """How a note was cut. `hashes` are of the chunks' embedding texts, in their order."""

    recipe: str
    sections: Sequence[Section]
    chunks: Sequence[Chunk]
    hashes: Sequence[bytes]


def put(
    db: Connection,
    revision: int,
    note: Note,
    digest: bytes,
    stamp: Stamp,
    cut: Cut,
    was: str | None = None,
) -> int:
    """Store a note and all its parts in place of what was stored under its path; returns its id.

    `was` is the path the note had before, when it was moved and changed at once.
    """
    if was is not None and was != note.path:
        move(db, revision, was, stamp)
    old = _stored(db, note.path)
    row = (*stamp.row(), digest, cut.recipe, *rows.of_note(note), revision)
    columns = f"{STAT}, digest, recipe, {rows.NOTE}, revision"
    body = rows.of_body(note)
    if old is None:
        note_id = _insert(db, "notes", columns, row)
        links.names_changed(db, keys_of(note.path, note.aliases))
    else:
        note_id = old.id
        db.execute(f"UPDATE notes SET {_assigned(columns)} WHERE id = ?", (*row, note_id))
        _forget_parts(db, note_id)
        _tell_links(db, old, note, body)
    _put_parts(db, note_id, note, body, cut.sections)
    _put_chunks(db, revision, note_id, note, cut, new=old is None)
    links.put(db, note_id, note.links, new=old is None)
    return note_id


def move(db: Connection, revision: int, old_path: str, stamp: Stamp) -> int:
    """Give a note another path, keeping its id and those of its passages; returns the id.

    A note that had the new path is removed: the file that held it was overwritten.
    """
    old = _known(db, old_path)
    if stamp.file.path != old_path:
        remove(db, revision, stamp.file.path)
    _restamp(db, old.id, stamp)
    db.execute("UPDATE notes SET revision = ? WHERE id = ?", (revision, old.id))
    # Its own links too: what a name means depends on the folder of the note that says it.
    links.look_up_from(db, old.id)
    links.names_changed(db, keys_of(old_path, old.aliases) | keys_of(stamp.file.path, old.aliases))
    return old.id


def touch(db: Connection, revision: int, stamp: Stamp) -> int:
    """Take over a file's stat and dates; returns the note's id. No cache holds any of them."""
    note_id = _known(db, stamp.file.path).id
    _restamp(db, note_id, stamp)
    return note_id


def remove(db: Connection, revision: int, path: str) -> bool:
    """Delete a note and its parts; False when there is none at that path."""
    old = _stored(db, path)
    if old is None:
        return False
    links.look_up_to(db, old.id)
    links.names_changed(db, keys_of(path, old.aliases))
    gone = db.execute("SELECT id FROM chunks WHERE note_id = ?", (old.id,)).fetchall()
    _bury(db, revision, [chunk_id for (chunk_id,) in gone])
    db.execute("INSERT INTO removed_notes VALUES (?, ?)", (old.id, revision))
    db.execute("DELETE FROM notes WHERE id = ?", (old.id,))
    return True


@dataclass(frozen=True, slots=True)
class _Old:
    """What must be known of a stored note before it is changed."""

    id: int
    aliases: tuple[str, ...]
    places: tuple[str, str]  # columns headings and blocks


def _stored(db: Connection, path: str) -> _Old | None:
    found = db.execute(
        "SELECT id, aliases, headings, blocks FROM notes JOIN bodies ON note_id = id"
        " WHERE path = ?",
        (sql(path),),
    ).fetchone()
    return _Old(found[0], unwords(found[1]), (found[2], found[3])) if found else None


def _known(db: Connection, path: str) -> _Old:
    old = _stored(db, path)
    if old is None:
        raise KeyError(path)
    return old


def _restamp(db: Connection, note_id: int, stamp: Stamp) -> None:
    db.execute(f"UPDATE notes SET {_assigned(STAT)} WHERE id = ?", (*stamp.row(), note_id))


def _tell_links(db: Connection, old: _Old, note: Note, body: tuple[Any, ...]) -> None:
    """Have links looked up again where this change can give them another meaning, and only there.

    A hub with thousands of incoming links is edited daily and renamed never.
    """
    if old.aliases != note.aliases:
        links.names_changed(db, keys_of(note.path, (*old.aliases, *note.aliases)))
    if old.places != body[3:5]:
        links.look_up_to(db, old.id)


def _forget_parts(db: Connection, note_id: int) -> None:
    for table in ("bodies", "tags", "fields", "sections"):
        db.execute(f"DELETE FROM {table} WHERE note_id = ?", (note_id,))


def _put_parts(
    db: Connection, note_id: int, note: Note, body: tuple[Any, ...], sections: Sequence[Section]
) -> None:
    _insert(db, "bodies", f"note_id, {rows.BODY}", (note_id, *body))
    tags = {fold(tag): tag for tag in reversed(note.tags)}  # of two spellings the first
    _insert_all(db, "tags", "key, tag", note_id, [(sql(k), sql(t)) for k, t in tags.items()])
    found = [(i, key, *field) for i, (key, field) in enumerate(fields(note.properties))]
    _insert_all(db, "fields", "ordinal, key, text, number, date", note_id, found)
    _insert_all(db, "sections", rows.SECTION, note_id, list(map(rows.of_section, sections)))


def _put_chunks(
    db: Connection, revision: int, note_id: int, note: Note, cut: Cut, *, new: bool
) -> None:
    pairs = zip(cut.chunks, cut.hashes, strict=True)
    wanted = [rows.of_chunk(chunk, note, text_hash) for chunk, text_hash in pairs]
    query = f"SELECT id, {rows.CHUNK} FROM chunks WHERE note_id = ? ORDER BY ordinal"
    before = [] if new else [(r[0], r[1:]) for r in db.execute(query, (note_id,)).fetchall()]
    changes = match(before, wanted)
    assigned = f"UPDATE chunks SET {_assigned(rows.CHUNK)} WHERE id = ?"
    was = dict(before)
    moved = [(*row, chunk_id) for row, chunk_id in changes.keep if was[chunk_id] != row]
    db.executemany(assigned, moved)
    _bury(db, revision, changes.drop)
    added = [(*row, revision) for row in changes.add]
    _insert_all(db, "chunks", f"{rows.CHUNK}, revision", note_id, added)


def _bury(db: Connection, revision: int, chunk_ids: Sequence[int]) -> None:
    """Delete passages and leave a tombstone for each."""
    grave = "INSERT INTO removed_chunks SELECT id, ?, text_hash, ? FROM chunks WHERE id = ?"
    now = time.time()
    db.executemany(grave, [(revision, now, chunk_id) for chunk_id in chunk_ids])
    db.executemany("DELETE FROM chunks WHERE id = ?", [(chunk_id,) for chunk_id in chunk_ids])


def _insert(db: Connection, table: str, columns: str, row: tuple[Any, ...]) -> int:
    marks = ", ".join("?" * len(row))
    return db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", row).lastrowid or 0


def _insert_all(
    db: Connection, table: str, columns: str, note_id: int, parts: Sequence[tuple[Any, ...]]
) -> None:
    if not parts:
        return
    marks = ", ".join("?" * len(parts[0]))
    db.executemany(
        f"INSERT INTO {table} (note_id, {columns}) VALUES (?, {marks})",
        [(note_id, *part) for part in parts],
    )


def _assigned(columns: str) -> str:
    return ", ".join(f"{column.strip()} = ?" for column in columns.split(","))
