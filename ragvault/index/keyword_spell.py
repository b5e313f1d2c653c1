"""Spell: the words of a vault that are nearly the word that was typed.

Near is one slip for words of four to seven letters and two for longer ones, where a slip is a
letter missing, added, changed or swapped with its neighbour. Digits and words of three letters
are never guessed at: 1384 is not 1385, and cat is not car.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ragvault.config.settings import Keyword
from ragvault.index.keyword_plan import Typo
from ragvault.index.keyword_time import Deadline

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST = 4
LONG = 8  # from here on two slips are allowed
SHARE = 0.5  # of a search's time: what was spelt well must be looked up in the rest


def slips(word: str, most: int) -> int:
    """How many slips are forgiven in a word."""
    if len(word) < SHORTEST or not word.isalpha():
        return 0
    return min(most, 2 if len(word) >= LONG else 1)


class Lexicon(Protocol):
    """The words of an index; an empty field is all fields."""

    def lives(self, field: str, term: str) -> bool:
        """Whether anything holds a term that was not removed."""
        ...

    def begins(self, field: str, letters: str) -> Collection[str]:
        """The terms with a beginning, also of what was removed."""
        ...

    def lacks(self, field: str, letters: str) -> Collection[str]:
        """The terms that begin so behind their first letter, in the field that has most words."""
        ...


def spellings(
    found: Iterable[Typo], lexicon: Lexicon, settings: Keyword, deadline: Deadline
) -> dict[str, tuple[str, ...]]:
    """Near spellings of the words that are found nowhere, as far as half of the time reaches."""
    told: dict[str, tuple[str, ...]] = {}
    for form, field, terms in found:
        if deadline.over(SHARE):
            break
        if any(lexicon.lives(field, term) for term in sorted(terms)):
            continue
        words = near(
            form,
            partial(lexicon.begins, field),
            most=settings.slips,
            limit=settings.spellings,
            lacks=partial(lexicon.lacks, field),
            lives=partial(lexicon.lives, field),
            late=partial(deadline.over, SHARE),
        )
        if words:
            told[form] = words
    return told


def near(
    word: str,
    begins: Callable[[str], Collection[str]],
    *,
    most: int,
    limit: int,
    lacks: Callable[[str], Collection[str]] = lambda _: (),
    lives: Callable[[str], bool] = lambda _: True,
    late: Callable[[], bool] = lambda: False,
) -> tuple[str, ...]:
    """The nearest words: as few slips as possible, at most `limit` of them, in order.

    `begins` gives the words with a beginning, `lacks` those with any letter before it, and `lives`
    says which are there: a word that only removed notes hold is no word. Most slips come after the
    second letter, so the words that share the first two are tried first; then those that share the
    first, or begin with the second (a letter too many, or two swapped); then those of which the
    first letter was left out. Another letter in its place is not thought of.
    """
    allowed = slips(word, most)
    tried: set[str] = set()
    found: dict[str, int] = {}

    def nearest(least: int) -> tuple[str, ...]:
        for wrong in range(1, least + 1):
            group = filter(lives, sorted(w for w, d in found.items() if d == wrong))
            if living := tuple(islice(group, limit)):
                return living
        return ()

    rounds = [(begins, word[:2]), (begins, word[:1]), (begins, word[1:2]), (lacks, word[:2])]
    for ask, letters in rounds if allowed else ():
        if late():
            break
        fresh = set(ask(letters)) - tried
        tried |= fresh
        words = sorted(w for w in fresh if _comparable(w, word, allowed))
        slipped = distances(word, words).tolist() if words else []
        found.update({w: d for w, d in zip(words, slipped, strict=True) if d <= allowed})
        if nearest(1):
            break
    return nearest(allowed)


def _comparable(other: str, word: str, allowed: int) -> bool:
    return abs(len(other) - len(word)) <= allowed and other.isalpha() and other != word


def distances(word: str, others: list[str]) -> NDArray[np.int64]:
    """Slips from a word to each of the others, all at once: one column of letters at a time."""
    width = max(map(len, others))
    letters = np.array(others, dtype=f"<U{width}").view(np.uint32).reshape(len(others), width)
    before = np.zeros((len(others), width + 1), dtype=np.int64)
    row = np.tile(np.arange(width + 1), (len(others), 1))
    for at, letter in enumerate(word):
        wrong = letters != ord(letter)
        last, before, row = before, row, np.empty_like(row)
        row[:, 0] = at + 1
        for col in range(1, width + 1):
            row[:, col] = np.minimum(
                np.minimum(before[:, col], row[:, col - 1]) + 1,
                before[:, col - 1] + wrong[:, col - 1],
            )
            if at and col > 1:
                swapped = (letters[:, col - 1] == ord(word[at - 1])) & ~wrong[:, col - 2]
                swap = np.where(swapped, last[:, col - 2] + 1, len(word) + width)
                row[:, col] = np.minimum(row[:, col], swap)
    lengths = np.array([len(other) for other in others])
    found: NDArray[np.int64] = row[np.arange(len(others)), lengths]
    return found
