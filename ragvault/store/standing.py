"""Standing: what links say about notes, kept so that a search needs no graph.

The graph is made from `edges`, one row a link between two notes, with the sections it leads from
and to. What comes of it (backlinks, communities, lists of links) is written back whole, and only
where it differs: a note whose standing is the same is not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sqlite3 import Connection
from typing import NamedTuple

from ragvault.store.facts import some


class LinkRow(NamedTuple):
    """One link between two notes; sections are ordinals, None where the link names no place."""

    source: int
    target: int
    kind: str  # link, embed, property; alias where only an alias told what was meant
    source_section: int | None
    target_section: int | None


class Standing(NamedTuple):
    """How a note stands among the others."""

    linking_notes: int = 0
    linking_links: int = 0
    community: int | None = None


_SECTION = """(SELECT max(s.ordinal) FROM sections AS s
    WHERE s.note_id = links.{note} AND s.start <= links.{start})"""
_EDGES = f"""
    SELECT note_id, target_note_id, CASE via WHEN 'alias' THEN 'alias' ELSE kind END,
        {_SECTION.format(note="note_id", start="start")},
        CASE WHEN target_start IS NULL THEN NULL
             ELSE {_SECTION.format(note="target_note_id", start="target_start")} END
    FROM links WHERE target_note_id IS NOT NULL"""


def edges(db: Connection) -> list[LinkRow]:
    """Every link that means a note."""
    return [LinkRow(*row) for row in db.execute(f"{_EDGES} ORDER BY note_id, ordinal")]


def edges_of(db: Connection, notes: Iterable[int]) -> list[LinkRow]:
    """The links from and to these notes, each once."""
    wanted = set(notes)
    outgoing = some(db, _EDGES, "note_id", sorted(wanted), "AND")
    incoming = some(db, _EDGES, "target_note_id", sorted(wanted), "AND")
    found = [LinkRow._make(row) for row in outgoing]
    return found + [row for row in map(LinkRow._make, incoming) if row.source not in wanted]


def standings(db: Connection, notes: Iterable[int]) -> dict[int, Standing]:
    """How these notes stand; one that no link touches is absent."""
    query = "SELECT note_id, linking_notes, linking_links, community FROM standing"
    return {row[0]: Standing(*row[1:]) for row in some(db, query, "note_id", notes)}


def all_standings(db: Connection) -> dict[int, Standing]:
    query = "SELECT note_id, linking_notes, linking_links, community FROM standing"
    return {row[0]: Standing(*row[1:]) for row in db.execute(query)}


def set_standings(db: Connection, wanted: Mapping[int, Standing]) -> int:
    """Replace what is kept; how many notes stand otherwise than before."""
    before = all_standings(db)
    gone = [(note,) for note in before.keys() - wanted.keys()]
    new = [(note, *place) for note, place in wanted.items() if before.get(note) != place]
    db.executemany("DELETE FROM standing WHERE note_id = ?", gone)
    db.executemany("INSERT OR REPLACE INTO standing VALUES (?, ?, ?, ?)", sorted(new))
    return len(gone) + len(new)


def lists(db: Connection) -> dict[tuple[int, int | None], float]:
    """What one link of each list of links weighs."""
    found = db.execute("SELECT note_id, section, weight FROM lists")
    return {(note, section): weight for note, section, weight in found}


def set_lists(db: Connection, wanted: Mapping[tuple[int, int | None], float]) -> None:
    if lists(db) != dict(wanted):
        db.execute("DELETE FROM lists")
        rows = [(note, section, weight) for (note, section), weight in wanted.items()]
        db.executemany("INSERT INTO lists VALUES (?, ?, ?)", rows)


def ties(db: Connection) -> dict[tuple[int, int], int]:
    """How closely notes were tied, (source, target) -> weight, when communities were computed."""
    found = db.execute("SELECT source, target, weight FROM ties")
    return {(source, target): weight for source, target, weight in found}


def set_ties(db: Connection, wanted: Mapping[tuple[int, int], int]) -> None:
    before = ties(db)
    gone = sorted(before.keys() - wanted.keys())
    new = [(*pair, weight) for pair, weight in wanted.items() if before.get(pair) != weight]
    db.executemany("DELETE FROM ties WHERE source = ? AND target = ?", gone)
    db.executemany("INSERT OR REPLACE INTO ties VALUES (?, ?, ?)", sorted(new))
