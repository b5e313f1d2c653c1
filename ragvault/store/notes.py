"""Notes of the catalogue: one file's change, and what is known of each note.

    put      a note that was read: new, changed or moved
    touch    a note whose stat or dates changed and nothing else
    remove   a note that is gone

Each is one transaction and one revision. Each records what the next steps need: links to look up,
removals for the caches. So a crash after any of them loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, NamedTuple

from ragvault.ports import NameRow
from ragvault.store import links
from ragvault.store.database import Database, next_revision, reading, select_in, writing
from ragvault.store.links import LINK, link_keys, link_row, to_headings, to_link
from ragvault.store.passages import (
    SECTION,
    Row,
    id_of,
    passage_row,
    put_passages,
    remove_passages,
    section_row,
    to_spans,
)
from ragvault.store.values import (
    clamped,
    compress,
    date_from_sql,
    date_to_sql,
    decompress,
    from_json,
    from_sql,
    property_rows,
    to_json,
    to_sql,
    value_from_json,
    value_to_json,
)
from ragvault.text.fold import fold_case
from ragvault.types import Date, File, Head, Link, Note, Passage, Section, Skipped

STAT = (
    "path, disk, size, mtime_ns, ctime_ns, inode, indexed_ns, date, date_source, created, modified"
)

NOTE = (
    "encoding, title, description, author, importance, aliases, tags, keywords, supersedes,"
    " properties, warnings, length"
)
BODY = "text, body, excluded, headings, blocks"
COPY_TIME_NS = 600_000_000_000  # ten minutes: as long as copying or cloning a large vault may take


class IndexedFile(NamedTuple):
    """What is known of a file without reading it again."""

    size: int
    mtime_ns: int
    ctime_ns: int  # 0, as is the inode: not known yet
    inode: int
    indexed_ns: int  # the clock before the file was read
    digest: bytes
    recipe: str


@dataclass(frozen=True, slots=True)
class StoredNote:
    """A note's row: its file and its dates."""

    id: int
    file: File
    digest: bytes
    recipe: str
    date: Date | None
    created: float | None
    modified: float | None
    indexed_ns: int
    title: str
    length: int  # characters
    revision: int


class NoteRow(NamedTuple):
    """What ranking needs of a note."""

    id: int
    path: str
    title: str
    date: Date | None
    modified: float | None
    file_time: float
    importance: str
    aliases: tuple[str, ...]


class NoteRows(NamedTuple):
    """A note as its rows, before it has an id. Workers make them: rows are smaller to send than a
    note with its passages, and the process that stores them need not compress texts."""

    path: str
    aliases: tuple[str, ...]
    note: Row  # columns NOTE
    body: Row  # columns BODY
    tags: Sequence[Row]
    fields: Sequence[Row]
    sections: Sequence[Row]
    passages: Sequence[Row]
    links: Sequence[Row]


def note_rows(
    note: Note, sections: Sequence[Section], passages: Sequence[Passage], hashes: Sequence[bytes]
) -> NoteRows:
    """The rows of a note. `hashes` are of the texts to embed, one for each passage."""
    tags = {fold_case(tag): tag for tag in reversed(note.tags)}  # of two spellings the first
    fields = enumerate(property_rows(note.properties))
    pairs = zip(passages, hashes, strict=True)
    return NoteRows(
        note.path,
        note.aliases,
        note_row(note),
        body_row(note),
        [(to_sql(key), to_sql(tag)) for key, tag in tags.items()],
        [(i, key, *field) for i, (key, field) in fields],
        list(map(section_row, sections)),
        [passage_row(passage, note, text_hash) for passage, text_hash in pairs],
        [(i, *link_row(link)) for i, link in enumerate(note.links)],
    )


