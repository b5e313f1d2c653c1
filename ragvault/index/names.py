"""The names of a vault's notes in memory, to be looked up by words.

A note is called by its title, its aliases and its file name, each also together with its folder
(`Web Clipper/Templates.md` is "web clipper templates"), without the text in brackets, or by its
initials. Names are stored as keys of words (text/names.py); each key has the list of the names
that have it. A search adds up the weights of the keys it is given, in numpy: a word of 10,000
names costs as little as a rare one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ragvault.ports import NameKind, NameRow, NoteName
from ragvault.text.fold import plain_name
from ragvault.text.names import NameFolder, initials, name_forms, plain_words
from ragvault.text.spelling import name_slips, near_words

if TYPE_CHECKING:
    from numpy.typing import NDArray


class NameIndex:
    """All names of a vault at one revision."""

    def __init__(self, rows: Sequence[NameRow], folder: NameFolder) -> None:
        self.rows, self.folder = rows, folder
        self._names: list[NoteName] = []
        self._wordless: dict[str, list[NoteName]] = {}  # such as "???", by their plain form
        self._forms: dict[str, str] = {}  # every word of a name -> its key
        postings: dict[str, list[int]] = {}
        self._others: dict[str, set[str]] = {}  # another key of a word -> its own
        for row in rows:
            for text, kind, words in self._names_of(row):
                place = len(self._names)
                keys = self._keys(words)
                name = NoteName(row.id, text, kind, words, keys)
                self._names.append(name)
                if not words:
                    self._wordless.setdefault(plain_name(text), []).append(name)
                for key in set(keys):
                    postings.setdefault(key, []).append(place)
        self._postings = {key: np.array(each, np.int64) for key, each in postings.items()}

    @property
    def languages(self) -> tuple[str, ...]:
        return self.folder.languages

    def _names_of(self, note: NameRow) -> Iterator[tuple[str, NameKind, tuple[str, ...]]]:
        folder, _, file = note.path.rpartition("/")
        stem = file.rpartition(".")[0] or file
        above = plain_words(folder.rpartition("/")[2]) if folder else ()
        seen: set[tuple[str, ...]] = set()
        texts: list[tuple[str, NameKind]] = [(note.title, "title"), (stem, "file")]
        texts += [(alias, "alias") for alias in note.aliases]
        for text, kind in dict.fromkeys(texts):
            letters = initials(text)
            for form in name_forms(text):
                words = plain_words(form)
                if not words or words not in seen:
                    seen.add(words)
                    yield text, "initials" if form == letters else kind, words
            own = plain_words(text)
            if above and own and kind != "alias" and own[: len(above)] != above:
                words = above + own
                if words not in seen:
                    seen.add(words)
                    yield text, "folder", words

    def _keys(self, words: Iterable[str]) -> tuple[str, ...]:
        keys = []
        for word in words:
            own = self._forms.get(word)
            if own is None:
                own, others = self.folder.keys(word)
                self._forms[word] = own
                for other in others:
                    self._others.setdefault(other, set()).add(own)
            keys.append(own)
        return tuple(keys)

    @cached_property
    def _sizes(self) -> NDArray[np.float64]:
        return np.array([max(1, len(name.keys)) for name in self._names], np.float64)

    @cached_property
    def _sorted_words(self) -> list[str]:
        return sorted(word for word in self._forms if word.isalpha())

    # --- Looking up ---

    def like(self, weights: Mapping[str, float], limit: int) -> list[NoteName]:
        """Names that have one of these keys: those first that have the most and little else."""
        found = [(self._postings[key], w) for key, w in weights.items() if key in self._postings]
        if not found:
            return []
        shared = np.bincount(
            np.concatenate([places for places, _ in found]),
            np.concatenate([np.full(len(places), weight) for places, weight in found]),
            minlength=len(self._names),
        )
        score = shared * shared / self._sizes
        count = min(limit, int(np.count_nonzero(score)))
        some = np.argpartition(-score, count - 1)[:count] if count < len(score) else score.argsort()
        best = sorted(some.tolist(), key=lambda place: (-score[place], place))[:count]
        return [self._names[place] for place in best]

    def called(self, name: str) -> list[NoteName]:
        return self._wordless.get(plain_name(name), [])

    def keys(self, word: str) -> dict[str, float]:
        """The keys of names that a word matches, and how well: 1 is the same word."""
        own, others = self.folder.keys(word)
        found = {}
        for key in (own, *others):
            for known in self._others.get(key, ()):
                found[known] = PLURAL
            if key in self._postings:
                found[key] = PLURAL
        if own in self._postings:
            found[own] = 1.0
        return found

    def near(self, word: str) -> dict[str, tuple[str, int]]:
        """Keys of names that are spelt almost like a word, each with its word and the slips."""
        allowed = name_slips(word)
        if not allowed:
            return {}
        first = [each for letter in {word[0], word[1]} for each in self._begins(letter)]
        return {
            self._forms[other]: (other, slips)
            for other, slips in sorted(
                near_words(word, first, allowed), key=lambda each: (-each[1], each[0])
            )
        }

    def _begins(self, letters: str) -> list[str]:
        words = self._sorted_words
        end = letters[:-1] + chr(ord(letters[-1]) + 1)
        return words[bisect_left(words, letters) : bisect_left(words, end)]


PLURAL = 0.95  # how well a word matches by another language's stem or an odd plural
