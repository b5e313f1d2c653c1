"""Analyze: the terms a text can be found by, and the terms a query looks up.

    Configuring Node.js    forms  configuring, node, js      simple words, in order
                           stems  configur, node, js         made by the engine
                           parts  node.js, nodejs            further terms, without a position

Forms are folded simple words, cut by an expression that every engine can run itself (FORM), so an
engine can index plain English as it is. `prepare` adds what an engine cannot know: the parts of
identifiers, compounds as one word, pairs of unspaced scripts, accents. A query goes the same way:
`words` gives the terms by which each of its words is looked up. Stems are written with a tilde
(`~configur`) where they are mixed with forms.

A text is first cut into runs of characters at spaces and punctuation, except inside a name:

    C++  C#  .NET  Node.js  v1.2.3  PIO-1384  @scope/pkg  notes/a-b.md  R&D  getUserById

An invisible character (a soft hyphen, a zero-width space) does not separate words, and an emoji is
a run by itself. A run is cut into its parts, in order, with every compound on the way:

    notes/myFile.md  ->  parts notes, my, File, md;  compounds myFile, myFile.md, notes/myFile.md

Scripts without spaces between words (Chinese, Japanese, Korean, Thai and their neighbours) are
looked up by pairs of characters: 黑豹队 by 黑豹 and 豹队. Pairs work without a dictionary, and a
phrase is a row of pairs. Single characters are indexed too, for queries of one character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

from ragvault.plan import PICTURES, KeywordQuery, Phrase, Words, leaves
from ragvault.text.spelling import STOP_WORDS, fold, marked, stemmer

VERSION = 4  # of what a text gives: an index made by another one is rebuilt
STEM = "~"
MAX_LENGTH = 64  # of a term: longer ones are data (hashes, base64), found by their beginning
MAX_PARTS = 32  # of one run
# A simple word: no space, no ASCII punctuation, and the endings of English after an apostrophe.
# Python and Rust read this expression alike.
FORM = r"[^\x00-/:-@\[-`{-\x7f]+(?:'(?i:[tdms]|ll|re|ve)\b)?"
# Weight of a compound's parts in a query. nDCG@10 at 0, 0.5 and 1 on two vaults' questions:
# .630/.676, .648/.671, .649/.649.
PART_WEIGHT = 0.5
# Of single characters beside their pairs. On Chinese questions 0 gives .965, 0.2 .969, 0.4 .970.
SINGLE_WEIGHT = 0.2

_FORM = re.compile(FORM)
_LONG = re.compile(rf"[0-9A-Za-z]{{{MAX_LENGTH + 1}}}")


# --- Runs of characters: where words are in a text ---

# Inside a character class. The middle dot of katakana (U+30FB) separates names and is left out.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ece"  # Lao
    "\u1000-\u103f\u1050-\u109f"  # Burmese
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"  # Korean
    "\u1780-\u17d3"  # Khmer
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003ffff"
    "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
)
# Marks that are part of a word and that \w leaves out; and the Indic blocks, with marks for vowels.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0966-\u0dff\u1ab0-\u1aff\u1dc0-\u1dff"
)
_LETTER = rf"[^\W{UNSPACED}]"
_JOINT = "[-./+'’@&]"
# What is not seen. Joiners only behind letters that need none: in Persian and in the scripts of
# India they distinguish words.
_UNSEEN = "\u00ad\u200b\u2060\ufeff"
_JOINERS = "\u200c\u200d"
_SKIPPED = rf"(?:[{_UNSEEN}]|(?<=[A-Za-z\u00aa-\u058f])[{_JOINERS}])"


@cache  # made when the first text needs it: either takes as long as a keyword search
def _runs(wide: bool) -> re.Pattern[str]:
    word = rf"{_WIDE}(?:{_WIDE}|{_SKIPPED})*" if wide else f"{_LETTER}+"
    joint = rf"{_JOINT}{_SKIPPED}*" if wide else _JOINT
    return re.compile(rf"[{UNSPACED}]+|[@.]?{word}(?:{joint}{word})*(?:\+\+|[+#])?|{PICTURES}")


_ASCII_RUN = rf"[@.]?\w+(?:{_JOINT}\w+)*(?:\+\+|[+#])?"
_ASCII = re.compile(_ASCII_RUN, re.ASCII)
# Finds the same runs, and gives "" for simple words in a row: those are most, and have no parts.
_ASCII_NOT_SIMPLE = re.compile(
    rf"(?:[A-Za-z][a-z]{{,{MAX_LENGTH - 1}}}(?![\w+#]|{_JOINT}\w)[^\w@.]*){{1,64}}|({_ASCII_RUN})",
    re.ASCII,
)
_WIDE = rf"(?:{_LETTER}|[{_MARKS}])"  # slower, and needed by few texts
_HAS_MARKS = re.compile(rf"[{_MARKS}]")
_NEEDS_WIDE = re.compile(rf"[{_MARKS}{_UNSEEN}{_JOINERS}]")
UNSPACED_RUN = re.compile(rf"[{UNSPACED}]")
PICTURE = re.compile(PICTURES)
UNSEEN = re.compile(rf"[{_UNSEEN}{_JOINERS}]")  # in a run: what it is looked up without

# One hump of a name: HTTP|Response|Error, get|User|By|Id, python|3.
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")
_PLURAL_CAPITALS = re.compile(r"[A-Z]{2,}s")  # APIs, URLs: one word
# The text between joints; don't and user's are one piece, l'amour is two.
_PIECE = re.compile(r"[^-.+'’@&#]+(?:['’](?i:s|t|ll|re|ve|d|m)\b)?")


def run_pattern(text: str) -> re.Pattern[str]:
    """The expression whose matches in this text are its runs."""
    if text.isascii():
        return _ASCII
    return _runs(_NEEDS_WIDE.search(text) is not None)


class Part(NamedTuple):
    """One simple word inside a run, [start, end)."""

    text: str
    start: int
    end: int


Compound = tuple[str, list[str]]  # what is written as one, and its parts


def split_run(run: str, *, glue: bool = True) -> tuple[list[Part], list[Compound]]:
    """The parts of a run and the compounds they make, the whole run last.

    A run that is one simple word has one part and no compound. `glue` keeps iPhone and eBay
    together, which code does not want.
    """
    parts: list[Part] = []
    compounds: list[Compound] = []
    at = 0
    for segment in run.split("/"):
        first = len(parts)
        for piece in _PIECE.finditer(segment):
            _add_piece(run, at + piece.start(), at + piece.end(), glue, parts, compounds)
        _add_compound(segment, first, parts, compounds)
        at += len(segment) + 1
    if "/" in run:
        _add_compound(run, 0, parts, compounds)
    return parts, compounds


def _add_piece(
    run: str, start: int, end: int, glue: bool, parts: list[Part], compounds: list[Compound]
) -> None:
    first = len(parts)
    for left, right in _humps(run[start:end], glue):
        if len(parts) < MAX_PARTS:
            parts.append(Part(run[start + left : start + right], start + left, start + right))
    _add_compound(run[start:end], first, parts, compounds)


def _add_compound(text: str, first: int, parts: list[Part], compounds: list[Compound]) -> None:
    """Note what was written as one, unless it is one simple word or was noted already."""
    own = [part.text for part in parts[first:]]
    if not own or (len(own) == 1 and (own[0] == text or not _is_name(text, own[0]))):
        return
    if not compounds or compounds[-1] != (text, own):
        compounds.append((text, own))


def _is_name(text: str, word: str) -> bool:
    """Is the punctuation around one word part of its name? C++ and .NET yes, issue# no."""
    before, _, after = text.partition(word)
    if after in ("+", "#"):
        return len(word) <= 2
    return bool(after == "++" or before in (".", "@") or before + after == "____")


