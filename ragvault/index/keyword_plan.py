"""Plan: what was sought, as terms to score and a tree to match, for any engine.

    Words("configuring C++")  ->  score ~configur 1.0, configuring 0.2, c++ 1.0, c 0.5
                                  match ~configur or c++ or c

Stop words are dropped where other words are left: they would be read from the longest lists and
tell nothing. In a phrase they stay. Knows the analyzer and no index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ragvault.errors import UsageError
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_fields import Fields
from ragvault.index.word import Word
from ragvault.sought import AllOf, AnyOf, Not, Phrase, Sought, Words

MAX_WORDS = 256  # of one query, the first ones: a whole page as a query must answer too


@dataclass(frozen=True, slots=True)
class Term:
    """One term to score.

    `counts` is False for what only shows that a word is there as typed, and `optional` says that
    a query is not covered less for a compound that is written as one nowhere.
    """

    text: str
    field: str
    weight: float
    counts: bool = True
    optional: bool = False
    near: bool = False  # a near spelling of what was typed


@dataclass(frozen=True, slots=True)
class Has:
    """Holds this term in `field` (empty: in any field)."""

    text: str
    field: str


@dataclass(frozen=True, slots=True)
class Row:
    """Holds these terms at these places, counted from any beginning."""

    places: tuple[tuple[str, int], ...]
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
    """`match` is None when there is nothing to look for."""

    terms: tuple[Term, ...]
    match: Match | None


class Planner:
    """Plans what one query seeks.

    `near` gives, for the form of a word that is found nowhere, the words to look up beside it.
    """

    def __init__(
        self, analyzer: Analyzer, exact: float, near: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self._analyzer = analyzer
        self._exact = exact
        self._near = near or {}
        self._stops = False  # look up stop words too
        self._terms: dict[tuple[str, str, bool], Term] = {}

    def plan(self, sought: Sought) -> Plan:
        """The terms of everything that is not negated, and the tree of everything."""
        words = [word for leaf in leaves(sought) for _, _, _, word in self._words(leaf.text)]
        self._stops = all(word.stop for word in words)
        match = self._match(sought, scored=True)
        return Plan(tuple(self._terms.values()), match)

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
        words = [w for _, _, _, w in self._words(sought.text) if self._stops or not w.stop]
        if scored:
            self._score(words, sought.field, sought.weight)
        if not words:
            return None
        if sought.every:
            return Every(tuple(self._whole(word, sought.field) for word in words))
        mains = dict.fromkeys(text for word in words for text, _ in word.main)
        near = (text for word in words for text in self._near_terms(word))
        return Some(tuple(Has(text, sought.field) for text in dict.fromkeys([*mains, *near])))

    def _whole(self, word: Word, field: str) -> Match:
        """All terms of a group, or what stands in for those that are misspelt."""
        forms = dict(word.typos)

        def one(text: str) -> Match:
            near = [Has(other, field) for other in self._spellings(forms.get(text, ""))]
            return Some((Has(text, field), *near)) if near else Has(text, field)

        return Some(tuple(Every(tuple(map(one, group))) for group in word.groups))

    def _row(self, sought: Phrase, scored: bool) -> Match | None:
        words = list(self._words(sought.text))
        content = [word for *_, word in words if self._stops or not word.stop]
        if scored:
            self._score(content, sought.field, sought.weight)
        places = tuple((text, at + place) for _, at, _, w in words for text, place in w.phrase)
        return Row(places, sought.field) if places else None

    def _score(self, words: Iterable[Word], field: str, weight: float) -> None:
        for word in words:
            for text, share in word.main:
                optional = len(word.groups) > 1 and text == word.groups[0][0]
                self._add(Term(text, field, weight * share, optional=optional))
            for text in word.exact:
                self._add(Term(text, field, weight * self._exact, counts=False))
            for text, share in self._near_terms(word).items():
                self._add(Term(text, field, weight * share, near=True))

    def _add(self, term: Term) -> None:
        """Keep a term once, with the greatest weight it was given."""
        key = (term.text, term.field, term.near)
        if term.weight > 0 and (key not in self._terms or self._terms[key].weight < term.weight):
            self._terms[key] = term

    def _near_terms(self, word: Word) -> dict[str, float]:
        """The terms of near spellings, each with the weight of what it stands in for."""
        shares = dict(word.main)
        return {other: shares[text] for text, form in word.typos for other in self._spellings(form)}

    def _spellings(self, form: str) -> Iterator[str]:
        for other in self._near.get(form, ()):
            yield self._analyzer.looked_up_by(other)

    def _words(self, text: str) -> Iterator[tuple[int, int, str, Word]]:
        return islice(self._analyzer.words(text), MAX_WORDS)


def leaves(sought: Sought, negated: bool = False) -> Iterator[Words | Phrase]:
    """The words and phrases that are sought, or with `negated` those that are not wanted too."""
    if isinstance(sought, Words | Phrase):
        yield sought
    elif isinstance(sought, AllOf | AnyOf):
        for part in sought.parts:
            yield from leaves(part, negated)
    elif negated:
        yield from leaves(sought.part, negated)


def check_fields(sought: Sought, fields: Fields) -> None:
    """Refuse a field that there is not."""
    for leaf in leaves(sought, negated=True):
        if leaf.field and leaf.field not in fields.boosts:
            raise UsageError(
                f"there is no field {leaf.field} to look in",
                fix=f"the fields are: {', '.join(fields.names())}",
            )


class Typo(NamedTuple):
    """A form that may be misspelt, the field it is sought in, and terms that show it is not."""

    form: str
    field: str
    terms: frozenset[str]


def typos(sought: Sought, analyzer: Analyzer) -> list[Typo]:
    """Every word that could be misspelt: letters only, and at least four.

    Of a compound each part may be, unless it is found whole.
    """
    found = {
        Typo(form, leaf.field, frozenset((form, term, word.main[0][0]))): None
        for leaf in leaves(sought)
        if isinstance(leaf, Words)
        for _, _, _, word in islice(analyzer.words(leaf.text), MAX_WORDS)
        for term, form in word.typos
        if len(form) > 3 and not word.stop
    }
    return list(found)
