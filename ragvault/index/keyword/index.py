"""Index: a keyword index as the read path asks it, over either engine.

    spell -> plan -> match (a set of passages, where a word is a condition) -> score -> order

An engine (whoosh.py, tantivy.py) scores documents of one kind by its own BM25 and says which
documents match a leaf. What both have in common is here: a passage's score is its own plus its
note's, conditions are sets of passages, guessed spellings stand last, equal scores go by id.

Notes and passages share one index, which counts documents of both kinds. So a term's boost also
brings the engine's idf to that of the word among documents of its kind (`_asked`), and a field
that a document does not have counts as one word long: otherwise the title of one note among ten
passages would seem ten times as long as usual (garden's questions: nDCG@10 .646 so, .679 now).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from math import log
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from ragvault.config.settings import Keyword
from ragvault.errors import RagvaultError
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
from ragvault.index.keyword.plan import (
    Every,
    Has,
    Match,
    Plan,
    Planner,
    Row,
    Term,
    Without,
    fields_of,
    places_of,
    typos,
)
from ragvault.plan import Covered, KeywordAnswer, KeywordHit, Sought
from ragvault.ports import CacheBroken
from ragvault.text.analyze import Analyzer
from ragvault.text.highlight import highlight
from ragvault.text.spelling import near

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragvault.ports import Allowed

    Ids = NDArray[np.int64]

FETCH = 1_000  # documents fetched at first, best first; more when a filter leaves too few
NOTES = 50  # best notes, by title and by other fields, whose passages take part
FEW = 2_000  # up to so many allowed passages, each is scored
SPELL_SHARE = 0.5  # of the time: what was spelt well must be looked up in the rest


class Scored(NamedTuple):
    """Documents with their scores. `is_all`: no document that was left out has a score."""

    ids: Ids
    scores: NDArray[np.float64]
    is_all: bool = True


NO_IDS = np.zeros(0, np.int64)
NOTHING = Scored(NO_IDS, np.zeros(0))
Boosted = tuple[str, str, float]  # an engine's field, a term, a boost


class Engine(Protocol):
    """One commit of an index. Fields and terms are the engine's own; ids are the catalogue's."""

    k1: float
    b: float

    def frequency(self, name: str, term: str) -> int:
        """How many documents hold a term; removed ones may count until the engine merges."""
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
        """All documents that match one of the leaf's ways in one of its fields, by id."""
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
        """Every term of a field, with the number of documents that hold it."""
        ...

    def refresh(self) -> Engine | None:
        """The newest commit, None when this is it."""
        ...

    def close(self) -> None: ...


class Leaf(NamedTuple):
    """What one document must have: one of these terms, or these forms in a row and all parts.

    `terms` are (field, term); `rows` are (field, forms, parts).
    """

    terms: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]], ...] = ()


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
    """What passages earned: from all note fields, from the title, from their own fields."""

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


@dataclass(slots=True)
class _Asked:
    """One query's terms as the engine takes them, and the most each field could give."""

    title: tuple[Boosted, ...]
    note: tuple[Boosted, ...]  # without the title
    passage: tuple[Boosted, ...]
    bounds: dict[str, float]
    covers: tuple[Covered, ...] = field(default=())


P = ParamSpec("P")
R = TypeVar("R")