class Notes(Database):
    """Writes notes with all their parts, and reads what is known of them."""

    @writing
    def put(
        self,
        rows: NoteRows,
        file: File,
        digest: bytes,
        *,
        date: Date | None,
        created: float | None,
        modified: float | None,
        indexed_ns: int,
        recipe: str,
        was: str | None = None,
    ) -> int:
        """Store a note in place of the one at its path; returns its id.

        `was` is the path that the note had before, if it was moved: it keeps its id, and replaces a
        note that had the new path. `indexed_ns` is the clock before the file was read: a file whose
        mtime is not older may have changed since. Passages whose text did not change keep their
        ids.
        """
        if rows.path != file.path:
            raise ValueError(f"note {rows.path} of file {file.path}")
        db, revision = self._db, next_revision(self._db)
        if was is not None and was != rows.path:
            self._move(revision, was, rows.path)
        old = _old_note(db, rows.path)
        stat = _stat_row(file, date, created, modified, indexed_ns)
        row = (*stat, digest, recipe, *rows.note, revision)
        columns = f"{STAT}, digest, recipe, {NOTE}, revision"
        if old is None:
            note_id = _insert(db, "notes", columns, row)
            links.names_changed(db, link_keys(rows.path, rows.aliases))
        else:
            note_id = old.id
            db.execute(f"UPDATE notes SET {_assigned(columns)} WHERE id = ?", (*row, note_id))
            _delete_parts(db, note_id)
            _mark_links(db, old, rows, recipe)
        _insert_parts(db, note_id, rows)
        put_passages(db, revision, note_id, rows.passages, new=old is None)
        links.put_links(db, note_id, rows.links, new=old is None)
        return note_id

    def _move(self, revision: int, old_path: str, path: str) -> None:
        """Give a note another path; a note that has it was overwritten and is removed."""
        old = _old_note(self._db, old_path)
        if old is None:
            raise KeyError(old_path)
        self._remove(revision, path)
        self._db.execute("UPDATE notes SET path = ? WHERE id = ?", (to_sql(path), old.id))
        # Its own links too: what a name means depends on the folder of the note that has the link.
        links.unresolve_links_of(self._db, old.id)
        links.names_changed(
            self._db, link_keys(old_path, old.aliases) | link_keys(path, old.aliases)
        )

    @writing
    def touch(
        self,
        file: File,
        *,
        date: Date | None,
        created: float | None,
        modified: float | None,
        indexed_ns: int,
    ) -> int:
        """Store the stat and the dates of a file whose contents are the same; the note's id.

        Raises KeyError for an unknown path.
        """
        next_revision(self._db)
        note_id = id_of(self._db, file.path)
        stat = _stat_row(file, date, created, modified, indexed_ns)
        self._db.execute(f"UPDATE notes SET {_assigned(STAT)} WHERE id = ?", (*stat, note_id))
        return note_id

    @writing
    def fill_in_status(self, files: Iterable[File]) -> None:
        """Store `ctime_ns` and `inode` of unchanged files, which an older format did not know.

        Nothing that can be searched changes, so this is no revision.
        """
        statement = "UPDATE notes SET ctime_ns = ?, inode = ? WHERE path = ?"
        values = [(clamped(f.ctime_ns), clamped(f.inode), to_sql(f.path)) for f in files]
        self._db.executemany(statement, values)

    @writing
    def remove(self, path: str) -> bool:
        """Delete a note; False, and no revision, when there is none at that path."""
        if _old_note(self._db, path) is None:
            return False
        return self._remove(next_revision(self._db), path)

    def _remove(self, revision: int, path: str) -> bool:
        db, old = self._db, _old_note(self._db, path)
        if old is None:
            return False
        links.unresolve_links_to(db, old.id)
        links.names_changed(db, link_keys(path, old.aliases))
        ids = db.execute("SELECT id FROM passages WHERE note_id = ?", (old.id,)).fetchall()
        remove_passages(db, revision, [passage_id for (passage_id,) in ids])
        db.execute("INSERT INTO removed_notes VALUES (?, ?)", (old.id, revision))
        db.execute("DELETE FROM notes WHERE id = ?", (old.id,))
        return True

    @writing
    def set_skipped(self, skipped: Iterable[Skipped]) -> None:
        """Replace the list of files that were not indexed."""
        values = [(to_sql(s.path), to_sql(s.reason), to_sql(s.detail)) for s in skipped]
        self._db.execute("DELETE FROM skipped")
        statement = "INSERT INTO skipped (path, reason, detail) VALUES (?, ?, ?)"
        self._db.executemany(statement, values)

    # Reading.

    @reading
    def files(self, paths: Collection[str] | None = None) -> dict[str, IndexedFile]:
        """Every indexed file by path, or those of these paths: what a walk is compared with."""
        query = """
            SELECT path, size, mtime_ns, ctime_ns, inode, indexed_ns, digest, recipe FROM notes"""
        if paths is None:
            rows: Iterable[tuple[Any, ...]] = self._db.execute(query)
        else:
            rows = select_in(self._db, f"{query} WHERE path IN (*)", map(to_sql, paths))
        return {from_sql(path): IndexedFile(*rest) for path, *rest in rows}

    @reading
    def note(self, path: str) -> Note:
        """A note as it was put. KeyError for an unknown path."""
        columns = f"{NOTE}, bodies.{BODY}"
        query = f"SELECT id, {columns} FROM notes JOIN bodies ON note_id = id WHERE path = ?"
        found = self._db.execute(query, (to_sql(path),)).fetchone()
        if found is None:
            raise KeyError(path)
        query = f"SELECT {LINK} FROM links WHERE note_id = ? ORDER BY ordinal"
        own_links = tuple(to_link(row) for row in self._db.execute(query, (found[0],)))
        return to_note(path, found[1:13], found[13:], own_links)

    @reading
    def note_id(self, path: str) -> int:
        """The id of a note, which stays when its path changes. KeyError for an unknown path."""
        return id_of(self._db, path)

    @reading
    def text_bytes(self) -> int:
        """The size of all notes' files."""
        return int(self._db.execute("SELECT coalesce(sum(size), 0) FROM notes").fetchone()[0])

    @reading
    def note_count(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM notes").fetchone()[0])

    @reading
    def median_length(self) -> float:
        """The median length of the notes, in characters; 0 without notes."""
        query = "SELECT length FROM notes ORDER BY length LIMIT 1 OFFSET ?"
        found = self._db.execute(query, (self.note_count() // 2,)).fetchone()
        return float(found[0]) if found else 0.0

    @reading
    def copied(self) -> tuple[float, float] | None:
        """Between which times (since 1970) most files were written, if within minutes of another.

        None for a vault that was not copied or cloned, and for one with a single note.
        """
        total = self.note_count()
        middle = "SELECT mtime_ns FROM notes ORDER BY mtime_ns LIMIT 1 OFFSET ?"
        found = self._db.execute(middle, (total // 2,)).fetchone()
        if found is None or total < 2:
            return None
        near = "SELECT count(*) FROM notes WHERE abs(mtime_ns - ?) <= ?"
        count = self._db.execute(near, (found[0], COPY_TIME_NS)).fetchone()[0]
        low, high = found[0] - COPY_TIME_NS, found[0] + COPY_TIME_NS
        return (low / 1e9, high / 1e9) if 2 * count > total else None

    @reading
    def stored(self, path: str) -> StoredNote:
        """The file and the dates of a note. KeyError for an unknown path."""
        found = self._db.execute(f"{_STORED} WHERE path = ?", (to_sql(path),)).fetchone()
        if found is None:
            raise KeyError(path)
        return _to_stored(found)

    @reading
    def all_stored(self) -> list[StoredNote]:
        """The files and the dates of all notes, by path."""
        return [_to_stored(row) for row in self._db.execute(f"{_STORED} ORDER BY path")]

    @reading
    def heads(self, ids: Sequence[int]) -> list[Head]:
        """The names of notes and their other searchable fields; one that is gone is absent."""
        query = """
            SELECT id, path, title, aliases, tags, keywords, description, author, properties
            FROM notes WHERE id IN (*)"""
        return [
            Head(
                id_,
                from_sql(path),
                from_sql(title),
                from_json(aliases),
                from_json(tags),
                from_json(keywords),
                from_sql(description),
                from_sql(author),
                value_from_json(properties) if properties != "{}" else {},
            )
            for (
                id_,
                path,
                title,
                aliases,
                tags,
                keywords,
                description,
                author,
                properties,
            ) in select_in(self._db, query, ids)
        ]

    @reading
    def facts(self, notes: Sequence[int]) -> list[NoteRow]:
        """What ranking needs of these notes; one that is gone is absent."""
        query = f"SELECT {_ROW} FROM notes WHERE id IN (*)"
        return [_to_note_row(row) for row in select_in(self._db, query, notes)]

    @reading
    def name_rows(self) -> list[NameRow]:
        """What every note is called, by path."""
        found = self._db.execute("SELECT id, path, title, aliases FROM notes ORDER BY path")
        return [
            NameRow(id_, from_sql(path), from_sql(title), from_json(aliases))
            for id_, path, title, aliases in found
        ]

    @reading
    def warnings(self) -> list[tuple[str, tuple[str, ...]]]:
        """Notes with warnings, by path."""
        query = "SELECT path, warnings FROM notes WHERE warnings != '[]' ORDER BY path"
        return [(from_sql(path), from_json(found)) for path, found in self._db.execute(query)]

    @reading
    def skipped(self) -> list[Skipped]:
        """Files that were not indexed, in the order of the walk."""
        query = "SELECT path, reason, detail FROM skipped ORDER BY ordinal"
        return [Skipped(*map(from_sql, row)) for row in self._db.execute(query)]


_ROW = "id, path, title, date, date_source, modified, mtime_ns, importance, aliases"
_STORED = (
    "SELECT id, path, disk, size, mtime_ns, ctime_ns, inode, digest, recipe, date, date_source,"
    " created, modified, indexed_ns, title, length, revision FROM notes"
)


def _to_date(at: float, source: Any) -> Date | None:
    return None if (known := date_from_sql(at)) is None else Date(known, source)


def _to_note_row(row: Sequence[Any]) -> NoteRow:
    id_, path, title, at, source, modified, mtime_ns, importance, aliases = row
    return NoteRow(
        id_,
        from_sql(path),
        from_sql(title),
        _to_date(at, source),
        date_from_sql(modified),
        mtime_ns / 1e9,
        from_sql(importance),
        from_json(aliases),
    )


def _to_stored(row: Sequence[Any]) -> StoredNote:
    note_id, path, disk, *status, digest, recipe, at, source = row[:11]
    created, modified, indexed_ns, title, length, revision = row[11:]
    return StoredNote(
        note_id,
        File(from_sql(path), from_sql(disk), *status),
        digest,
        recipe,
        _to_date(at, source),
        date_from_sql(created),
        date_from_sql(modified),
        indexed_ns,
        from_sql(title),
        length,
        revision,
    )


# --- Rows ---


def note_row(note: Note) -> tuple[Any, ...]:
    """Columns NOTE."""
    scalars = (note.encoding, note.title, note.description, note.author, note.importance)
    lists = (note.aliases, note.tags, note.keywords, note.supersedes)
    return (
        *map(to_sql, scalars),
        *map(to_json, lists),
        value_to_json(note.properties) if note.properties else "{}",
        to_json(note.warnings),
        len(note.text),
    )


def body_row(note: Note) -> tuple[Any, ...]:
    """Columns BODY."""
    headings = [(h.text, h.level, h.line, h.start, h.path) for h in note.headings]
    return (
        compress(note.text),
        note.body,
        json.dumps(note.excluded) if note.excluded else "[]",
        json.dumps(headings),
        json.dumps(dict(note.blocks)) if note.blocks else "{}",
    )


def to_note(path: str, row: Sequence[Any], body: Sequence[Any], links: tuple[Link, ...]) -> Note:
    """A note from columns NOTE and BODY."""
    encoding, title, description, author, importance = map(from_sql, row[:5])
    aliases, tags, keywords, supersedes = map(from_json, row[5:9])
    whole, begins, excluded, headings, blocks = body
    return Note(
        path,
        decompress(whole),
        begins,
        encoding,
        title,
        aliases,
        tags,
        description,
        keywords,
        author,
        importance,
        supersedes,
        value_from_json(row[9]),
        to_headings(headings),
        json.loads(blocks),
        links,
        to_spans(excluded),
        from_json(row[10]),
    )


# --- Parts of `put` ---


class _OldNote(NamedTuple):
    """What must be known of a stored note before it is changed."""

    id: int
    recipe: str
    aliases: tuple[str, ...]
    anchors: tuple[str, str]  # columns headings and blocks


def _old_note(db: Connection, path: str) -> _OldNote | None:
    query = """
        SELECT id, recipe, aliases, headings, blocks FROM notes JOIN bodies ON note_id = id
        WHERE path = ?"""
    found = db.execute(query, (to_sql(path),)).fetchone()
    if not found:
        return None
    id_, recipe, aliases, headings, blocks = found
    return _OldNote(id_, recipe, from_json(aliases), (headings, blocks))


def _stat_row(
    file: File,
    date: Date | None,
    created: float | None,
    modified: float | None,
    indexed_ns: int,
) -> tuple[Any, ...]:
    """Columns STAT."""
    times = (file.mtime_ns, file.ctime_ns, file.inode, indexed_ns)
    at, source = (date.at, date.source) if date else (None, "")
    dates = (date_to_sql(at), source, date_to_sql(created), date_to_sql(modified))
    return (to_sql(file.path), to_sql(file.disk), file.size, *map(clamped, times), *dates)


def _mark_links(db: Connection, old: _OldNote, new: NoteRows, recipe: str) -> None:
    """Have links looked up again where this change can give them another meaning, and only there.

    A hub with thousands of incoming links is edited daily and almost never renamed. With another
    recipe a link may call the same note otherwise.
    """
    if (old.aliases, old.recipe) != (new.aliases, recipe):
        links.names_changed(db, link_keys(new.path, (*old.aliases, *new.aliases)))
    if old.anchors != new.body[3:5]:
        links.unresolve_links_to(db, old.id)


def _delete_parts(db: Connection, note_id: int) -> None:
    for table in ("bodies", "tags", "fields", "sections"):
        db.execute(f"DELETE FROM {table} WHERE note_id = ?", (note_id,))


def _insert_parts(db: Connection, note_id: int, rows: NoteRows) -> None:
    _insert(db, "bodies", f"note_id, {BODY}", (note_id, *rows.body))
    _insert_all(db, "tags", "key, tag", note_id, rows.tags)
    _insert_all(db, "fields", "ordinal, key, text, number, date", note_id, rows.fields)
    _insert_all(db, "sections", SECTION, note_id, rows.sections)


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
