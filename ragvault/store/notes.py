"""Notes of the catalogue: one file's change, and what is known of each note.

    put      a note that was read: new, changed or moved
    touch    a note whose file status or dates changed and nothing else
    remove   a note that is gone

Each is one transaction and one revision. Each records what the next steps need: links to look up,
removals for the caches. So a crash after any of them loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ragvault.store.database import Row, reading, writing
from ragvault.store.links import LINK, Links, link_keys, link_row, to_headings, to_link
from ragvault.store.passages import (
    SECTION,
    Passages,
    assigned,
    passage_row,
    section_row,
    to_spans,
)
from ragvault.store.schema import (
    clamped,
    compress,
    date_to_sql,
    decompress,
    from_json,
    properties_from_json,
    properties_to_json,
    property_rows,
    to_json,
)
from ragvault.text.dates import in_calendar
from ragvault.text.spelling import fold_case
from ragvault.types import (
    Date,
    Dates,
    File,
    Head,
    IndexedFile,
    Note,
    Passage,
    Section,
    Skipped,
)

STATUS = (
    "path, disk, size, mtime_ns, ctime_ns, inode, indexed_ns, date, date_source, created, modified"
)
NOTE = (
    "encoding, title, description, author, importance, aliases, tags, keywords, supersedes,"
    " properties, warnings, length"
)
BODY = "text, body, excluded, headings, blocks"
COPY_TIME_NS = 600_000_000_000  # ten minutes: as long as copying or cloning a large vault may take


@dataclass(frozen=True, slots=True)
class StoredNote:
    """What is known of a note without its text."""

    id: int
    file: File
    dates: Dates
    title: str
    importance: str
    aliases: tuple[str, ...]


class NoteRows(NamedTuple):
    """A note as its rows, before it has an id. Workers make them: rows are smaller to send than a
    note with its passages, and the process that stores them need not compress texts.

    `read_ns` is the clock just before the file was read: a later change is not in it. A note's
    dates depend on its `properties`, and on git.
    """

    file: File
    digest: bytes
    read_ns: int
    properties: Mapping[str, Any]
    aliases: tuple[str, ...]
    note: Row  # columns NOTE
    body: Row  # columns BODY
    tags: Sequence[Row]
    fields: Sequence[Row]
    sections: Sequence[Row]
    passages: Sequence[Row]
    links: Sequence[Row]


def note_rows(
    note: Note,
    sections: Sequence[Section],
    passages: Sequence[Passage],
    hashes: Sequence[bytes],
    *,
    file: File,
    digest: bytes,
    read_ns: int,
) -> NoteRows:
    """The rows of a note. `hashes` are of the texts to embed, one for each passage."""
    tags = {fold_case(tag): tag for tag in reversed(note.tags)}  # of two spellings the first
    pairs = zip(passages, hashes, strict=True)
    return NoteRows(
        file,
        digest,
        read_ns,
        note.properties,
        note.aliases,
        note_row(note),
        body_row(note),
        list(tags.items()),
        [(i, key, *field) for i, (key, field) in enumerate(property_rows(note.properties))],
        list(map(section_row, sections)),
        [passage_row(passage, note, text_hash) for passage, text_hash in pairs],
        [(i, *link_row(link)) for i, link in enumerate(note.links)],
    )


class Notes(Passages, Links):
    """Writes notes with all their parts, and reads what is known of them."""

    @writing
    def put(self, rows: NoteRows, dates: Dates, *, recipe: str, was: str | None = None) -> int:
        """Store a note in place of the one at its path; returns its id.

        `was` is the path that the note had before, if it was moved: it keeps its id, and replaces a
        note that had the new path. Passages whose text did not change keep their ids.
        """
        path = rows.file.path
        revision, here = self._next_revision(), self._id_at(path)
        old = here if was is None else self.note_id(was)
        if here is not None and here != old:  # the note that was moved has overwritten it
            self._remove(revision, here)
        columns = f"{STATUS}, digest, recipe, {NOTE}, revision"
        status = _status_row(rows.file, dates, rows.read_ns)
        values = (*status, rows.digest, recipe, *rows.note, revision)
        if old is None:
            old = self._insert("notes", columns, values)
            self._names_changed(link_keys(path, rows.aliases))
        else:
            self._mark_links(old, rows, recipe)
            self._db.execute(f"UPDATE notes SET {assigned(columns)} WHERE id = ?", (*values, old))
            for table in ("bodies", "tags", "fields", "sections"):
                self._db.execute(f"DELETE FROM {table} WHERE note_id = ?", (old,))
        self._insert("bodies", f"note_id, {BODY}", (old, *rows.body))
        self._insert_all("tags", "key, tag", old, rows.tags)
        self._insert_all("fields", "ordinal, key, text, number, date", old, rows.fields)
        self._insert_all("sections", SECTION, old, rows.sections)
        self._put_passages(revision, old, rows.passages)
        self._put_links(old, rows.links)
        return old

    def _mark_links(self, note_id: int, new: NoteRows, recipe: str) -> None:
        """Have links resolved again where a change can give them another meaning, and only there.

        A hub with thousands of incoming links is edited daily and almost never renamed. With
        another recipe a link may call the same note otherwise.
        """
        query = "SELECT path, aliases, recipe FROM notes WHERE id = ?"
        path, stored, was = self._db.execute(query, (note_id,)).fetchone()
        aliases = from_json(stored)
        if (path, aliases, was) != (new.file.path, new.aliases, recipe):
            self._names_changed(link_keys(path, aliases) | link_keys(new.file.path, new.aliases))
        if (
            path != new.file.path
        ):  # what a name means depends on the folder of the note with the link
            self._unresolve("note_id", note_id)
        query = "SELECT headings, blocks FROM bodies WHERE note_id = ?"
        if self._db.execute(query, (note_id,)).fetchone() != new.body[3:5]:
            self._unresolve("target_note_id", note_id)

    def _insert(self, table: str, columns: str, row: Row) -> int:
        marks = ", ".join("?" * len(row))
        statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        return self._db.execute(statement, row).lastrowid or 0

    def _insert_all(self, table: str, columns: str, note_id: int, parts: Sequence[Row]) -> None:
        marks = ", ".join("?" * len(columns.split(",")))
        statement = f"INSERT INTO {table} (note_id, {columns}) VALUES (?, {marks})"
        self._db.executemany(statement, [(note_id, *part) for part in parts])

    @writing
    def touch(self, file: File, dates: Dates, *, indexed_ns: int) -> int:
        """Store the status and the dates of a file whose contents are the same; the note's id.

        Raises KeyError for an unknown path.
        """
        note_id = self.note_id(file.path)
        self._next_revision()
        update = f"UPDATE notes SET {assigned(STATUS)} WHERE id = ?"
        self._db.execute(update, (*_status_row(file, dates, indexed_ns), note_id))
        return note_id

    @writing
    def remove(self, path: str) -> bool:
        """Delete a note; False, and no revision, when there is none at that path."""
        note_id = self._id_at(path)
        if note_id is not None:
            self._remove(self._next_revision(), note_id)
        return note_id is not None

    def _remove(self, revision: int, note_id: int) -> None:
        self._unresolve("target_note_id", note_id)
        query = "SELECT path, aliases FROM notes WHERE id = ?"
        path, aliases = self._db.execute(query, (note_id,)).fetchone()
        self._names_changed(link_keys(path, from_json(aliases)))
        passages = self._column("SELECT id FROM passages WHERE note_id = ?", note_id)
        self._remove_passages(revision, passages)
        self._db.execute("INSERT INTO removed_notes VALUES (?, ?)", (note_id, revision))
        self._db.execute("DELETE FROM notes WHERE id = ?", (note_id,))

    @writing
    def set_skipped(self, skipped: Iterable[Skipped]) -> None:
        """Replace the list of files that were not indexed."""
        values = [(skip.path, skip.reason, skip.detail) for skip in skipped]
        self._db.execute("DELETE FROM skipped")
        statement = "INSERT INTO skipped (path, reason, detail) VALUES (?, ?, ?)"
        self._db.executemany(statement, values)

    # Reading.

    @reading
    def files(self, paths: Iterable[str] | None = None) -> dict[str, IndexedFile]:
        """Every indexed file by path, or those of these paths: what a walk is compared with."""
        query = f"SELECT path, {', '.join(IndexedFile._fields)} FROM notes WHERE path IN (*)"
        return {path: IndexedFile(*rest) for path, *rest in self._select_in(query, paths)}

    @reading
    def note(self, path: str) -> Note:
        """A note as it was put. KeyError for an unknown path."""
        note_id = self.note_id(path)
        query = f"SELECT {NOTE}, {BODY} FROM notes JOIN bodies ON note_id = id WHERE id = ?"
        row = self._db.execute(query, (note_id,)).fetchone()
        encoding, title, description, author, importance, *lists, properties, warnings = row[:11]
        aliases, tags, keywords, supersedes = map(from_json, lists)
        text, body, excluded, headings, blocks = row[12:]
        query = f"SELECT {LINK} FROM links WHERE note_id = ? ORDER BY ordinal"
        return Note(
            path,
            decompress(text),
            body,
            encoding,
            title,
            aliases,
            tags,
            description,
            keywords,
            author,
            importance,
            supersedes,
            properties_from_json(properties),
            to_headings(headings),
            json.loads(blocks),
            tuple(to_link(link) for link in self._db.execute(query, (note_id,))),
            to_spans(excluded),
            from_json(warnings),
        )

    def note_id(self, path: str) -> int:
        """The id of a note, which stays when its path changes. KeyError for an unknown path."""
        found = self._id_at(path)
        if found is None:
            raise KeyError(path)
        return found

    def _id_at(self, path: str) -> int | None:
        found: int | None = self._value("SELECT id FROM notes WHERE path = ?", path)
        return found

    @reading
    def text_bytes(self) -> int:
        """The size of all notes' files."""
        return int(self._value("SELECT coalesce(sum(size), 0) FROM notes"))

    @reading
    def note_count(self) -> int:
        return int(self._value("SELECT count(*) FROM notes"))

    @reading
    def median_length(self) -> float:
        """The median length of the notes, in characters; 0 without notes."""
        query = "SELECT length FROM notes ORDER BY length LIMIT 1 OFFSET ?"
        return float(self._value(query, self.note_count() // 2) or 0)

    @reading
    def copied(self) -> tuple[float, float] | None:
        """Between which times (since 1970) most files were written, if within minutes of another.

        None for a vault that was not copied or cloned, and for one with a single note.
        """
        total = self.note_count()
        query = "SELECT mtime_ns FROM notes ORDER BY mtime_ns LIMIT 1 OFFSET ?"
        middle = self._value(query, total // 2)
        if total < 2:
            return None
        near = "SELECT count(*) FROM notes WHERE abs(mtime_ns - ?) <= ?"
        count = self._value(near, middle, COPY_TIME_NS)
        low, high = middle - COPY_TIME_NS, middle + COPY_TIME_NS
        return (low / 1e9, high / 1e9) if 2 * count > total else None

    @reading
    def stored(self, path: str) -> StoredNote:
        """The row of a note. KeyError for an unknown path."""
        return self.stored_notes([self.note_id(path)])[0]

    @reading
    def stored_notes(self, ids: Iterable[int] | None = None) -> list[StoredNote]:
        """The rows of these notes, or of all, by path; one that is gone is absent."""
        query = """
            SELECT id, path, disk, size, mtime_ns, ctime_ns, inode, date, date_source, created,
            modified, title, importance, aliases FROM notes WHERE id IN (*) ORDER BY path"""
        return [_to_stored(row) for row in self._select_in(query, ids)]

    @reading
    def heads(self, ids: Iterable[int] | None = None) -> list[Head]:
        """The names and the other searchable fields of these notes, or of all.

        One that is gone is absent.
        """
        query = """
            SELECT id, path, title, aliases, tags, keywords, description, author, properties
            FROM notes WHERE id IN (*)"""
        return [
            Head(
                note,
                path,
                title,
                from_json(aliases),
                from_json(tags),
                from_json(keywords),
                *(description, author),
                properties_from_json(own),
            )
            for note, path, title, aliases, tags, keywords, description, author, own in (
                self._select_in(query, ids)
            )
        ]

    @reading
    def names(self) -> list[Head]:
        """What every note is called, by path: what links and people look for."""
        found = self._db.execute("SELECT id, path, title, aliases FROM notes ORDER BY path")
        return [Head(id_, path, title, from_json(known)) for id_, path, title, known in found]

    @reading
    def warnings(self) -> list[tuple[str, tuple[str, ...]]]:
        """Notes with warnings, by path."""
        query = "SELECT path, warnings FROM notes WHERE warnings != '[]' ORDER BY path"
        return [(path, from_json(found)) for path, found in self._db.execute(query)]

    @reading
    def skipped(self) -> list[Skipped]:
        """Files that were not indexed, in the order of the walk."""
        query = "SELECT path, reason, detail FROM skipped ORDER BY ordinal"
        return [Skipped(*row) for row in self._db.execute(query)]


# --- Rows ---


def _to_stored(row: Row) -> StoredNote:
    id_, *file = row[:7]
    at, source, created, modified, title, importance, aliases = row[7:]
    date = None if in_calendar(at) is None else Date(at, source)
    dates = Dates(date, in_calendar(created), in_calendar(modified))
    return StoredNote(id_, File(*file), dates, title, importance, from_json(aliases))


def note_row(note: Note) -> Row:
    """Columns NOTE."""
    lists = (note.aliases, note.tags, note.keywords, note.supersedes)
    return (
        note.encoding,
        note.title,
        note.description,
        note.author,
        note.importance,
        *map(to_json, lists),
        properties_to_json(note.properties) if note.properties else "{}",
        to_json(note.warnings),
        len(note.text),
    )


def body_row(note: Note) -> Row:
    """Columns BODY."""
    headings = [(h.text, h.level, h.line, h.start, h.path) for h in note.headings]
    return (
        compress(note.text),
        note.body,
        json.dumps(note.excluded) if note.excluded else "[]",
        json.dumps(headings),
        json.dumps(dict(note.blocks)) if note.blocks else "{}",
    )


def _status_row(file: File, dates: Dates, indexed_ns: int) -> Row:
    """Columns STATUS."""
    times = (file.mtime_ns, file.ctime_ns, file.inode, indexed_ns)
    at, source = (dates.date.at, dates.date.source) if dates.date else (None, "")
    rest = (date_to_sql(at), source, date_to_sql(dates.created), date_to_sql(dates.modified))
    return (file.path, file.disk, file.size, *map(clamped, times), *rest)