def reads(method: Callable[P, R]) -> Callable[P, R]:
    """Whatever an engine makes of damaged files is a broken cache."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (RagvaultError, MemoryError):
            raise
        except Exception as error:
            raise CacheBroken(f"the keyword index cannot be read ({error})") from error

    return guarded


class Index:
    """Keeps the promises of `KeywordIndex` over one engine."""

    def __init__(self, engine: Engine, settings: Keyword) -> None:
        self._engine, self._settings = engine, settings
        self.analyzers = {"": Analyzer(settings.stemming), CODE: Analyzer(code=True)}
        self._boosts = {name: getattr(settings.boosts, name, 1.0) for name in FIELDS}
        self._learn()

    @reads
    def _learn(self) -> None:
        """Forget what was remembered of the commit before."""
        self._frequency = lru_cache(1 << 14)(self._engine.frequency)
        self._stem = lru_cache(1 << 14)(self._engine.stem)
        names = (name + place for name in FIELDS for place in ("", STEM, PART))
        self._having = {
            name: held
            for name in (NOTE, PASSAGE, *names)
            if (held := self._engine.frequency(HAS, name))
        }
        self._documents = self._having.get(NOTE, 0) + self._having.get(PASSAGE, 0)
        self._spelt: dict[Sought, dict[str, tuple[str, ...]]] = {}
        self._guess_scales: dict[Sought, float] = {}

    # --- Asking ---

    @reads
    def search(
        self,
        sought: Sought,
        *,
        limit: int,
        allowed: Allowed = None,
        per_note: int = 0,
        fuzzy: bool = True,
        boosts: Mapping[str, float] | None = None,
        seconds: float | None = None,
    ) -> KeywordAnswer:
        deadline = Deadline(self._settings.seconds if seconds is None else seconds)
        spelt = self._spellings(sought, deadline) if fuzzy and self._settings.fuzzy else {}
        plain, plan = self._plan(sought), self._plan(sought, spelt)
        if plan.is_empty or limit < 1:
            return KeywordAnswer()
        asked = self._asked(plan, boosts)
        typed = self._asked(plain, boosts) if spelt else asked
        best = self._best(plain, asked, typed, limit, per_note, allowed, deadline)
        exact = np.ones(len(best.ids), bool)
        scale = 1.0
        if spelt and len(best.ids) < limit:
            wide = self._best(plan, asked, asked, 2 * limit, per_note, allowed, deadline)
            guesses = wide.at(~np.isin(wide.ids, best.ids))
            scale = _guess_scale(best.total, guesses.total)
            self._guess_scales = {sought: scale}
            best = best.joined(guesses)
            exact = np.arange(len(best.ids)) < len(exact)
        order = _order(best, exact, limit, per_note)
        hits = _hits(best.at(order), exact[order], scale)
        return KeywordAnswer(hits, asked.bounds, spelt, deadline.complete, asked.covers)

    @reads
    def score_of(
        self, sought: Sought, passages: Sequence[int], *, boosts: Mapping[str, float] | None = None
    ) -> KeywordAnswer:
        deadline = Deadline(self._settings.seconds)
        spelt = self._spellings(sought, deadline) if self._settings.fuzzy else {}
        plain, plan = self._plan(sought), self._plan(sought, spelt)
        if plan.is_empty:
            return KeywordAnswer()
        asked = self._asked(plan, boosts)
        ids = np.unique(np.asarray(passages, np.int64))
        found = self._found_among(plan, asked, ids, deadline)
        exact = np.ones(len(found.ids), bool)
        if spelt:
            typed = self._found_among(plain, self._asked(plain, boosts), ids, deadline)
            exact = np.isin(found.ids, typed.ids)
        scale = self._guess_scales.get(sought)
        if scale is None:  # 0 is a scale too: of guesses beside an exact hit that scores nothing
            scale = _guess_scale(found.total[exact], found.total[~exact])
        order = _order(found, exact, len(ids), 0)
        hits = _hits(found.at(order), exact[order], scale)
        return KeywordAnswer(hits, asked.bounds, spelt, deadline.complete, asked.covers)

    @reads
    def matching(self, sought: Sought, seconds: float | None = None) -> Ids | None:
        """Every passage that what is sought finds, ascending; None when the time was too short."""
        deadline = Deadline(self._settings.seconds if seconds is None else seconds)
        plan = Planner(self.analyzers, 0.0).plan(sought)
        match = plan.match
        if match is None:
            leaf = Leaf(
                tuple((name, text) for term in plan.terms for name, text in self._terms(term))
            )
            found = self._of_leaf(leaf, deadline)
        else:
            found = self._matching(match, deadline)
        return found if deadline.complete else None

    def highlight(self, text: str, sought: Sought) -> list[tuple[int, int]]:
        return highlight(text, sought, self.analyzers[""])

    @reads
    def passages(self) -> Ids:
        """Every passage that can be found, ascending."""
        return self._engine.passages()[0]

    @reads
    def words(self) -> dict[str, int]:
        return self._engine.words(MAIN)

    @reads
    def holders(self, term: str) -> int:
        return self._engine.frequency(MAIN, term)

    @reads
    def refresh(self) -> None:
        newer = self._engine.refresh()
        if newer is not None:
            self._engine = newer
            self._learn()

    def close(self) -> None:
        self._engine.close()

    # --- Planning ---

    def _plan(self, sought: Sought, spelt: Mapping[str, tuple[str, ...]] | None = None) -> Plan:
        return Planner(self.analyzers, self._settings.exact, spelt).plan(sought)

    def _spellings(self, sought: Sought, deadline: Deadline) -> dict[str, tuple[str, ...]]:
        """Near spellings of the words that are found nowhere."""
        if sought in self._spelt:
            return self._spelt[sought]
        told: dict[str, tuple[str, ...]] = {}
        for form, name, lookups in typos(sought, self.analyzers):
            if deadline.over(SPELL_SHARE):
                break
            if any(self._is_there(Has(each.form, places_of(each), name)) for each in lookups):
                continue
            found = near(
                form,
                lambda letters, name=name: [  # type: ignore[misc]
                    word for each in fields_of(name) for word in self._engine.begins(each, letters)
                ],
                lambda word, name=name: self._is_there(Has(word, ("",), name)),  # type: ignore[misc]
                most=self._settings.slips,
                limit=self._settings.spellings,
            )
            if found:
                told[form] = found
        if deadline.complete:
            self._spelt = {sought: told}  # scores of the same query are asked for next
        return told

    def _is_there(self, term: Has) -> bool:
        """Whether a document that was not removed holds a term."""
        held = [each for each in self._terms(term) if self._frequency(*each)]
        deadline = Deadline(self._settings.seconds)
        return any(
            len(self._engine.matching(kind_of(_field(name)), Leaf(((name, text),)), deadline))
            for name, text in held
        )

    def _terms(self, term: Term | Has) -> list[tuple[str, str]]:
        """The engine's fields and terms that a term of a plan stands for."""
        return [
            (name + place, self._text(term.form, name, place))
            for name in fields_of(term.field)
            for place in term.places
            if name + place in self._having
        ]

    def _text(self, form: str, name: str, place: str) -> str:
        return form if not place or name == CODE else self._stem(form)

    def _asked(self, plan: Plan, boosts: Mapping[str, float] | None) -> _Asked:
        """The plan's terms with their boosts: what the engine knows nothing of is left out."""
        title: list[Boosted] = []
        note: list[Boosted] = []
        passage: list[Boosted] = []
        bounds = dict.fromkeys(FIELDS, 0.0)
        for term in plan.terms:
            places = self._terms(term)
            held: dict[str, int] = {}
            for name, text in places:
                own = _field(name)
                held[own] = max(held.get(own, 0), self._frequency(name, text))
            for name, text in places:
                own = _field(name)
                if not self._frequency(name, text):
                    continue
                idf = _idf(held[own], self._having.get(kind_of(own), 0))
                scale = self._engine.norm(name) * idf / (self._engine.idf(name, text) or 1.0)
                boost = (boosts or {}).get(own, self._boosts[own])
                if not boost and term.field != own:
                    boost = 1e-6  # still found, and last
                weight = term.weight * boost
                bounds[own] += weight * idf * (self._engine.k1 + 1)
                where = title if own == "title" else note if kind_of(own) == NOTE else passage
                where.append((name, text, weight * scale))
        covers = tuple(filter(None, map(self._covered, plan.terms)))
        return _Asked(tuple(title), tuple(note), tuple(passage), bounds, covers)

    def _covered(self, term: Term) -> Covered | None:
        """What a term weighs in the query: its rarity in the field that has most words."""
        if not term.counts:
            return None
        name = term.field or MAIN
        main = [(each, text) for each, text in self._terms(term) if _field(each) == name]
        held = max((self._frequency(*each) for each in main), default=0)
        if term.optional and not any(self._frequency(*each) for each in self._terms(term)):
            return None
        every = self._having.get(kind_of(name), 0)
        return Covered(term.term, term.field, term.weight * _idf(held, every), term.near)

    # --- Matching ---

    def _matching(self, match: Match, deadline: Deadline) -> Ids:
        """The passages that a tree finds, ascending."""
        if isinstance(match, Has):
            return self._of_leaf(Leaf(tuple(self._terms(match))), deadline)
        if isinstance(match, Row):
            rows = tuple(
                (
                    name,
                    match.forms,
                    tuple((name + PART, self._text(part, name, PART)) for part in match.parts),
                )
                for name in fields_of(match.field)
                if name in self._having
            )
            return self._of_leaf(Leaf(rows=rows), deadline)
        if isinstance(match, Without):
            return np.setdiff1d(
                self._engine.passages()[0], self._matching(match.part, deadline), assume_unique=True
            )
        found: Ids | None = None
        join: Callable[[Ids, Ids], Ids] = np.intersect1d if isinstance(match, Every) else np.union1d
        for part in match.parts:
            if found is not None and not len(found) and isinstance(match, Every):
                break
            own = self._matching(part, deadline)
            found = own if found is None else join(found, own)
        return NO_IDS if found is None else found

    def _of_leaf(self, leaf: Leaf, deadline: Deadline) -> Ids:
        if deadline.over():
            return NO_IDS
        own = self._engine.matching(PASSAGE, _of_kind(leaf, PASSAGE), deadline)
        notes = self._engine.matching(NOTE, _of_kind(leaf, NOTE), deadline)
        if not len(notes):
            return own
        return np.union1d(own, self._engine.passages(notes)[0])

    # --- Scoring ---

    def _best(
        self,
        plan: Plan,
        asked: _Asked,
        needed: _Asked,
        limit: int,
        per_note: int,
        allowed: Allowed,
        deadline: Deadline,
    ) -> _Scores:
        """At least the best `limit` of the allowed passages that the plan finds.

        All that is `asked` scores; without a tree to match, one term that is `needed` is there.
        """
        only = None if allowed is None else np.asarray(allowed, np.int64)
        if plan.match is not None:
            matching = self._matching(plan.match, deadline)
            if not deadline.complete:
                return self._scored(NO_IDS, asked, deadline)
            only = matching if only is None else np.intersect1d(only, matching)
        if only is not None and len(only) <= FEW:
            return self._found(self._scored(only, asked, deadline), plan, asked, needed, deadline)
        fetch = max(FETCH, 2 * limit)
        while True:
            ids, is_all = self._promising(needed, fetch, deadline)
            ids = ids if only is None else ids[np.isin(ids, only)]
            scored = self._scored(ids, asked, deadline)
            scored = self._found(scored, plan, asked, needed, deadline)
            enough = len(np.unique(scored.notes)) * per_note if per_note else len(scored.ids)
            if is_all or enough >= limit or fetch >= self._documents or deadline.over():
                break
            fetch *= 8
        if plan.match is not None and only is not None and len(scored.ids) < limit:
            rest = np.setdiff1d(only, scored.ids)[:limit]  # they match, and have no score
            scored = scored.joined(self._scored(rest, asked, deadline))
        return scored

    def _promising(self, asked: _Asked, fetch: int, deadline: Deadline) -> tuple[Ids, bool]:
        """The passages that score best by themselves, and those of the best notes."""
        own = self._engine.scores(PASSAGE, asked.passage, limit=fetch, only=None, deadline=deadline)
        best, is_all, most = NO_IDS, own.is_all, fetch // FETCH * NOTES
        for terms in (asked.title, asked.note):
            notes = self._engine.scores(NOTE, terms, limit=fetch, only=None, deadline=deadline)
            rows = np.argsort(-notes.scores, kind="stable")[:most]
            best = np.union1d(best, notes.ids[rows])
            is_all = is_all and notes.is_all and len(notes.ids) <= most
        of_notes = self._engine.passages(best)[0] if len(best) else NO_IDS
        return np.union1d(own.ids, of_notes), is_all

    def _scored(self, ids: Ids, asked: _Asked, deadline: Deadline) -> _Scores:
        """What each of these passages earns; `ids` are ascending."""
        notes = self._engine.notes_of(ids)
        ids, notes = ids[notes >= 0], notes[notes >= 0]
        own = self._of(PASSAGE, asked.passage, ids, deadline)
        title = self._of(NOTE, asked.title, notes, deadline)
        other = self._of(NOTE, asked.note, notes, deadline)
        return _Scores(ids, notes, title + other, title, own)

    def _of(
        self, kind: str, terms: tuple[Boosted, ...], ids: Ids, deadline: Deadline
    ) -> NDArray[np.float64]:
        """The scores of these documents, in their order; 0 for those that hold no term."""
        if not terms or not len(ids):
            return np.zeros(len(ids))
        only = np.unique(ids)
        found = self._engine.scores(kind, terms, limit=len(only), only=only, deadline=deadline)
        scores = np.zeros(len(only))
        known = np.isin(found.ids, only)
        scores[np.searchsorted(only, found.ids[known])] = found.scores[known]
        return scores[np.searchsorted(only, ids)]

    def _found(
        self, scored: _Scores, plan: Plan, asked: _Asked, needed: _Asked, deadline: Deadline
    ) -> _Scores:
        """Those that the plan finds."""
        if plan.match is not None:
            return scored
        typed = scored if needed is asked else self._scored(scored.ids, needed, deadline)
        return scored.at(typed.total > 0)

    def _found_among(self, plan: Plan, asked: _Asked, ids: Ids, deadline: Deadline) -> _Scores:
        if plan.match is not None:
            ids = np.intersect1d(ids, self._matching(plan.match, deadline))
        return self._found(self._scored(ids, asked, deadline), plan, asked, asked, deadline)


