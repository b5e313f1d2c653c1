"""Texts: what notes and passages say and nothing else, many at a time.

Words and vectors are made from that alone, and reading whole passages and notes for them, each
with its place and its links, takes twice as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from ragvault.store import rows
from ragvault.store.facts import some
from ragvault.store.read import VARIABLES, wholes
from ragvault.store.values import text, unspaced, unwords
from ragvault.types import Head, Said

_SAID = (
    "SELECT id, note_id, text_hash, headings, subheadings, lang, has, start, stop, overlap, text"
    " FROM chunks"
)
_HEAD = "SELECT id, path, title, aliases, tags, keywords, description, author FROM notes"


def said(db: Connection, ids: Sequence[int]) -> list[Said]:
    """What these passages say, by id; one that is gone is left out."""
    parts = (ids[first : first + VARIABLES] for first in range(0, len(ids), VARIABLES))
    return [each for part in parts for each in _said(db, part)]


def _said(db: Connection, ids: Sequence[int]) -> Iterator[Said]:
    found: list[tuple[Any, ...]] = list(some(db, _SAID, "id", ids))
    bodies = wholes(db, list({row[1] for row in found}))
    for id_, note, key, headings, below, lang, has, start, stop, overlap, own in found:
        whole, excluded = bodies[note]
        cut = rows.cut_chunk(whole, start, stop, overlap, excluded)
        yield Said(
            id_,
            note,
            key,
            unwords(headings),
            unspaced(lang),
            unwords(has),
            cut if own is None else text(own),
            unwords(below),
        )


def heads(db: Connection, ids: Sequence[int]) -> list[Head]:
    """What these notes are called and are about, by id; one that is gone is left out."""
    return [
        Head(
            id_,
            text(path),
            text(title),
            unwords(aliases),
            unwords(tags),
            unwords(keywords),
            text(description),
            text(author),
        )
        for id_, path, title, aliases, tags, keywords, description, author in some(
            db, _HEAD, "id", ids
        )
    ]
