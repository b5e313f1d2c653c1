"""Spelling: the many ways to write a word become one, and what was probably meant.

    fold        Résumé -> resume, STRASSE and Straße -> strasse, שָׁלוֹם -> שלום, كِتَاب -> كتاب
    stemmer     configuring, configuration -> configur   (a setting; Snowball's stemmers)
    fold_case, plain_name   texts and names that differ in case or spacing only
    near        the words of a vault that are spelt almost like a word of the query
    nearest     "did you mean": the names most like what was typed
    misspelt    the name that a word is, but for a typing error

Near is one slip for words of four to seven letters and two for longer ones, where a slip is a
letter missing, added, changed or swapped with its neighbour. Digits and words of three letters
are never guessed at: 1384 is not 1385, and cat is not car. A name is compared with few words, so
there two slips are forgiven from six letters on.

Of several near words the commonest is the best guess: a note that misspells a word, too, must not
come before all notes that spell it right. Common words of other languages are never corrected:
`warum` is not a slip of warm.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from string import ascii_lowercase

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


# --- Near words ---

SHORTEST = 4
LONG = 8  # from here on two slips are allowed
LONG_IN_NAME = 6  # the same for a word of a note's name
# The nearest word is a slip itself if a word in so many times more passages is one slip from it.
COMMONER = 10
SURE = (1.0, 0.9, 0.8)  # how sure a correction is, by its slips
# Words of questions, and others, that the stop words of Whoosh leave out.
_MORE = """
warum weshalb wieso wozu woher wohin wann wessen welche welcher welches gibt
cette celui celle pourquoi comment quand combien quoi lequel laquelle lesquels peut faire
porque donde cuando cuanto cuantos cuanta cuantas quien quienes cual cuales como puedo hacer
perche quando quanto quanti dove come cosa quale quali
onde quais
waarom wanneer hoeveel welke waar wie hoe kunnen
varfor hvorfor hvordan hvornar hvilken
"""


@cache
def foreign_words() -> frozenset[str]:
    """The common words of other languages, folded, without those that are English as well."""
    from whoosh.lang.stopwords import stoplists  # imported when a word is found nowhere

    lists = (words for language, words in stoplists.items() if language != "en")
    found = {fold(word) for words in lists for word in words}
    return frozenset(found | set(_MORE.split())) - STOP_WORDS


def slips(word: str, long: int = LONG) -> int:
    """How many slips are forgiven in a word; two from so many letters on."""
    if len(word) < SHORTEST or not word.isalpha() or word in foreign_words():
        return 0
    return 2 if len(word) >= long else 1


def near(
    word: str,
    begins: Callable[[str], Iterable[str]],
    count: Callable[[str], int],
    *,
    most: int,
    limit: int,
    stem: Callable[[str], str] = str,
    fits: Callable[[str], bool] | None = None,
) -> tuple[tuple[str, int], ...]:
    """The nearest words with their slips: as few as possible, and the commonest first.

    `begins` gives the words with a beginning and `count` says how many documents contain one.
    There are words of at most `limit` stems. If some words fit (the rest of the query), others are
    left out.

    Most slips come after the first letter, so words that share it are tried first; then those that
    begin with the second (a letter too many, or two swapped); then those of which the first letter
    was left out. Another first letter is not tried.
    """
    allowed = min(most, slips(word))
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    left_out = [letter + word[:2] for letter in ascii_lowercase]
    for beginnings in ([word[:1]], [word[1:2]], left_out) if allowed else ():
        words = {other for letters in beginnings for other in begins(letters)} - found.keys()
        others = sorted(w for w in words if w.isalpha() and w != word)
        found.update(near_words(word, others, allowed))
        counts.update((each, count(each)) for each in found.keys() - counts.keys())
        if any(slipped == 1 and counts[each] for each, slipped in found.items()):
            break
    living = sorted((each for each in found if counts[each]), key=lambda w: (-counts[w], w))
    living = _telling(word, living)
    if fits is not None:
        living = [each for each in living if fits(each)] or living
    best = _fewest([[w for w in living if found[w] == n] for n in range(1, allowed + 1)], counts)
    stems = list(dict.fromkeys(map(stem, best)))[:limit]
    return tuple((each, found[each]) for each in best if stem(each) in stems)


def _telling(word: str, others: list[str]) -> list[str]:
    """Those that say something: flor is flour and not for. But waht is what, and not wait."""
    swapped = [w for w in others if w in STOP_WORDS and sorted(w) == sorted(word)]
    return swapped or [w for w in others if w not in STOP_WORDS] or others


def _fewest(groups: Iterable[Sequence[str]], counts: Mapping[str, int]) -> Sequence[str]:
    """The words with the fewest slips, unless the best of them is a slip of a commoner one."""
    best: Sequence[str] = ()
    for group in filter(None, groups):
        commoner = [each for each in group if best and counts[each] >= COMMONER * counts[best[0]]]
        if not best or near_words(best[0], commoner, 1):
            best = group
    return best


def near_words(word: str, others: Sequence[str], allowed: int) -> list[tuple[str, int]]:
    """Those of some words that are at most so many slips away, each with its slips."""
    from rapidfuzz.distance import OSA  # imported when a word is misspelt: it takes 20 ms
    from rapidfuzz.process import extract

    found = extract(word, others, scorer=OSA.distance, score_cutoff=allowed, limit=None)
    return [(other, int(slipped)) for other, slipped, _ in found]


# --- Did you mean ---


def nearest(typed: str, known: Iterable[str], count: int = 1, least: float = 0.6) -> list[str]:
    """The known names most like what was typed, best first; case does not matter.

    `least` is the share of letters that both have in the same order.
    """
    from rapidfuzz.distance import Indel  # imported for a mistake only
    from rapidfuzz.process import extract

    found = extract(
        typed,
        list(known),
        scorer=Indel.normalized_similarity,
        processor=fold_case,
        score_cutoff=least,
        limit=count,
    )
    return [name for name, *_ in found]


def misspelt(word: str, known: Iterable[str], long: int = SHORTEST + 1) -> str:
    """The known name that a word is but for one slip, in a `long` name two; empty if there is none.

    Leading dashes say nothing. A short name has the same first letter: bread is not meant as read.
    """
    typed = word.lstrip("-").casefold()
    alike: list[tuple[int, str]] = []
    for name in known:
        plain = name.lstrip("-")
        allowed = 1 if len(plain) < long else 2
        if len(plain) <= SHORTEST and plain[0] != typed[:1]:
            continue
        letters, others = Counter(plain), Counter(typed)
        # Seldom: only then is rapidfuzz imported.
        if max((letters - others).total(), (others - letters).total()) <= allowed:
            alike += [(slipped, name) for _, slipped in near_words(typed, [plain], allowed)]
    return min(alike, default=(0, ""))[1]