def _field(name: str) -> str:
    """The field that an engine's field is of."""
    return name.removesuffix(STEM).removesuffix(PART)


def _idf(held: int, every: int) -> float:
    return log(1 + (max(every, held) - held + 0.5) / (held + 0.5))


def _of_kind(leaf: Leaf, kind: str) -> Leaf:
    return Leaf(
        tuple(each for each in leaf.terms if kind_of(_field(each[0])) == kind),
        tuple(each for each in leaf.rows if kind_of(each[0]) == kind),
    )


def _guess_scale(exact: NDArray[np.float64], guesses: NDArray[np.float64]) -> float:
    """What to multiply the scores of guesses by, so that the best stays below every exact hit."""
    if not len(exact) or not len(guesses):
        return 1.0
    lowest, highest = float(exact.min()), float(guesses.max())
    return 1.0 if highest < lowest else 0.99 * lowest / highest if highest > 0 else 1.0


def _order(found: _Scores, exact: NDArray[np.bool_], limit: int, per_note: int) -> Ids:
    """Rows, best first: exact before guessed, then by score, then by id."""
    order = np.lexsort((found.ids, -found.total, ~exact))
    if per_note:
        seen: Counter[int] = Counter()
        kept = []
        for row in order.tolist():
            note = int(found.notes[row])
            seen[note] += 1
            if seen[note] <= per_note:
                kept.append(row)
        order = np.array(kept, np.int64)
    return order[:limit].astype(np.int64)


def _hits(found: _Scores, exact: NDArray[np.bool_], scale: float) -> tuple[KeywordHit, ...]:
    by = np.where(exact, 1.0, scale)
    columns = (
        found.ids,
        found.notes,
        found.total * by,
        found.of_note * by,
        found.own * by,
        found.of_title * by,
        ~exact,
    )
    return tuple(KeywordHit(*row) for row in zip(*(each.tolist() for each in columns), strict=True))
