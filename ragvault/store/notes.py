"""Notes and passages of the catalogue: one file's change, and what is known of each note.

    put      a note that was read: new, changed or moved
    touch    a note whose file status or dates changed and nothing else
    remove   a note that is gone

The texts of passages are not stored a second time: they are cut out of the note's text. A passage
keeps its id as long as its text stays the same, even if it moves inside the note: caches contain
ids. An id is never given to another text.

Each is one transaction and one revision. Each records what the next steps need: links to look up,
removals for the caches. So a crash after any of them loses nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ragvault.store.database import Row, reading, writing
from ragvault.store.links import LINK, Links, link_keys, link_row, to_headings, to_link
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
from ragvault.text.spans import Span, back, cut
from ragvault.text.spelling import fold_case
from ragvault.types import (
    Date,
    Dates,
    File,
    Head,
    IndexedFile,
    Kind,
    Note,
    Passage,
    PassageText,
    Section,
    Skipped,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Body = tuple[str, tuple[Span, ...]]  # a note's text, and the spans of it that are not indexed

# Columns of the tables, in the order of their rows here.
SECTION = "ordinal, headings, start, stop, line_first, line_last"
PASSAGE = (
    "ordinal, section, headings, kind, lang, has, start, stop, line_first, line_last,"
    " overlap, text, subheadings, text_hash"
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


class PassagePlace(NamedTuple):
    """Where a passage is in its note, without its text."""

    id: int
    note_id: int
    ordinal: int
    section: int
    headings: tuple[str, ...]
    kind: Kind
    lines: tuple[int, int]
    span: Span
    overlap: int
    own: str | None  # its text, where that cannot be cut out of the note's
    subheadings: tuple[str, ...]

    def text(self, whole: str, excluded: Sequence[Span]) -> str:
        """The passage's text, given the body of its note."""
        return _text(self.own, whole, *self.span, self.overlap, excluded)


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


