"""Spell: the words of a vault that are nearly the word that was typed.

Near is one slip for words of four to seven letters and two for longer ones, where a slip is a
letter missing, added, changed or swapped with its neighbour. Digits and words of three letters
are never guessed at: 1384 is not 1385, and cat is not car.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST = 4
LONG = 8  # from here on two slips are allowed


def slips(word: str, most: int) -> int:
    """How many slips are forgiven in a word."""
    if len(word) < SHORTEST or not word.isalpha():
        return 0
    return min(most, 2 if len(word) >= LONG else 1)


def near(
    word: str, begins: Callable[[str], Collection[str]], *, most: int, limit: int
) -> tuple[str, ...]:
    """The nearest words: as few slips as possible, at most `limit` of them, in order.

    `begins` gives the words with a beginning. Most slips come after the second letter, so the
    words that share the first two are tried first; then those that share the first, or begin
    with the second: the first letter may be missing or swapped, but not another one.
    """
    allowed = slips(word, most)
    tried: set[str] = set()
    found: dict[str, int] = {}
    for beginning in (word[:2], word[:1], word[1:2]) if allowed else ():
        fresh = {w for w in begins(beginning) if _comparable(w, word, allowed)} - tried
        tried |= fresh
        words = sorted(fresh)
        slipped = distances(word, words).tolist() if words else []
        found.update({w: d for w, d in zip(words, slipped, strict=True) if d <= allowed})
        if 1 in found.values():
            break
    closest = min(found.values(), default=0)
    return tuple(sorted(w for w, d in found.items() if d == closest))[:limit]


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
