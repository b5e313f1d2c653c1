"""Folding: the many ways to write a word become one.

fold   Résumé -> resume, STRASSE and Straße -> strasse, שָׁלוֹם -> שלום, كِتَاب -> كتاب
stem   configuring, configuration -> configur   (a setting; Snowball's stemmers)
fold_case, plain_name   texts and names that differ in case or spacing only
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from ragvault.errors import ConfigError

# Letters that Unicode does not take apart into a base and a mark.
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ё": "е"}
)
_MARKS = range(0x300, 0x370)
# Points for vowels and for reading aloud, which most texts leave out, and the stroke that only
# makes an Arabic word longer. Hamza and madda stay: with them a letter is another one.
_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew
    "\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670"  # Arabic
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)

# Words too common to find anything by themselves.
_STOPS = """
a about after all also am an and any are aren't as at be because been before being both but by can
can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
further had hadn't has hasn't have haven't having he her here hers herself him himself his how i
i'd i'll i'm i've if in into is isn't it it's its itself just let's me more most my myself no nor
not of off on once only or other our ours ourselves out over own same she should shouldn't so some
such than that that's the their theirs them themselves then there there's these they they're this
those through to too under until up us very was wasn't we we're were weren't what what's when where
which while who whom why will with won't would wouldn't you you're your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOPS.split())


def fold_case(text: str) -> str:
    """The same for texts that differ only in case or in how accents are encoded."""
    if text.isascii():
        return text.lower()
    # Twice, because folding can take a composed letter apart.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def plain_name(name: str) -> str:
    """A name as names are compared: without case, every run of white space as one space."""
    return " ".join(fold_case(name).split())


def marked(word: str) -> str:
    """Small letters with their accents, one kind of apostrophe, and never a space.

    Some letters of Arabic stand for several words: a word of ours stays one word.
    """
    if word.isascii():
        return word.casefold()
    small = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    return "".join(small.split())


def fold(word: str) -> str:
    """Small letters without accents.

    Marks are dropped from Latin and Greek letters and points from Hebrew and Arabic ones only: in
    Devanagari they are vowels without which a word is another, and й is a letter of its own.
    """
    small = marked(word)
    if small.isascii():
        return small
    bare: list[str] = []
    for char in unicodedata.normalize("NFD", small):
        if ord(char) in _MARKS and bare and ord(bare[-1][0]) < 0x400:
            continue
        bare.append(char)
    whole = unicodedata.normalize("NFC", "".join(bare)).translate(_PLAIN)
    return _POINTS.sub("", whole) or whole


def stemmer(language: str) -> Callable[[str], str] | None:
    """The stemmer of a language, or None for "none"."""
    if language == "none":
        return None
    import Stemmer

    if language not in Stemmer.algorithms():
        known = ", ".join(sorted(Stemmer.algorithms()))
        raise ConfigError(
            f'keyword.stemming = "{language}" is not a language that can be stemmed',
            fix=f'use "none" or one of: {known}',
        )
    # Not cached here: the analyzer caches its words.
    stem: Callable[[str], str] = Stemmer.Stemmer(language, 0).stemWord
    return stem
