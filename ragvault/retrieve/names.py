"""The leg `name`: notes that are called what the query says, however it is typed.

    readings    the query as typed, and without its question (`what is a …`)     text/names.py
    keys        its words by stem, plural and corrected spelling                 NameIndex
    names       those that share a word: titles, aliases, file names, with their folder
    evidence    0..1 for each note, from its best name

The evidence of a name is the product of three numbers:

    telling     how rare the words are that name and query share: near 0 for `Notes` and `Index`
    of query    how much of the query the name covers, by rarity
    of name     how much of the name the query has

A name that several notes have, or a part of it, counts less for each of them.

A hit names a note, so every candidate of the note has its rank and evidence, and fusion counts it
for the best of them. Headings are names of passages: `git undo commit` is the heading "Undo a
commit" of the note "git".

If the whole query as typed, or the text in its quotes, is a name, the note that is called so comes
first, even if the query has operators (`Foo (bar)`, `Kettle -rye`) and even if it does not pass the
query's filter. Several notes of that name come first together, in their own order. All other
results obey the query as it was understood.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from math import fsum, log
from operator import mul
from typing import NamedTuple

from ragvault.candidate import Exact, PassageFacts
from ragvault.plan import QueryPlan
from ragvault.ports import Corpus, NoteName
from ragvault.text.name_index import NameIndex
from ragvault.text.names import notes_called, plain_words, without_frame
from ragvault.text.spelling import STOP_WORDS, SURE, plain_name

MAX_LENGTH = 300  # characters: no name is longer
MAX_WORDS = 24  # of a query that may name something
LOOKED_AT = 60  # names whose evidence is computed
JOINED = 4  # neighbouring words that may be written as one: html select element
TELLING = 0.5  # the rarity of shared words that is half of what there can be
OF_QUERY, OF_NAME = 1.5, 0.5  # exponents of the two shares
SHARED = 0.5  # exponent of the number of notes that have the same name, or part of one
LEAST = 0.1  # evidence below which a name is no hit
RARITY_OF_STOP_WORDS = 0.03
OTHER_ORDER = 0.95  # what a name is worth if the query has other words or another order
HEADING = 0.5  # what a heading is worth
INITIALS = 0.9  # what a name is worth by its initials
# A word that is in the vault is corrected only to one that is in so many times more passages.
COMMONER = 5
WORD = re.compile(r"\w+")
_QUOTED = re.compile(r'["\u201c](.*)["\u201d]', re.DOTALL)
_EXCLUDES = re.compile(r"(?:^|[\s(])-\S")


# --- Evidence ---


class NameQuery:
    """The words of one reading of a query, with the keys they match and how rare they are."""

    def __init__(self, words: Sequence[str], names: NameIndex, rarity: Rarity) -> None:
        self.words = tuple(words)
        self.weights = [rarity(word) for word in words]
        self._rarity, self._names = rarity, names
        self._order = tuple(map(names.key, words))
        self._matches = [_matches(word, names, rarity) for word in words]
        # Words that may be written as one: `cheat sheet` is Cheatsheet.
        self._joined = [
            (range(at, at + size), keys)
            for size in range(2, JOINED + 1)
            for at in range(len(words) - size + 1)
            if (keys := names.keys("".join(words[at : at + size])))
        ]

    def keys(self) -> dict[str, float]:
        """All keys that may be in a name, with the rarity of the words they stand for."""
        found: dict[str, float] = {}
        for weight, matches in zip(self.weights, self._matches, strict=True):
            for key, quality in matches.items():
                found[key] = max(found.get(key, 0.0), weight * quality)
        for places, keys in self._joined:
            for key in keys:
                found[key] = max(found.get(key, 0.0), fsum(self.weights[at] for at in places))
        return found

    def of_name(self, name: NoteName) -> Evidence:
        """The evidence of a note's name."""
        words = dict(zip(name.keys, name.words, strict=True))  # a word counts once
        of_query, of_name = self._covered(tuple(words))
        found = self._evidence(of_query, of_name, [self._rarity(each) for each in words.values()])
        value = found.value if name.keys == self._order else OTHER_ORDER * found.value
        return found._replace(value=INITIALS * value if name.kind == "initials" else value)

    def of_heading(self, heading: str, title: str) -> float:
        """The evidence of a heading, whose note's title may be part of the query as well.

        It is compared by stem alone.
        """
        words, own = _words(heading), _words(title)
        keys = list(map(self._names.key, words))
        asked = set(self._order)
        if asked.isdisjoint(keys) or words == own:
            return 0.0
        known = {*keys, *map(self._names.key, own)}
        of_query = [float(key in known) for key in self._order]
        of_name = [float(key in asked) for key in keys]
        found = self._evidence(of_query, of_name, [self._rarity(word) for word in words])
        return HEADING * found.value

    def _evidence(
        self, of_query: Sequence[float], of_name: Sequence[float], weights: Sequence[float]
    ) -> Evidence:
        shared = fsum(map(mul, weights, of_name))
        share_of_name = shared / fsum(weights)
        share_of_query = fsum(map(mul, self.weights, of_query)) / fsum(self.weights)
        telling = shared**3 / (shared**3 + TELLING**3)
        value = telling * share_of_query**OF_QUERY * share_of_name**OF_NAME
        return Evidence(value, share_of_name, tuple(quality > 0 for quality in of_query))

    def _covered(self, keys: Sequence[str]) -> tuple[list[float], list[float]]:
        """How well each word of the query is in a name, and each word of the name in the query."""
        of_query, of_name = [0.0] * len(self.words), [0.0] * len(keys)
        for at, matches in enumerate(self._matches):
            for place, key in enumerate(keys):
                quality = matches.get(key, 0.0)
                if quality > of_query[at]:
                    of_query[at] = quality
                if quality > of_name[place]:
                    of_name[place] = quality
        for places, as_one in self._joined:
            for place, key in enumerate(keys):
                if key in as_one:
                    of_name[place] = max(of_name[place], as_one[key])
                    for at in places:
                        of_query[at] = max(of_query[at], as_one[key])
        return of_query, of_name


