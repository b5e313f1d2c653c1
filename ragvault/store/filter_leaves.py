"""The leaves of a filter as SQL: about a note `n` in some, about a passage `c` in others.

Whatever was typed is bound as a value. Each expression is true or false and never NULL, so that
its opposite is what people expect. The functions it calls are in filter_text.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ragvault.plan import (
    Dated,
    Has,
    LinkedBy,
    LinksTo,
    Named,
    Property,
    Tagged,
    Task,
    Under,
    Value,
    Written,
)
from ragvault.store.filter_text import needle
from ragvault.store.keys import fold, key_of
from ragvault.store.values import sql

# A property's date that named its zone; the others say what the clock on the wall said.
_ZONED = "(text GLOB '*[+-][0-9][0-9]:[0-9][0-9]')"


class Sql(NamedTuple):
    """An expression and the values bound in it, in order."""

    text: str
    values: tuple[Any, ...] = ()


def joined(joint: str, parts: Sequence[Sql]) -> Sql:
    """In halves: SQLite refuses expressions that nest too deep, and a chain nests."""
    if len(parts) > 2:
        middle = len(parts) // 2
        parts = [joined(joint, parts[:middle]), joined(joint, parts[middle:])]
    values = tuple(value for part in parts for value in part.values)
    return Sql(joint.join(f"({part.text})" for part in parts) or "1", values)


# --- What is asked of a note ---


def _tagged(leaf: Tagged) -> Sql:
    key = fold(leaf.tag.strip("#/ "))
    if "*" in key:
        return Sql("n.id IN (SELECT note_id FROM tags WHERE tag_is(key, ?))", (sql(key),))
    # "0" is the character after "/": between the two lies all that is below the tag.
    values = (sql(key), sql(f"{key}/"), sql(f"{key}0"))
    return Sql("n.id IN (SELECT note_id FROM tags WHERE key = ? OR (key >= ? AND key < ?))", values)


_NAMED = {
    "path": "path_holds(n.path, ?)",
    "file": "file_holds(n.path, ?)",
    "title": "text_holds(n.title, ?)",
    "alias": "n.aliases != '[]' AND alias_holds(n.aliases, ?)",
}


def _links_to(leaf: LinksTo) -> Sql:
    """Through links that were looked up, and through those that mean no note."""
    there = " AND anchor_is(anchor, ?)" if leaf.anchor else ""
    place = (sql("#".join(leaf.anchor)),) if leaf.anchor else ()
    values = (sql(leaf.note), *place, sql(key_of(leaf.note)), sql(leaf.note), *place)
    return Sql(
        "n.id IN (SELECT note_id FROM links WHERE note_id != target_note_id AND target_note_id IN"
        f" (SELECT id FROM notes WHERE is_named(path, title, aliases, ?)){there}"
        " UNION SELECT note_id FROM links WHERE target_key = ? AND status = 'unresolved'"
        f" AND target_is(target, ?){there})",
        values,
    )


def _linked_by(leaf: LinkedBy) -> Sql:
    return Sql(
        "n.id IN (SELECT target_note_id FROM links WHERE note_id != target_note_id AND note_id IN"
        " (SELECT id FROM notes WHERE is_named(path, title, aliases, ?)))",
        (sql(leaf.note),),
    )


def _property(leaf: Property) -> Sql:
    test = _test(leaf)
    query = "n.id IN (SELECT note_id FROM fields WHERE key = ?"
    return Sql(f"{query} AND ({test.text}))", (sql(fold(leaf.name)), *test.values))


def _test(leaf: Property) -> Sql:
    if leaf.value is None:
        return Sql("text IS NULL" if leaf.test == "empty" else "1")
    if leaf.test == "=":
        return _equal(leaf.value)
    if leaf.test == "..":
        last = leaf.last or leaf.value
        return joined(
            " OR ",
            [
                _both(_number(">=", leaf.value), _number("<=", last)),
                _both(_day(">=", leaf.value), _day("<=", last)),
            ],
        )
    return joined(" OR ", [_number(leaf.test, leaf.value), _day(leaf.test, leaf.value)])


def _equal(value: Value) -> Sql:
    """As text, also as the only link of a property; as a number; as a day within a stretch."""
    same = fold(value.text)
    texts = Sql("text IN (?, ?)", (sql(same), sql(f"[[{same}]]")))
    if "*" in same:
        texts = Sql("text_is(text, ?)", (sql(same),))
    return joined(" OR ", [texts, _number("=", value), _both(_day(">=", value), _day("<=", value))])


def _number(sign: str, value: Value) -> Sql:
    if value.number is None:
        return Sql("0")
    # True is stored as 1, and yes is not a number.
    number = Sql(f"number {sign} ? AND text NOT IN ('true', 'false')", (value.number,))
    if sign == "=":
        return number
    # A number in quotes is a text, and whoever asks what is more than 3 means it too.
    text = Sql(f"number IS NULL AND number_in(text) {sign} ?", (value.number,))
    return joined(" OR ", [number, text])


def _day(sign: str, value: Value) -> Sql:
    """Before a stretch is before its first moment, after it from its last on."""
    if value.since is None or value.until is None:
        return Sql("0")
    bound = value.since if sign in ("<", ">=") else value.until
    test = f"date {'<' if sign in ('<', '<=') else '>='} ?"
    return Sql(
        f"CASE WHEN {_ZONED} THEN {test} ELSE {test} END",
        (bound.instant, bound.day),
    )


def _both(left: Sql, right: Sql) -> Sql:
    return joined(" AND ", [left, right])


def _dated(leaf: Dated) -> Sql:
    """By the clock on the wall, or by the instant; see Moment.

    A date without a time is stored as midnight UTC. A time without a zone is known by the property
    it came from, which is looked up only where the two ways to compare it disagree.
    """
    column = f"n.{leaf.date}"
    midnight = f"{column} = CAST({column} AS INTEGER) AND CAST({column} AS INTEGER) % 86400 = 0"
    local = f"{column} IN (SELECT date FROM fields WHERE note_id = n.id AND NOT {_ZONED})"
    walls, instants = Sql("1"), Sql("1")
    for sign, bound in ((">=", leaf.since), ("<", leaf.until)):
        if bound is not None:
            walls = _both(walls, Sql(f"{column} {sign} ?", (bound.day,)))
            instants = _both(instants, Sql(f"{column} {sign} ?", (bound.instant,)))
    text = (
        f"CASE WHEN ({walls.text}) = ({instants.text}) THEN {walls.text}"
        f" WHEN ({midnight}) OR {local} THEN {walls.text} ELSE {instants.text} END"
    )
    once = walls.values + instants.values
    return Sql(text, once + walls.values + once)


NOTE_LEAVES: dict[type, Callable[[Any], Sql]] = {
    Tagged: _tagged,
    Named: lambda leaf: Sql(_NAMED[leaf.where], (sql(leaf.text),)),
    LinksTo: _links_to,
    LinkedBy: _linked_by,
    Property: _property,
    Dated: _dated,
}


# --- What is asked of a passage ---


def _under(leaf: Under) -> Sql:
    return Sql(
        # Headings with other than ASCII letters are escaped, and looked at one by one.
        "c.id IN (SELECT p.id FROM bodies AS b CROSS JOIN json_each(heading_ranges(b.headings, ?))"
        " AS r CROSS JOIN chunks AS p ON p.note_id = b.note_id"
        " WHERE (instr(lower(b.headings), ?) OR instr(b.headings, '\\u'))"
        " AND p.start < json_extract(r.value, '$[1]') AND p.stop > json_extract(r.value, '$[0]'))",
        (sql(leaf.heading), needle(leaf.heading)),
    )


def _task(leaf: Task) -> Sql:
    return Sql(
        "c.id IN (SELECT p.id FROM chunks AS p JOIN bodies AS b ON b.note_id = p.note_id"
        " WHERE instr(p.has, '\"task\"')"
        " AND has_task(p.text, b.text, b.excluded, p.start, p.stop, ?, ?))",
        (leaf.state, sql(leaf.text)),
    )


def _written(leaf: Written) -> Sql:
    """Spaces stand between the names of a passage, so that r is not found in rust."""
    names = [
        Sql("instr(' ' || c.lang || ' ', ?) > 0", (sql(f" {name} "),)) for name in leaf.languages
    ]
    return _both(Sql("c.lang != ''"), joined(" OR ", names))


PASSAGE_LEAVES: dict[type, Callable[[Any], Sql]] = {
    Under: _under,
    Written: _written,
    Has: lambda leaf: Sql("instr(c.has, ?) > 0", (f'"{leaf.part}"',)),
    Task: _task,
}
