"""What SQLite asks Python while it filters: texts compared without case, headings, tasks.

SQLite folds ASCII only and cannot look into our JSON or into a compressed text. Each function is
pure, takes values as the tables hold them and never raises. In a pattern `*` stands for anything.
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
from ragvault.store.keys import EXTENSIONS, fold
from ragvault.store.values import INT64, Text, text, unpack, unwords

# As the parser reads tasks; what stands in the brackets is the state.
_TASK = re.compile(r"^[ \t>]*(?:[-*+]|\d+[.)])[ \t]+\[([^\]\n])\](?=[ \t])(.*)$", re.M)

_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*", re.ASCII)

Pieces = tuple[str, ...]
_Head = tuple[str, int, int, int, Any]  # text, level, line, start, path: as the table holds it
_DECODER = msgspec.json.Decoder(list[_Head])


def register(db: Connection) -> None:
    """Make the functions known to a connection; doing it twice changes nothing."""
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
def pieces(pattern: Text) -> Pieces:
    """A pattern, folded, cut where anything may stand."""
    return tuple(re.split(r"\*+", fold(text(pattern))))


def holds(whole: str, wanted: Pieces) -> bool:
    """Are the pieces in this text, in their order?"""
    if len(wanted) == 1:  # nearly always, and asked of every note
        return wanted[0] in whole
    at = 0
    for piece in wanted:
        at = whole.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def equals(whole: str, wanted: Pieces) -> bool:
    """Do the pieces make up this text from its first to its last character?"""
    if len(wanted) == 1:
        return whole == wanted[0]
    first, *middle, last = wanted
    ends = whole.startswith(first) and whole.endswith(last)
    inside = whole[len(first) : len(whole) - len(last)]
    return ends and len(first) + len(last) <= len(whole) and holds(inside, tuple(middle))


def text_holds(value: Text, pattern: Text) -> bool:
    return holds(fold(text(value)), pieces(pattern))


def text_is(value: Text | None, pattern: Text) -> bool:
    return value is not None and equals(fold(text(value)), pieces(pattern))


def path_holds(path: Text, pattern: Text) -> bool:
    """With a slash before it, so that /journal means the one at the root."""
    return holds("/" + fold(text(path)), pieces(pattern))


def file_holds(path: Text, pattern: Text) -> bool:
    return holds(fold(text(path)).rpartition("/")[2], pieces(pattern))


def alias_holds(aliases: str, pattern: Text) -> bool:
    return any(holds(fold(alias), pieces(pattern)) for alias in unwords(aliases))


def tag_is(key: Text, pattern: Text) -> bool:
    """Is the tag, or one it is below, this pattern?"""
    parts = text(key).split("/")
    above = ("/".join(parts[: i + 1]) for i in range(len(parts)))
    return any(equals(each, pieces(pattern)) for each in above)


def is_named(path: Text, title: Text, aliases: str, wanted: Text) -> bool:
    """Would a person call this note that: by path, end of path, title or alias?"""
    name = fold(text(wanted)).strip("/")
    if _ends_in(fold(text(path)), name) or fold(text(title)) == name:
        return True
    return aliases != "[]" and any(fold(alias) == name for alias in unwords(aliases))


def target_is(target: Text, wanted: Text) -> bool:
    """Does a link to no note say this name?"""
    return _ends_in(fold(text(target)), fold(text(wanted)).strip("/"))


def anchor_is(anchor: str, wanted: Text) -> bool:
    """Does a link lead to this heading? Slugs drop signs and spaces, and so do we."""
    parts = [_bare(part) for part in text(wanted).split("#")]
    return [_bare(part) for part in unwords(anchor)][-len(parts) :] == parts


def _bare(heading: str) -> str:
    folded = fold(heading)
    return folded if folded.startswith("^") else re.sub(r"[\W_]+", "", folded) or folded


def number_in(value: Text | None) -> float | None:
    """The number that a property's text is, where it is nothing else."""
    return float(text(value)) if value is not None and _NUMBER.fullmatch(text(value)) else None


def _ends_in(path: str, name: str) -> bool:
    if not path.endswith((name, *(name + extension for extension in EXTENSIONS))):
        return False
    spellings = (path, *(path.removesuffix(each) for each in EXTENSIONS))
    return any(f"/{each}".endswith(f"/{name}") for each in spellings)


def needle(pattern: str) -> str:
    """What the lower-cased JSON of ASCII texts must hold where one of them holds the pattern."""
    longest = max(pieces(pattern), key=len)
    return json.dumps(longest)[1:-1] if longest.isascii() else ""


def heading_ranges(headings: str, pattern: Text) -> str:
    """From each heading that holds this to the next that is not below it: [[first, last], …]."""
    wanted, found = pieces(pattern), _heads(headings)
    ranges = []
    for i in [i for i, head in enumerate(found) if holds(fold(head[0]), wanted)]:
        level, start = found[i][1], found[i][3]
        later = (head[3] for head in found[i + 1 :] if head[1] <= level)
        ranges.append(f"[{start},{next(later, INT64)}]")
    return f"[{','.join(ranges)}]"


def _heads(headings: str) -> list[_Head]:
    try:
        return _DECODER.decode(headings)
    except (msgspec.MsgspecError, ValueError):  # half a surrogate pair, which only Python reads
        return [tuple(head) for head in json.loads(headings)]


def has_task(
    own: Text | None, blob: bytes, excluded: str, start: int, stop: int, state: str, pattern: Text
) -> bool:
    """Does a passage hold a task in this state whose line holds the pattern?

    `own` is the passage's text where it is stored; otherwise it is cut out of the note's.
    """
    said = text(own) if own is not None else cut(_unpacked(blob), start, stop, _spans(excluded))
    for mark, line in _TASK.findall(said):
        fits = state == "any" or (mark == " ") == (state == "todo")
        if fits and holds(fold(line), pieces(pattern)):
            return True
    return False


_unpacked = lru_cache(maxsize=4)(unpack)
_spans = lru_cache(maxsize=4)(rows.to_spans)
