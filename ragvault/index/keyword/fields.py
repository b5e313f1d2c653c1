"""Fields: what of a note and of a passage can be found by words.

    one document a note      title aliases tags properties keywords description author
    one document a passage   headers body code

Each of these is up to three fields of an engine:

    body        forms, with their positions         for phrases, and for words as they were typed
    body_stem   stems                               for words
    body_part   parts of identifiers, compounds, pairs of unspaced scripts, accents

`code` has only the code of a passage, and is not stemmed. A search looks in it only if the query
names it: the body has the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from ragvault.config.settings import Keyword
from ragvault.plan import EngineDocument, KeywordNote, KeywordPassage
from ragvault.text.analyze import Analyzer
from ragvault.text.readable import property_line, readable_properties
from ragvault.types import Head, Note, Passage, PassageText

NOTE_FIELDS = ("title", "aliases", "tags", "properties", "keywords", "description", "author")
PASSAGE_FIELDS = ("headers", "body", "code")
FIELDS = (*NOTE_FIELDS, *PASSAGE_FIELDS)
MAIN = "body"
CODE = "code"
NOTE, PASSAGE = "note", "passage"
STEM, PART = "_stem", "_part"
BETWEEN = " \x1f "  # between two texts of a field: a word that is not indexed, only its position
HAS = "has"  # names the kind of a document and every field it has a text in


def kind_of(field: str) -> str:
    """Which documents have this field."""
    return NOTE if field in NOTE_FIELDS else PASSAGE


def key_of(kind: str, id_: int) -> str:
    return f"{kind[0]}{id_}"


class Documents:
    """Turns notes and passages into documents."""

    def __init__(self, settings: Keyword) -> None:
        self._words = Analyzer(settings.stemming)
        self._stemmed = settings.stemming != "none"

    @cached_property
    def _names(self) -> Analyzer:
        return Analyzer(code=True)

    def of_note(self, note: KeywordNote) -> EngineDocument:
        return self._document(NOTE, note.id, note.id, note.fields, NOTE_FIELDS)

    def of_passage(self, passage: KeywordPassage) -> EngineDocument:
        return self._document(PASSAGE, passage.id, passage.note, passage.fields, PASSAGE_FIELDS)

    def _document(
        self,
        kind: str,
        id_: int,
        note: int,
        fields: Mapping[str, tuple[str, ...]],
        names: tuple[str, ...],
    ) -> EngineDocument:
        found: dict[str, str] = {}
        for name in names:
            texts = [text for text in fields.get(name, ()) if text]
            if not texts:
                continue
            analyzer = self._names if name == CODE else self._words
            prepared = analyzer.prepare(texts, BETWEEN)
            found[name] = prepared.forms
            if self._stemmed and name != CODE:
                found[name + STEM] = prepared.to_stem
            if prepared.parts:
                found[name + PART] = prepared.parts
        return EngineDocument(key_of(kind, id_), kind, id_, note, found)


# --- From the catalogue ---


def note_words(id_: int, note: Note | Head) -> KeywordNote:
    """The fields of a note. Its file name can always be found, whatever its title is."""
    stem = PurePosixPath(note.path).stem
    titles = (note.title, stem) if stem.casefold() != note.title.casefold() else (note.title,)
    return KeywordNote(
        id_,
        {
            "title": tuple(filter(None, titles)),
            "aliases": note.aliases,
            "tags": note.tags,
            "properties": tuple(property_texts(note.properties)),
            "keywords": note.keywords,
            "description": (note.description,) if note.description else (),
            "author": (note.author,) if note.author else (),
        },
    )


def passage_words(id_: int, note: int, passage: Passage | PassageText) -> KeywordPassage:
    """The fields of a passage; none of one whose text is the words of its note."""
    if passage.kind == "properties":
        return KeywordPassage(id_, note, {})
    fields = {"headers": (*passage.headings, *passage.subheadings), "body": (passage.text,)}
    if code := code_in(passage.text, "code" in passage.has):
        fields["code"] = code
    return KeywordPassage(id_, note, fields)


# Properties that have a field of their own.
_OWN = {"title", "alias", "aliases", "tag", "tags", "keyword", "keywords", "description", "author"}


def property_texts(properties: Mapping[str, Any]) -> Iterator[str]:
    """The properties of a note as texts, `name value`, without those that have their own field."""
    for name, values in _searched(properties):
        first, *others = [*values, ""]
        yield f"{name} {first}".rstrip()
        yield from filter(None, others)


def property_lines(properties: Mapping[str, Any]) -> list[str]:
    """The same properties for people: `name: value, value`."""
    return [property_line(name, values) for name, values in _searched(properties) if values]


def _searched(properties: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for name, values in readable_properties(properties):
        if name.casefold() not in _OWN:
            yield name, values


# No two runs in a row match the same characters: the time is linear in the length of the line.
_FENCE = re.compile(
    r"^[ \t>]*(?:(?P<item>[-*+]|\d+[.)])[ \t]*)?(?:`{3,}|~{3,}(?!~))(?P<info>[^\n`]*)$", re.M
)
# It begins with the sign itself: three times as fast as with a look at what is before it.
_INLINE = re.compile(r"(`(?<!``)`*)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def code_in(text: str, has_block: bool) -> tuple[str, ...]:
    """The code of a passage: its fences and its inline code.

    With `has_block` the passage contains a block of code or a part of one. Without a fence, all of
    it is code: an indented block, or the middle of a long one.
    """
    parts = list(_code_parts(text, has_block)) if has_block else [(False, 0, len(text))]
    found = [text[start:end] for inside, start, end in parts if inside]
    for inside, start, end in parts:
        if not inside:
            found += (match[2] for match in _INLINE.finditer(text, start, end))
    return tuple(each for each in found if each.strip())


def _code_parts(text: str, code: bool) -> Iterator[tuple[bool, int, int]]:
    """The text between fences: whether it is code, and its span.

    `code` says what the text is where no fence tells.
    """
    fences = list(_FENCE.finditer(text))
    inside = code and not fences
    may_close = fences and not fences[0]["item"] and not fences[0]["info"].strip()
    if len(fences) % 2 and may_close:  # it begins or ends inside a block
        inside = code or len(fences) > 1
    at = 0
    for fence in fences:
        yield inside, at, fence.start()
        at, inside = min(fence.end() + 1, len(text)), not inside
    yield inside, at, len(text)
