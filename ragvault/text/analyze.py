"""Analyze: what a text can be found by, and what a query asks for.

    Configuring Node.js    forms  configuring, node, js      simple words, in a row
                           stems  configur, node, js         made by the engine
                           parts  node.js, nodejs            other terms, without a place

Forms are folded simple words, cut by an expression that every engine can run itself (FORM), so an
engine takes plain English as it stands. `prepare` gives what an engine cannot know: the parts of
identifiers, compounds as one word, pairs of unspaced scripts, accents. A query goes the same way:
`words` says by which terms each of its words is looked up.

Stems are written with a tilde (`~configur`) where they stand beside forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from ragvault.text import cjk
from ragvault.text.chunks import (
    MAX_LENGTH,
    PICTURE,
    UNSEEN,
    UNSPACED_RUN,
    Compound,
    Part,
    chunker,
    split,
)
from ragvault.text.fold import STOP_WORDS, fold, marked, stemmer

VERSION = 4  # of what a text gives: an index made by another one is rebuilt
STEM = "~"
# A simple word: no space, no ASCII punctuation, and the endings of English after an apostrophe.
# Python and Rust read this expression alike.
FORM = r"[^\x00-/:-@\[-`{-\x7f]+(?:'(?i:[tdms]|ll|re|ve)\b)?"
# Weight of a compound's parts in a query. nDCG@10 at 0, 0.5 and 1 on two vaults' questions:
# .630/.676, .648/.671, .649/.649.
PART_WEIGHT = 0.5
# Of single characters beside their pairs. On Chinese questions 0 gives .965, 0.2 .969, 0.4 .970.
SINGLE_WEIGHT = 0.2

_FORM = re.compile(FORM)
# ASCII text that has a term beside its forms: joints, humps, digits beside letters, names like
# C++ and .NET, words in capitals (IT is not "it"), and words that are too long to keep.
_NEEDS_PARTS = re.compile(
    r"\w[-./+'@&_]\w|[a-z0-9][A-Z]|[A-Z]{2}|[A-Za-z]\d|\d[A-Za-z]|\w[+#]|[.@]\w|__|\w{65}"
)
_LONG = re.compile(rf"[0-9A-Za-z]{{{MAX_LENGTH + 1}}}")


class Lookup(NamedTuple):
    """One term that a word of a query is looked up and scored by.

    `term` is a form, a part, or a stem with its tilde; `form` the word that an engine stems.
    """

    term: str
    form: str
    weight: float = 1.0

    @property
    def by_stem(self) -> bool:
        return self.term.startswith(STEM)


class Span(NamedTuple):
    """[start, end) of a chunk, and the terms that are written there."""

    start: int
    end: int
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Word:
    """What one chunk of a text or of a query stands for.

    `forms` take one place each, `parts` none. `lookups` find it and score it; `groups` are the
    ways to have it: all lookups of one group are there. `exact` are terms that show that it is
    written as it was typed: forms, or with `exact_part` parts. In a phrase `name` must be there
    besides its forms. `stop`: too common to be looked up for itself. `typos` are the forms that
    may be misspelt, each with the lookup it belongs to.
    """

    forms: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    groups: tuple[tuple[Lookup, ...], ...] = ()
    exact: tuple[str, ...] = ()
    exact_part: bool = False
    name: str = ""
    spans: tuple[Span, ...] = ()
    stop: bool = False
    typos: tuple[tuple[Lookup, str], ...] = ()


class Prepared(NamedTuple):
    """A text for an engine: `forms`, and the same `to_stem`, are cut by FORM, `parts` by spaces."""

    forms: str
    to_stem: str
    parts: str


class Analyzer:
    """One way to turn texts into terms, the same for what is indexed and what is asked.

    For `code`, nothing is stemmed, there are no stop words, and iPhone has two parts.
    """

    def __init__(self, stemming: str = "english", *, code: bool = False) -> None:
        self.stemming = "none" if code else stemming
        self.name = f"words-{VERSION}-{'code' if code else stemming}"
        self._code, self._is_english = code, stemming == "english"
        self._stem_word = stemmer(self.stemming)
        self.word = lru_cache(1 << 14)(self._word)
        self.cut = lru_cache(1 << 17)(self._cut)  # most words of a vault repeat
        self.stem = lru_cache(1 << 16)(self._stem)
        self.chunk_terms = lru_cache(1 << 16)(self._chunk_terms)

    def prepare(self, texts: Sequence[str], between: str) -> Prepared:
        """The texts of one field; `between` is put between two of them."""
        forms: list[str] = []
        to_stem: list[str] = []
        parts: list[str] = []
        for text in texts:
            simple = accented = text
            if not text.isascii() or _NEEDS_PARTS.search(text):
                chunks = chunker(text).findall(text)
                cuts = [self.cut(chunk) for chunk in chunks]
                parts += (part for _, others in cuts for part in others)
                if not text.isascii() or _LONG.search(text):
                    simple = accented = " ".join(form for own, _ in cuts for form in own)
                    if not self._is_english:  # its stemmer wants the accents
                        accented = " ".join(map(marked, chunks))
            forms.append(simple)
            to_stem.append(accented)
        return Prepared(between.join(forms), between.join(to_stem), " ".join(parts))

    def words(self, text: str) -> Iterator[tuple[int, int, Word]]:
        """Each word of a text: where it starts, the place of its first form, what it stands for."""
        at = 0
        for match in chunker(text).finditer(text):
            word = self.word(match.group())
            if word.forms:
                yield match.start(), at, word
            at += len(word.forms)

    def terms(self, text: str) -> set[str]:
        """Every term that a text can be found by."""
        return {term for chunk in set(self.chunks(text)) for term in self.chunk_terms(chunk)}

    def chunks(self, text: str) -> list[str]:
        """The words of a text as they are written."""
        return chunker(text).findall(text)

    def term_of(self, form: str) -> str:
        """The term that a simple word is looked up by: its stem, else itself."""
        return STEM + self.stem(form) if self._stems(form) else form

    # --- Inside ---

    def _chunk_terms(self, chunk: str) -> frozenset[str]:
        forms, parts = self.cut(chunk)
        simple = {*forms, *parts}
        return frozenset(simple | {self.term_of(term) for term in simple})

    def _stem(self, form: str) -> str:
        return fold(self._stem_word(form)) if self._stem_word else form

    def _stems(self, form: str) -> bool:
        plain = form.replace("'", "").isalpha() and len(form) > 2 and form not in STOP_WORDS
        return self._stem_word is not None and plain and not UNSPACED_RUN.match(form)

    def _lookup(self, form: str, weight: float = 1.0) -> Lookup:
        return Lookup(self.term_of(form), form, weight)

    def _cut(self, chunk: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The forms and the parts of a chunk, as `word` has them, for a tenth of the work."""
        if chunk.isascii() and chunk.isalpha() and chunk[1:].islower() and len(chunk) < MAX_LENGTH:
            return (chunk.lower(),), ()
        if UNSPACED_RUN.match(chunk) or PICTURE.match(chunk):
            word = self.word(chunk)
            return word.forms, word.parts
        seen = chunk if chunk.isascii() else UNSEEN.sub("", chunk)
        parts, compounds = split(seen, glue=not self._code)
        forms = tuple(form[:MAX_LENGTH] for form in _FORM.findall(fold(seen)))
        if not parts or not forms:
            return (), ()
        return forms, self._others(parts, compounds, forms)

    def _others(
        self, parts: list[Part], compounds: list[Compound], forms: tuple[str, ...]
    ) -> tuple[str, ...]:
        """The terms beside the forms: parts, accents, compounds as written and as one word."""
        small = [fold(part.text)[:MAX_LENGTH] for part in parts]
        others = [*small, *(marked(part.text)[:MAX_LENGTH] for part in parts)]
        if not self._stem_word:
            others += [form[:-2] for form in small if form.endswith("'s")]
        for compound in compounds:
            others += self._names(compound, parts)
        if not compounds and self._is_shouted(parts[0].text):
            others.append(parts[0].text)
        return tuple(term for term in dict.fromkeys(others) if term not in forms)

    def _is_shouted(self, word: str) -> bool:
        """IT and US are not "it" and "us"."""
        return not self._code and len(word) > 1 and word.isupper() and word.casefold() in STOP_WORDS

    def _word(self, chunk: str) -> Word:
        if UNSPACED_RUN.match(chunk):
            return _unspaced(chunk)
        if PICTURE.match(chunk):
            own = Lookup(chunk, chunk)
            span = Span(0, len(chunk), frozenset((chunk,)))
            return Word((chunk,), (), (own,), ((own,),), spans=(span,))
        seen = chunk if chunk.isascii() else UNSEEN.sub("", chunk)
        if seen != chunk:
            return _spread(self.word(seen), chunk)
        parts, compounds = split(chunk, glue=not self._code)
        forms = tuple(form[:MAX_LENGTH] for form in _FORM.findall(fold(chunk)))
        if not parts or not forms:
            return Word()
        if not compounds:
            return self._simple(parts[0], forms)
        return self._compound(parts, compounds, forms, chunk)

    def _simple(self, part: Part, forms: tuple[str, ...]) -> Word:
        form, accented = fold(part.text)[:MAX_LENGTH], marked(part.text)[:MAX_LENGTH]
        # Other languages' stemmers want the accents; to English they are foreign.
        own = self._lookup(form if self._is_english else accented)
        if not own.by_stem:
            own = Lookup(form, form)
        parts = self._others([part], [], forms)
        stop = form in STOP_WORDS and not self._code
        if self._is_shouted(part.text):
            own, stop = Lookup(part.text, part.text), False
        exact = accented if accented != form and not part.text.isascii() else form
        terms = {form, *parts, own.term, self.term_of(form)}
        return Word(
            forms=forms,
            parts=parts,
            lookups=(own,),
            groups=((own,),),
            exact=(exact,) if exact != own.term else (),
            exact_part=exact != form,
            spans=(Span(part.start, part.end, frozenset(terms)),),
            stop=stop,
            typos=((own, form),) if form.isalpha() and own.term != part.text.upper() else (),
        )

    def _compound(
        self, parts: list[Part], compounds: list[Compound], forms: tuple[str, ...], chunk: str
    ) -> Word:
        small = [fold(part.text)[:MAX_LENGTH] for part in parts]
        names = self._names(compounds[-1], parts)
        joined = _joined(compounds[-1], parts)
        whole = self._lookup(fold(joined)[:MAX_LENGTH]) if joined else Lookup(names[0], names[0])
        telling = [form for form in small if self._code or form not in STOP_WORDS]
        lookups = {form: self._lookup(form, PART_WEIGHT) for form in telling}
        for form in [form for form, own in lookups.items() if own.term == whole.term]:
            del lookups[form]
        own = tuple(lookups.values())
        written = names[0]
        exact = tuple(dict.fromkeys([written, *([marked(joined)] if joined else [])]))
        exact = exact if not chunk.isascii() else (written,)
        spans = [Span(0, len(chunk), frozenset({*names, whole.term, *map(self.term_of, names)}))]
        spans += [
            Span(part.start, part.end, frozenset({form, marked(part.text), self.term_of(form)}))
            for part, form in zip(parts, small, strict=True)
        ]
        groups: tuple[tuple[Lookup, ...], ...] = ((whole,),)
        if own and len(parts) > 1:  # C++ is never C
            groups = (*groups, own)
        return Word(
            forms=forms,
            parts=self._others(parts, compounds, forms),
            lookups=(whole, *own),
            groups=groups,
            exact=tuple(term for term in exact if term != whole.term),
            exact_part=exact != forms,
            name=written if len(parts) == 1 and (written,) != forms else "",
            spans=tuple(spans),
            typos=tuple((one, form) for form, one in lookups.items() if form.isalpha()),
        )

    def _names(self, compound: Compound, parts: list[Part]) -> list[str]:
        """The terms of a compound: as written, and joined where it is made of letters only."""
        written = fold(compound.text)[:MAX_LENGTH]
        names = [written]
        if written[:1] == "v" and written[1:].replace(".", "").isdigit():
            names.append(written[1:])
        if joined := _joined(compound, parts):
            names += [fold(joined)[:MAX_LENGTH], marked(joined)[:MAX_LENGTH]]
        return list(dict.fromkeys(names))


