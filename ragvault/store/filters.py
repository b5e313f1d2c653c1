"""Filters: the filter tree of a plan becomes SQL, which selects passages and notes.

Conditions on notes become one query over notes, so that passages are read only where there is a
condition on them. What the user typed is bound as a value and never becomes SQL. Each expression is
true or false and never NULL, so that its negation is what people expect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from sqlite3 import Connection
from typing import Any, NamedTuple

import msgspec

from ragvault.plan import (
    And,
    Dated,
    Filter,
    HasPart,
    HasTask,
    InLanguage,
    LinkedBy,
    LinksTo,
    MatchesWords,
    NameContains,
    Not,
    Or,
    Property,
    Tagged,
    UnderHeading,
    Value,
    of_notes,
)
from ragvault.store.links import EXTENSIONS, link_key
from ragvault.store.notes import to_spans
from ragvault.store.schema import INT64, decompress, from_json
from ragvault.text.dates import EARLIEST
from ragvault.text.names import called_by, typed_name
from ragvault.text.spans import cut
from ragvault.text.spelling import fold_case, plain_name
from ragvault.types import Head

# Finds all passages that contain words or code, in a keyword index.
Matching = Callable[[MatchesWords], Iterable[int]]


class Sql(NamedTuple):
    """An expression and the values bound in it, in order."""

    text: str
    values: tuple[Any, ...] = ()


def _join(joint: str, parts: Sequence[Sql]) -> Sql:
    """In halves: SQLite refuses expressions that nest too deep, and a chain nests."""
    if len(parts) > 2:
        middle = len(parts) // 2
        parts = [_join(joint, parts[:middle]), _join(joint, parts[middle:])]
    values = tuple(value for part in parts for value in part.values)
    return Sql(joint.join(f"({part.text})" for part in parts) or "1", values)


def notes_where(tree: Filter | None, matching: Matching | None = None) -> Sql:
    """The condition for a note `n` of which a filter keeps a passage."""
    if tree is None:
        return Sql("1")
    if not of_notes(tree):
        inside = passages_where(tree, matching)
        query = f"n.id IN (SELECT c.note_id FROM passages AS c WHERE {inside.text})"
        return Sql(query, inside.values)
    if isinstance(tree, Not):
        return _not(notes_where(tree.part))
    if isinstance(tree, (And, Or)):
        return _join(_joint(tree), [notes_where(part) for part in tree.parts])
    return NOTE_LEAVES[type(tree)](tree)


def passages_where(tree: Filter, matching: Matching | None = None) -> Sql:
    """The condition for a passage `c` that a filter keeps."""
    if of_notes(tree):
        inside = notes_where(tree)
        query = f"c.note_id IN (SELECT n.id FROM notes AS n WHERE {inside.text})"
        return Sql(query, inside.values)
    if isinstance(tree, Not):
        return _not(passages_where(tree.part, matching))
    if isinstance(tree, (And, Or)):
        # All conditions on notes in one query, and the rest beside it.
        of_note = type(tree)(tuple(part for part in tree.parts if of_notes(part)))
        rest = [part for part in tree.parts if not of_notes(part)]
        parts = [of_note, *rest] if of_note.parts else rest
        return _join(_joint(tree), [passages_where(part, matching) for part in parts])
    if not isinstance(tree, MatchesWords):
        return PASSAGE_LEAVES[type(tree)](tree)
    if matching is None:
        raise ValueError("this filter needs words, and no index was given to find them")
    ids = json.dumps([int(each) for each in matching(tree)])
    return Sql("c.id IN (SELECT value FROM json_each(?))", (ids,))


def _not(part: Sql) -> Sql:
    return Sql(f"NOT ({part.text})", part.values)


def _joint(tree: And[Filter] | Or[Filter]) -> str:
    return " AND " if isinstance(tree, And) else " OR "


# A property's date with a zone; one without is local time.
_ZONED = "(text GLOB '*[+-][0-9][0-9]:[0-9][0-9]')"


# --- Conditions on a note `n` ---


def _tagged(leaf: Tagged) -> Sql:
    key = fold_case(leaf.tag.strip("#/ "))
    if "*" in key:
        return Sql("n.id IN (SELECT note_id FROM tags WHERE tag_is(key, ?))", (key,))
    # "0" is the character after "/": between the two lies all that is below the tag.
    values = (key, f"{key}/", f"{key}0")
    return Sql("n.id IN (SELECT note_id FROM tags WHERE key = ? OR (key >= ? AND key < ?))", values)


_NAMED = {
    "path": "path_holds(n.path, ?)",
    "file": "file_holds(n.path, ?)",
    "title": "text_holds(n.title, ?)",
    "alias": "n.aliases != '[]' AND alias_holds(n.aliases, ?)",
}


def _links_to(leaf: LinksTo) -> Sql:
    """By links that were looked up, and by broken links with this name."""
    there = " AND anchor_is(anchor, ?)" if leaf.anchor else ""
    place = ("#".join(leaf.anchor),) if leaf.anchor else ()
    note = _note_called(leaf.note)
    values = (*note.values, *place, link_key(leaf.note), leaf.note, *place)
    return Sql(
        "n.id IN (SELECT note_id FROM links WHERE note_id != target_note_id AND target_note_id IN"
        f" {note.text}{there}"
        " UNION SELECT note_id FROM links WHERE target_key = ? AND status = 'unresolved'"
        f" AND target_is(target, ?){there})",
        values,
    )


def _linked_by(leaf: LinkedBy) -> Sql:
    note = _note_called(leaf.note)
    return Sql(
        "n.id IN (SELECT target_note_id FROM links WHERE note_id != target_note_id AND note_id IN"
        f" {note.text})",
        note.values,
    )


def _note_called(name: str) -> Sql:
    """The notes of a name: as it is typed, else as `notes_called` compares names."""
    same = "SELECT id FROM notes WHERE is_named(path, title, aliases, ?, 1)"
    alike = "SELECT id FROM notes WHERE is_named(path, title, aliases, ?, 0)"
    return Sql(f"({same} UNION ALL {alike} AND NOT EXISTS ({same}))", (name, name, name))


def _property(leaf: Property) -> Sql:
    test = _test(leaf)
    query = "n.id IN (SELECT note_id FROM fields WHERE key = ?"
    return Sql(f"{query} AND ({test.text}))", (fold_case(leaf.name), *test.values))


def _test(leaf: Property) -> Sql:
    if leaf.value is None:
        return Sql("text IS NULL" if leaf.test == "empty" else "1")
    if leaf.test == "=":
        return _equal(leaf.value)
    if leaf.test == "..":
        last = leaf.last or leaf.value
        return _join(
            " OR ",
            [
                _both(_number(">=", leaf.value), _number("<=", last)),
                _both(_day(">=", leaf.value), _day("<=", last)),
            ],
        )
    return _join(" OR ", [_number(leaf.test, leaf.value), _day(leaf.test, leaf.value)])


def _equal(value: Value) -> Sql:
    """As text, also as the only link of a property; as a number; as a date within a range."""
    same = fold_case(value.text)
    texts = Sql("text IN (?, ?)", (same, f"[[{same}]]"))
    if "*" in same:
        texts = Sql("text_is(text, ?)", (same,))
    return _join(" OR ", [texts, _number("=", value), _both(_day(">=", value), _day("<=", value))])


def _number(sign: str, value: Value) -> Sql:
    if value.number is None:
        return Sql("0")
    # True is stored as 1, and is not a number.
    number = Sql(f"number {sign} ? AND text NOT IN ('true', 'false')", (value.number,))
    if sign == "=":
        return number
    # A number in quotes is a text; `> 3` means it too.
    text = Sql(f"number IS NULL AND number_in(text) {sign} ?", (value.number,))
    return _join(" OR ", [number, text])


def _day(sign: str, value: Value) -> Sql:
    """Before a range is before its first moment; after it, from its last moment on."""
    if value.since is None or value.until is None:
        return Sql("0")
    bound = value.since if sign in ("<", ">=") else value.until
    test = f"date {'<' if sign in ('<', '<=') else '>='} ?"
    return Sql(
        f"CASE WHEN {_ZONED} THEN {test} ELSE {test} END",
        (bound.instant, bound.day),
    )


def _both(left: Sql, right: Sql) -> Sql:
    return _join(" AND ", [left, right])


def _dated(leaf: Dated) -> Sql:
    """By local time or by the instant; see Moment.

    A date without a time is stored as midnight UTC. Whether a time had a zone is known from the
    property it came from, which is read only where the two comparisons disagree.
    """
    column = f"n.{leaf.date}"
    midnight = f"{column} = CAST({column} AS INTEGER) AND CAST({column} AS INTEGER) % 86400 = 0"
    local = f"{column} IN (SELECT date FROM fields WHERE note_id = n.id AND NOT {_ZONED})"
    walls = instants = Sql(f"{column} >= {EARLIEST}")  # a note without a date is before it
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
    NameContains: lambda leaf: Sql(_NAMED[leaf.where], (leaf.text,)),
    LinksTo: _links_to,
    LinkedBy: _linked_by,
    Property: _property,
    Dated: _dated,
}


# --- Conditions on a passage `c` ---


def _under(leaf: UnderHeading) -> Sql:
    return Sql(
        # Headings with non-ASCII letters are escaped in JSON, and compared one by one.
        "c.id IN (SELECT p.id FROM bodies AS b CROSS JOIN json_each(heading_ranges(b.headings, ?))"
        " AS r CROSS JOIN passages AS p ON p.note_id = b.note_id"
        " WHERE (instr(lower(b.headings), ?) OR instr(b.headings, '\\u'))"
        " AND p.start < json_extract(r.value, '$[1]') AND p.stop > json_extract(r.value, '$[0]'))",
        (leaf.heading, heading_needle(leaf.heading)),
    )


def _task(leaf: HasTask) -> Sql:
    return Sql(
        "c.id IN (SELECT p.id FROM passages AS p JOIN bodies AS b ON b.note_id = p.note_id"
        " WHERE instr(p.has, '\"task\"')"
        " AND has_task(p.text, b.text, b.excluded, p.start, p.stop, ?, ?))",
        (leaf.state, leaf.text),
    )


def _written(leaf: InLanguage) -> Sql:
    """The spaces around a name keep r from matching rust."""
    names = [Sql("instr(' ' || c.lang || ' ', ?) > 0", (f" {name} ",)) for name in leaf.languages]
    return _both(Sql("c.lang != ''"), _join(" OR ", names))


PASSAGE_LEAVES: dict[type, Callable[[Any], Sql]] = {
    UnderHeading: _under,
    InLanguage: _written,
    HasPart: lambda leaf: Sql("instr(c.has, ?) > 0", (f'"{leaf.part}"',)),
    HasTask: _task,
}


# --- SQL functions ---
#
# SQLite folds ASCII only, and cannot look into our JSON or into a compressed text. Each function is
# pure, takes values as the tables store them and never raises. In a pattern, `*` means
# anything.

# A task as the parser reads it; the character in the brackets is its state.
_TASK = re.compile(r"^[ \t>]*(?:[-*+]|\d+[.)])[ \t]+\[([^\]\n])\](?=[ \t])(.*)$", re.M)

_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*", re.ASCII)

_Pieces = tuple[str, ...]
_Head = tuple[str, int, int, int, Any]  # text, level, line, start, path: as the table holds it
_DECODER = msgspec.json.Decoder(list[_Head])


def register_functions(db: Connection) -> None:
    """Make the functions known to a connection; harmless when repeated."""
    for name, count, function in (
        ("text_holds", 2, text_holds),
        ("text_is", 2, text_is),
        ("path_holds", 2, path_holds),
        ("file_holds", 2, file_holds),
        ("alias_holds", 2, alias_holds),
        ("tag_is", 2, tag_is),
        ("is_named", 5, is_named),
        ("target_is", 2, target_is),
        ("anchor_is", 2, anchor_is),
        ("number_in", 1, number_in),
        ("heading_ranges", 2, heading_ranges),
        ("has_task", 7, has_task),
    ):
        db.create_function(name, count, function, deterministic=True)


@lru_cache(maxsize=256)
def _pieces(pattern: str) -> _Pieces:
    """A pattern, folded, split at its stars."""
    return tuple(re.split(r"\*+", fold_case(pattern)))


def _contains(whole: str, wanted: _Pieces) -> bool:
    """Whether the text contains the pieces, in their order."""
    if len(wanted) == 1:  # nearly always; called for every note
        return wanted[0] in whole
    at = 0
    for piece in wanted:
        at = whole.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def _matches(whole: str, wanted: _Pieces) -> bool:
    """Whether the pieces match this text from its first to its last character."""
    if len(wanted) == 1:
        return whole == wanted[0]
    first, *middle, last = wanted
    ends = whole.startswith(first) and whole.endswith(last)
    inside = whole[len(first) : len(whole) - len(last)]
    return ends and len(first) + len(last) <= len(whole) and _contains(inside, tuple(middle))


def text_holds(value: str, pattern: str) -> bool:
    return _contains(fold_case(value), _pieces(pattern))


def text_is(value: str | None, pattern: str) -> bool:
    return value is not None and _matches(fold_case(value), _pieces(pattern))


def path_holds(path: str, pattern: str) -> bool:
    """The path begins with a slash here, so that /journal means the folder at the root."""
    return _contains("/" + fold_case(path), _pieces(pattern))


def file_holds(path: str, pattern: str) -> bool:
    return _contains(fold_case(path).rpartition("/")[2], _pieces(pattern))


def alias_holds(aliases: str, pattern: str) -> bool:
    return any(_contains(fold_case(alias), _pieces(pattern)) for alias in from_json(aliases))


def tag_is(key: str, pattern: str) -> bool:
    """Whether a tag or one of its parents matches the pattern."""
    parts = key.split("/")
    above = ("/".join(parts[: i + 1]) for i in range(len(parts)))
    return any(_matches(each, _pieces(pattern)) for each in above)


def is_named(path: str, title: str, aliases: str, wanted: str, signs: int) -> bool:
    """Whether a note has this path, end of path, title or alias; `signs`: they count."""
    fold = plain_name if signs else typed_name
    note = Head(0, path, title, from_json(aliases) if aliases != "[]" else ())
    return called_by(note, {fold(wanted).strip("/")}, fold) is not None


def target_is(target: str, wanted: str) -> bool:
    """Whether the target of a broken link is this name."""
    return _ends_in(fold_case(target), fold_case(wanted).strip("/"))


def anchor_is(anchor: str, wanted: str) -> bool:
    """Whether a link leads to this heading; signs and spaces are ignored, as in slugs."""
    parts = [_bare(part) for part in wanted.split("#")]
    return [_bare(part) for part in from_json(anchor)][-len(parts) :] == parts


def _bare(heading: str) -> str:
    folded = fold_case(heading)
    return folded if folded.startswith("^") else re.sub(r"[\W_]+", "", folded) or folded


def number_in(value: str | None) -> float | None:
    """The value of a text that is a number; None for any other text."""
    return float(value) if value is not None and _NUMBER.fullmatch(value) else None


def _ends_in(path: str, name: str) -> bool:
    if not path.endswith((name, *(name + extension for extension in EXTENSIONS))):
        return False
    spellings = (path, *(path.removesuffix(each) for each in EXTENSIONS))
    return any(f"/{each}".endswith(f"/{name}") for each in spellings)


def heading_needle(pattern: str) -> str:
    """What the lower-cased JSON of ASCII headings must contain if one of them has the pattern."""
    longest = max(_pieces(pattern), key=len)
    return json.dumps(longest)[1:-1] if longest.isascii() else ""


def heading_ranges(headings: str, pattern: str) -> str:
    """The ranges of the headings that contain the pattern: JSON of [first, last] offsets.

    A range ends at the next heading that is not below it.
    """
    wanted, found = _pieces(pattern), _DECODER.decode(headings)
    ranges = []
    for i in [i for i, head in enumerate(found) if _contains(fold_case(head[0]), wanted)]:
        level, start = found[i][1], found[i][3]
        later = (head[3] for head in found[i + 1 :] if head[1] <= level)
        ranges.append(f"[{start},{next(later, INT64)}]")
    return f"[{','.join(ranges)}]"


def has_task(
    own: str | None, blob: bytes, excluded: str, start: int, stop: int, state: str, pattern: str
) -> bool:
    """Whether a passage has a task in this state whose line contains the pattern.

    `own` is the passage's text where it is stored; otherwise it is cut out of the note's text.
    """
    text = own if own is not None else cut(_unpacked(blob), start, stop, _spans(excluded))
    for mark, line in _TASK.findall(text):
        fits = state == "any" or (mark == " ") == (state == "todo")
        if fits and _contains(fold_case(line), _pieces(pattern)):
            return True
    return False


_unpacked = lru_cache(maxsize=4)(decompress)
_spans = lru_cache(maxsize=4)(to_spans)
