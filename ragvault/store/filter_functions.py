"""SQL functions for filters: texts compared without case, headings, tasks.

SQLite folds ASCII only, and cannot look into our JSON or into a compressed text. Each function is
pure, takes values as the tables hold them and never raises. In a pattern, `*` stands for anything.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from sqlite3 import Connection
from typing import Any

import msgspec

from ragvault.spans import cut
from ragvault.store import rows
from ragvault.store.keys import EXTENSIONS, fold_case
from ragvault.store.rows import INT64, Text, decompress, from_json, from_sql

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
        ("is_named", 4, is_named),
        ("target_is", 2, target_is),
        ("anchor_is", 2, anchor_is),
        ("number_in", 1, number_in),
        ("heading_ranges", 2, heading_ranges),
        ("has_task", 7, has_task),
    ):
        db.create_function(name, count, function, deterministic=True)


@lru_cache(maxsize=256)
def _pieces(pattern: Text) -> _Pieces:
    """A pattern, folded, split at its stars."""
    return tuple(re.split(r"\*+", fold_case(from_sql(pattern))))


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


def text_holds(value: Text, pattern: Text) -> bool:
    return _contains(fold_case(from_sql(value)), _pieces(pattern))


def text_is(value: Text | None, pattern: Text) -> bool:
    return value is not None and _matches(fold_case(from_sql(value)), _pieces(pattern))


def path_holds(path: Text, pattern: Text) -> bool:
    """The path begins with a slash here, so that /journal means the folder at the root."""
    return _contains("/" + fold_case(from_sql(path)), _pieces(pattern))


def file_holds(path: Text, pattern: Text) -> bool:
    return _contains(fold_case(from_sql(path)).rpartition("/")[2], _pieces(pattern))


def alias_holds(aliases: str, pattern: Text) -> bool:
    return any(_contains(fold_case(alias), _pieces(pattern)) for alias in from_json(aliases))


def tag_is(key: Text, pattern: Text) -> bool:
    """Whether a tag or one of its parents matches the pattern."""
    parts = from_sql(key).split("/")
    above = ("/".join(parts[: i + 1]) for i in range(len(parts)))
    return any(_matches(each, _pieces(pattern)) for each in above)


def is_named(path: Text, title: Text, aliases: str, wanted: Text) -> bool:
    """Whether a note has this path, end of path, title or alias."""
    name = fold_case(from_sql(wanted)).strip("/")
    if _ends_in(fold_case(from_sql(path)), name) or fold_case(from_sql(title)) == name:
        return True
    return aliases != "[]" and any(fold_case(alias) == name for alias in from_json(aliases))


def target_is(target: Text, wanted: Text) -> bool:
    """Whether the target of a broken link is this name."""
    return _ends_in(fold_case(from_sql(target)), fold_case(from_sql(wanted)).strip("/"))


def anchor_is(anchor: str, wanted: Text) -> bool:
    """Whether a link leads to this heading; signs and spaces are ignored, as in slugs."""
    parts = [_bare(part) for part in from_sql(wanted).split("#")]
    return [_bare(part) for part in from_json(anchor)][-len(parts) :] == parts


def _bare(heading: str) -> str:
    folded = fold_case(heading)
    return folded if folded.startswith("^") else re.sub(r"[\W_]+", "", folded) or folded


def number_in(value: Text | None) -> float | None:
    """The value of a text that is a number; None for any other text."""
    return (
        float(from_sql(value)) if value is not None and _NUMBER.fullmatch(from_sql(value)) else None
    )


def _ends_in(path: str, name: str) -> bool:
    if not path.endswith((name, *(name + extension for extension in EXTENSIONS))):
        return False
    spellings = (path, *(path.removesuffix(each) for each in EXTENSIONS))
    return any(f"/{each}".endswith(f"/{name}") for each in spellings)


def heading_needle(pattern: str) -> str:
    """What the lower-cased JSON of ASCII headings must contain if one of them has the pattern."""
    longest = max(_pieces(pattern), key=len)
    return json.dumps(longest)[1:-1] if longest.isascii() else ""


def heading_ranges(headings: str, pattern: Text) -> str:
    """The ranges of the headings that contain the pattern: JSON of [first, last] offsets.

    A range ends at the next heading that is not below it.
    """
    wanted, found = _pieces(pattern), _heads(headings)
    ranges = []
    for i in [i for i, head in enumerate(found) if _contains(fold_case(head[0]), wanted)]:
        level, start = found[i][1], found[i][3]
        later = (head[3] for head in found[i + 1 :] if head[1] <= level)
        ranges.append(f"[{start},{next(later, INT64)}]")
    return f"[{','.join(ranges)}]"


def _heads(headings: str) -> list[_Head]:
    try:
        return _DECODER.decode(headings)
    except (
        msgspec.MsgspecError,
        ValueError,
    ):  # half a surrogate pair, which only Python's json reads
        return [tuple(head) for head in json.loads(headings)]


def has_task(
    own: Text | None, blob: bytes, excluded: str, start: int, stop: int, state: str, pattern: Text
) -> bool:
    """Whether a passage has a task in this state whose line contains the pattern.

    `own` is the passage's text where it is stored; otherwise it is cut out of the note's text.
    """
    text = from_sql(own) if own is not None else cut(_unpacked(blob), start, stop, _spans(excluded))
    for mark, line in _TASK.findall(text):
        fits = state == "any" or (mark == " ") == (state == "todo")
        if fits and _contains(fold_case(line), _pieces(pattern)):
            return True
    return False


_unpacked = lru_cache(maxsize=4)(decompress)
_spans = lru_cache(maxsize=4)(rows.to_spans)
