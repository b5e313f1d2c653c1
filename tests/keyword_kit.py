"""Small keyword indexes for tests, and a naive search to compare them with."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from ragvault.config.settings import Keyword
from ragvault.index.keyword import open_index, open_writer
from ragvault.index.keyword.evidence import Coverage
from ragvault.index.keyword.fields import CODE, NOTE_FIELDS
from ragvault.index.keyword.index import Index
from ragvault.plan import (
    AllOf,
    AnyOf,
    KeywordAnswer,
    KeywordNote,
    KeywordPassage,
    Not,
    Phrase,
    Sought,
    Words,
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

    def ask(self, sought: Sought, limit: int = 100, **options) -> KeywordAnswer:
        return self.index.search(sought, limit=limit, **options)

    def ids(self, sought: Sought, limit: int = 100, **options) -> list[int]:
        return [hit.passage for hit in self.ask(sought, limit, **options).hits]

    def coverage(self, sought: Sought) -> dict[int, float]:
        """How much of a query each hit covers."""
        answer = self.ask(sought)
        covers = Coverage(answer.terms, self.index.analyzers)
        return {
            hit.passage: covers.of(self.passages[hit.passage], self.notes[hit.note])
            for hit in answer.hits
        }


class Oracle:
    """Finds by looking at every passage, one after the other."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._words, self._code = Analyzer(shelf.settings.stemming), Analyzer(code=True)

    def ids(self, sought: Sought) -> list[int]:
        return sorted(id_ for id_ in self._shelf.passages if self._finds(sought, id_))

    def _finds(self, sought: Sought, id_: int) -> bool:
        if isinstance(sought, Not):
            return not self._finds(sought.part, id_)
        if isinstance(sought, AllOf | AnyOf):
            found = [self._finds(part, id_) for part in sought.parts]
            return all(found) if isinstance(sought, AllOf) else any(found)
        if isinstance(sought, Phrase):
            return any(self._holds_row(sought, text) for text in self._texts(sought.field, id_))
        return self._holds_words(sought, id_)

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
