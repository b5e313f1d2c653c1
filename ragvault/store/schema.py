"""The tables of the catalogue, and the migrations from older formats.

    notes           one row a file: its stat, its hash, its fields, its dates
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
    caches          the current keyword and vector indexes, and their files
    meta            identity, revision, report of the last run

Foreign keys delete the parts of a note with it. A released format is never edited: a change is a
new migration. MIGRATIONS[n] turns format n into format n + 1; format 0 is an empty file, so the
first migration creates the catalogue. Each migration is one transaction: an interrupted upgrade
leaves a complete catalogue of some format. SQLite's `user_version` is the format,
`application_id` says that the file is ours.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection

from ragvault.errors import IndexTooNew, IndexUnusable

FORMAT_1 = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    """CREATE TABLE notes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        path TEXT NOT NULL UNIQUE,
        disk TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
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
    """CREATE TABLE chunks (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        note_id INTEGER NOT NULL REFERENCES notes ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        section INTEGER NOT NULL,
        headings TEXT NOT NULL,       -- JSON
        kind TEXT NOT NULL,
        lang TEXT NOT NULL,
        has TEXT NOT NULL,            -- JSON
        start INTEGER NOT NULL,
        stop INTEGER NOT NULL,
        line_first INTEGER NOT NULL,
        line_last INTEGER NOT NULL,
        column_first INTEGER NOT NULL,
        column_last INTEGER NOT NULL,
        overlap INTEGER NOT NULL,
        text TEXT,                    -- NULL when it can be cut out of the body
        text_hash BLOB NOT NULL,
        revision INTEGER NOT NULL     -- when it was added
    )""",
    "CREATE INDEX chunks_by_note ON chunks (note_id)",
    "CREATE INDEX chunks_by_revision ON chunks (revision)",
    """CREATE TABLE removed_chunks (
        chunk_id INTEGER PRIMARY KEY,
        revision INTEGER NOT NULL,
        text_hash BLOB NOT NULL,      -- whose vectors wait for it to come back
        removed_at REAL NOT NULL
    )""",
    "CREATE TABLE removed_notes (note_id INTEGER PRIMARY KEY, revision INTEGER NOT NULL)",
    """CREATE TABLE standing (
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
        dim INTEGER NOT NULL,
        dtype TEXT NOT NULL           -- float16 or float32, little-endian
    )""",
    # A row has its own id because hashes come in no order: keyed by them, 60,000 vectors of 768
    # bytes took 1.8 s of CPU to store instead of 0.5 s (medians of 5), and 59 MB instead of 51.
    """CREATE TABLE vectors (
        id INTEGER PRIMARY KEY,
        model INTEGER NOT NULL REFERENCES models,
        text_hash BLOB NOT NULL,
        vector BLOB NOT NULL,
        UNIQUE (model, text_hash)
    )""",
    """CREATE TABLE terms (
        term TEXT PRIMARY KEY,
        vector BLOB NOT NULL          -- float16, little-endian, of the model that meta names
    ) WITHOUT ROWID""",
)

# Format 2: caches in numbered folders, and vectors that are counted, so that a cache can ask for
# those it has not seen.
FORMAT_2 = (
    """CREATE TABLE caches (
        name TEXT PRIMARY KEY,        -- keyword, or "vector " and the model
        number INTEGER NOT NULL,      -- of its folder
        engine TEXT NOT NULL,
        recipe TEXT NOT NULL,
        revision INTEGER NOT NULL,    -- of this catalogue, as the cache reflects it
        upto INTEGER NOT NULL,        -- the last of `vectors` it has taken in
        files TEXT NOT NULL           -- JSON: size, time and checksum of each
    ) WITHOUT ROWID""",
    "ALTER TABLE vectors RENAME TO old_vectors",
    """CREATE TABLE vectors (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        model INTEGER NOT NULL REFERENCES models,
        text_hash BLOB NOT NULL,
        vector BLOB NOT NULL,
        UNIQUE (model, text_hash)
    )""",
    # New vectors look for the passages that have their text.
    "CREATE INDEX chunks_by_text ON chunks (text_hash)",
    "INSERT INTO vectors SELECT id, model, text_hash, vector FROM old_vectors ORDER BY id",
    "DROP TABLE old_vectors",
    "ALTER TABLE chunks ADD COLUMN subheadings TEXT NOT NULL DEFAULT '[]'",  # JSON
    """CREATE TABLE ties (
        source INTEGER NOT NULL,      -- notes, some of which may be gone
        target INTEGER NOT NULL,
        weight INTEGER NOT NULL,
        PRIMARY KEY (source, target)
    ) WITHOUT ROWID""",
)