class Evidence(NamedTuple):
    """0..1, the share of the name that the query has, and which words of the query it covers."""

    value: float
    share_of_name: float
    covered: tuple[bool, ...]


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(plain_words(text)))


def _matches(word: str, names: NameIndex, rarity: Rarity) -> dict[str, float]:
    """The keys of names that a word matches, and how well: also by corrected spelling.

    A word of the vault is a mistake only if the corrected one is far commoner: a note that has the
    same slip must not keep the right one from being found.
    """
    found = dict(names.keys(word))
    known = rarity.share(word)
    for key, (other, slips) in names.near(word).items() if word not in STOP_WORDS else ():
        if key not in found and (not known or rarity.share(other) >= COMMONER * known):
            found[key] = SURE[slips]
    return found


class Rarity:
    """How rare words are in a vault: 1 for a word of none, near 1 of one passage, near 0 `the`."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._known: dict[str, float] = {}

    def __call__(self, word: str) -> float:
        if word not in self._known:
            self._known[word] = self._of(word)
        return self._known[word]

    def share(self, word: str) -> float:
        there = "keyword" in self._corpus.facts.searchable
        return self._corpus.words.share(word) if there else 0.0

    def _of(self, word: str) -> float:
        if word in STOP_WORDS:
            return RARITY_OF_STOP_WORDS
        most, share = rarest(self._corpus.facts.passages), self.share(word)
        return max(RARITY_OF_STOP_WORDS, -log(share) / most) if share else 1.0


def rarest(passages: int) -> float:
    """The log of a word's rarity that counts as 1: half a passage in the whole vault has it."""
    return log(2 * max(passages, 2))


# --- What a query names ---


