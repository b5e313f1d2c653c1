"""Word: what one chunk of a text or of a query stands for, whatever it is made of.

    unspaced   a run of Chinese, Japanese, Korean or Thai: its pairs and its single characters
    picture    an emoji: itself
    spread     a word that was written with characters that are not seen: the same, marked where it
               truly stands

Words of letters are made by the analyzer (analyze.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter

from ragvault.index import cjk
from ragvault.index.keyword_words import UNSEEN

# Of single characters beside their pairs. On Chinese questions 0 gives .965, 0.2 .969, 0.4 .970.
SINGLE_WEIGHT = 0.2

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Word:
    """What one chunk of a text or of a query stands for.

    tokens   (term, place) of everything it is indexed by; places count from the chunk's own
    width    how many places it takes
    main     (term, weight) it is looked up and scored by
    exact    terms that show it stands there as it was typed
    groups   it is there when all terms of one group are
    phrase   (term, place) it is in a phrase
    spans    (start, end, terms) in the chunk, to mark what was found
    stop     too common to be looked up for itself
    typos    (term, form) where near spellings of a form may stand in for a term
    """

    tokens: tuple[Place, ...]
    width: int
    main: tuple[tuple[str, float], ...]
    exact: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    phrase: tuple[Place, ...]
    spans: tuple[tuple[int, int, frozenset[str]], ...]
    stop: bool = False
    typos: tuple[tuple[str, str], ...] = ()


NO_WORD = Word((), 0, (), (), (), (), ())


def unspaced(run: str) -> Word:
    chars = cjk.characters(run)
    two, one = cjk.pairs(chars), list(chars)
    tokens = [(term, at) for at, term in enumerate(one)]
    if len(one) > 1:
        tokens += [(term, at) for at, term in enumerate(two)]
    same = len(chars) == len(run)
    main = [(pair, 1.0) for pair in dict.fromkeys(two)]
    if len(one) > 1:
        main += [(char, SINGLE_WEIGHT) for char in dict.fromkeys(one)]
    return Word(
        tokens=tuple(sorted(tokens, key=itemgetter(1))),
        width=len(one),
        main=tuple(main),
        exact=(),
        groups=(tuple(dict.fromkeys(two)),),
        phrase=tuple((pair, at) for at, pair in enumerate(two)),
        spans=tuple((at, at + len(pair), frozenset((pair,))) for at, pair in enumerate(two))
        if same
        else ((0, len(run), frozenset(two)),),
    )


def picture(sign: str) -> Word:
    at_first = ((sign, 0),)
    spans = ((0, len(sign), frozenset((sign,))),)
    return Word(at_first, 1, ((sign, 1.0),), (), ((sign,),), at_first, spans)


def bare(chunk: str) -> str:
    """A chunk without what is not seen in it."""
    return chunk if chunk.isascii() else UNSEEN.sub("", chunk)


def spread(word: Word, chunk: str) -> Word:
    """The word of a bare chunk, where it stands in the chunk as it was written."""
    at = [place for place, sign in enumerate(chunk) if not UNSEEN.match(sign)]
    spans = ((at[start], at[end - 1] + 1, terms) for start, end, terms in word.spans)
    return replace(word, spans=tuple(spans))
