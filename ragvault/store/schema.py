"""The tables of the catalogue, and how values are stored in them.

    notes           one row a file: its status, its hash, its fields, its dates
    bodies          the note's text, stored once, and the offsets found in it
    tags, fields    for filters: folded tags; properties, one row a value
    sections        by their place in the note
    passages        an id belongs to one text and is never given again
    removed_passages  for caches that still have them, with the hash of their text
    removed_notes   removed notes
    links           one row a link; status NULL means "not yet looked up"
    dirty           names whose meaning may have changed since links were looked up
    waiting         notes that have a link not yet looked up
    skipped         files that were not indexed, and why
    link_stats      link statistics of a note: backlinks and community
    lists           notes and sections that are lists of links, and the weight of one of their links
    ties            link weights between notes when their communities were computed
    terms           the vault's vocabulary, each term with its vector
    models, vectors the embedding of every distinct text, by hash
    caches          the current keyword and vector indexes
    meta            one row: identity, revision, and the facts of catalogue.py

Foreign keys delete the parts of a note with it. SQLite's `user_version` is the format, and grows
when anything here changes; `application_id` says that the file is ours. There are no migrations: an
index of an older format is rebuilt from the vault and takes over its vectors (update/upkeep.py).

Texts and names come without lone surrogates and without NUL: the walk and the readers of notes see
to that, because no database stores them. Lists are JSON; dates in properties are wrapped as
{NUL: ISO date}; a note's text is compressed.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import zlib
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timezone
from functools import lru_cache
from sqlite3 import Connection
from typing import Any, NamedTuple

from ragvault.text.dates import in_calendar
from ragvault.text.spelling import fold_case

FORMAT = 4
APPLICATION = 0x52475654  # "RGVT"
TABLES = (
    """CREATE TABLE notes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        path TEXT NOT NULL UNIQUE,
        disk TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        ctime_ns INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        indexed_ns INTEGER NOT NULL,  -- the clock when the file was read
        digest BLOB NOT NULL,
        recipe TEXT NOT NULL,         -- fingerprint of the settings it was cut with
        encoding TEXT NOT NULL,
        title TEXT NOT NULL,
        description TEXT NOT NULL,
        author TEXT NOT NULL,
        importance TEXT NOT NULL,
        aliases TEXT NOT NULL,        -- JSON, as are the next five
        tags TEXT NOT NULL,
        keywords TEXT NOT NULL,
        supersedes TEXT NOT NULL,
        properties TEXT NOT NULL,
        warnings TEXT NOT NULL,
        date REAL NOT NULL,
        date_source TEXT NOT NULL,
        created REAL NOT NULL,
        modified REAL NOT NULL,
        length INTEGER NOT NULL,      -- characters
        revision INTEGER NOT NULL     -- of the last change to its path or its contents
    )""",
    """CREATE TABLE bodies (
        note_id INTEGER PRIMARY KEY REFERENCES notes ON DELETE CASCADE,
        text BLOB NOT NULL,           -- zlib, UTF-8
        body INTEGER NOT NULL,
        excluded TEXT NOT NULL,       -- JSON, as are the next two
        headings TEXT NOT NULL,
        blocks TEXT NOT NULL
    )""",
    """CREATE TABLE tags (
        note_id INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        key TEXT NOT NULL,            -- folded: tags are compared without case
        tag TEXT NOT NULL,
        PRIMARY KEY (note_id, key)
    ) WITHOUT ROWID""",
    "CREATE INDEX tags_by_key ON tags (key)",
    """CREATE TABLE fields (
        note_id INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        key TEXT NOT NULL,            -- folded
        text TEXT,                    -- folded; NULL: the property is there and empty
        number REAL,
        date REAL,
        PRIMARY KEY (note_id, ordinal)
    ) WITHOUT ROWID""",
    "CREATE INDEX fields_by_key ON fields (key)",
    """CREATE TABLE sections (
        note_id INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        headings TEXT NOT NULL,       -- JSON
        start INTEGER NOT NULL,
        stop INTEGER NOT NULL,
        line_first INTEGER NOT NULL,
        line_last INTEGER NOT NULL,
        PRIMARY KEY (note_id, ordinal)
    ) WITHOUT ROWID""",
    """CREATE TABLE passages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        note_id INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        section INTEGER NOT NULL,
        headings TEXT NOT NULL,       -- JSON
        kind TEXT NOT NULL,
        lang TEXT NOT NULL,           -- names with spaces between them
        has TEXT NOT NULL,            -- JSON
        start INTEGER NOT NULL,
        stop INTEGER NOT NULL,
        line_first INTEGER NOT NULL,
        line_last INTEGER NOT NULL,
        overlap INTEGER NOT NULL,
        text TEXT,                    -- NULL when it can be cut out of the body
        subheadings TEXT NOT NULL,    -- JSON
        text_hash BLOB NOT NULL,
        revision INTEGER NOT NULL     -- when it was added
    )""",
    "CREATE INDEX passages_by_note ON passages (note_id)",
    "CREATE INDEX passages_by_revision ON passages (revision)",
    "CREATE INDEX passages_by_text ON passages (text_hash)",  # new vectors look for their passages
    """CREATE TABLE removed_passages (
        passage_id INTEGER PRIMARY KEY,
        revision INTEGER NOT NULL,
        text_hash BLOB NOT NULL,      -- whose vectors wait for it to come back
        removed_at REAL NOT NULL
    )""",
    "CREATE TABLE removed_notes (note_id INTEGER PRIMARY KEY, revision INTEGER NOT NULL)",
    """CREATE TABLE link_stats (
        note_id INTEGER PRIMARY KEY REFERENCES notes ON DELETE CASCADE,
        linking_notes INTEGER NOT NULL,
        linking_links INTEGER NOT NULL,
        community INTEGER             -- NULL: no link leads here or away
    )""",
    """CREATE TABLE lists (
        note_id INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        section INTEGER,              -- NULL: the whole note
        weight REAL NOT NULL
    )""",
    "CREATE INDEX lists_by_note ON lists (note_id)",
    """CREATE TABLE links (
        note_id INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        kind TEXT NOT NULL,
        form TEXT NOT NULL,
        target TEXT NOT NULL,
        anchor TEXT NOT NULL,         -- JSON
        text TEXT NOT NULL,
        line INTEGER NOT NULL,
        start INTEGER NOT NULL,
        target_key TEXT NOT NULL,     -- folded last part of the target, as in dirty
        status TEXT,                  -- NULL: not looked up, and the rest means nothing
        target_note_id INTEGER REFERENCES notes,
        via TEXT,
        target_start INTEGER,
        anchor_found INTEGER,
        others TEXT,                  -- JSON; NULL: none
        PRIMARY KEY (note_id, ordinal)
    ) WITHOUT ROWID""",
    "CREATE INDEX links_by_key ON links (target_key)",
    """CREATE INDEX links_by_target ON links (target_note_id)
        WHERE target_note_id IS NOT NULL""",
    """CREATE TABLE ties (
        source INTEGER NOT NULL,      -- notes, some of which may be gone
        target INTEGER NOT NULL,
        weight INTEGER NOT NULL,
        PRIMARY KEY (source, target)
    ) WITHOUT ROWID""",
    "CREATE TABLE dirty (key TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE waiting (note_id INTEGER PRIMARY KEY REFERENCES notes ON DELETE CASCADE)",
    """CREATE TABLE skipped (
        ordinal INTEGER PRIMARY KEY,
        path TEXT NOT NULL,
        reason TEXT NOT NULL,
        detail TEXT NOT NULL
    )""",
    """CREATE TABLE models (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        dim INTEGER NOT NULL
    )""",
    # A row has its own id because hashes come in no order: keyed by them, 60,000 vectors of 768
    # bytes took 1.8 s of CPU to store instead of 0.5 s (medians of 5), and 59 MB instead of 51. Ids
    # ascend, so that a cache can ask for those it has not seen.
    """CREATE TABLE vectors (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        model INTEGER NOT NULL REFERENCES models,
        text_hash BLOB NOT NULL,
        vector BLOB NOT NULL,         -- float16, little-endian, of length 1
        UNIQUE (model, text_hash)
    )""",
    """CREATE TABLE terms (
        term TEXT PRIMARY KEY,
        vector BLOB NOT NULL          -- float16, little-endian, of the model that the facts name
    ) WITHOUT ROWID""",
    """CREATE TABLE caches (
        name TEXT PRIMARY KEY,        -- keyword, or "vector " and the model
        number INTEGER NOT NULL,      -- of its folder
        engine TEXT NOT NULL,
        recipe TEXT NOT NULL,
        revision INTEGER NOT NULL,    -- of this catalogue, as the cache reflects it
        upto INTEGER NOT NULL         -- the last of `vectors` it has taken in
    ) WITHOUT ROWID""",
    """CREATE TABLE meta (
        identity TEXT NOT NULL,       -- of this catalogue: a rebuilt one counts and numbers anew
        revision INTEGER NOT NULL,
        horizon INTEGER NOT NULL,     -- removals are known from this revision on
        facts TEXT NOT NULL           -- JSON
    )""",
)


def create_tables(db: Connection) -> None:
    """Make a new catalogue, in the caller's transaction."""
    for statement in TABLES:
        db.execute(statement)
    db.execute("INSERT INTO meta VALUES (?, 0, 0, '{}')", (secrets.token_hex(8),))
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {FORMAT}")


