"""Links in the catalogue: which wait to be looked up, and what the others mean.

A link waits when it is new (status NULL), when the note it meant has gone or changed its headings
(set back to NULL), or when its name is in `dirty` (a note of that name came, went or moved). Notes
that hold a NULL are in `waiting`, which takes a twentieth of the room an index of links would. All
marks are written together with the note, and cleared together with the answers, so that whoever
runs next finds what a crash left undone. What a name means is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from sqlite3 import Connection
from typing import Any, NamedTuple

from ragvault.store import history, rows
from ragvault.store.values import sql, text, unwords, words
from ragvault.types import Link, Target

LinkId = tuple[int, int]  # the note's id and the link's place in it
PAGE = 5000  # answers written at a time, so that a first run does not hold all of them

_LINK = ", ".join(f"links.{column.strip()}" for column in rows.LINK.split(","))


class Edge(NamedTuple):
    """Links from one note to another, by kind; ids, because a graph is a cache like the others."""

    source: int
    target: int
    kind: str
    via: str
    links: int


def put(db: Connection, note_id: int, links: Sequence[Link], *, new: bool) -> None:
    """Store a note's links as not looked up; the same links as before are left alone."""
    wanted = [(i, *rows.of_link(link)) for i, link in enumerate(links)]
    columns = f"ordinal, {rows.LINK}, target_key"
    if not new:
        query = f"SELECT {columns} FROM links WHERE note_id = ? ORDER BY ordinal"
        if db.execute(query, (note_id,)).fetchall() == wanted:
            return
        db.execute("DELETE FROM links WHERE note_id = ?", (note_id,))
    db.executemany(
        f"INSERT INTO links (note_id, {columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(note_id, *row) for row in wanted],
    )
    if wanted:
        db.execute("INSERT OR IGNORE INTO waiting VALUES (?)", (note_id,))


def names_changed(db: Connection, keys: Iterable[str]) -> None:
    """Have every link of these names looked up again."""
    db.executemany("INSERT OR IGNORE INTO dirty VALUES (?)", [(sql(key),) for key in keys])


def look_up_to(db: Connection, note_id: int) -> None:
    """Have the links that mean this note looked up again."""
    _look_up(db, "target_note_id = ?", (note_id,))


def look_up_from(db: Connection, note_id: int) -> None:
    """Have the links of this note looked up again."""
    _look_up(db, "note_id = ?", (note_id,))


def _look_up(db: Connection, where: str, values: tuple[int, ...]) -> None:
    holders = f"SELECT DISTINCT note_id FROM links WHERE {where}"
    db.execute(f"INSERT OR IGNORE INTO waiting {holders}", values)
    db.execute(f"UPDATE links SET status = NULL, target_note_id = NULL WHERE {where}", values)


def notes_waiting(db: Connection) -> list[int]:
    """Ids of the notes that hold a link to look up, in order."""
    found = db.execute(
        "SELECT note_id FROM waiting"
        " UNION SELECT note_id FROM links WHERE target_key IN (SELECT key FROM dirty) ORDER BY 1"
    )
    return [note_id for (note_id,) in found]


def waiting(db: Connection, note_id: int) -> list[tuple[LinkId, str, Link]]:
    """The links of one note to look up, with its path."""
    found = db.execute(
        f"SELECT note_id, ordinal, path, {_LINK} FROM links JOIN notes ON notes.id = note_id"
        " WHERE note_id = ? AND (status IS NULL OR target_key IN (SELECT key FROM dirty))"
        " ORDER BY ordinal",
        (note_id,),
    ).fetchall()
    return [((row[0], row[1]), text(row[2]), rows.to_link(row[3:])) for row in found]


def set_targets(db: Connection, targets: Iterable[tuple[LinkId, Target]]) -> int:
    """Store what links mean and clear both marks; returns how many now mean something else.

    KeyError when a target is no note: whoever looked it up knew other notes than are here.
    """
    ids = {text(path): note_id for path, note_id in db.execute("SELECT path, id FROM notes")}
    changed, left = 0, iter(targets)
    while page := list(islice(left, PAGE)):
        answers = ((_answer(target, ids), link_id) for link_id, target in page)
        values = [(*answer, *link_id, *answer) for answer, link_id in answers]
        changed += db.executemany(_SET, values).rowcount
    db.execute("DELETE FROM dirty")
    db.execute("DELETE FROM waiting")
    if changed:
        history.next_revision(db)
    return changed


# An answer that is the same as before writes nothing, and makes no cache believe it is behind.
_ANSWER = "status, target_note_id, via, target_start, anchor_found, others"
_SET = f"""
    UPDATE links SET ({_ANSWER}) = (?, ?, ?, ?, ?, ?)
    WHERE note_id = ? AND ordinal = ? AND ({_ANSWER}) IS NOT (?, ?, ?, ?, ?, ?)"""


def _answer(target: Target, ids: Mapping[str, int]) -> tuple[Any, ...]:
    """Columns _ANSWER."""
    note_id = None if target.path is None else ids[target.path]
    others = words(target.others) if target.others else None
    rest = (target.via, target.start, int(target.anchor_found), others)
    return (target.status, note_id, *rest)


_TARGET = ", ".join(f"links.{column.strip()}" for column in rows.TARGET.split(","))
_MEANT = "links LEFT JOIN notes AS meant ON meant.id = target_note_id"


def outgoing(db: Connection, path: str) -> list[tuple[Link, Target | None]]:
    """The links of a note in their order; no target where one is not looked up yet."""
    found = db.execute(
        f"SELECT meant.path, {_LINK}, {_TARGET} FROM {_MEANT} JOIN notes ON notes.id = note_id"
        " WHERE notes.path = ? ORDER BY ordinal",
        (sql(path),),
    ).fetchall()
    return [(rows.to_link(row[1:8]), rows.to_target(row[0], row[8:])) for row in found]


def incoming(db: Connection, path: str) -> list[tuple[str, Link, Target]]:
    """The links that mean a note, with the path of the note each stands in."""
    found = db.execute(
        f"SELECT notes.path, meant.path, {_LINK}, {_TARGET}"
        f" FROM {_MEANT} JOIN notes ON notes.id = note_id"
        " WHERE meant.path = ? AND status IS NOT NULL ORDER BY notes.path, ordinal",
        (sql(path),),
    )
    return list(_with_targets(found))


def _with_targets(found: Iterable[Sequence[Any]]) -> Iterator[tuple[str, Link, Target]]:
    for row in found:
        target = rows.to_target(row[1], row[9:])
        if target is not None:
            yield text(row[0]), rows.to_link(row[2:9]), target


class Dangling(NamedTuple):
    """A link that means no note, or one of several."""

    path: str
    line: int
    target: str
    status: str
    others: tuple[str, ...]


def dangling(db: Connection) -> list[Dangling]:
    """The unresolved and the ambiguous links, by path and line."""
    found = db.execute(
        "SELECT path, line, target, status, others FROM links JOIN notes ON notes.id = note_id"
        " WHERE status IN ('unresolved', 'ambiguous') ORDER BY path, line, ordinal"
    )
    return [Dangling(text(p), n, text(t), s, unwords(o or "[]")) for p, n, t, s, o in found]


def edges(db: Connection) -> list[Edge]:
    """Every pair of notes that links join, in the order of their ids."""
    found = db.execute(
        "SELECT note_id, target_note_id, kind, coalesce(via, ''), count(*) FROM links"
        " WHERE target_note_id IS NOT NULL GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
    )
    return [Edge(*row) for row in found]