class Notes(Links):
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

    # Reading passages, sections and the texts they are cut out of.

    @reading
    def bodies(self, notes: Iterable[int]) -> dict[int, Body]:
        """Text and excluded spans of each note; a note that is gone is absent."""
        query = "SELECT note_id, text, excluded FROM bodies WHERE note_id IN (*)"
        found = self._select_in(query, notes)
        return {note: (decompress(packed), to_spans(spans)) for note, packed, spans in found}

    def text(self, note_id: int) -> str:
        """The whole text of a note. KeyError when there is no such id."""
        return self.bodies([note_id])[note_id][0]

    @reading
    def unit_text(self, note_id: int, section: int | None) -> str:
        """The text of a section, by its place in the note; None is the whole note."""
        text, excluded = self.bodies([note_id])[note_id]
        query = "SELECT start, stop FROM sections WHERE note_id = ? AND ordinal = ?"
        start, stop = self._db.execute(query, (note_id, section)).fetchone() or (0, len(text))
        return cut(text, start, stop, excluded)

    @reading
    def sections_near(self, note: int, ordinal: int) -> dict[int, Section]:
        """A section of a note and its neighbours, by their places; those that exist."""
        query = f"SELECT {SECTION} FROM sections WHERE note_id = ? AND ordinal BETWEEN ? AND ?"
        found = self._db.execute(query, (note, ordinal - 1, ordinal + 1))
        return {row[0]: to_section(row) for row in found}

    @reading
    def places(self, ids: Iterable[int]) -> list[PassagePlace]:
        """Where passages are, without their texts; one that is gone is absent."""
        query = """
            SELECT id, note_id, ordinal, section, headings, kind, line_first, line_last, start,
            stop, overlap, text, subheadings FROM passages WHERE id IN (*) ORDER BY id"""
        return [_to_place(row) for row in self._select_in(query, ids)]

    @reading
    def passage_texts(self, ids: Iterable[int]) -> list[PassageText]:
        """The texts of passages with what indexes are made of; one that is gone is absent."""
        query = """
            SELECT id, note_id, text_hash, headings, lang, has, subheadings, kind, text, start,
            stop, overlap FROM passages WHERE id IN (*)"""
        found = list(self._select_in(query, ids))
        bodies = self.bodies({row[1] for row in found})
        return [_to_text(row, *bodies[row[1]]) for row in found]

    # Ids of passages.

    @reading
    def passage_ids(self) -> NDArray[np.int64]:
        """Every passage, ascending."""
        import numpy as np

        return np.array(self._column("SELECT id FROM passages ORDER BY id"), np.int64)

    def passage_count(self) -> int:
        return int(self._value("SELECT count(*) FROM passages"))

    @reading
    def notes_of_passages(self, passages: Iterable[int]) -> dict[int, int]:
        """The note of each passage."""
        query = "SELECT id, note_id FROM passages WHERE id IN (*)"
        return dict(self._select_in(query, passages))

    def passage_ids_of(self, note: int) -> list[int]:
        """The passages of a note, in order."""
        return [passage for passage, _ in self.passage_ids_by_note([note]).get(note, ())]

    @reading
    def passage_ids_by_note(self, notes: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """The passages of each note, in order, each with the place of its section."""
        query = "SELECT note_id, ordinal, id, section FROM passages WHERE note_id IN (*)"
        found: dict[int, list[tuple[int, int]]] = {}
        for note, _, passage, section in sorted(self._select_in(query, notes)):
            found.setdefault(note, []).append((passage, section))
        return found

    @reading
    def newest(self, count: int, opened: Sequence[int] = ()) -> list[int]:
        """The passages of `count` notes: those `opened` last, then those modified last."""
        modified = self._column("SELECT id FROM notes ORDER BY modified DESC, path LIMIT ?", count)
        notes = list(dict.fromkeys([*opened, *modified]))[:count]
        query = "SELECT id FROM passages WHERE note_id IN (*)"
        return sorted(row[0] for row in self._select_in(query, notes))

    # Writing passages: parts of `put` and `remove`.

    def _put_passages(self, revision: int, note_id: int, wanted: Sequence[Row]) -> None:
        """Store the passages of a note (columns PASSAGE); those that it had before keep their ids.

        A passage is the same when its text hash, kind, languages, contents, headings and
        subheadings are. Of several equal passages the first keeps the first id.
        """
        query = f"SELECT id, {PASSAGE} FROM passages WHERE note_id = ? ORDER BY ordinal"
        before = {row[0]: row[1:] for row in self._db.execute(query, (note_id,))}
        waiting: defaultdict[Row, deque[int]] = defaultdict(deque)
        for passage, row in before.items():
            waiting[_same(row)].append(passage)
        moved, new = [], []
        for row in wanted:
            if ids := waiting[_same(row)]:
                passage = ids.popleft()
                if before[passage] != row:
                    moved.append((*row, passage))
            else:
                new.append((note_id, revision, *row))
        self._db.executemany(f"UPDATE passages SET {assigned(PASSAGE)} WHERE id = ?", moved)
        self._remove_passages(revision, sorted(chain(*waiting.values())))
        self._db.executemany(_INSERT, new)

    def _remove_passages(self, revision: int, ids: Iterable[int]) -> None:
        """Delete passages and record their removal for the caches (catalogue.py)."""
        record = """
            INSERT INTO removed_passages SELECT id, ?, text_hash, ? FROM passages WHERE id = ?"""
        now = time()
        rows = [(revision, now, passage) for passage in ids]
        self._db.executemany(record, rows)
        self._db.executemany("DELETE FROM passages WHERE id = ?", [row[2:] for row in rows])


def assigned(columns: str) -> str:
    """Columns as the right part of an UPDATE."""
    return ", ".join(f"{column.strip()} = ?" for column in columns.split(","))


_MARKS = ", ".join("?" * len(PASSAGE.split(",")))
_INSERT = f"INSERT INTO passages (note_id, revision, {PASSAGE}) VALUES (?, ?, {_MARKS})"


def _same(row: Row) -> Row:
    _, _, headings, kind, lang, has, *_, below, text_hash = row
    return text_hash, kind, lang, has, headings, below


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


# --- Rows of sections and passages ---


def section_row(section: Section) -> Row:
    """Columns SECTION."""
    headings = to_json(section.headings)
    return (section.ordinal, headings, section.start, section.end, *section.lines)


def to_section(row: Row) -> Section:
    """A section from columns SECTION."""
    ordinal, headings, start, end, first, last = row
    return Section(ordinal, from_json(headings), start, end, (first, last))


def _to_place(row: Row) -> PassagePlace:
    id_, note, ordinal, section, headings, kind, first, last, start, stop, overlap, own, below = row
    place = (from_json(headings), kind, (first, last), (start, stop), overlap, own)
    return PassagePlace(id_, note, ordinal, section, *place, from_json(below))


def _to_text(row: Row, whole: str, excluded: Sequence[Span]) -> PassageText:
    id_, note, key, headings, lang, has, below, kind, own, start, stop, overlap = row
    text = _text(own, whole, start, stop, overlap, excluded)
    lists = (from_json(headings), tuple(lang.split()), from_json(has))
    return PassageText(id_, note, key, *lists, text, from_json(below), kind)


def passage_row(passage: Passage, note: Note, text_hash: bytes) -> Row:
    """Columns PASSAGE. The text is stored only where it cannot be cut out of the note's text."""
    span = passage.start, passage.end, passage.overlap
    own = passage.text == _text(None, note.text, *span, note.excluded)
    return (
        passage.ordinal,
        passage.section,
        to_json(passage.headings),
        passage.kind,
        " ".join(sorted(passage.lang)),
        to_json(tuple(sorted(passage.has))),
        passage.start,
        passage.end,
        *passage.lines,
        passage.overlap,
        None if own else passage.text,
        to_json(passage.subheadings),
        text_hash,
    )


def _text(
    own: str | None, whole: str, start: int, end: int, overlap: int, excluded: Sequence[Span]
) -> str:
    """The text of a passage: its own, or cut out of its note's text."""
    if own is not None:
        return own
    return cut(whole, back(start, overlap, excluded) if overlap else start, end, excluded)


def to_spans(stored: str) -> tuple[Span, ...]:
    """The spans of column `excluded`."""
    return tuple((first, last) for first, last in json.loads(stored)) if stored != "[]" else ()
