"""Links of the catalogue: which have to be looked up, what the others mean, and link statistics.

A link has to be looked up when it is new (status NULL), when the note it meant is gone or changed
its headings (status set back to NULL), or when its name is in `dirty` (a note of that name came,
went or moved). `waiting` lists the notes that have a NULL: an index over links would take twenty
times the space. The marks are written together with the note and cleared together with the targets,
so that the next run finds what a crash left undone. What a name means is decided elsewhere
(notes/links.py).

Statistics (backlinks, communities, lists of links) are stored, so that a search needs no graph. The
write path calculates them from `link_rows`; only those that changed are written.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from ragvault.store.database import Database, Row, reading, writing
from ragvault.store.schema import from_json, to_json
from ragvault.text.markup import page_names
from ragvault.text.spelling import fold_case
from ragvault.types import Heading, Link, Target

LinkId = tuple[int, int]  # the note's id and the link's place in it
# A link between two notes: source, target, kind (link, embed, property; alias where only an alias
# names the note), and the sections it leads from and to; None where it names no place.
LinkRow = tuple[int, int, str, int | None, int | None]
LINK = "kind, form, target, anchor, text, line, start"
TARGET = "status, via, target_start, anchor_found, others"
PAGE = 5000  # targets written at a time, so that a first run does not hold all of them


class LinkStats(NamedTuple):
    """Link statistics of a note."""

    linking_notes: int = 0
    linking_links: int = 0
    community: int | None = None


class Links(Database):
    """Stores what links mean, and reads them."""

    # Looking up.

    @reading
    def anchors(self, path: str) -> tuple[tuple[Heading, ...], dict[str, int]]:
        """The places in a note that a link can name: headings, and blocks with their offsets."""
        query = "SELECT headings, blocks FROM bodies JOIN notes ON id = note_id WHERE path = ?"
        found = self._db.execute(query, (path,)).fetchone()
        if found is None:
            raise KeyError(path)
        return to_headings(found[0]), json.loads(found[1])

    def links_to_resolve(self) -> Iterator[tuple[LinkId, str, Link]]:
        """Every link whose meaning is not known or may have changed, with its note's path."""
        query = """
            SELECT note_id FROM waiting UNION SELECT note_id FROM links
            WHERE target_key IN (SELECT key FROM dirty) ORDER BY 1"""
        for note_id in self._column(query):
            yield from self._links_to_resolve(note_id)

    @reading
    def _links_to_resolve(self, note_id: int) -> list[tuple[LinkId, str, Link]]:
        query = f"""
            SELECT ordinal, path, {_LINK} FROM links JOIN notes ON notes.id = note_id
            WHERE note_id = ? AND (status IS NULL OR target_key IN (SELECT key FROM dirty))
            ORDER BY ordinal"""
        return [
            ((note_id, ordinal), path, to_link(row))
            for ordinal, path, *row in self._db.execute(query, (note_id,))
        ]

    @writing
    def set_targets(self, targets: Iterable[tuple[LinkId, Target]]) -> int:
        """Store what ALL links of `links_to_resolve` mean; returns how many changed.

        One revision if any did. `targets` may be a generator that still reads the catalogue.
        KeyError when a target is not a note.
        """
        query = "SELECT path, id FROM notes WHERE path IN (*)"
        changed, left = 0, iter(targets)
        while page := list(islice(left, PAGE)):
            paths = {target.path for _, target in page if target.path is not None}
            ids: dict[str, int] = dict(self._select_in(query, paths))
            found = ((_target_row(target, ids), link_id) for link_id, target in page)
            values = [(*row, *link_id, *row) for row, link_id in found]
            changed += self._db.executemany(_SET_TARGET, values).rowcount
        self._db.execute("DELETE FROM dirty")
        self._db.execute("DELETE FROM waiting")
        if changed:
            self._next_revision()
        return changed

    # Reading.

    @reading
    def outgoing(self, path: str) -> list[tuple[Link, Target | None]]:
        """The links of a note in order; no target where one is not looked up yet."""
        query = f"""
            SELECT meant.path, {_LINK}, {_TARGET} FROM {_MEANT} JOIN notes ON notes.id = note_id
            WHERE notes.path = ? ORDER BY ordinal"""
        found = self._db.execute(query, (path,))
        return [(to_link(row[1:8]), to_target(row[0], row[8:])) for row in found]

    @reading
    def incoming(self, path: str) -> list[tuple[str, Link, Target]]:
        """The links that mean a note, with the path of the note that each is in."""
        query = f"""
            SELECT notes.path, meant.path, {_LINK}, {_TARGET}
            FROM {_MEANT} JOIN notes ON notes.id = note_id
            WHERE meant.path = ? AND status IS NOT NULL ORDER BY notes.path, ordinal"""
        return [
            (row[0], to_link(row[2:9]), target)
            for row in self._db.execute(query, (path,))
            if (target := to_target(row[1], row[9:])) is not None
        ]

    @reading
    def dangling(self) -> list[tuple[str, Link, Target]]:
        """The unresolved and the ambiguous links, with the path of their note, in their order."""
        query = f"""
            SELECT path, {_LINK}, {_TARGET} FROM links JOIN notes ON notes.id = note_id
            WHERE status IN ('unresolved', 'ambiguous') ORDER BY path, line, ordinal"""
        return [
            (row[0], to_link(row[1:8]), target)
            for row in self._db.execute(query)
            if (target := to_target(None, row[8:])) is not None
        ]

    @reading
    def broken_with_label(self) -> list[tuple[str, str, str]]:
        """(path, target, label) of the unresolved wikilinks that have a label."""
        query = """
            SELECT path, target, text FROM links JOIN notes ON notes.id = note_id
            WHERE status = 'unresolved' AND form = 'wiki' AND text != ''"""
        return self._db.execute(query).fetchall()

    @reading
    def successors(self) -> dict[int, set[int]]:
        """Old note -> the notes that replace it: their `supersedes` property links to it."""
        query = """
            SELECT id, supersedes, target_key, target_note_id FROM notes JOIN links ON note_id = id
            WHERE supersedes != '[]' AND kind = 'property' AND target_note_id != id"""
        found: dict[int, set[int]] = {}
        for note, stored, key, target in self._db.execute(query):
            names = (name.strip().strip("[]").split("|")[0] for name in from_json(stored))
            if key in map(link_key, names):
                found.setdefault(target, set()).add(note)
        return found

    # Statistics.

    @reading
    def linked_notes(self) -> list[tuple[int, int]]:
        """Every pair of notes that a link leads from and to, by id."""
        query = """
            SELECT DISTINCT note_id, target_note_id FROM links WHERE target_note_id IS NOT NULL
            ORDER BY 1, 2"""
        return self._db.execute(query).fetchall()

    @reading
    def link_rows(self, notes: Iterable[int] | None = None) -> list[LinkRow]:
        """Every link that means a note, or those from and to these notes, each once."""
        if notes is None:
            return self._in_sections(self._db.execute(f"{_ROWS} ORDER BY note_id, ordinal"))
        wanted = set(notes)
        outgoing = self._select_in(f"{_ROWS} AND note_id IN (*)", sorted(wanted))
        incoming = self._select_in(f"{_ROWS} AND target_note_id IN (*)", sorted(wanted))
        return self._in_sections([*outgoing, *(row for row in incoming if row[0] not in wanted)])

    def _in_sections(self, rows: Iterable[Row]) -> list[LinkRow]:
        """Links with the sections that their offsets are in.

        Not in SQL, which reads half of a note's sections for each of its 10,000 links.
        """
        found = list(rows)
        notes = sorted({note for source, target, *_ in found for note in (source, target)})
        query = "SELECT note_id, start FROM sections WHERE note_id IN (*) ORDER BY note_id, ordinal"
        starts: dict[int, list[int]] = {}
        for note, start in self._select_in(query, notes):
            starts.setdefault(note, []).append(start)

        def section(note: int, offset: int | None) -> int | None:
            at = None if offset is None else bisect_right(starts.get(note, ()), offset)
            return at - 1 if at else None

        return [
            (source, target, kind, section(source, start), section(target, target_start))
            for source, target, kind, start, target_start in found
        ]

    @reading
    def link_stats(self, notes: Iterable[int] | None = None) -> dict[int, LinkStats]:
        """Link statistics of these notes, or of all; a note without links is absent."""
        query = """
            SELECT note_id, linking_notes, linking_links, community FROM link_stats
            WHERE note_id IN (*)"""
        return {note: LinkStats(*stats) for note, *stats in self._select_in(query, notes)}

    @writing
    def set_link_stats(self, wanted: Mapping[int, LinkStats]) -> None:
        """Replace the link statistics of all notes."""
        self._replace("link_stats", {(note, *stats) for note, stats in wanted.items()})

    @reading
    def link_lists(self) -> dict[tuple[int, int | None], float]:
        """Notes and sections that are lists of links, and the weight of one of their links."""
        found = self._db.execute("SELECT note_id, section, weight FROM lists")
        return {(note, section): weight for note, section, weight in found}

    @writing
    def set_link_lists(self, wanted: Mapping[tuple[int, int | None], float]) -> None:
        self._replace("lists", {(*unit, weight) for unit, weight in wanted.items()})

    @reading
    def ties(self) -> dict[tuple[int, int], int]:
        """(source, target) -> weight of their links, when communities were last computed."""
        found = self._db.execute("SELECT source, target, weight FROM ties")
        return {(source, target): weight for source, target, weight in found}

    @writing
    def set_ties(self, wanted: Mapping[tuple[int, int], int]) -> None:
        self._replace("ties", {(*pair, weight) for pair, weight in wanted.items()})

    def _replace(self, table: str, wanted: set[Row]) -> None:
        """Make these the rows of a table; writes only what differs."""
        rows = self._db.execute(f"SELECT * FROM {table}")
        columns = [column[0] for column in rows.description]
        changed = wanted ^ set(rows)
        same = " AND ".join(f"{column} IS ?" for column in columns)
        self._db.executemany(f"DELETE FROM {table} WHERE {same}", changed - wanted)
        marks = ", ".join("?" * len(columns))
        new = sorted(changed & wanted, key=repr)  # so that two runs write the same file
        self._db.executemany(f"INSERT INTO {table} VALUES ({marks})", new)

    # Writing: parts of `Notes.put` and `Notes.remove`.

    def _put_links(self, note_id: int, wanted: Sequence[Row]) -> None:
        """Store a note's links as not looked up; links that are the same as before are left alone.

        A row of `wanted` is the link's place among them, and its `link_row`.
        """
        columns = f"ordinal, {LINK}, target_key"
        query = f"SELECT {columns} FROM links WHERE note_id = ? ORDER BY ordinal"
        if self._db.execute(query, (note_id,)).fetchall() == list(wanted):
            return
        self._db.execute("DELETE FROM links WHERE note_id = ?", (note_id,))
        insert = f"INSERT INTO links (note_id, {columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._db.executemany(insert, [(note_id, *row) for row in wanted])
        self._db.execute("INSERT OR IGNORE INTO waiting VALUES (?)", (note_id,))

    def _names_changed(self, keys: Iterable[str]) -> None:
        """Mark every link with one of these names to be resolved again."""
        values = [(key,) for key in keys]
        self._db.executemany("INSERT OR IGNORE INTO dirty VALUES (?)", values)

    def _unresolve(self, column: str, note_id: int) -> None:
        """Mark the links of a note (note_id) or those to it (target_note_id) to be resolved."""
        sources = f"SELECT DISTINCT note_id FROM links WHERE {column} = ?"
        self._db.execute(f"INSERT OR IGNORE INTO waiting {sources}", (note_id,))
        reset = f"UPDATE links SET status = NULL, target_note_id = NULL WHERE {column} = ?"
        self._db.execute(reset, (note_id,))