# --- Caches ---

KEYWORD = "keyword"


class Cache(NamedTuple):
    """One row: the current index of this name.

    `recipe` is a fingerprint of everything it was built with; under other settings it is rebuilt.
    `revision` is the catalogue's revision that it reflects, `upto` the last vector it includes.
    """

    name: str  # KEYWORD, or vector_cache(model)
    number: int
    engine: str
    recipe: str
    revision: int
    upto: int = 0


def vector_cache(model: str) -> str:
    """The name of the cache of a model's vectors."""
    return f"vector {model}"


# --- Values ---

Field = tuple[str | None, float | None, float | None]  # text, number, date

INT64 = 2**63 - 1
ZLIB_LEVEL = 4  # notes shrink to 1/2.05; 1/1.97 at level 1, 1/2.06 at level 6
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")
_DATED = "\0"  # the key of a wrapped date, which no property has


def clamped(number: int) -> int:
    """A number that SQLite can hold: file systems may claim times centuries away."""
    return max(-INT64, min(INT64, number))


def date_to_sql(at: float | None) -> float:
    """A date, or before all dates where there is none: the columns are sorted and compared."""
    return -math.inf if at is None else at


def compress(whole: str) -> bytes:
    """A note's text, compressed."""
    return zlib.compress(whole.encode(), ZLIB_LEVEL)


