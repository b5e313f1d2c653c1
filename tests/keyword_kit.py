"""Small keyword indexes for tests, and a naive search to compare them with."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from ragvault.config.settings import Keyword
from ragvault.index.keyword import open_index, open_writer
from ragvault.index.keyword.fields import CODE, NOTE_FIELDS
from ragvault.index.keyword.index import Index
from ragvault.plan import (
    And,
    KeywordAnswer,
    KeywordNote,
    KeywordPassage,
    KeywordQuery,
    Not,
    Or,
    Phrase,
    Words,
    leaves,
)
from ragvault.text.analyze import Analyzer

ENGINES = ["whoosh", *(["tantivy"] if sys.version_info >= (3, 11) else [])]


def note(id_: int, title: str = "", **fields: str) -> KeywordNote:
    return KeywordNote(id_, {"title": (title,), **{name: (text,) for name, text in fields.items()}})


def passage(id_: int, note_id: int, body: str, headers: str = "", code: str = "") -> KeywordPassage:
    return KeywordPassage(id_, note_id, {"headers": (headers,), "body": (body,), "code": (code,)})


class Shelf:
    """An index, what was put into it, and short ways to ask."""

    def __init__(self, folder: Path, engine: str, **settings) -> None:
        self.folder, self.engine = folder, engine
        self.settings = Keyword(engine=engine, **settings)
        self.notes: dict[int, KeywordNote] = {}
        self.passages: dict[int, KeywordPassage] = {}
        self._index: Index | None = None

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = open_index(self.folder, self.engine, self.settings)
        self._index.refresh()
        return self._index

    def writer(self):
        return open_writer(self.folder, self.engine, self.settings)

    def put(self, *documents: KeywordNote | KeywordPassage) -> Shelf:
        notes = [one for one in documents if isinstance(one, KeywordNote)]
        passages = [one for one in documents if isinstance(one, KeywordPassage)]
        self.notes |= {one.id: one for one in notes}
        self.passages |= {one.id: one for one in passages}
        writer = self.writer()
        writer.put(notes, passages)
        writer.commit()
        writer.close()
        return self

    def remove(self, notes: Iterable[int] = (), passages: Iterable[int] = ()) -> Shelf:
        self.notes = {id_: one for id_, one in self.notes.items() if id_ not in notes}
        self.passages = {id_: one for id_, one in self.passages.items() if id_ not in passages}
        writer = self.writer()
        writer.remove(notes, passages)
        writer.commit()
        writer.close()
        return self

    def reopened(self) -> Shelf:
        self.close()
        return self

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index = None

    def with_settings(self, **settings) -> Shelf:
        """The same index, searched with other settings."""
        return Shelf(self.folder, self.engine, **settings)

    def ask(self, query: KeywordQuery, limit: int = 100, **options) -> KeywordAnswer:
        if options.pop("fuzzy", True):
            query = self.index.corrected(query)
        return self.index.search(query, limit=limit, **options)

    def spellings(self, query: KeywordQuery) -> dict[str, tuple[str, ...]]:
        """The near spellings of each misspelt word of a query."""
        found: dict[str, tuple[str, ...]] = {}
        for leaf in leaves(self.index.corrected(query), negated=False):
            for typed, word, _ in leaf.spellings if isinstance(leaf, Words) else ():
                found[typed] = (*found.get(typed, ()), word)
        return found

    def ids(self, query: KeywordQuery, limit: int = 100, **options) -> list[int]:
        return [hit.passage for hit in self.ask(query, limit, **options).hits]

    def coverage(self, query: KeywordQuery) -> dict[int, float]:
        """How much of a query each hit covers."""
        return {hit.passage: hit.coverage for hit in self.ask(query).hits}


class Oracle:
    """Finds by looking at every passage, one after the other."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._words, self._code = Analyzer(shelf.settings.stemming), Analyzer(code=True)

    def ids(self, query: KeywordQuery) -> list[int]:
        return sorted(id_ for id_ in self._shelf.passages if self._finds(query, id_))

    def _finds(self, query: KeywordQuery, id_: int) -> bool:
        if isinstance(query, Not):
            return not self._finds(query.part, id_)
        if isinstance(query, And | Or):
            found = [self._finds(part, id_) for part in query.parts]
            return all(found) if isinstance(query, And) else any(found)
        if isinstance(query, Phrase):
            return any(self._holds_row(query, text) for text in self._texts(query.field, id_))
        return self._holds_words(query, id_)

    def _texts(self, field: str, id_: int) -> list[str]:
        own = self._shelf.passages[id_]
        of_note = self._shelf.notes.get(own.note, KeywordNote(-1, {}))
        fields = {**own.fields, **{n: t for n, t in of_note.fields.items() if n in NOTE_FIELDS}}
        names = [field] if field else [name for name in fields if name != CODE]
        return [text for name in names for text in fields.get(name, ())]

    def _holds_row(self, phrase: Phrase, text: str) -> bool:
        wanted = [form for *_, word in self._words.words(phrase.text) for form in word.forms]
        names = {word.name for *_, word in self._words.words(phrase.text)}
        forms = [form for *_, word in self._words.words(text) for form in word.forms]
        held = {word.name for *_, word in self._words.words(text)} | {""}
        rows = (forms[at : at + len(wanted)] for at in range(len(forms)))
        return bool(wanted) and wanted in rows and names <= held

    def _holds_words(self, words: Words, id_: int) -> bool:
        analyzer = self._code if words.field == CODE else self._words
        held: set[str] = set()
        for text in self._texts(words.field, id_):
            held |= analyzer.terms(text)
        asked = [word for *_, word in analyzer.words(words.text)]
        asked = [word for word in asked if not word.stop] or asked
        if words.every:
            return bool(asked) and all(
                any(all(each.term in held for each in group) for group in word.groups)
                for word in asked
            )
        return any(lookup.term in held for word in asked for lookup in word.lookups)
