"""Analyze: a text becomes the terms it can be found by, each with its place.

    Configuring Node.js    configuring ~configur @0   node.js nodejs ~nodej node ~node @1   js @2

A simple word gives its folded form and, behind a tilde, its stem: words are looked up by stem,
phrases by form. A compound gives itself, its joined form (e-mail finds email) and its parts. It
stands at the place of its first part and the next word after its last, so that "Node.js server"
and "node js server" are both phrases of "Node.js server". Unspaced scripts go by pairs (cjk.py).

Most words of a vault repeat, so what a chunk gives is worked out once and kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import itemgetter

from ragvault.index.keyword_fold import STOP_WORDS, fold, marked, stemmer
from ragvault.index.keyword_words import (
    MAX_LENGTH,
    MAX_PARTS,
    PICTURE,
    UNSPACED_RUN,
    Compound,
    Part,
    chunker,
    split,
)
from ragvault.index.word import NO_WORD, Place, Word, bare, picture, spread, unspaced

VERSION = 3  # of what a text gives: an index made by another one is made again
# Places between two texts of one field. No phrase crosses it: getUserById in a phrase is four
# places wide and getuserbyid in a text one, and nothing is wider than this. At 100, the thousandth
# alias of a note stood beyond the last place that Whoosh's segments can tell.
GAP = MAX_PARTS
KEPT = 1 << 17  # chunks kept; measured at 1 kB each, so about 130 MB when full
STEM = "~"  # never the first character of a form
# Of a compound's parts in a query. nDCG@10 at 0, 0.5 and 1 on two vaults' questions: .630/.676,
# .648/.671, .649/.649.
PART_WEIGHT = 0.5

Entry = tuple[int, tuple[Place, ...]]  # width and tokens, as in Word


class Analyzer:
    """One way to turn texts into terms: the same for what is indexed and what is asked."""

    def __init__(self, stemming: str = "english") -> None:
        self.name = f"words-{VERSION}-{stemming}"
        self._stem, self._is_english = stemmer(stemming), stemming == "english"
        self._kept: dict[str, Entry] = {}
        self.word = lru_cache(4096)(self._word)
        self.forms = lru_cache(1 << 16)(self._forms)

    def chunks(self, text: str) -> re.Pattern[str]:
        """The expression whose matches in this text are its words as they are written."""
        return chunker(text)

    def entry(self, chunk: str) -> Entry:
        """How many places a chunk takes, and its terms with their places."""
        return self._kept.get(chunk) or self._keep(chunk)

    def read(self, chunk: str) -> Entry:
        """The same, and nothing is kept: for whoever keeps what it makes of it."""
        return self._entry(chunk)

    def looked_up_by(self, word: str) -> str:
        """The term that weighs most where this word is looked up."""
        if word.isascii() and word.isalpha() and word.islower():
            return _main(self.forms(word))  # as `word` says, for a tenth of the work
        return self.word(word).main[0][0]

    def tokens(self, texts: Sequence[str]) -> list[Place]:
        """Every term with its place, in order of place."""
        at = 0
        found: list[Place] = []
        for text in texts:
            for chunk in self.chunks(text).findall(text):
                width, tokens = self.entry(chunk)
                found += [(term, at + place) for term, place in tokens]
                at += width
            at += GAP
        return found

    def words(self, text: str) -> Iterator[tuple[int, int, str, Word]]:
        """Each word of a text: where it starts, its place, as written, what it stands for."""
        at = 0
        for match in self.chunks(text).finditer(text):
            word = self.word(match.group())
            if word.width:  # an underscore by itself is no word
                yield match.start(), at, match.group(), word
            at += word.width

    def _keep(self, chunk: str) -> Entry:
        if len(self._kept) >= KEPT:
            self._kept.clear()
        entry = self._kept[chunk] = self._entry(chunk)
        return entry

    def _entry(self, chunk: str) -> Entry:
        """How many places a chunk takes, and its terms."""
        if chunk.isascii() and (
            (chunk.isalpha() and (chunk[1:].islower() or chunk.isupper())) or chunk.isdigit()
        ):
            own = (chunk,) if _is_shouted(chunk) else ()
            return 1, tuple((term, 0) for term in (*self.forms(chunk), *own))
        if UNSPACED_RUN.match(chunk) or PICTURE.match(chunk):
            word = self._word(chunk)
            return word.width, word.tokens
        parts, compounds = split(bare(chunk))
        return len(parts), self._tokens(parts, compounds)

    def _word(self, chunk: str) -> Word:
        if UNSPACED_RUN.match(chunk):
            return unspaced(chunk)
        if PICTURE.match(chunk):
            return picture(chunk)
        if chunk != (seen := bare(chunk)):
            return spread(self.word(seen), chunk)
        parts, compounds = split(chunk)
        if not parts:
            return NO_WORD
        if not compounds:
            return self._simple(parts[0])
        return self._compound(parts, compounds, chunk)

    def _tokens(self, parts: list[Part], compounds: list[Compound]) -> tuple[Place, ...]:
        tokens = [(term, at) for at, part in enumerate(parts) for term in self.forms(part.text)]
        for compound in compounds:
            tokens += [(term, compound.first) for term in self._names(compound, parts)]
        if len(parts) == 1 and _is_shouted(parts[0].text):
            tokens.append((parts[0].text, 0))
        return tuple(sorted(dict.fromkeys(tokens), key=itemgetter(1)))

    def _forms(self, word: str) -> tuple[str, ...]:
        """The terms of a simple word: its form, its stem, and itself with its accents."""
        form, accented = fold(word)[:MAX_LENGTH], marked(word)[:MAX_LENGTH]
        terms = [form]
        if self._stem and form not in STOP_WORDS and _stems(form):
            # Other languages' stemmers want the accents; to English they are foreign.
            terms.append(STEM + fold(self._stem(form if self._is_english else accented)))
        if form.endswith("'s"):
            terms.append(form[:-2])
        if accented != form:
            terms.append(accented)
        return tuple(terms)

    def _simple(self, part: Part) -> Word:
        terms = self.forms(part.text)
        form, main = terms[0], _main(terms)
        stop = form in STOP_WORDS
        if _is_shouted(part.text):
            terms, main, stop = (*terms, part.text), part.text, False
        # With its accents when it was typed with them, else without.
        exact = form if part.text.isascii() else terms[-1]
        return Word(
            tokens=self._tokens([part], []),
            width=1,
            main=((main, 1.0),),
            exact=(exact,) if exact != main and not exact.startswith(STEM) else (),
            groups=((main,),),
            phrase=((form if exact.startswith(STEM) else exact, 0),),
            spans=((part.start, part.end, frozenset(terms)),),
            stop=stop,
            typos=((main, form),) if form.isalpha() else (),
        )

    def _compound(self, parts: list[Part], compounds: list[Compound], chunk: str) -> Word:
        forms = [self.forms(part.text) for part in parts]
        names, joined = self._names(compounds[-1], parts), self._joined(compounds[-1], parts)
        whole = _main(joined) if joined else names[-1]
        exact = {names[0], *joined[-1:]} if not chunk.isascii() else {names[0]}
        telling = [terms for terms in forms if terms[0] not in STOP_WORDS]
        mains = [_main(terms) for terms in telling] or [whole]
        return Word(
            tokens=self._tokens(parts, compounds),
            width=len(parts),
            main=((whole, 1.0), *((m, PART_WEIGHT) for m in dict.fromkeys(mains) if m != whole)),
            exact=tuple(name for name in names if name in exact - {whole} and name[0] != STEM),
            groups=((whole,), tuple(dict.fromkeys(mains)))[: len(parts)],  # C++ is never C
            phrase=((names[0], 0),),
            spans=(
                (0, len(chunk), frozenset(names)),
                *((p.start, p.end, frozenset(f)) for p, f in zip(parts, forms, strict=True)),
            ),
            typos=tuple((_main(terms), terms[0]) for terms in telling if terms[0].isalpha()),
        )

    def _names(self, compound: Compound, parts: list[Part]) -> tuple[str, ...]:
        """The terms of a compound: as written, and joined where it is made of letters only."""
        written = fold(compound.text)[:MAX_LENGTH]
        names = [written]
        if written[:1] == "v" and written[1:].replace(".", "").isdigit():
            names.append(written[1:])
        return tuple(dict.fromkeys([*names, *self._joined(compound, parts)]))

    def _joined(self, compound: Compound, parts: list[Part]) -> tuple[str, ...]:
        """The terms of a compound as one word, where it may be met as one."""
        own = parts[compound.first : compound.first + compound.parts]
        if not _joins(compound.text, own):
            return ()
        return self.forms("".join(part.text for part in own))


def _is_shouted(word: str) -> bool:
    """IT and US are not "it" and "us"."""
    return len(word) > 1 and word.isupper() and word.casefold() in STOP_WORDS


def _stems(form: str) -> bool:
    return len(form) > 2 and form.replace("'", "").isalpha()


def _main(terms: tuple[str, ...]) -> str:
    return next((term for term in terms if term.startswith(STEM)), terms[0])


def _joins(written: str, parts: list[Part]) -> bool:
    """May it be met as one word? E-mail and Node.js may, c.md and a/b may not."""
    if len(parts) < 2 or not all(part.text.isalpha() for part in parts):
        return False
    if "." in written:
        return len(parts) == 2 and len(parts[0].text) > 2
    return not {"/", "&", "@", "+"}.intersection(written)
