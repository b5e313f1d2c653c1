"""Plan: what was sought, as terms to score and a tree to match, for any engine.

    Words("configuring C++")  ->  score ~configur 1.0, configuring 0.2, c++ 1.0, c 0.5
                                  match any of them

Stop words are dropped where other words are left: their lists are the longest and tell nothing.
In a phrase they stay. Knows the analyzers and no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ragvault.errors import UsageError
from ragvault.index.keyword.fields import CODE, FIELDS, PART, STEM
from ragvault.plan import AllOf, Not, Phrase, Sought, Words
from ragvault.text.analyze import Analyzer, Lookup, Word
from ragvault.text.highlight import words_and_phrases
from ragvault.text.spelling import SHORTEST

MAX_WORDS = 256  # of one query, the first ones: a whole page as a query must answer too
WORD_FIELDS = tuple(name for name in FIELDS if name != CODE)


class Term(NamedTuple):
    """One term to score, in one field or (empty) in all that words are looked up in.

    `places` are the endings of the engine's fields it is looked up in. A term that does not
    `count` only shows that a word is written as typed; an `optional` one, a compound as a whole,
    costs no coverage where nobody writes it so; a `near` one is a guessed spelling.
    """

    term: str
    form: str
    field: str
    weight: float
    places: tuple[str, ...]
    counts: bool = True
    optional: bool = False
    near: bool = False


class Has(NamedTuple):
    """Holds this lookup in `field` (empty: in any field)."""

    form: str
    places: tuple[str, ...]
    field: str


class Row(NamedTuple):
    """Holds these forms in a row, and these parts anywhere, in one field."""

    forms: tuple[str, ...]
    parts: tuple[str, ...]
    field: str


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class Without:
    part: Match


Match = Has | Row | Every | Some | Without


@dataclass(frozen=True, slots=True)
class Plan:
    """`match` is None where one scored term is enough to be found."""

    terms: tuple[Term, ...]
    match: Match | None

    @property
    def is_empty(self) -> bool:
        return not self.terms and self.match is None


def places_of(lookup: Lookup) -> tuple[str, ...]:
    """A word is looked up by its stem, anything else as it stands; both among the parts too."""
    return (STEM, PART) if lookup.by_stem else ("", PART)


class Planner:
    """Plans what one query seeks.

    `near` gives, for a form that is found nowhere, the words to look up beside it.
    """

    def __init__(
        self,
        analyzers: Mapping[str, Analyzer],
        exact: float,
        near: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._analyzers, self._exact, self._near = analyzers, exact, near or {}
        self._stops = False  # look up stop words too
        self._terms: dict[tuple[str, str, bool], Term] = {}

    def plan(self, sought: Sought) -> Plan:
        """The terms of everything that is not negated, and the tree of everything."""
        _check_fields(sought)
        words = [word for leaf in words_and_phrases(sought) for _, _, word in self._words(leaf)]
        self._stops = all(word.stop for word in words)
        match = self._match(sought, scored=True)
        return Plan(tuple(self._terms.values()), None if _is_any(sought) else match)

    def _match(self, sought: Sought, scored: bool) -> Match | None:
        if isinstance(sought, Words):
            return self._any_or_every(sought, scored)
        if isinstance(sought, Phrase):
            return self._row(sought, scored)
        if isinstance(sought, Not):
            part = self._match(sought.part, scored=False)
            return part and Without(part)
        found = [self._match(part, scored) for part in sought.parts]
        parts = tuple(part for part in found if part is not None)
        if not parts:
            return None
        return Every(parts) if isinstance(sought, AllOf) else Some(parts)

    def _any_or_every(self, sought: Words, scored: bool) -> Match | None:
        words = [w for _, _, w in self._words(sought) if self._stops or not w.stop]
        if scored:
            self._score(words, sought)
        if not words:
            return None
        if sought.every:
            return Every(tuple(self._whole(word, sought.field) for word in words))
        lookups = [lookup for word in words for lookup in (*word.lookups, *self._guesses(word))]
        return Some(tuple(dict.fromkeys(_has(lookup, sought.field) for lookup in lookups)))

    def _whole(self, word: Word, field: str) -> Match:
        """All lookups of a group, or what stands in for those that are misspelt."""
        forms = dict(word.typos)

        def one(lookup: Lookup) -> Match:
            near = [_has(other, field) for other in self._spellings(forms.get(lookup, ""))]
            return Some((_has(lookup, field), *near)) if near else _has(lookup, field)

        return Some(tuple(Every(tuple(map(one, group))) for group in word.groups))

    def _row(self, sought: Phrase, scored: bool) -> Match | None:
        words = [word for _, _, word in self._words(sought)]
        if scored:
            self._score((word for word in words if self._stops or not word.stop), sought)
        forms = tuple(form for word in words for form in word.forms)
        parts = tuple(word.name for word in words if word.name)
        return Row(forms, parts, sought.field) if forms else None

    def _score(self, words: Iterable[Word], leaf: Words | Phrase) -> None:
        field, weight = leaf.field, leaf.weight
        for word in words:
            for lookup in word.lookups:
                optional = len(word.groups) > 1 and lookup == word.groups[0][0]
                share = weight * lookup.weight
                places = places_of(lookup)
                self._add(Term(lookup.term, lookup.form, field, share, places, optional=optional))
            places = (PART,) if word.exact_part else ("",)
            for text in word.exact:
                share = weight * self._exact
                self._add(Term(text, text, field, share, places, counts=False))
            for lookup in self._guesses(word):
                share, places = weight * lookup.weight, places_of(lookup)
                self._add(Term(lookup.term, lookup.form, field, share, places, near=True))

    def _add(self, term: Term) -> None:
        """Keep a term once, with the greatest weight it was given."""
        key = (term.term, term.field, term.near)
        if term.weight > 0 and (key not in self._terms or self._terms[key].weight < term.weight):
            self._terms[key] = term

    def _guesses(self, word: Word) -> list[Lookup]:
        """Near spellings, each with the weight of what it stands in for."""
        return [
            other._replace(weight=lookup.weight)
            for lookup, form in word.typos
            for other in self._spellings(form)
        ]

    def _spellings(self, form: str) -> Iterator[Lookup]:
        for other in self._near.get(form, ()):
            yield Lookup(self._analyzers[""].term_of(other), other)

    def _words(self, leaf: Words | Phrase) -> Iterator[tuple[int, int, Word]]:
        return islice(analyzer_of(self._analyzers, leaf.field).words(leaf.text), MAX_WORDS)


def analyzer_of(analyzers: Mapping[str, Analyzer], field: str) -> Analyzer:
    return analyzers.get(field) or analyzers[""]


def fields_of(field: str) -> tuple[str, ...]:
    """The fields that are meant: one, or all that words are looked up in."""
    return (field,) if field else WORD_FIELDS


class Typo(NamedTuple):
    """A form that may be misspelt, the field it is sought in, and lookups that show it is not."""

    form: str
    field: str
    lookups: tuple[Lookup, ...]


def typos(sought: Sought, analyzers: Mapping[str, Analyzer]) -> list[Typo]:
    """Every word that could be misspelt; of a compound each part, unless it is found whole."""
    found = {
        Typo(form, leaf.field, (lookup, word.lookups[0], Lookup(form, form))): None
        for leaf in words_and_phrases(sought)
        if isinstance(leaf, Words)
        for _, _, word in islice(analyzer_of(analyzers, leaf.field).words(leaf.text), MAX_WORDS)
        for lookup, form in word.typos
        if len(form) >= SHORTEST and not word.stop
    }
    return list(found)


def _has(lookup: Lookup, field: str) -> Has:
    return Has(lookup.form, places_of(lookup), field)


def _is_any(sought: Sought) -> bool:
    """Whether one word of it, anywhere, is enough."""
    if isinstance(sought, Words):
        return not sought.every
    if isinstance(sought, Phrase | Not):
        return False
    return (not isinstance(sought, AllOf) or len(sought.parts) == 1) and all(
        map(_is_any, sought.parts)
    )


def _check_fields(sought: Sought) -> None:
    """Refuse a field that does not exist."""
    for leaf in words_and_phrases(sought, negated=True):
        if leaf.field and leaf.field not in FIELDS:
            raise UsageError(
                f"there is no field {leaf.field} to look in",
                fix=f"the fields are: {', '.join(sorted(FIELDS))}",
            )
