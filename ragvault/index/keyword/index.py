"""Index: the keyword index that the read path uses, over either engine.

    terms -> match (a set of passages, if words are conditions) -> score -> order

An engine (whoosh.py, tantivy.py) scores documents of one kind by its own BM25, and finds the
documents that match a leaf. Everything else is here and the same for both: a passage's score is
its own plus its note's, conditions are sets of passages, and equal scores are ordered by id.

Notes and passages are documents of one index, so the engine's idf counts both. The boost of a term
therefore also corrects its idf to that among documents of one kind (`_engine_query`). A field that
a document does not have counts as one word long: otherwise the title of one note among ten passages
would seem ten times as long as usual (garden's questions: nDCG@10 .646 without this, .679 with it).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial, wraps
from math import log
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from ragvault.config.settings import Keyword
from ragvault.errors import RagvaultError
from ragvault.index.ids import Ids, among, both
from ragvault.index.keyword.fields import (
    CODE,
    FIELDS,
    HAS,
    MAIN,
    NOTE,
    PART,
    PASSAGE,
    STEM,
    kind_of,
)
from ragvault.index.keyword.terms import (
    HasPhrase,
    HasTerm,
    Match,
    ScoredTerm,
    fields_of,
    places_of,
    search_terms,
    typos,
)
from ragvault.plan import (
    And,
    KeywordAnswer,
    KeywordHit,
    KeywordQuery,
    Not,
    Or,
    Spelling,
    Words,
    leaves,
)
from ragvault.ports import CacheBroken
from ragvault.text.analyze import STEM as STEMMED
from ragvault.text.analyze import Analyzer, highlight
from ragvault.text.spelling import SURE, foreign_words, near

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragvault.ports import Allowed

FETCH = 1_000  # documents fetched at first, best first; more when a filter leaves too few
NOTES = 50  # best notes, by title and by other fields, whose passages take part
AS_TYPED = 0.2  # what the word as it was typed adds to the match of its stem
MOST_SLIPS = 2  # in words of eight letters or more; shorter ones get one
SPELLINGS = 3  # similar spellings of a word that are looked for
FEW = 2_000  # up to so many allowed passages, each is scored


class Scored(NamedTuple):
    """Documents with their scores. `is_all`: no document that was left out has a score."""

    ids: Ids
    scores: NDArray[np.float64]
    is_all: bool = True


NO_IDS = np.zeros(0, np.int64)
NOTHING = Scored(NO_IDS, np.zeros(0))
Boosted = tuple[str, str, float]  # an engine's field, a term, a boost
Terms = tuple[tuple[str, str], ...]  # engine's fields and terms, of which one is enough


class Engine(Protocol):
    """One commit of an index. Fields and terms are the engine's own; ids are the catalogue's."""

    k1: float
    b: float

    def frequency(self, name: str, term: str) -> int:
        """How many documents have a term; removed ones may count until the engine merges."""
        ...

    def idf(self, name: str, term: str) -> float:
        """The idf that the engine scores a term with."""
        ...

    def norm(self, name: str) -> float:
        """What scores of a field are multiplied by to be BM25 among documents that have it."""
        ...

    def stem(self, form: str) -> str:
        """What the engine's own stemmer makes of a word."""
        ...

    def scores(
        self,
        kind: str,
        terms: Sequence[Boosted],
        *,
        limit: int,
        only: Ids | None,
        deadline: Deadline,
    ) -> Scored:
        """At least the best `limit` documents with one of the terms; `only` these ids."""
        ...

    def matching(self, kind: str, leaf: Leaf, deadline: Deadline) -> Ids:
        """All documents that match one of the leaf's ways, by id."""
        ...

    def holding(self, kind: str, words: Sequence[Terms], ids: Ids) -> NDArray[np.bool_]:
        """Which of these documents have one of the terms of each word: a row for each word."""
        ...

    def passages(self, notes: Ids | None = None) -> tuple[Ids, Ids]:
        """The passages of some notes, or all: their ids, ascending, and their notes."""
        ...

    def notes_of(self, passages: Ids) -> Ids:
        """The note of each passage, in the order given; -1 for one that is not there."""
        ...

    def begins(self, name: str, letters: str) -> list[str]:
        """The terms of a field with a beginning."""
        ...

    def words(self, name: str) -> dict[str, int]:
        """Every term of a field, with the number of documents that have it."""
        ...

    def refresh(self) -> Engine | None:
        """The newest commit, None when this is it."""
        ...

    def close(self) -> None: ...


