"""Rows: a note and its parts as the tables hold them, and back.

Pure translations between `ragvault.types` and tuples in the order of the column lists below; the
statements that use them are in write.py, read.py and links.py. Column `lang` has the languages of
a passage with a space between them; older rows have one at most, which is the same text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ragvault.spans import Span, back, cut
from ragvault.store.keys import key_of
from ragvault.store.values import (
    dump,
    load,
    pack,
    spaced,
    sql,
    text,
    unpack,
    unspaced,
    unwords,
    words,
)
from ragvault.types import Chunk, Heading, Link, Note, Section, Target

NOTE = (
    "encoding, title, description, author, importance, aliases, tags, keywords, supersedes,"
    " properties, warnings, length"
)
BODY = "text, body, excluded, headings, blocks"
SECTION = "ordinal, headings, start, stop, line_first, line_last"
CHUNK = (
    "ordinal, section, headings, kind, lang, has, start, stop, line_first, line_last,"
    " column_first, column_last, overlap, text, subheadings, text_hash"
)
LINK = "kind, form, target, anchor, text, line, start"
TARGET = "status, via, target_start, anchor_found, others"


def of_note(note: Note) -> tuple[Any, ...]:
    """Columns NOTE."""
    scalars = (note.encoding, note.title, note.description, note.author, note.importance)
    lists = (note.aliases, note.tags, note.keywords, note.supersedes)
    return (
        *map(sql, scalars),
        *map(words, lists),
        dump(note.properties) if note.properties else "{}",
        words(note.warnings),
        len(note.text),
    )


def of_body(note: Note) -> tuple[Any, ...]:
    """Columns BODY."""
    headings = [(h.text, h.level, h.line, h.start, h.path) for h in note.headings]
    return (
        pack(note.text),
        note.body,
        json.dumps(note.excluded) if note.excluded else "[]",
        json.dumps(headings),
        json.dumps(dict(note.blocks)) if note.blocks else "{}",
    )


def of_section(section: Section) -> tuple[Any, ...]:
    """Columns SECTION."""
    headings = words(section.headings)
    return (section.ordinal, headings, section.start, section.end, *section.lines)


def of_chunk(chunk: Chunk, note: Note, text_hash: bytes) -> tuple[Any, ...]:
    """Columns CHUNK. The text is written only where the note's own text would not give it back."""
    own = chunk.text == cut_chunk(note.text, chunk.start, chunk.end, chunk.overlap, note.excluded)
    return (
        chunk.ordinal,
        chunk.section,
        words(chunk.headings),
        chunk.kind,
        spaced(chunk.lang),
        words(tuple(sorted(chunk.has))),
        chunk.start,
        chunk.end,
        *chunk.lines,
        *chunk.columns,
        chunk.overlap,
        None if own else sql(chunk.text),
        words(chunk.subheadings),
        text_hash,
    )


def of_link(link: Link) -> tuple[Any, ...]:
    """Columns LINK and target_key."""
    return (
        link.kind,
        link.form,
        sql(link.target),
        words(link.anchor),
        sql(link.text),
        link.line,
        link.start,
        sql(key_of(link.target)),
    )


def to_note(path: str, row: Sequence[Any], body: Sequence[Any], links: tuple[Link, ...]) -> Note:
    """A note from columns NOTE and BODY, as it was stored."""
    encoding, title, description, author, importance = map(text, row[:5])
    aliases, tags, keywords, supersedes = map(unwords, row[5:9])
    whole, begins, excluded, headings, blocks = body
    return Note(
        path,
        unpack(whole),
        begins,
        encoding,
        title,
        aliases,
        tags,
        description,
        keywords,
        author,
        importance,
        supersedes,
        load(row[9]),
        to_headings(headings),
        json.loads(blocks),
        links,
        to_spans(excluded),
        unwords(row[10]),
    )


def to_headings(stored: str) -> tuple[Heading, ...]:
    """The headings of column `headings`."""
    return tuple(
        Heading(said, level, line, start, tuple(path))
        for said, level, line, start, path in json.loads(stored)
    )


def to_spans(stored: str) -> tuple[Span, ...]:
    """The stretches of column `excluded`."""
    return tuple((first, last) for first, last in json.loads(stored)) if stored != "[]" else ()


def to_section(row: Sequence[Any]) -> Section:
    """A section from columns SECTION."""
    ordinal, headings, start, end, first, last = row
    return Section(ordinal, unwords(headings), start, end, (first, last))


def to_chunk(row: Sequence[Any], whole: str, excluded: Sequence[Span]) -> Chunk:
    """A chunk from columns CHUNK and its note's text."""
    ordinal, section, headings, kind, lang, has, start, end, *places, overlap, own, below, _ = row
    said = text(own) if own is not None else cut_chunk(whole, start, end, overlap, excluded)
    return Chunk(
        ordinal,
        section,
        unwords(headings),
        kind,
        frozenset(unspaced(lang)),
        frozenset(unwords(has)),
        start,
        end,
        (places[0], places[1]),
        (places[2], places[3]),
        said,
        overlap,
        unwords(below),
    )


def to_link(row: Sequence[Any]) -> Link:
    """A link from columns LINK."""
    kind, form, target, anchor, said, line, start = row
    return Link(kind, form, text(target), unwords(anchor), text(said), line, start)


def to_target(path: str | bytes | None, row: Sequence[Any]) -> Target | None:
    """What a link meant, from its note's path and columns TARGET; None before it is looked up."""
    status, via, start, anchor_found, others = row
    if status is None:
        return None
    where = None if path is None else text(path)
    return Target(status, where, via, start, bool(anchor_found), unwords(others or "[]"))


def cut_chunk(whole: str, start: int, end: int, overlap: int, excluded: Sequence[Span]) -> str:
    """What a passage says, cut out of its note's text."""
    return cut(whole, back(start, overlap, excluded) if overlap else start, end, excluded)