_LINK = ", ".join(f"links.{column.strip()}" for column in LINK.split(","))
_TARGET = ", ".join(f"links.{column.strip()}" for column in TARGET.split(","))
_MEANT = "links LEFT JOIN notes AS meant ON meant.id = target_note_id"

_ROWS = """
    SELECT note_id, target_note_id, CASE via WHEN 'alias' THEN 'alias' ELSE kind END,
        start, target_start
    FROM links WHERE target_note_id IS NOT NULL"""

# A target that is the same as before is not written, so that no cache falls behind.
_MEANING = "status, target_note_id, via, target_start, anchor_found, others"
_SET_TARGET = f"""
    UPDATE links SET ({_MEANING}) = (?, ?, ?, ?, ?, ?)
    WHERE note_id = ? AND ordinal = ? AND ({_MEANING}) IS NOT (?, ?, ?, ?, ?, ?)"""


def _target_row(target: Target, ids: Mapping[str, int]) -> Row:
    """Columns _MEANING."""
    note_id = None if target.path is None else ids[target.path]
    others = to_json(target.others) if target.others else None
    rest = (target.via, target.start, int(target.anchor_found), others)
    return (target.status, note_id, *rest)


# --- Rows ---


def link_row(link: Link) -> Row:
    """Columns LINK and target_key."""
    return (
        link.kind,
        link.form,
        link.target,
        to_json(link.anchor),
        link.text,
        link.line,
        link.start,
        link_key(link.target),
    )