class Leaf(NamedTuple):
    """What a document must have: one of these terms, or one of these phrases.

    `terms` are (field, term). `phrases` are (field, forms next to each other, parts anywhere).
    """

    terms: Terms = ()
    phrases: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]], ...] = ()

    def of_kind(self, kind: str) -> Leaf:
        phrases = tuple(each for each in self.phrases if kind_of(each[0]) == kind)
        return Leaf(_of_kind(self.terms, kind), phrases)


class Deadline:
    """Until when a search may take. `complete` turns False once something was left out."""

    def __init__(self, seconds: float) -> None:
        self._began, self._seconds = monotonic(), seconds
        self.complete = True

    def left(self) -> float:
        return self._seconds - (monotonic() - self._began)

    def over(self, share: float = 1.0) -> bool:
        """Whether this share of the time has passed; what comes after is left out."""
        late = monotonic() - self._began >= share * self._seconds
        if late:
            self.complete = False
        return late


class _Scores(NamedTuple):
    """Scores of passages: from all note fields, from the title, from their own fields."""

    ids: Ids
    notes: Ids
    of_note: NDArray[np.float64]
    of_title: NDArray[np.float64]
    own: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        return self.of_note + self.own

    def at(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> _Scores:
        return _Scores._make(each[rows] for each in self)

    def joined(self, more: _Scores) -> _Scores:
        return _Scores._make(map(np.concatenate, zip(self, more, strict=True)))


class _EngineQuery(NamedTuple):
    """A query in the engine's own fields and terms, with their boosts.

    `match` is None if one term is enough. `bounds` is the highest score that each field can give.
    `words` are the words that coverage counts: where each is looked up, and how rare it is.
    """

    match: Match | None
    title: tuple[Boosted, ...]
    note: tuple[Boosted, ...]  # without the title
    passage: tuple[Boosted, ...]
    bounds: Mapping[str, float]
    words: tuple[tuple[Terms, float], ...]


P = ParamSpec("P")
R = TypeVar("R")


def _reads(method: Callable[P, R]) -> Callable[P, R]:
    """Raise CacheBroken for whatever an engine raises when its files are damaged."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (RagvaultError, MemoryError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in Rust is no Exception
            raise CacheBroken(f"the keyword index cannot be read ({error})") from error

    return guarded


class Index:
    """Implements `KeywordIndex` over one engine."""

    def __init__(self, engine: Engine, settings: Keyword) -> None:
        self._engine, self._settings = engine, settings
        self.analyzers = {"": Analyzer(settings.stemming), CODE: Analyzer(code=True)}
        self._boosts = {name: getattr(settings.boosts, name, 1.0) for name in FIELDS}
        self._learn()

    @_reads
    def _learn(self) -> None:
        """Read what is needed of a new commit, and drop what was remembered of the last one."""
        self._frequency = lru_cache(1 << 14)(self._engine.frequency)
        self._stem = lru_cache(1 << 14)(self._engine.stem)
        names = (name + place for name in FIELDS for place in ("", STEM, PART))
        # How many documents have each field.
        self._having = {
            name: count
            for name in (NOTE, PASSAGE, *names)
            if (count := self._engine.frequency(HAS, name))
        }
        self._documents = self._having.get(NOTE, 0) + self._having.get(PASSAGE, 0)

    # --- Search ---

    @_reads
    def search(
        self,
        query: KeywordQuery,
        *,
        limit: int,
        allowed: Allowed = None,
        coverage: bool = True,
    ) -> KeywordAnswer:
        deadline = Deadline(self._settings.seconds)
        wanted = self._engine_query(query)
        if limit < 1:
            return KeywordAnswer()
        best = self._best(wanted, limit, allowed, deadline)
        if not coverage:
            wanted = wanted._replace(words=())
        return self._answer(best.at(_order(best)[:limit]), wanted, deadline)

    @_reads
    def score_of(self, query: KeywordQuery, passages: Sequence[int]) -> KeywordAnswer:
        deadline = Deadline(self._settings.seconds)
        wanted = self._engine_query(query)
        ids = np.unique(np.asarray(passages, np.int64))
        if wanted.match is not None:
            ids = np.intersect1d(ids, self._matching(wanted.match, deadline))
        found = self._found(ids, wanted, deadline)
        return self._answer(found.at(_order(found)), wanted, deadline)

    @_reads
    def matching(self, query: KeywordQuery) -> Ids | None:
        """Every passage that matches a query, ascending; None if the time was too short."""
        deadline = Deadline(self._settings.seconds)
        terms, match = search_terms(query, self.analyzers, 0.0)
        if match is None:
            places = (each for term in terms for each in self._terms(term))
            found = self._matching_leaf(Leaf(tuple(places)), deadline)
        else:
            found = self._matching(match, deadline)
        return found if deadline.complete else None

    def highlight(self, text: str, query: KeywordQuery) -> list[tuple[int, int]]:
        return highlight(text, query, self.analyzers[""])

    @_reads
    def passages(self) -> Ids:
        """Every passage that can be found, ascending."""
        return self._engine.passages()[0]

    @_reads
    def words(self) -> dict[str, int]:
        return self._engine.words(MAIN)

    @_reads
    def share(self, word: str) -> float:
        every = self._having.get(PASSAGE, 0)
        places = self._terms(HasTerm(word, ("", STEM), MAIN))
        count = max((self._frequency(*place) for place in places), default=0)
        return min(1.0, count / every) if every else 0.0

    @_reads
    def holders(self, term: str) -> int:
        return self._engine.frequency(MAIN, term)

    @_reads
    def refresh(self) -> None:
        newer = self._engine.refresh()
        if newer is not None:
            self._engine = newer
            self._learn()

    def close(self) -> None:
        self._engine.close()

    # --- Spellings and terms ---

    @_reads
    def corrected(
        self, query: KeywordQuery, is_word: Callable[[str], bool] = lambda _: False
    ) -> KeywordQuery:
        if not self._settings.fuzzy:
            return query
        deadline = Deadline(self._settings.seconds)
        unknown = [
            (form, field)
            for form, field, lookups in typos(query, self.analyzers)
            if not any(self._is_there(HasTerm(e.form, places_of(e), field)) for e in lookups)
        ]
        forms = {form for form, _ in unknown}
        if not forms or forms & foreign_words():  # the query is in another language
            return query
        fits = self._meets(query, forms, deadline)
        found: dict[str, tuple[Spelling, ...]] = {}
        for form, field in unknown:
            if deadline.over():
                break
            if is_word(form):
                continue
            words = near(
                form,
                partial(self._beginning_with, field),
                partial(self._word_count, field),
                most=MOST_SLIPS,
                limit=SPELLINGS,
                stem=self._stem,
                fits=fits,
            )
            own = (Spelling(form, word, SURE[slips]) for word, slips in words)
            found[field] = (*found.get(field, ()), *own)
        return _with_spellings(query, found)

    def _meets(
        self, query: KeywordQuery, forms: Container[str], deadline: Deadline
    ) -> Callable[[str], bool] | None:
        """Whether a word is in a passage with all other words of the query; None if none is."""
        typed = " ".join(leaf.text for leaf in leaves(query, negated=False))
        known = [
            word
            for *_, word in self.analyzers[""].words(typed)
            if not word.stop and not any(form in forms for form in word.forms)
        ]
        rest = " ".join(form for word in known for form in word.forms)
        _, match = search_terms(Words(rest, every=True), self.analyzers, 0.0)
        with_rest = NO_IDS if match is None else self._matching(match, deadline)
        if not len(with_rest):
            return None

        def meets(word: str) -> bool:
            own = self._matching(HasTerm(word, (STEM, PART), ""), deadline)
            return bool(np.isin(own, with_rest).any())

        return meets

    def _beginning_with(self, field: str, letters: str) -> list[str]:
        return [word for name in fields_of(field) for word in self._engine.begins(name, letters)]

    def _word_count(self, field: str, word: str) -> int:
        """How many documents have a word; 0 if all that had it were removed."""
        term = HasTerm(word, ("",), field)
        if not self._is_there(term):
            return 0
        return max(self._frequency(*each) for each in self._terms(term))

    def _is_there(self, term: HasTerm) -> bool:
        """Whether a document that was not removed has a term."""
        deadline = Deadline(self._settings.seconds)
        for name, text in self._terms(term):
            if self._frequency(name, text):
                kind, one = kind_of(_field(name)), [(name, text, 1.0)]
                found = self._engine.scores(kind, one, limit=1, only=None, deadline=deadline)
                if len(found.ids):
                    return True
        return False

    def _terms(self, term: ScoredTerm | HasTerm) -> list[tuple[str, str]]:
        """The engine's fields and terms to look a term up in."""
        return [
            (name + place, self._text(term.form, name, place))
            for name in fields_of(term.field)
            for place in term.places
            if name + place in self._having
        ]

    def _text(self, form: str, name: str, place: str) -> str:
        return form if not place or name == CODE else self._stem(form)

    def _engine_query(self, query: KeywordQuery) -> _EngineQuery:
        """The terms of the query that the engine knows, with their boosts."""
        terms, match = search_terms(query, self.analyzers, AS_TYPED)
        title: list[Boosted] = []
        note: list[Boosted] = []
        passage: list[Boosted] = []
        # By field, misspelt word and term.
        highest: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        for term in terms:
            places = self._terms(term)
            most: dict[str, int] = {}
            for name, text in places:
                field = _field(name)
                most[field] = max(most.get(field, 0), self._frequency(name, text))
            for name, text in places:
                if not self._frequency(name, text):
                    continue
                field = _field(name)
                idf = _idf(most[field], self._having.get(kind_of(field), 0))
                scale = self._engine.norm(name) * idf / (self._engine.idf(name, text) or 1.0)
                boost = self._boosts[field]
                if not boost and term.field != field:
                    boost = 1e-6  # a field without a boost still finds, and ranks last
                weight = term.weight * boost
                highest[field, term.corrects, term.form] += weight * idf * (self._engine.k1 + 1)
                where = title if field == "title" else note if kind_of(field) == NOTE else passage
                where.append((name, text, weight * term.sure * scale))
        return _EngineQuery(
            match,
            tuple(title),
            tuple(note),
            tuple(passage),
            _bounds(highest),
            self._words(terms),
        )

    def _words(self, terms: Sequence[ScoredTerm]) -> tuple[tuple[Terms, float], ...]:
        """What coverage counts. One of the spellings of a word is enough, the rarest weighs."""
        places: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        rarity: defaultdict[tuple[str, str], float] = defaultdict(float)
        for term in terms:
            own = self._terms(term)
            if not term.counts or (term.optional and not any(self._frequency(*e) for e in own)):
                continue
            word = term.corrects or term.term, term.field
            rarity[word] = max(rarity[word], term.weight * self._rarity(term, own))
            if self._stems_alone(term):
                own = self._terms(HasTerm(term.form, ("",), term.field))
            places[word] += own
        return tuple((tuple(places[word]), rarity[word]) for word in places)

    def _stems_alone(self, term: ScoredTerm) -> bool:
        """Whether its stem is a word that has none: `not` is not the word of a query for nots."""
        stem = term.term.removeprefix(STEMMED)
        return stem != term.term and self.analyzers[""].term_of(stem) == stem

    def _rarity(self, term: ScoredTerm, places: Sequence[tuple[str, str]]) -> float:
        """Of a term, in the field that has most words."""
        main = term.field or MAIN
        counts = (self._frequency(*each) for each in places if _field(each[0]) == main)
        return _idf(max(counts, default=0), self._having.get(kind_of(main), 0))

    # --- Matching ---

    def _matching(self, match: Match, deadline: Deadline) -> Ids:
        """The passages that match a tree, ascending."""
        if isinstance(match, HasTerm):
            return self._matching_leaf(Leaf(tuple(self._terms(match))), deadline)
        if isinstance(match, HasPhrase):
            return self._matching_leaf(self._phrase_leaf(match), deadline)
        if isinstance(match, Not):
            unwanted = self._matching(match.part, deadline)
            return np.setdiff1d(self._engine.passages()[0], unwanted, assume_unique=True)
        found: Ids | None = None
        join: Callable[[Ids, Ids], Ids] = np.intersect1d if isinstance(match, And) else np.union1d
        for part in match.parts:
            if found is not None and not len(found) and isinstance(match, And):
                break
            own = self._matching(part, deadline)
            found = own if found is None else join(found, own)
        return NO_IDS if found is None else found

    def _phrase_leaf(self, phrase: HasPhrase) -> Leaf:
        return Leaf(
            phrases=tuple(
                (
                    name,
                    phrase.forms,
                    tuple((name + PART, self._text(part, name, PART)) for part in phrase.parts),
                )
                for name in fields_of(phrase.field)
                if name in self._having
            )
        )

    def _answer(self, found: _Scores, query: _EngineQuery, deadline: Deadline) -> KeywordAnswer:
        rarity = np.array([rarity for _, rarity in query.words])
        scores = (found.ids, found.notes, found.total, found.of_note, found.own, found.of_title)
        columns = (each.tolist() for each in (*scores, self._coverage(found, query, rarity)))
        hits = tuple(map(KeywordHit, *columns))
        return KeywordAnswer(hits, query.bounds, deadline.complete, float(rarity.sum()))

    def _coverage(
        self, found: _Scores, query: _EngineQuery, rarity: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The share of the query that each passage and its note contain."""
        words = [terms for terms, _ in query.words]
        passages, notes = np.unique(found.ids), np.unique(found.notes)
        own = self._engine.holding(PASSAGE, [_of_kind(e, PASSAGE) for e in words], passages)
        of_note = self._engine.holding(NOTE, [_of_kind(e, NOTE) for e in words], notes)
        held = own[:, np.searchsorted(passages, found.ids)]
        held |= of_note[:, np.searchsorted(notes, found.notes)]
        return np.minimum(rarity @ held / (rarity.sum() or 1.0), 1.0)

    def _matching_leaf(self, leaf: Leaf, deadline: Deadline) -> Ids:
        if deadline.over():
            return NO_IDS
        own = self._engine.matching(PASSAGE, leaf.of_kind(PASSAGE), deadline)
        notes = self._engine.matching(NOTE, leaf.of_kind(NOTE), deadline)
        if not len(notes):
            return own
        return np.union1d(own, self._engine.passages(notes)[0])

    # --- Scoring ---

    def _best(
        self,
        query: _EngineQuery,
        limit: int,
        allowed: Allowed,
        deadline: Deadline,
    ) -> _Scores:
        """At least the best `limit` of the allowed passages that a query finds."""
        only = None if allowed is None else np.asarray(allowed, np.int64)
        if query.match is not None:
            matching = self._matching(query.match, deadline)
            if not deadline.complete:
                return self._scores(NO_IDS, query, deadline)
            only = both(only, matching)
        if only is not None and len(only) <= FEW:
            return self._found(only, query, deadline)
        fetch = max(FETCH, 2 * limit)
        while True:
            ids, is_all = self._promising(query, fetch, deadline)
            ids = ids if only is None else ids[among(ids, only)]
            found = self._found(ids, query, deadline)
            if is_all or len(found.ids) >= limit or fetch >= self._documents or deadline.over():
                break
            fetch *= 8
        if query.match is not None and only is not None and len(found.ids) < limit:
            rest = np.setdiff1d(only, found.ids)[:limit]  # they match, and score nothing
            found = found.joined(self._scores(rest, query, deadline))
        return found

    def _promising(self, query: _EngineQuery, fetch: int, deadline: Deadline) -> tuple[Ids, bool]:
        """The passages that score best by themselves, and those of the best notes."""
        own = self._engine.scores(PASSAGE, query.passage, limit=fetch, only=None, deadline=deadline)
        best, is_all, most = NO_IDS, own.is_all, fetch // FETCH * NOTES
        for terms in (query.title, query.note):
            notes = self._engine.scores(NOTE, terms, limit=fetch, only=None, deadline=deadline)
            rows = np.argsort(-notes.scores, kind="stable")[:most]
            best = np.union1d(best, notes.ids[rows])
            is_all = is_all and notes.is_all and len(notes.ids) <= most
        of_notes = self._engine.passages(best)[0] if len(best) else NO_IDS
        return np.union1d(own.ids, of_notes), is_all

    def _found(self, ids: Ids, query: _EngineQuery, deadline: Deadline) -> _Scores:
        """Those that have a term of the query, with their scores; `ids` match its tree."""
        scores = self._scores(ids, query, deadline)
        return scores if query.match is not None else scores.at(scores.total > 0)

    def _scores(self, ids: Ids, query: _EngineQuery, deadline: Deadline) -> _Scores:
        """The scores of these passages; `ids` are ascending."""
        notes = self._engine.notes_of(ids)
        ids, notes = ids[notes >= 0], notes[notes >= 0]
        own = self._scores_of_kind(PASSAGE, query.passage, ids, deadline)
        title = self._scores_of_kind(NOTE, query.title, notes, deadline)
        other = self._scores_of_kind(NOTE, query.note, notes, deadline)
        return _Scores(ids, notes, title + other, title, own)

    def _scores_of_kind(
        self, kind: str, terms: tuple[Boosted, ...], ids: Ids, deadline: Deadline
    ) -> NDArray[np.float64]:
        """The scores of these documents, in their order; 0 for those that have no term."""
        if not terms or not len(ids):
            return np.zeros(len(ids))
        only = np.unique(ids)
        found = self._engine.scores(kind, terms, limit=len(only), only=only, deadline=deadline)
        scores = np.zeros(len(only))
        known = among(found.ids, only)
        scores[np.searchsorted(only, found.ids[known])] = found.scores[known]
        return scores[np.searchsorted(only, ids)]


def _field(name: str) -> str:
    """The field that an engine's field is of."""
    return name.removesuffix(STEM).removesuffix(PART)


def _idf(count: int, every: int) -> float:
    return log(1 + (max(every, count) - count + 0.5) / (count + 0.5))


def _of_kind(terms: Terms, kind: str) -> Terms:
    return tuple(each for each in terms if kind_of(_field(each[0])) == kind)


def _bounds(highest: Mapping[tuple[str, str, str], float]) -> dict[str, float]:
    """The highest score that each field can give: of a corrected word by one of its spellings."""
    bounds = dict.fromkeys(FIELDS, 0.0)
    corrected: dict[tuple[str, str], float] = {}
    for (field, word, _), score in highest.items():
        if word:
            corrected[field, word] = max(score, corrected.get((field, word), 0.0))
        else:
            bounds[field] += score
    for (field, _), score in corrected.items():
        bounds[field] += score
    return bounds


def _with_spellings(query: KeywordQuery, found: Mapping[str, tuple[Spelling, ...]]) -> KeywordQuery:
    """The query, each of its free words with the spellings of its field."""
    if isinstance(query, Words):
        return replace(query, spellings=found.get(query.field, ()))
    if isinstance(query, And | Or):
        return replace(query, parts=tuple(_with_spellings(part, found) for part in query.parts))
    return query


def _order(found: _Scores) -> Ids:
    """Rows, best first: by score, then by id."""
    return np.lexsort((found.ids, -found.total)).astype(np.int64)
