"""Spelling: the words of a vault that are spelt almost like a word of the query.

Near is one slip for words of four to seven letters and two for longer ones, where a slip is a
letter missing, added, changed or swapped with its neighbour. Digits and words of three letters
are never guessed at: 1384 is not 1385, and cat is not car.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from string import ascii_lowercase
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
    word: str,
    begins: Callable[[str], Iterable[str]],
    is_there: Callable[[str], bool],
    *,
    most: int,
    limit: int,
) -> tuple[str, ...]:
    """The nearest words: as few slips as possible, at most `limit` of them, in order.

    `begins` gives the words with a beginning and `is_there` says whether a note still contains one.
    Most slips come after the second letter, so words that share the first two are tried first;
    then those that share the first, or begin with the second (a letter too many, or two swapped);
    then those of which the first letter was left out. Another first letter is not tried.
    """
    allowed = slips(word, most)
    found: dict[str, int] = {}
    left_out = [letter + word[:2] for letter in ascii_lowercase]
    for beginnings in ([word[:2]], [word[:1]], [word[1:2]], left_out) if allowed else ():
        words = {other for letters in beginnings for other in begins(letters)}
        words = {w for w in words - found.keys() if abs(len(w) - len(word)) <= allowed}
        others = sorted(w for w in words if w.isalpha() and w != word)
        found.update(
            zip(others, edit_distances(word, others).tolist() if others else (), strict=True)
        )
        if nearest := _nearest(found, 1, limit, is_there):
            return nearest
    return _nearest(found, allowed, limit, is_there)


def _nearest(
    found: dict[str, int], allowed: int, limit: int, is_there: Callable[[str], bool]
) -> tuple[str, ...]:
    for wrong in range(1, allowed + 1):
        group = filter(is_there, sorted(w for w, slipped in found.items() if slipped == wrong))
        if living := tuple(islice(group, limit)):
            return living
    return ()


def edit_distances(word: str, others: list[str]) -> NDArray[np.int64]:
    """The number of slips from a word to each of the others, computed one column at a time."""
    width = max(1, *map(len, others))
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
