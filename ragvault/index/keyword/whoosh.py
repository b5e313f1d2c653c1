"""The keyword index on Whoosh: a plain Whoosh index, through its documented interface.

Whoosh scores with its own BM25F; a boost is on the Term query, since `field_boost` scales the
term frequency, which is something else. Every matching document is scored at once: up to 10,000
passages that takes a few milliseconds, and the scores of the last queries are remembered
for `score_of`, which needs those of the same terms.
"""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragvault.config.settings import Keyword
from ragvault.errors import EngineMissing
from ragvault.index.ids import Ids, among, value_of
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
    from whoosh import columns, index, query, scoring
    from whoosh.analysis import (
        CharsetFilter,
        LowercaseFilter,
        PyStemmerFilter,
        RegexTokenizer,
        StopFilter,
    )
    from whoosh.collectors import TimeLimit, TimeLimitCollector
    from whoosh.fields import COLUMN, ID, KEYWORD, TEXT, Schema
    from whoosh.support.charset import accent_map
except ImportError as error:
    raise EngineMissing("the keyword index", "whoosh3", str(error)) from error

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECENT = 8  # queries whose scores are remembered
DELETED_AT_ONCE = 500
MEMORY = 128  # MB that the writer may take before it writes to disk
LOOK_EVERY = 1024  # documents between two looks at the clock
_KINDS = (NOTE, PASSAGE)


class _AnyOf(query.Or):  # type: ignore[misc]
    """Or that adds up scores in an array: twice as fast as a tree of matchers."""

    matcher_type = query.Or.ARRAY_MATCHER


def whoosh_schema(settings: Keyword) -> Schema:
    """The fields of fields.py, and those that every document has besides."""
    forms, stems, parts, names = _analyzers(settings.stemming)
    own: dict[str, Any] = {
        "key": ID(unique=True),
        HAS: KEYWORD(),
        "kind": COLUMN(columns.NumericColumn("B")),
        "id": COLUMN(columns.NumericColumn("q")),
        "note": COLUMN(columns.NumericColumn("q")),
    }
    for name in FIELDS:
        own[name] = TEXT(analyzer=forms)
        own[name + PART] = TEXT(analyzer=names if name == CODE else parts, phrase=False)
        if name != CODE and settings.stemming != "none":
            own[name + STEM] = TEXT(analyzer=stems, phrase=False)
    return Schema(**own)


def _analyzers(stemming: str) -> tuple[Any, Any, Any, Any]:
    """For forms, for stems, for parts, and for the parts of code."""
    forms = (
        RegexTokenizer(rf"{FORM}|\x1f")
        | LowercaseFilter()
        | StopFilter(stoplist=["\x1f"], minsize=1, renumber=False)
    )
    parts = RegexTokenizer(r"\S+")
    if stemming == "none":
        return forms, forms, parts, parts
    ends = PyStemmerFilter(stemming, cachesize=-1)
    if stemming == "english":
        return forms, forms | ends, parts | ends, parts
    fold = CharsetFilter(accent_map)
    return forms, forms | ends | fold, parts | ends | fold, parts


def open_whoosh(folder: Path, settings: Keyword) -> WhooshEngine:
    """The newest commit. Raises CacheBroken for anything that Whoosh cannot read."""
    try:
        return WhooshEngine(index.open_dir(str(folder)), settings)
    except Exception as error:
        raise _broken(error) from None


