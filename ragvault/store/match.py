"""Match: which passages of a note are the ones it had before.

A passage keeps its id when its embedding text, kind, languages, headings and what it has are the
same, even if it moved inside the note: caches hold ids, and take anew what has another. Of
several equal passages the first keeps the first id, the second the second.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]  # columns CHUNK of rows.py
SAME = (15, 3, 4, 5, 2, 14)  # of those: text_hash, kind, lang, has, headings, subheadings


@dataclass(frozen=True, slots=True)
class Changes:
    """What to do with the rows of a note's passages."""

    keep: list[tuple[Row, int]]  # the new row, and the id it has
    add: list[Row]
    drop: list[int]


def match(old: Iterable[tuple[int, Row]], new: Sequence[Row]) -> Changes:
    """Pair new passages with old ones, each in their order in the note."""
    waiting: defaultdict[Row, deque[int]] = defaultdict(deque)
    for chunk_id, row in old:
        waiting[_same(row)].append(chunk_id)
    keep, add = [], []
    for row in new:
        ids = waiting.get(_same(row))
        if ids:
            keep.append((row, ids.popleft()))
        else:
            add.append(row)
    return Changes(keep, add, sorted(left for ids in waiting.values() for left in ids))


def _same(row: Row) -> Row:
    return tuple(row[column] for column in SAME)
