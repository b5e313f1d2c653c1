"""Small keyword indexes for tests, and a naive twin that scores by the formula alone."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ragvault.config.settings import Keyword
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_open import open_keyword
from ragvault.ports import KeywordIndex
from ragvault.sought import KeywordAnswer, KeywordNote, KeywordPassage, Sought

ENGINES = ["whoosh", *(["tantivy"] if sys.version_info >= (3, 11) else [])]
NOTE_FIELDS = ("title", "aliases", "tags", "keywords", "description", "author")


def note(id_: int, title: str = "", **fields: str) -> KeywordNote:
    return KeywordNote(id_, {"title": (title,), **{name: (text,) for name, text in fields.items()}})


def passage(id_: int, note_id: int, body: str, headers: str = "") -> KeywordPassage:
    return KeywordPassage(id_, note_id, {"headers": (headers,), "body": (body,)})


class Shelf:
    """An index, what was put into it, and short ways to ask."""

    def __init__(self, folder: Path, settings: Keyword) -> None:
        self.folder, self.settings = folder, settings
        self.notes: dict[int, KeywordNote] = {}
        self.passages: dict[int, KeywordPassage] = {}
        self.revision = 0
        self.index: KeywordIndex = open_keyword(folder, settings)

    def put(self, *documents: KeywordNote | KeywordPassage, commit: bool = True) -> Shelf:
        notes = [one for one in documents if isinstance(one, KeywordNote)]
        passages = [one for one in documents if isinstance(one, KeywordPassage)]
        self.notes |= {one.id: one for one in notes}
        self.passages |= {one.id: one for one in passages}
        self.index.put(notes, passages)
        return self.commit() if commit else self

    def remove(self, notes: Iterable[int] = (), passages: Iterable[int] = ()) -> Shelf:
        self.notes = {id_: one for id_, one in self.notes.items() if id_ not in notes}
        self.passages = {id_: one for id_, one in self.passages.items() if id_ not in passages}
        self.index.remove(notes, passages)
        return self.commit()

    def commit(self) -> Shelf:
        self.revision += 1
        self.index.commit(self.revision)
        return self

    def compact(self) -> Shelf:
        self.index.compact(self.read)
        return self

    def read(self, notes, passages):
        return (
            [self.notes[id_] for id_ in notes if id_ in self.notes],
            [self.passages[id_] for id_ in passages if id_ in self.passages],
        )

    def reopened(self) -> Shelf:
        self.index.close()
        self.index = open_keyword(self.folder, self.settings)
        return self

    def ask(self, sought: Sought, limit: int = 100, **options) -> KeywordAnswer:
        return self.index.search(sought, limit=limit, **options)

    def ids(self, sought: Sought, limit: int = 100, **options) -> list[int]:
        return [hit.passage for hit in self.ask(sought, limit, **options).hits]


def kept_length(length: int, engine: str) -> int:
    """A field's length as an engine keeps it in a document; the mean is of true lengths.

    Whoosh's segments hold them as they are. Tantivy keeps one byte: every length up to 40, and
    above that the four leading bits of what exceeds 24, cut off and never rounded up.
    """
    over = length - 24
    if engine == "whoosh" or over < 16:
        return length
    shift = over.bit_length() - 4
    return 24 + (over >> shift << shift)


class Twin:
    """The formula, one document at a time: what every engine must agree with."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf, self._analyzer = shelf, Analyzer(shelf.settings.stemming)
        self._boosts = {
            name: getattr(shelf.settings.boosts, name)
            for name in shelf.settings.boosts.__struct_fields__
        }
        self._counts = {
            name: {one.id: self._count(one, name) for one in self._level(name).values()}
            for name in self._boosts
        }

    def _level(self, name: str):
        return self._shelf.notes if name in NOTE_FIELDS else self._shelf.passages

    def _count(self, one, name: str) -> Counter:
        return Counter(term for term, _ in self._analyzer.tokens(one.fields.get(name, ())))

    def score(self, words: str, id_: int) -> float:
        """The score of a passage for words that are simple, each its own stem or stemmed."""
        terms = {}
        for *_, word in self._analyzer.words(words):
            terms |= dict(word.main)
            terms |= dict.fromkeys(word.exact, self._shelf.settings.exact)
        return math.fsum(
            weight * boost * self._bm25(term, name, id_)
            for term, weight in terms.items()
            for name, boost in self._boosts.items()
        )

    def _bm25(self, term: str, name: str, id_: int) -> float:
        own = self._shelf.passages[id_].note if name in NOTE_FIELDS else id_
        counts = self._counts[name]
        tf = counts.get(own, Counter())[term]
        if not tf:
            return 0.0
        df = sum(1 for one in counts.values() if one[term])
        lengths = {id_: max(1, one.total()) for id_, one in counts.items()}
        average = sum(lengths.values()) / len(lengths)
        k1, b = self._shelf.settings.k1, self._shelf.settings.b
        length = kept_length(lengths[own], self._shelf.settings.engine)
        idf = math.log(1 + (len(counts) - df + 0.5) / (df + 0.5))
        return idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))