def decompress(blob: bytes) -> str:
    """The text that `compress` was given."""
    return zlib.decompress(blob).decode()


@lru_cache(maxsize=4096)  # the passages of a section share their headings
def to_json(parts: tuple[str, ...]) -> str:
    """A tuple of strings as JSON; `from_json` gives it back."""
    return json.dumps(parts) if parts else "[]"


@lru_cache(maxsize=4096)
def from_json(stored: str) -> tuple[str, ...]:
    """The tuple that `to_json` was given."""
    return tuple(json.loads(stored))


def properties_to_json(properties: Mapping[str, Any]) -> str:
    """The properties of a note, which are plain values, lists, mappings and dates."""
    return json.dumps(properties, default=lambda day: {_DATED: day.isoformat()})


def properties_from_json(stored: str) -> dict[str, Any]:
    """The properties that `properties_to_json` was given."""
    found: dict[str, Any] = _PROPERTIES.decode(stored)
    return found


def _unwrapped(found: dict[str, Any]) -> Any:
    if _DATED not in found:
        return found
    kind = datetime if "T" in found[_DATED] else date
    return kind.fromisoformat(found[_DATED])


_PROPERTIES = json.JSONDecoder(object_hook=_unwrapped)


def property_rows(properties: Mapping[str, Any]) -> Iterator[tuple[str, Field]]:
    """Properties as filters compare them: folded, one row a value."""
    for name, value in properties.items():
        for single in _singles(value):
            yield fold_case(name), _field(single)


def _singles(value: Any) -> Iterator[Any]:
    """The values of a list one by one; None for an empty list."""
    if not isinstance(value, list):
        yield value
    elif not value:
        yield None
    else:
        for part in value:
            yield from _singles(part)


def _field(value: Any) -> Field:
    if value is None or value == "":
        return None, None, None
    if isinstance(value, bool):
        return str(value).lower(), float(value), None
    if isinstance(value, (int, float)):
        return json.dumps(value), float(value), None
    if isinstance(value, date):  # a datetime is also a date
        return value.isoformat(), None, _timestamp(value.isoformat())
    if isinstance(value, str):
        return fold_case(value), None, _timestamp(value) if DATE.fullmatch(value) else None
    return fold_case(properties_to_json(value)), None, None


def _timestamp(iso: str) -> float | None:
    """Seconds since 1970 of an ISO date; UTC where it names no zone."""
    try:
        at = datetime.fromisoformat(iso)
        return in_calendar((at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp())
    except (ValueError, OverflowError):
        return None