# Format 3: the tables have the names that the code uses, and a note's row has two more facts about
# its file, so that an edit which keeps size and time is noticed.
FORMAT_3 = (
    "ALTER TABLE chunks RENAME TO passages",
    "DROP INDEX chunks_by_note",
    "DROP INDEX chunks_by_revision",
    "DROP INDEX chunks_by_text",
    "CREATE INDEX passages_by_note ON passages (note_id)",
    "CREATE INDEX passages_by_revision ON passages (revision)",
    "CREATE INDEX passages_by_text ON passages (text_hash)",
    "ALTER TABLE removed_chunks RENAME TO removed_passages",
    "ALTER TABLE removed_passages RENAME COLUMN chunk_id TO passage_id",
    "ALTER TABLE standing RENAME TO link_stats",
    "ALTER TABLE notes ADD COLUMN ctime_ns INTEGER NOT NULL DEFAULT 0",  # 0: not known yet
    "ALTER TABLE notes ADD COLUMN inode INTEGER NOT NULL DEFAULT 0",  # 0: not known yet
    "UPDATE meta SET key = 'model ' || substr(key, 6) WHERE key IN ('fact full', 'fact static')",
    "UPDATE meta SET key = 'vacuum due' WHERE key = 'fact scrub'",
    "UPDATE meta SET key = 'git head' WHERE key = 'fact git_head'",
    "UPDATE meta SET key = 'binary files' WHERE key = 'fact binaries'",
    "UPDATE meta SET key = substr(key, 6) WHERE key LIKE 'fact %'",
)

# --- Migrations ---

APPLICATION = 0x52475654  # "RGVT"

Migration = Callable[[Connection], None]


def create(db: Connection) -> None:
    """Format 1: all tables, empty.

    The identity distinguishes a catalogue from a rebuilt one, whose revisions and passage ids start
    again: a cache of the old catalogue must not take them for its own.
    """
    for statement in FORMAT_1:
        db.execute(statement)
    facts = [("identity", secrets.token_hex(8)), ("revision", 0), ("horizon", 0)]
    db.executemany("INSERT INTO meta VALUES (?, ?)", facts)
    db.execute(f"PRAGMA application_id = {APPLICATION}")


def number_caches(db: Connection) -> None:
    """Format 2: caches are rows of the catalogue, and vectors have ascending ids."""
    for statement in FORMAT_2:
        db.execute(statement)


def rename_tables(db: Connection) -> None:
    """Format 3: plain names, and `ctime_ns` and `inode` of a note's file."""
    for statement in FORMAT_3:
        db.execute(statement)


MIGRATIONS: tuple[Migration, ...] = (create, number_caches, rename_tables)


def format_of(db: Connection, folder: Path, wanted: int | None = None) -> int:
    """The format of an open catalogue, 0 for an empty one.

    Raises IndexTooNew, or IndexUnusable for a file of another program.
    """
    wanted = len(MIGRATIONS) if wanted is None else wanted
    built = int(db.execute("PRAGMA user_version").fetchone()[0])
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    if not ours and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise IndexUnusable(
            folder,
            "another program made its catalogue.sqlite",
            fix="move that file away, then run: ragvault index",
        )
    if built > wanted:
        raise IndexTooNew(folder, built=built, wanted=wanted)
    return built


def upgrade(db: Connection, folder: Path, steps: tuple[Migration, ...] | None = None) -> int:
    """Upgrade a catalogue to the newest format; returns the one it had. For the writer only."""
    steps = MIGRATIONS if steps is None else steps
    before = format_of(db, folder, len(steps))
    for built in range(before, len(steps)):
        _one_step(db, folder, steps, built)
    return before


def _one_step(db: Connection, folder: Path, steps: tuple[Migration, ...], built: int) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        # Two processes may have found the old format at once; the second has nothing to do.
        if format_of(db, folder, len(steps)) == built:
            steps[built](db)
            db.execute(f"PRAGMA user_version = {built + 1}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
