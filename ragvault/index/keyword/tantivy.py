"""The keyword index on tantivy: a plain tantivy index with its own tokenizers and merges.

BM25's k1 and b are compiled in, and lengths are compared with their mean over all documents: so a
document gets one word in each field that it does not have. One thread writes, so that two runs
give the same segments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import ENOSPC
from functools import cached_property, lru_cache
from itertools import chain
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragvault.config.settings import Keyword
from ragvault.errors import EngineMissing
from ragvault.index.ids import Ids, value_of
from ragvault.index.keyword import check_stemming
from ragvault.index.keyword.fields import (
    CODE,
    FIELDS,
    HAS,
    MAIN,
    NOTE,
    PART,
    PASSAGE,
    STEM,
    Documents,
    key_of,
)
from ragvault.index.keyword.index import NO_IDS, NOTHING, Boosted, Deadline, Leaf, Scored, Terms
from ragvault.plan import EngineDocument, KeywordNote, KeywordPassage
from ragvault.ports import CacheBroken
from ragvault.text.analyze import FORM

try:
    import tantivy
    from tantivy import Filter, Occur, Query, TextAnalyzerBuilder, Tokenizer
except ImportError as error:
    raise EngineMissing("the keyword index", "tantivy", str(error)) from error

if TYPE_CHECKING:
    from numpy.typing import NDArray

Clauses = list[tuple[Occur, Query]]
ABSENT = "\x1e"  # a word for a field that a document does not have: it counts as one word long
HEAP = 128_000_000  # bytes that the writer may take before it writes a segment
FEW = 4_096  # documents fetched at first where all are wanted
BITS = 20  # words that one score can tell apart: whole numbers up to 2 ** 24 are exact
TERMS = 1_024  # of one query: there is no time limit, so a query may not be endless
LONGEST = 65_000  # bytes of a term
OF = "of"  # the note of a passage
SHOWN = 200  # characters of an error
_MOSTLY_ABSENT = tuple(name for name in FIELDS if name not in (MAIN, CODE))


def tantivy_schema(settings: Keyword) -> tantivy.Schema:
    """The fields of fields.py, and those that every document has besides."""
    own = tantivy.SchemaBuilder()
    own.add_text_field("key", tokenizer_name="raw", index_option="basic")
    own.add_text_field(HAS, tokenizer_name="whitespace", index_option="basic")
    for name in (NOTE, PASSAGE, OF):
        own.add_unsigned_field(name, indexed=True, fast=True)
    for name in FIELDS:
        parts = "names" if name == CODE else "parts"
        own.add_text_field(name, tokenizer_name="forms", index_option="position")
        own.add_text_field(name + PART, tokenizer_name=parts, index_option="freq")
        if name != CODE and settings.stemming != "none":
            own.add_text_field(name + STEM, tokenizer_name="stems", index_option="freq")
    return own.build()


_WORD = re.compile(rf"{FORM}|[\x1e\x1f]")
_SEPARATORS = dict.fromkeys((code for code in range(128) if not _WORD.match(chr(code))), " ")
_SEPARATORS |= {0x1E: " \x1e ", 0x1F: " \x1f "}  # words of their own


@lru_cache(maxsize=2)  # forms and stems mostly have the same text
def spaced(text: str) -> str:
    """A text whose words are cut by spaces alone, for tantivy's quickest tokenizer.

    Its tokenizer by expressions gives the same words, and takes four times as long.
    """
    return " ".join(_WORD.findall(text)) if "'" in text else text.translate(_SEPARATORS)


def _analyzers(stemming: str) -> dict[str, tantivy.TextAnalyzer]:
    """By name. They are not stored in the files, so opening an index registers them."""
    forms = TextAnalyzerBuilder(Tokenizer.whitespace())
    forms = forms.filter(Filter.lowercase()).filter(Filter.custom_stopword(["\x1f"]))
    stems = TextAnalyzerBuilder(Tokenizer.whitespace())
    stems = stems.filter(Filter.lowercase()).filter(Filter.custom_stopword(["\x1f"]))
    parts = TextAnalyzerBuilder(Tokenizer.whitespace())
    if stemming != "none":
        stems, parts = (each.filter(Filter.stemmer(stemming)) for each in (stems, parts))
        if stemming != "english":
            stems, parts = (each.filter(Filter.ascii_fold()) for each in (stems, parts))
    names = TextAnalyzerBuilder(Tokenizer.whitespace())
    built = {"forms": forms, "stems": stems, "parts": parts, "names": names}
    return {name: each.filter(Filter.remove_long(LONGEST)).build() for name, each in built.items()}


@contextmanager
def _panics() -> Iterator[None]:
    """Raise a panic, which is no Exception, as ValueError, like all other errors of tantivy."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"panic: {error}") from None


