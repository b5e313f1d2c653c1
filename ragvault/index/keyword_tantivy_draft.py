"""Draft: documents on their way to tantivy, written so that tantivy itself cuts them into terms.

    Configuring Node.js    configuring|~configur / node.js|nodejs|~nodej|node|~node / js

A break parts two places and a mark the terms of one place. So a word that was met before is one
look into a dictionary, where handing over an object for each of its terms takes ten times as long.
tantivy's filter for compound words cuts what is made of words it was told of and leaves the parts
at one place: it is told every term of the draft, and the mark. The mark then goes as a stop word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tantivy
from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from ragvault.index.analyze import GAP, Analyzer
from ragvault.index.keyword_tantivy_query import ABSENT, PLACES

KEPT = 1 << 18  # chunks; about 90 MB when full
# Neither is ever part of a term.
BREAK, MARK = "\n", "\x01"
_BETWEEN = BREAK.join(["", *[MARK] * GAP, ""])  # two texts of one field


class Written(dict[str, str]):
    """How each chunk that was met is written, in whichever draft, until it is too much."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def __missing__(self, chunk: str) -> str:
        if len(self) >= KEPT:
            self.clear()
        width, tokens = self.analyzer.read(chunk)
        places: list[list[str]] = [[] for _ in range(width)]
        for term, place in tokens:
            places[place].append(term)
        written = self[chunk] = BREAK.join(MARK.join(terms) or MARK for terms in places)
        return written


class _Chunks(dict[str, str]):
    """The same for the chunks of one draft."""

    def __init__(self, written: Written) -> None:
        self._written = written

    def __missing__(self, chunk: str) -> str:
        written = self[chunk] = self._written[chunk]
        return written

    def text(self, texts: Iterable[str]) -> str:
        """The texts of one field, with a gap between them that no phrase crosses."""
        found = ((text, self._written.analyzer.chunks(text)) for text in texts)
        written = (BREAK.join(map(self.__getitem__, cut.findall(text))) for text, cut in found)
        whole = _BETWEEN.join(written)
        return whole if whole.strip(BREAK + MARK) else ABSENT

    def terms(self) -> list[str]:
        """Every term of the draft, and the mark; sorted, so that two runs build the same."""
        every = {MARK, *BREAK.join(self.values()).replace(MARK, BREAK).split(BREAK)}
        return sorted(every - {""})


class Draft:
    """The documents of one level, by id, until they are handed over."""

    def __init__(self, written: Written, fields: Iterable[str]) -> None:
        self._chunks, self._fields = _Chunks(written), tuple(fields)
        self._documents: dict[int, Any] = {}

    def put(self, ids: Mapping[str, int], texts: Mapping[str, tuple[str, ...]]) -> None:
        """Take a document in place of one with its id."""
        document = tantivy.Document()
        for name, value in ids.items():
            document.add_integer(name, value)
        for name in self._fields:
            document.add_text(name, self._chunks.text(texts.get(name, ())))
        self._documents[ids["id"]] = document

    def drop(self, id_: int) -> None:
        self._documents.pop(id_, None)

    def __len__(self) -> int:
        return len(self._documents)

    def hand_over(self, index: Any, writer: Any) -> None:
        """Give everything to a writer that has been given nothing since its last commit."""
        index.register_tokenizer(PLACES, self._cutter())
        for id_, document in self._documents.items():
            writer.delete_documents_by_term("id", id_)
            writer.add_document(document)

    def _cutter(self) -> Any:
        told = Filter.split_compound(self._chunks.terms())
        places = TextAnalyzerBuilder(Tokenizer.whitespace())
        return places.filter(told).filter(Filter.custom_stopword([MARK])).build()