def to_link(row: Row) -> Link:
    """A link from columns LINK."""
    kind, form, target, anchor, text, line, start = row
    return Link(kind, form, target, from_json(anchor), text, line, start)


def to_target(path: str | None, row: Row) -> Target | None:
    """The target of a link, from its note's path and columns TARGET; None if not looked up yet."""
    status, via, start, anchor_found, others = row
    if status is None:
        return None
    return Target(status, path, via, start, bool(anchor_found), from_json(others or "[]"))


def to_headings(stored: str) -> tuple[Heading, ...]:
    """The headings of column `headings`."""
    return tuple(
        Heading(text, level, line, start, tuple(path))
        for text, level, line, start, path in json.loads(stored)
    )


# --- Keys: names in the form in which they are compared ---
#
# A link and the note it means share a key, however they are spelled: letter case, composed or
# decomposed accents, the folder before the name, `.md` after it. Keys only choose which links are
# resolved again: two names with the same key cost a look-up and never give a wrong result.

EXTENSIONS = (".md", ".markdown")
FOLDER_PAGES = {"index", "readme", "_index"}  # what a link to a folder opens
UPWARDS = ("/", ".", "..")  # `[up](..)` names a folder without saying its name


@lru_cache(maxsize=4096)  # a vault links to the same few names over and over
def link_key(name: str) -> str:
    """The last part of a path, link target or alias, folded, without a Markdown extension.

    The vault's own folder is `/`; an empty name, which is a link into its own note, stays empty.
    """
    parts = fold_case(name).replace("\\", "/").replace("___", "/")  # as in page_names
    key = parts.strip("/ ").rpartition("/")[2].strip()
    if key.endswith(EXTENSIONS):
        return key.rpartition(".")[0]
    return key or ("/" if name else "")


def file_stem(path: str) -> str:
    """The file name of a note without its extension, whatever that is."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def link_keys(path: str, aliases: Iterable[str]) -> set[str]:
    """Every key under which a link could mean this note, which may be the page of its folder."""
    folder = path.rpartition("/")[0] or "/"
    pages = page_names(path.rpartition(".")[0])
    own = {link_key(path), link_key(file_stem(path)), *map(link_key, (*pages, *aliases))}
    return own | {link_key(folder), *UPWARDS} if own & FOLDER_PAGES else own