def _open(folder: Path, settings: Keyword, *, create: bool) -> tantivy.Index:
    check_stemming(settings)
    try:
        with _panics():
            if not create and not tantivy.Index.exists(str(folder)):
                raise CacheBroken("there is no tantivy index")
            opened = tantivy.Index(tantivy_schema(settings), path=str(folder))
    except ValueError as error:
        raise _unreadable(error) from error
    for name, analyzer in _analyzers(settings.stemming).items():
        opened.register_tokenizer(name, analyzer)
    return opened


def open_tantivy(folder: Path, settings: Keyword) -> TantivyEngine:
    """The newest commit. Raises CacheBroken for anything that tantivy cannot read."""
    try:
        with _panics():
            return TantivyEngine(_open(folder, settings, create=False), folder, settings)
    except (ValueError, OSError) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> CacheBroken:
    """Its reason in short: tantivy may repeat a whole file."""
    return CacheBroken(f"tantivy cannot open the keyword index ({str(error)[:SHOWN]})")


class TantivyEngine:
    """Implements `Engine` on one commit."""

    k1, b = 1.2, 0.75

    def __init__(self, opened: tantivy.Index, folder: Path, settings: Keyword) -> None:
        self._index, self._folder, self._settings = opened, folder, settings
        self._commit = _commit(folder)
        opened.reload()
        self._schema, self._searcher = opened.schema, opened.searcher()
        self._stemmer = _analyzers(settings.stemming)["parts"]
        # With those that were removed: tantivy counts them too, until their segment is merged.
        self._documents = sum(self.frequency(HAS, kind) for kind in (NOTE, PASSAGE))

    def frequency(self, name: str, term: str) -> int:
        return int(self._searcher.doc_freq(name, term))

    def idf(self, name: str, term: str) -> float:
        held = self.frequency(name, term)
        return log(1 + (self._documents - held + 0.5) / (held + 0.5))

    def norm(self, name: str) -> float:
        """1, where an absent field is one word long; elsewhere a usual length scores too low."""
        if not name.endswith(PART) and not name.startswith(MAIN):
            return 1.0
        share = min(1.0, max(1, self.frequency(HAS, name)) / max(1, self._documents))
        return (1 + self.k1 * (1 - self.b + self.b / share)) / (1 + self.k1)

    def stem(self, form: str) -> str:
        return next(iter(self._stemmer.analyze(form)), form)

    def scores(
        self,
        kind: str,
        terms: Sequence[Boosted],
        *,
        limit: int,
        only: Ids | None,
        deadline: Deadline,
    ) -> Scored:
        wanted: Clauses = [
            (Occur.Should, Query.boost_query(self._term(name, text), boost))
            for name, text, boost in terms[:TERMS]
        ]
        if only is not None:
            return self._among(kind, wanted, only)
        if not wanted:
            return NOTHING
        while True:
            found = self._scored(kind, Query.boolean_query(wanted), limit)
            # Equal scores come in the order of the files: fetch all of them, to go by id.
            if found.is_all or found.scores[limit // 10] > found.scores[-1]:
                return found
            limit *= 8

    def _among(self, kind: str, wanted: Clauses, ids: Ids) -> Scored:
        """Those of some documents that one of the clauses finds."""
        if not wanted or not len(ids):
            return NOTHING
        among = Query.const_score_query(self._ids(kind, ids), 0.0)
        both = [(Occur.Must, Query.boolean_query(wanted)), (Occur.Must, among)]
        return self._scored(kind, Query.boolean_query(both), len(ids))

    def _scored(self, kind: str, query: Query, limit: int) -> Scored:
        hits = self._searcher.search(query, limit=limit, count=False).hits
        ids = self._values(kind, [address for _, address in hits])
        scores = np.fromiter((score for score, _ in hits), np.float64, len(hits))
        return Scored(ids, scores, is_all=len(hits) < limit)

    def matching(self, kind: str, leaf: Leaf, deadline: Deadline) -> Ids:
        wanted = [self._term(*term) for term in leaf.terms]
        for name, forms, parts in leaf.phrases:
            row = (
                Query.phrase_query(self._schema, name, list(forms))
                if len(forms) > 1
                else self._term(name, forms[0])
            )
            needs = [(Occur.Must, row), *((Occur.Must, self._term(*part)) for part in parts)]
            wanted.append(Query.boolean_query(needs) if parts else row)
        if not wanted:
            return NO_IDS
        query = Query.boolean_query([(Occur.Should, each) for each in wanted[:TERMS]])
        return np.unique(self._all(query, kind)[0])

    def holding(self, kind: str, words: Sequence[Terms], ids: Ids) -> NDArray[np.bool_]:
        """In one search: each word scores a power of two, so that the sum says which are there."""
        held = np.zeros((len(words), len(ids)), bool)
        for first in range(0, len(words), BITS):
            some = words[first : first + BITS]
            wanted = [
                (Occur.Should, Query.const_score_query(self._any(terms), 2.0**bit))
                for bit, terms in enumerate(some)
                if terms
            ]
            found = self._among(kind, wanted, ids)
            sums = found.scores.astype(np.int64)
            held[first : first + BITS, np.searchsorted(ids, found.ids)] = (
                sums >> np.arange(len(some))[:, None] & 1
            )
        return held

    def passages(self, notes: Ids | None = None) -> tuple[Ids, Ids]:
        if notes is None:
            return self._table
        return self._with_notes(self._ids(OF, notes))

    def notes_of(self, passages: Ids) -> Ids:
        if "_table" in self.__dict__:
            known, notes = self._table
        else:
            known, notes = self._with_notes(self._ids(PASSAGE, passages))
        return value_of(passages, known, notes)

    @cached_property
    def _table(self) -> tuple[Ids, Ids]:
        """Every passage and its note."""
        return self._with_notes(self._term(HAS, PASSAGE))

    def _with_notes(self, query: Query) -> tuple[Ids, Ids]:
        """The passages that are found, ascending, and their notes."""
        ids, notes = self._all(query, PASSAGE, OF)
        order = np.argsort(ids)
        return ids[order], notes[order]

    def begins(self, name: str, letters: str) -> list[str]:
        return [term for term, _ in self._searcher.terms_with_prefix(name, letters)]

    def words(self, name: str) -> dict[str, int]:
        return dict(self._searcher.terms_with_prefix(name, ""))

    def _any(self, terms: Terms) -> Query:
        return Query.boolean_query([(Occur.Should, self._term(*each)) for each in terms[:TERMS]])

    def _term(self, name: str, text: str) -> Query:
        return Query.term_query(self._schema, name, text)

    def _ids(self, name: str, ids: Ids) -> Query:
        return Query.term_set_query(self._schema, name, ids.tolist())

    def _all(self, query: Query, *names: str) -> list[Ids]:
        """The values of every document that is found: few, mostly, and a small heap is fast."""
        unscored = Query.const_score_query(query, 1.0)
        for most in (FEW, max(1, int(self._searcher.num_docs))):
            hits = self._searcher.search(unscored, limit=most, count=False).hits
            if len(hits) < most:
                break
        addresses = [address for _, address in hits]
        return [self._values(name, addresses) for name in names]

    def _values(self, name: str, addresses: list[Any]) -> Ids:
        values = self._searcher.fast_field_values(name, addresses) if addresses else []
        return np.array(values, np.int64)

    def refresh(self) -> TantivyEngine | None:
        if _commit(self._folder) == self._commit:
            return None
        return TantivyEngine(self._index, self._folder, self._settings)

    def close(self) -> None:
        """Files are closed with the last reference."""


def _commit(folder: Path) -> tuple[int, int, int]:
    """What changes with every commit: tantivy replaces its list of segments."""
    stat = (folder / "meta.json").stat()
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


@contextmanager
def _writing() -> Iterator[None]:
    """Turn tantivy's ValueError into OSError for a full disk, and into CacheBroken otherwise."""
    try:
        with _panics():
            yield
    except ValueError as error:
        if "No space left" in str(error):
            raise OSError(ENOSPC, "No space left on device") from error
        raise CacheBroken(f"tantivy cannot write the keyword index ({error})") from error


class TantivyWriter:
    """Implements `KeywordWriter` with tantivy's own writer."""

    def __init__(self, folder: Path, settings: Keyword) -> None:
        self._index = _open(folder, settings, create=True)
        self._schema = self._index.schema
        self._make = Documents(settings)
        self._stemmed = settings.stemming != "none"
        with _writing():
            self._writer = self._index.writer(HEAP, num_threads=1)
        self._is_new = not self._index.searcher().num_docs
        self._known: set[str] = set()
        self._is_changed = False

    def put(self, notes: Iterable[KeywordNote], passages: Iterable[KeywordPassage]) -> None:
        self.add(chain(map(self._make.of_note, notes), map(self._make.of_passage, passages)))

    def add(self, documents: Iterable[EngineDocument]) -> None:
        for document in documents:
            self._is_changed = True
            if not self._is_new or document.key in self._known:
                self._delete([document.key])
            self._known.add(document.key)
            with _writing():
                self._writer.add_document(_document(document, self._stemmed))

    def remove(self, notes: Iterable[int], passages: Iterable[int]) -> None:
        self._delete(
            [*(key_of(NOTE, id_) for id_ in notes), *(key_of(PASSAGE, id_) for id_ in passages)]
        )

    def _delete(self, keys: list[str]) -> None:
        # By query: by term, an id as a number deletes nothing and says nothing.
        if keys:
            wanted = Query.term_set_query(self._schema, "key", keys)
            with _writing():
                self._writer.delete_documents_by_query(wanted)
            self._is_changed = True

    def commit(self) -> None:
        with _writing():
            self._writer.commit()
        self._is_changed = False

    def close(self) -> None:
        """What was not committed is dropped; merges that are under way are finished."""
        with suppress(ValueError):  # after a failed write there is nothing left to undo
            if self._is_changed:
                self._writer.rollback()
            self._writer.wait_merging_threads()


def _document(document: EngineDocument, stemmed: bool) -> tantivy.Document:
    made = tantivy.Document()
    made.add_text("key", document.key)
    made.add_text(HAS, document.has)
    made.add_unsigned(document.kind, document.id)
    if document.kind == PASSAGE:
        made.add_unsigned(OF, document.note)
    for name, text in document.texts.items():
        made.add_text(name, text if name.endswith(PART) else spaced(text))
    for name in _MOSTLY_ABSENT:
        if name not in document.texts:
            made.add_text(name, ABSENT)
            if stemmed:
                made.add_text(name + STEM, ABSENT)
    return made