def _broken(error: Exception) -> CacheBroken:
    """The error for what Whoosh cannot read. Whoosh leaves the file open; this closes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        error.with_traceback(None)
        gc.collect()
    return CacheBroken(f"Whoosh cannot open the keyword index ({error})")


class WhooshEngine:
    """Implements `Engine` on one commit."""

    k1, b = 1.2, 0.75  # those that tantivy has compiled in

    def __init__(self, opened: Any, settings: Keyword) -> None:
        self._index, self._settings = opened, settings
        self._norms: dict[str, float] = {}
        with opened.reader() as reader:
            weighting = self._weighting(reader)
        self._searcher = opened.searcher(weighting=weighting)
        self._reader = self._searcher.reader()
        self._lock = threading.RLock()  # a reader keeps its place in a file
        self._recent: dict[tuple[str, tuple[Boosted, ...]], Scored] = {}
        self._stemmer = _analyzers(settings.stemming)[2]
        self._learn_ids()

    def _weighting(self, reader: Any) -> Any:
        """BM25F for each field, such that a document without the field counts as one word long,
        and for the body as none: every passage has one.

        Whoosh takes the mean over all documents; with x for the ratio of the two means, its own
        K and B give the same: K (1 - B + B l/mean) = k1 (1 - b + b x l/mean).
        """
        every, fields = reader.doc_count_all(), {}
        for name in reader.schema.names() if every else ():
            words = reader.field_length(name)
            if not words or not reader.schema[name].scorable:
                continue
            having = reader.doc_frequency(HAS, name)
            mean = words / having if name.startswith(MAIN) else (words + every - having) / every
            long = self.k1 * self.b * words / every / mean
            k1 = self.k1 * (1 - self.b) + long
            fields[name] = scoring.BM25F(B=long / k1 if k1 else 0.0, K1=k1)
            self._norms[name] = (1 + self.k1) / (1 + k1)
        return scoring.MultiWeighting(scoring.BM25F(B=self.b, K1=self.k1), **fields)

    def norm(self, name: str) -> float:
        return self._norms.get(name, 1.0)

    def _learn_ids(self) -> None:
        """Which document is which note or passage."""
        living = np.fromiter(self._reader.all_doc_ids(), np.int64)
        of: dict[str, Ids] = {}
        for name in ("kind", "id", "note"):
            column = self._reader.column_reader(name) if len(living) else {}
            of[name] = np.fromiter((column[doc] for doc in living.tolist()), np.int64, len(living))
        self._id_of = np.zeros(self._reader.doc_count_all(), np.int64)
        self._id_of[living] = of["id"]
        self._ids: dict[str, Ids] = {}
        self._docs: dict[str, Ids] = {}
        for number, kind in enumerate(_KINDS):
            rows = np.flatnonzero(of["kind"] == number)
            rows = rows[np.argsort(of["id"][rows], kind="stable")]
            self._ids[kind], self._docs[kind] = of["id"][rows], living[rows]
            if kind == PASSAGE:
                self._notes = of["note"][rows]

    def frequency(self, name: str, term: str) -> int:
        with self._lock:
            return int(self._reader.doc_frequency(name, term)) if self._knows(name) else 0

    def idf(self, name: str, term: str) -> float:
        with self._lock:
            return float(self._searcher.idf(name, term))

    def stem(self, form: str) -> str:
        return next((token.text for token in self._stemmer(form)), form)

    def scores(
        self,
        kind: str,
        terms: Sequence[Boosted],
        *,
        limit: int,
        only: Ids | None,
        deadline: Deadline,
    ) -> Scored:
        key = kind, tuple(terms)
        if not terms or (only is not None and not len(only)):
            return NOTHING
        with self._lock:
            if key in self._recent:
                found = self._recent[key]
                rows = slice(None) if only is None else among(found.ids, only)
                return Scored(found.ids[rows], found.scores[rows])
            docs = None if only is None else set(self._docs_of(kind, only).tolist())
            found = self._search(terms, docs, deadline)
            if only is None and deadline.complete:
                self._recent = {**dict(list(self._recent.items())[1 - RECENT :]), key: found}
            return found

    def _search(
        self, terms: Sequence[Boosted], docs: set[int] | None, deadline: Deadline
    ) -> Scored:
        if deadline.over():
            return NOTHING
        wanted = _AnyOf([query.Term(name, text, boost=boost) for name, text, boost in terms])
        collector = self._searcher.collector(limit=None, filter=docs)
        limited = TimeLimitCollector(collector, timelimit=deadline.left(), use_alarm=False)
        try:
            self._searcher.search_with_collector(wanted, limited)
        except TimeLimit:
            deadline.complete = False
        found = list(limited.results().items())
        numbers = np.fromiter((doc for doc, _ in found), np.int64, len(found))
        scores = np.fromiter((score for _, score in found), np.float64, len(found))
        return Scored(self._id_of[numbers], scores)

    def matching(self, kind: str, leaf: Leaf, deadline: Deadline) -> Ids:
        wanted = [query.Term(*term) for term in leaf.terms if self._knows(term[0])]
        for name, forms, parts in leaf.phrases:
            row = query.Phrase(name, list(forms)) if len(forms) > 1 else query.Term(name, forms[0])
            wanted.append(
                query.And([row, *(query.Term(*part) for part in parts)]) if parts else row
            )
        if not wanted:
            return NO_IDS
        docs: list[int] = []
        with self._lock:
            for number, doc in enumerate(self._searcher.docs_for_query(query.Or(wanted))):
                if number % LOOK_EVERY == 0 and deadline.over():
                    break
                docs.append(doc)
        return np.unique(self._id_of[np.array(docs, np.int64)])

    def holding(self, kind: str, words: Sequence[Terms], ids: Ids) -> NDArray[np.bool_]:
        docs = value_of(ids, self._ids[kind], self._docs[kind])  # a note may have no document
        held = np.zeros((len(words), len(ids)), bool)
        with self._lock:
            for row, terms in zip(held, words, strict=True):
                for term in terms:
                    if term in self._reader:
                        having = np.fromiter(self._reader.postings(*term).all_ids(), np.int64)
                        row |= among(docs, having)
        return held

    def passages(self, notes: Ids | None = None) -> tuple[Ids, Ids]:
        rows = slice(None) if notes is None else among(self._notes, notes)
        return self._ids[PASSAGE][rows], self._notes[rows]

    def notes_of(self, passages: Ids) -> Ids:
        return value_of(passages, self._ids[PASSAGE], self._notes)

    def _docs_of(self, kind: str, ids: Ids) -> Ids:
        return self._docs[kind][among(self._ids[kind], ids)]

    def begins(self, name: str, letters: str) -> list[str]:
        if not self._knows(name):
            return []
        text = self._reader.schema[name].from_bytes
        with self._lock:
            return [text(term) for term in self._reader.expand_prefix(name, letters)]

    def words(self, name: str) -> dict[str, int]:
        text = self._reader.schema[name].from_bytes
        with self._lock:
            return {
                text(term): int(info.doc_frequency())
                for term, info in self._reader.iter_field(name)
            }

    def _knows(self, name: str) -> bool:
        return name in self._reader.schema

    def refresh(self) -> WhooshEngine | None:
        if self._searcher.up_to_date():
            return None
        return WhooshEngine(self._index.refresh(), self._settings)

    def close(self) -> None:
        self._searcher.close()
        self._index.close()


class WhooshWriter:
    """Implements `KeywordWriter`: documents are in memory until the commit."""

    def __init__(self, folder: Path, settings: Keyword) -> None:
        try:
            exists = index.exists_in(str(folder))
            self._index = (
                index.open_dir(str(folder))
                if exists
                else index.create_in(str(folder), whoosh_schema(settings))
            )
        except OSError:
            raise
        except Exception as error:
            raise _broken(error) from None
        self._make = Documents(settings)
        self._put: dict[str, Callable[[], EngineDocument]] = {}
        self._gone: set[str] = set()

    def put(self, notes: Iterable[KeywordNote], passages: Iterable[KeywordPassage]) -> None:
        for note in notes:
            self._put[key_of(NOTE, note.id)] = lambda note=note: self._make.of_note(note)  # type: ignore[misc]
        for passage in passages:
            self._put[key_of(PASSAGE, passage.id)] = lambda one=passage: self._make.of_passage(one)  # type: ignore[misc]

    def add(self, documents: Iterable[EngineDocument]) -> None:
        for document in documents:
            self._put[document.key] = lambda document=document: document  # type: ignore[misc]

    def remove(self, notes: Iterable[int], passages: Iterable[int]) -> None:
        keys = {key_of(NOTE, id_) for id_ in notes} | {key_of(PASSAGE, id_) for id_ in passages}
        self._gone |= keys
        for key in keys:
            self._put.pop(key, None)

    def commit(self) -> None:
        writer = self._index.writer(limitmb=MEMORY)
        try:
            if self._index.doc_count_all():
                self._delete(writer, sorted(self._gone | self._put.keys()))
            for make in self._put.values():
                document = make()
                writer.add_document(
                    key=document.key,
                    has=document.has,
                    kind=_KINDS.index(document.kind),
                    id=document.id,
                    note=document.note,
                    **document.texts,
                )
        except BaseException:
            with suppress(Exception):
                writer.cancel()
            raise
        writer.commit()
        self._put, self._gone = {}, set()

    def _delete(self, writer: Any, keys: Sequence[str]) -> None:
        with self._index.searcher() as searcher:
            for start in range(0, len(keys), DELETED_AT_ONCE):
                some = keys[start : start + DELETED_AT_ONCE]
                wanted = query.Or([query.Term("key", key) for key in some])
                writer.delete_by_query(wanted, searcher=searcher)

    def close(self) -> None:
        self._index.close()
