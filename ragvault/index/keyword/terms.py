"""Terms: a keyword query as terms to score and conditions to match, and how much of it a text has.

    Words("configuring C++")  ->  score  ~configur 1.0, configuring 0.2, c++ 1.0, c 0.5
                                  match  any of them

This is the same for every engine: it knows the analyzers and no engine. Stop words are dropped if
other words are left, because they match most passages and mean little. Phrases keep them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from ragvault.errors import UsageError
from ragvault.index.keyword.fields import CODE, FIELDS, PART, STEM
from ragvault.plan import (
    And,
    KeywordQuery,
    Not,
    Or,
    Phrase,
    Words,
    leaves,
)
from ragvault.text.analyze import Analyzer, Lookup, Word
from ragvault.text.spelling import SHORTEST

MAX_WORDS = 256  # the first words of a text count: a whole page is a valid query
WORD_FIELDS = tuple(name for name in FIELDS if name != CODE)


class ScoredTerm(NamedTuple):
    """A term to score, in one field or (empty) in all fields that words are looked up in.

    `places` are the suffixes of the engine fields to look in. A term that does not `count` only
    shows that a word is written as typed. An `optional` one, a compound as a whole, costs no
    coverage if nobody writes it so. `corrects` is the word that it is a near spelling of, `sure`
    how sure that is.
    """

    term: str
    form: str
    field: str
    weight: float
    places: tuple[str, ...]
    counts: bool = True
    optional: bool = False
    corrects: str = ""
    sure: float = 1.0


class HasTerm(NamedTuple):
    """The document has this form in `field` (empty: in any field)."""

    form: str
    places: tuple[str, ...]
    field: str


class HasPhrase(NamedTuple):
    """One field has these forms next to each other, and these parts anywhere."""

    forms: tuple[str, ...]
    parts: tuple[str, ...]
    field: str


Match = HasTerm | HasPhrase | And["Match"] | Or["Match"] | Not["Match"]


def places_of(lookup: Lookup) -> tuple[str, ...]:
    """A word is looked up by its stem, anything else as written; both also among the parts."""
    return (STEM, PART) if lookup.by_stem else ("", PART)


def search_terms(
    query: KeywordQuery,
    analyzers: Mapping[str, Analyzer],
    exact: float,
) -> tuple[tuple[ScoredTerm, ...], Match | None]:
    """The terms of everything that is not negated, and the conditions of everything.

    There is no condition if one scored term is enough.
    `exact` is the weight of a word being written as typed. Raises UsageError for an unknown field.
    """
    return _Compiler(analyzers, exact).compile(query)


class _Compiler:
    def __init__(
        self,
        analyzers: Mapping[str, Analyzer],
        exact: float,
    ) -> None:
        self._analyzers, self._exact = analyzers, exact
        self._stops = False  # look up stop words too
        self._terms: dict[tuple[str, str, str], ScoredTerm] = {}

    def compile(self, query: KeywordQuery) -> tuple[tuple[ScoredTerm, ...], Match | None]:
        _check_fields(query)
        self._stops = all(
            word.stop for leaf in leaves(query, negated=False) for word in self._words(leaf)
        )
        match = self._match(query, scored=True)
        return tuple(self._terms.values()), None if _is_any(query) else match

    def _match(self, query: KeywordQuery, scored: bool) -> Match | None:
        """The conditions of a part; None for one without a word to look up."""
        if isinstance(query, Words):
            return self._match_words(query, scored)
        if isinstance(query, Phrase):
            return self._match_phrase(query, scored)
        if isinstance(query, Not):
            part = self._match(query.part, scored=False)
            return part and Not(part)
        found = [self._match(part, scored) for part in query.parts]
        parts = tuple(part for part in found if part is not None)
        if not parts:
            return None
        return And(parts) if isinstance(query, And) else Or(parts)

    def _match_words(self, query: Words, scored: bool) -> Match | None:
        words = [word for word in self._words(query) if self._stops or not word.stop]
        if scored:
            self._score(words, query)
        if not words:
            return None
        if query.every:
            return And(tuple(self._match_word(word, query) for word in words))
        found = {_has_term(lookup, query.field): None for word in words for lookup in word.lookups}
        for word in words:
            for _, form in word.typos:
                found.update(
                    (_has_term(other, query.field), None) for other, _ in self._near(form, query)
                )
        return Or(tuple(found))

    def _match_word(self, word: Word, query: Words) -> Match:
        """All lookups of one of its groups, or near spellings of those that are misspelt."""
        forms = dict(word.typos)

        def one(lookup: Lookup) -> Match:
            own, spellings = (
                _has_term(lookup, query.field),
                self._near(forms.get(lookup, ""), query),
            )
            near = [_has_term(other, query.field) for other, _ in spellings]
            return Or((own, *near)) if near else own

        return Or(tuple(And(tuple(map(one, group))) for group in word.groups))

    def _match_phrase(self, query: Phrase, scored: bool) -> Match | None:
        words = self._words(query)
        if scored:
            self._score((word for word in words if self._stops or not word.stop), query)
        forms = tuple(form for word in words for form in word.forms)
        parts = tuple(word.name for word in words if word.name)
        return HasPhrase(forms, parts, query.field) if forms else None

    def _score(self, words: Iterable[Word], leaf: Words | Phrase) -> None:
        field, weight = leaf.field, leaf.weight
        for word in words:
            corrected = [lookup for lookup, form in word.typos if any(self._near(form, leaf))]
            for lookup in word.lookups:
                if lookup in corrected:
                    continue
                optional = len(word.groups) > 1 and lookup == word.groups[0][0]
                share = weight * lookup.weight
                places = places_of(lookup)
                self._add(
                    ScoredTerm(lookup.term, lookup.form, field, share, places, optional=optional)
                )
            places = (PART,) if word.exact_part else ("",)
            for text in word.exact:
                share = weight * self._exact
                self._add(ScoredTerm(text, text, field, share, places, counts=False))
            for lookup, form in word.typos:
                for other, sure in self._near(form, leaf):
                    own = ScoredTerm(
                        other.term,
                        other.form,
                        field,
                        weight * lookup.weight,
                        places_of(other),
                        corrects=form,
                        sure=sure,
                    )
                    exact = own._replace(
                        term=other.form, weight=weight * self._exact, places=("",), counts=False
                    )
                    self._add(own)
                    self._add(exact)

    def _add(self, term: ScoredTerm) -> None:
        """Add a term, or raise its weight."""
        key = (term.term, term.field, term.corrects)
        if term.weight > 0 and (key not in self._terms or self._terms[key].weight < term.weight):
            self._terms[key] = term

    def _near(self, form: str, leaf: Words | Phrase) -> Iterator[tuple[Lookup, float]]:
        """The near spellings of a form, and how sure each is."""
        for typed, other, sure in leaf.spellings if isinstance(leaf, Words) else ():
            if typed == form:
                yield Lookup(self._analyzers[""].term_of(other), other), sure

    def _words(self, leaf: Words | Phrase) -> list[Word]:
        return _words_of(leaf, self._analyzers)


def _words_of(leaf: Words | Phrase, analyzers: Mapping[str, Analyzer]) -> list[Word]:
    analyzer = analyzers.get(leaf.field) or analyzers[""]
    return [word for *_, word in islice(analyzer.words(leaf.text), MAX_WORDS)]


def fields_of(field: str) -> tuple[str, ...]:
    """The fields to look in: the named one, or all that words are looked up in."""
    return (field,) if field else WORD_FIELDS


def typos(
    query: KeywordQuery, analyzers: Mapping[str, Analyzer]
) -> list[tuple[str, str, tuple[Lookup, ...]]]:
    """Every form that may be misspelt, with its field and lookups that show it is not.

    Of a compound each part, unless it is found whole.
    """
    found = {
        (form, leaf.field, (lookup, word.lookups[0], Lookup(form, form))): None
        for leaf in leaves(query, negated=False)
        if isinstance(leaf, Words)
        for word in _words_of(leaf, analyzers)
        for lookup, form in word.typos
        if len(form) >= SHORTEST and not word.stop
    }
    return list(found)


def _has_term(lookup: Lookup, field: str) -> HasTerm:
    return HasTerm(lookup.form, places_of(lookup), field)


def _is_any(query: KeywordQuery) -> bool:
    """Whether one of its words in a passage is enough."""
    if isinstance(query, Words):
        return not query.every
    if isinstance(query, Phrase | Not):
        return False
    return (not isinstance(query, And) or len(query.parts) == 1) and all(map(_is_any, query.parts))


def _check_fields(query: KeywordQuery) -> None:
    """Raise UsageError for a field that does not exist."""
    for leaf in leaves(query):
        if leaf.field and leaf.field not in FIELDS:
            raise UsageError(
                f"there is no field {leaf.field}",
                fix=f"the fields are: {', '.join(sorted(FIELDS))}",
            )