class Named:
    """The notes that a query names, best first, and the evidence of headings."""

    def __init__(self, plan: QueryPlan, corpus: Corpus, limit: int) -> None:
        names = corpus.names()
        self._queries = readings(plan.text, names, Rarity(corpus))
        self.exact = exact_notes(plan.query, corpus)  # whatever the filter
        # Beside operators, the words alone may be a name: `tag:science gluten`.
        self.called = self.exact
        if not self.exact and plan.text != plan.query:
            self.called = exact_notes(plan.text, corpus)
        found: dict[int, Evidence] = {}
        for query in self._queries:
            for name in names.like(query.keys(), LOOKED_AT):
                known = query.of_name(name)
                if name.note not in found or known.value > found[name.note].value:
                    found[name.note] = known
        graded = {**_shared(found), **dict.fromkeys(self.called, 1.0)}
        best = sorted(graded, key=lambda note: (-graded[note], note not in self.called, note))
        self.notes = {note: graded[note] for note in best if graded[note] >= LEAST}
        self.notes = dict(islice(self.notes.items(), limit))

    def evidence(self, passage: PassageFacts) -> float:
        """That of its note's name, or of its own heading if that is more; 0 if it is too little."""
        headings = (*passage.headings[-1:], *passage.subheadings)
        title = passage.note.title
        best = max(
            (query.of_heading(each, title) for query in self._queries for each in headings),
            default=0.0,
        )
        return max(self.notes.get(passage.note.id, 0.0), best if best >= LEAST else 0.0)


def readings(text: str, names: NameIndex, rarity: Rarity) -> list[NameQuery]:
    """The query as typed, and without the question around it."""
    steps = without_frame(text, names.languages)
    words = dict.fromkeys(plain_words(step) for step in (*steps[:1], *steps[-1:]))
    return [
        NameQuery(tuple(dict.fromkeys(each)), names, rarity)
        for each in words
        if each and len(each) <= MAX_WORDS
    ]


def _shared(found: Mapping[int, Evidence]) -> dict[int, float]:
    """The evidence of each note: less for a name, or a part of one, that other notes have too."""
    holders = Counter((each.covered, each.share_of_name < 1) for each in found.values())

    def divisor(each: Evidence) -> float:
        in_part = each.share_of_name < 1
        power = SHARED * (1 - each.share_of_name) if in_part else SHARED
        return float(holders[each.covered, in_part] ** power)

    return {note: each.value / divisor(each) for note, each in found.items()}


# --- The query is a name ---


def exact_notes(query: str, corpus: Corpus) -> dict[int, Exact]:
    """The notes whose name is the query, as typed or without its quotes.

    A title or file name, with or without its suffix and folders, comes before an alias. Signs
    count: only if no note has this very name, apostrophes, hyphens and accents are left aside,
    unless one excludes a word: `rye -loaf` is not the name *Rye Loaf*.
    """
    if not 0 < len(query) <= MAX_LENGTH:
        return {}
    typed, names = _as_names(query), corpus.names()
    possible = {each.id: each for name in typed for each in names.maybe_called(name, LOOKED_AT)}
    signs = _EXCLUDES.search(query) is not None
    called = notes_called(possible.values(), typed, signs=signs)
    kind: Exact = "alias" if {*called.values()} == {"alias"} else "title"
    return {note: kind for note in sorted(called) if kind == "alias" or called[note] != "alias"}


@lru_cache(maxsize=64)
def _as_names(query: str) -> tuple[str, ...]:
    """A query as names: as typed, and the text in quotes that are around all of it."""
    quoted = _QUOTED.fullmatch(query.strip())
    return (query, quoted[1]) if quoted else (query,)


# --- Quoted phrases ---


def holds_phrases(plan: QueryPlan, passage: PassageFacts) -> bool:
    """Whether all phrases of the query are in a passage, or are names of its note."""
    if not plan.phrases:
        return False
    text = plain_name(passage.text)
    return all(
        each in text or each in passage.note.names for each in map(_plain_phrase, plan.phrases)
    )


_plain_phrase = lru_cache(maxsize=64)(plain_name)  # of the query, compared with many passages