def _joined(compound: Compound, parts: list[Part]) -> str:
    """A compound as one word, where it may be met as one: e-mail and Node.js, not c.md and a/b."""
    own = [part.text for part in parts[compound.first : compound.first + compound.parts]]
    if len(own) < 2 or not all(text.isalpha() for text in own):
        return ""
    if "." in compound.text and not (len(own) == 2 and len(own[0]) > 2):
        return ""
    return "" if {"/", "&", "@", "+"}.intersection(compound.text) else "".join(own)


def _unspaced(run: str) -> Word:
    """Chinese, Japanese, Korean, Thai: characters in a row, looked up by pairs."""
    chars = cjk.characters(run)
    singles = [Lookup(char, char, SINGLE_WEIGHT) for char in dict.fromkeys(chars)]
    pairs = [Lookup(pair, pair) for pair in dict.fromkeys(cjk.pairs(chars))]
    alone = len(chars) == 1
    spans = [
        Span(at, at + len(pair), frozenset((pair,))) for at, pair in enumerate(cjk.pairs(chars))
    ]
    return Word(
        forms=tuple(chars),
        parts=() if alone else tuple(pair.term for pair in pairs),
        lookups=tuple(pairs if alone else [*pairs, *singles]),
        groups=(tuple(pairs),),
        spans=tuple(spans)
        if len(chars) == len(run)
        else (Span(0, len(run), frozenset(pair.term for pair in pairs)),),
    )


def _spread(word: Word, chunk: str) -> Word:
    """The word of a chunk without its invisible characters, with spans in the chunk as written."""
    at = [place for place, sign in enumerate(chunk) if not UNSEEN.match(sign)]
    spans = (Span(at[span.start], at[span.end - 1] + 1, span.terms) for span in word.spans)
    return replace(word, spans=tuple(spans))
