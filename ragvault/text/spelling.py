"""Spelling: the words of a vault that are spelt almost like a word of the query.

Near is one slip for words of four to seven letters and two for longer ones, where a slip is a
letter missing, added, changed or swapped with its neighbour. Digits and words of three letters
are never guessed at: 1384 is not 1385, and cat is not car. A name is compared with few words, so
there two slips are forgiven from six letters on.

Of several near words the commonest is the best guess: a note that misspells a word, too, must not
come before all notes that spell it right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from string import ascii_lowercase

SHORTEST = 4
LONG = 8  # from here on two slips are allowed
LONG_IN_NAME = 6  # the same for a word of a name
# A word in so many times more passages is the better guess although it is one slip further away.
COMMONER = 10


def slips(word: str, most: int) -> int:
    """How many slips are forgiven in a word."""
    if len(word) < SHORTEST or not word.isalpha():
        return 0
    return min(most, 2 if len(word) >= LONG else 1)


def name_slips(word: str) -> int:
    """How many slips are forgiven in a word that is compared with names."""
    if len(word) < SHORTEST or not word.isalpha():
        return 0
    return 2 if len(word) >= LONG_IN_NAME else 1


def near(
    word: str,
    begins: Callable[[str], Iterable[str]],
    count: Callable[[str], int],
    *,
    most: int,
    limit: int,
) -> tuple[str, ...]:
    """The nearest words: as few slips as possible, at most `limit` of them, the commonest first.

    `begins` gives the words with a beginning and `count` says how many documents contain one.
    Most slips come after the second letter, so words that share the first two are tried first;
    then those that share the first, or begin with the second (a letter too many, or two swapped);
    then those of which the first letter was left out. Another first letter is not tried.
    """
    allowed = slips(word, most)
    found: dict[str, int] = {}
    left_out = [letter + word[:2] for letter in ascii_lowercase]
    for beginnings in ([word[:2]], [word[:1]], [word[1:2]], left_out) if allowed else ():
        words = {other for letters in beginnings for other in begins(letters)} - found.keys()
        others = sorted(w for w in words if w.isalpha() and w != word)
        found.update(near_words(word, others, allowed))
        if _nearest(found, 1, limit, count):
            break
    return _nearest(found, allowed, limit, count)


def _nearest(
    found: dict[str, int], allowed: int, limit: int, count: Callable[[str], int]
) -> tuple[str, ...]:
    """The words with the fewest slips, unless those with one more are far commoner."""
    groups: list[list[tuple[int, str]]] = []
    for wrong in range(1, allowed + 1):
        counted = [(-count(word), word) for word, slipped in found.items() if slipped == wrong]
        if living := sorted(each for each in counted if each[0]):
            groups.append(living)
    if not groups:
        return ()
    best = groups[0]
    for group in groups[1:]:
        if group[0][0] <= COMMONER * best[0][0]:
            best = group
    return tuple(word for _, word in best[:limit])


def near_words(word: str, others: Sequence[str], allowed: int) -> list[tuple[str, int]]:
    """Those of some words that are at most so many slips away, each with its slips."""
    from rapidfuzz.distance import OSA  # imported when a word is misspelt: it takes 20 ms
    from rapidfuzz.process import extract

    found = extract(word, others, scorer=OSA.distance, score_cutoff=allowed, limit=None)
    return [(other, int(slipped)) for other, slipped, _ in found]