def _humps(piece: str, glue: bool) -> list[tuple[int, int]]:
    """Spans of the simple words in a piece that has no joint but underscores."""
    if piece.isalpha() and (piece[1:].islower() or piece.isupper()):
        return [(0, len(piece))]
    if (not piece.isascii() and _HAS_MARKS.search(piece)) or _PLURAL_CAPITALS.fullmatch(piece):
        return [(0, len(piece))]
    if "'" in piece or "’" in piece:
        return [(0, len(piece))]
    spans = [match.span() for match in _HUMP.finditer(piece)]
    return _glued(piece, spans) if glue else spans


def _glued(piece: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Undo cuts that part what belongs together: i|Phone, mp|3, x|86."""
    out: list[tuple[int, int]] = []
    for start, end in spans:
        before = out[-1] if out else (0, 0)
        touching = bool(out) and before[1] == start
        short = before[1] - before[0] <= (2 if piece[start].isdigit() else 1)
        if touching and short and not piece[before[0]].isdigit():
            out[-1] = (before[0], end)
        else:
            out.append((start, end))
    return out


# --- The words that a run means ---


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


class TermSpan(NamedTuple):
    """[start, end) of a run, and the terms that are written there."""

    start: int
    end: int
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Word:
    """The words that one run of a text or of a query means.

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
    spans: tuple[TermSpan, ...] = ()
    stop: bool = False
    typos: tuple[tuple[Lookup, str], ...] = ()


class EngineText(NamedTuple):
    """A text for an engine: `forms`, and the same `to_stem`, are cut by FORM, `parts` by spaces."""

    forms: str
    to_stem: str
    parts: str


class Analyzer:
    """One way to turn texts into terms, the same for notes and for queries.

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
        self.run_terms = lru_cache(1 << 16)(self._run_terms)

    def prepare(self, texts: Sequence[str], between: str) -> EngineText:
        """The texts of one field; `between` is put between two of them."""
        forms: list[str] = []
        to_stem: list[str] = []
        parts: list[str] = []
        for text in texts:
            simple = accented = text
            is_plain = text.isascii()  # an engine can cut it into its forms
            if is_plain:
                runs = [run for run in _ASCII_NOT_SIMPLE.findall(text) if run]
                longest = max(map(len, runs), default=0)
                is_plain = longest <= MAX_LENGTH or not _LONG.search(text)
            if not is_plain:
                runs = run_pattern(text).findall(text)
            cuts = [self.cut(run) for run in runs]
            if not is_plain:
                simple = accented = " ".join(form for own, _ in cuts for form in own)
                if not self._is_english:  # its stemmer wants the accents
                    accented = " ".join(map(marked, runs))
            for _, others in cuts:
                parts += others
            forms.append(simple)
            to_stem.append(accented)
        return EngineText(between.join(forms), between.join(to_stem), " ".join(parts))

    def words(self, text: str) -> Iterator[tuple[int, int, Word]]:
        """Each word of a text: where it starts, the place of its first form, and what it means."""
        at = 0
        for match in run_pattern(text).finditer(text):
            word = self.word(match.group())
            if word.forms:
                yield match.start(), at, word
            at += len(word.forms)

    def terms(self, text: str) -> set[str]:
        """Every term that a text can be found by."""
        return {term for run in set(self.runs(text)) for term in self.run_terms(run)}

    def runs(self, text: str) -> list[str]:
        """The runs of characters in a text, as they are written."""
        return run_pattern(text).findall(text)

    def term_of(self, form: str) -> str:
        """The term that a simple word is looked up by: its stem, else itself."""
        return STEM + self.stem(form) if self._stems(form) else form

    # --- Inside ---

    def _run_terms(self, run: str) -> frozenset[str]:
        forms, parts = self.cut(run)
        simple = {*forms, *parts}
        return frozenset(simple | {self.term_of(term) for term in simple})

    def _stem(self, form: str) -> str:
        return fold(self._stem_word(form)) if self._stem_word else form

    def _stems(self, form: str) -> bool:
        plain = form.replace("'", "").isalpha() and len(form) > 2 and form not in STOP_WORDS
        return self._stem_word is not None and plain and not UNSPACED_RUN.match(form)

    def _lookup(self, form: str, weight: float = 1.0) -> Lookup:
        return Lookup(self.term_of(form), form, weight)

    def _cut(self, run: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The forms and the parts of a run, as `word` has them, for a tenth of the work."""
        if run.isascii() and run.isalpha() and run[1:].islower() and len(run) < MAX_LENGTH:
            return (run.lower(),), ()
        if not run.isascii() and (UNSPACED_RUN.match(run) or PICTURE.match(run)):
            word = self.word(run)
            return word.forms, word.parts
        seen = run if run.isascii() else UNSEEN.sub("", run)
        parts, compounds = split_run(seen, glue=not self._code)
        forms = tuple(form[:MAX_LENGTH] for form in _FORM.findall(fold(seen)))
        if not parts or not forms:
            return (), ()
        return forms, self._others(parts, compounds, forms)

    def _others(
        self, parts: list[Part], compounds: list[Compound], forms: tuple[str, ...]
    ) -> tuple[str, ...]:
        """The terms beside the forms: parts, accents, compounds as written and as one word."""
        small = [fold(part.text)[:MAX_LENGTH] for part in parts]
        others = small + [
            marked(part.text)[:MAX_LENGTH] for part in parts if not part.text.isascii()
        ]
        if not self._stem_word:
            others += [form[:-2] for form in small if form.endswith("'s")]
        for compound in compounds:
            others += self._names(compound)
        if not compounds and self._is_shouted(parts[0].text):
            others.append(parts[0].text)
        return tuple(term for term in dict.fromkeys(others) if term not in forms)

    def _is_shouted(self, word: str) -> bool:
        """IT and US are not "it" and "us"."""
        return not self._code and len(word) > 1 and word.isupper() and word.casefold() in STOP_WORDS

    def _word(self, run: str) -> Word:
        if UNSPACED_RUN.match(run):
            return _unspaced(run)
        if PICTURE.match(run):
            own = Lookup(run, run)
            span = TermSpan(0, len(run), frozenset((run,)))
            return Word((run,), (), (own,), ((own,),), spans=(span,))
        seen = run if run.isascii() else UNSEEN.sub("", run)
        if seen != run:
            return _spread(self.word(seen), run)
        parts, compounds = split_run(run, glue=not self._code)
        forms = tuple(form[:MAX_LENGTH] for form in _FORM.findall(fold(run)))
        if not parts or not forms:
            return Word()
        if not compounds:
            return self._simple(parts[0], forms)
        return self._compound(parts, compounds, forms, run)

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
            spans=(TermSpan(part.start, part.end, frozenset(terms)),),
            stop=stop,
            typos=((own, form),) if form.isalpha() and own.term != part.text.upper() else (),
        )

    def _compound(
        self, parts: list[Part], compounds: list[Compound], forms: tuple[str, ...], run: str
    ) -> Word:
        small = [fold(part.text)[:MAX_LENGTH] for part in parts]
        names = self._names(compounds[-1])
        joined = _joined(compounds[-1])
        whole = self._lookup(fold(joined)[:MAX_LENGTH]) if joined else Lookup(names[0], names[0])
        telling = [form for form in small if self._code or form not in STOP_WORDS]
        lookups = {form: self._lookup(form, PART_WEIGHT) for form in telling}
        for form in [form for form, own in lookups.items() if own.term == whole.term]:
            del lookups[form]
        own = tuple(lookups.values())
        written = names[0]
        exact = tuple(dict.fromkeys([written, *([marked(joined)] if joined else [])]))
        exact = exact if not run.isascii() else (written,)
        spans = [TermSpan(0, len(run), frozenset({*names, whole.term, *map(self.term_of, names)}))]
        spans += [
            TermSpan(part.start, part.end, frozenset({form, marked(part.text), self.term_of(form)}))
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

    def _names(self, compound: Compound) -> list[str]:
        """The terms of a compound: as written, and joined where it is made of letters only."""
        written = fold(compound[0])[:MAX_LENGTH]
        names = [written]
        if written[:1] == "v" and written[1:].replace(".", "").isdigit():
            names.append(written[1:])
        if joined := _joined(compound):
            names += [fold(joined)[:MAX_LENGTH], marked(joined)[:MAX_LENGTH]]
        return list(dict.fromkeys(names))


def _joined(compound: Compound) -> str:
    """A compound as one word, where it may be met as one: e-mail and Node.js, not c.md and a/b."""
    text, own = compound
    joined = "".join(own)
    if len(own) < 2 or not joined.isalpha():
        return ""
    if "." in text and not (len(own) == 2 and len(own[0]) > 2):
        return ""
    return "" if {"/", "&", "@", "+"}.intersection(text) else joined


def _unspaced(run: str) -> Word:
    """Chinese, Japanese, Korean, Thai: characters in a row, looked up by pairs."""
    chars = _characters(run)
    singles = [Lookup(char, char, SINGLE_WEIGHT) for char in dict.fromkeys(chars)]
    pairs = [Lookup(pair, pair) for pair in dict.fromkeys(_pairs(chars))]
    alone = len(chars) == 1
    spans = [
        TermSpan(at, at + len(pair), frozenset((pair,))) for at, pair in enumerate(_pairs(chars))
    ]
    return Word(
        forms=tuple(chars),
        parts=() if alone else tuple(pair.term for pair in pairs),
        lookups=tuple(pairs if alone else [*pairs, *singles]),
        groups=(tuple(pairs),),
        spans=tuple(spans)
        if len(chars) == len(run)
        else (TermSpan(0, len(run), frozenset(pair.term for pair in pairs)),),
    )


def _spread(word: Word, run: str) -> Word:
    """The word of a run without its invisible characters, with spans in the run as written."""
    at = [place for place, sign in enumerate(run) if not UNSEEN.match(sign)]
    spans = (TermSpan(at[span.start], at[span.end - 1] + 1, span.terms) for span in word.spans)
    return replace(word, spans=tuple(spans))


def _characters(run: str) -> str:
    """The run in the form it is indexed in: half-width kana and ligatures made whole."""
    return unicodedata.normalize("NFKC", run)


def _pairs(run: str) -> list[str]:
    """Its overlapping pairs; one character is its own pair."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


# --- Which words of a text a query matches ---

Marked = tuple[int, int]


def highlight(text: str, query: KeywordQuery, analyzer: Analyzer) -> list[Marked]:
    """Spans of the words and phrases of a query, in order and apart.

    `configure` marks configuration exactly when the index finds it. A part marks its part of a
    compound, and a phrase is marked only where it occurs whole.
    """
    spans: list[Marked] = []
    wanted = list(leaves(query, negated=False))
    stops = all(word.stop for leaf in wanted for *_, word in analyzer.words(leaf.text))
    for leaf in wanted:
        if isinstance(leaf, Phrase):
            spans += _phrase_spans(text, leaf, analyzer)
        else:
            spans += _word_spans(text, leaf, analyzer, stops)
    return _apart(spans)


def _word_spans(text: str, leaf: Words, analyzer: Analyzer, stops: bool) -> list[Marked]:
    wanted = {
        term
        for *_, word in analyzer.words(leaf.text)
        if stops or not word.stop
        for term in (*(lookup.term for lookup in word.lookups), *word.exact)
    }
    wanted |= {analyzer.term_of(each.word) for each in leaf.spellings}
    # The whole comes first: where it is meant, its parts need no marks of their own.
    return [
        (run.start() + span.start, run.start() + span.end)
        for run in run_pattern(text).finditer(text)
        if wanted & analyzer.run_terms(run.group())
        for span in analyzer.word(run.group()).spans
        if wanted & span.terms
    ]


def _phrase_spans(text: str, leaf: Phrase, analyzer: Analyzer) -> list[Marked]:
    wanted = [form for *_, word in analyzer.words(leaf.text) for form in word.forms]
    names = {word.name for *_, word in analyzer.words(leaf.text) if word.name}
    row: list[tuple[str, Marked]] = []
    written: set[str] = set()
    for start, _, word in analyzer.words(text):
        whole = (start + word.spans[0].start, start + word.spans[0].end)
        pieces = [(start + span.start, start + span.end) for span in word.spans[1:]] or [whole]
        same = len(pieces) == len(word.forms)
        row += [(form, pieces[at] if same else whole) for at, form in enumerate(word.forms)]
        written.add(word.name)
    if not wanted or not names <= written:
        return []
    forms = [form for form, _ in row]
    return [
        (row[at][1][0], row[at + len(wanted) - 1][1][1])
        for at in range(len(forms) - len(wanted) + 1)
        if forms[at : at + len(wanted)] == wanted
    ]


def _apart(spans: list[Marked]) -> list[Marked]:
    """In order, and joined where they overlap."""
    joined: list[Marked] = []
    for start, end in sorted(set(spans)):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
