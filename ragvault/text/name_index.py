"""The names of a vault's notes in memory, to be looked up by words.

A note is called by its title, its aliases and its file name, each also together with its folder
(`Web Clipper/Templates.md` is "web clipper templates"), without the text in brackets, or by its
initials. Names are stored as keys of words (text/names.py); each key has the list of the names
that have it. A search adds up the weights of the keys it is given, in numpy: a word of 10,000
names costs as little as a rare one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ragvault.ports import NameKind, NoteName
from ragvault.text.names import NameFolder, initials, name_forms, plain_words
from ragvault.text.spelling import LONG_IN_NAME, near_words, plain_name, slips
from ragvault.types import Head

if TYPE_CHECKING:
    from numpy.typing import NDArray


class NameIndex:
    """All names of a vault at one revision."""

    def __init__(self, rows: Sequence[Head], folder: NameFolder) -> None:
        self.rows, self.folder = rows, folder
        self._names: list[NoteName] = []
        self._wordless: dict[str, list[NoteName]] = {}  # such as "???", by their plain form
        self._arrays: dict[str, NDArray[np.int64]] = {}  # of the keys that were looked up
        self._forms: dict[str, str] = {}  # every word of a name -> its key
        postings: defaultdict[str, list[int]] = defaultdict(list)
        self._others: dict[str, set[str]] = {}  # another key of a word -> its own
        folders: dict[str, tuple[str, ...]] = {}
        for row in rows:
            parent = row.path.rpartition("/")[0]
            above = folders.get(parent)
            if above is None:
                above = folders[parent] = plain_words(parent.rpartition("/")[2])
            for words, (kind, texts) in _names_of(row, above).items():
                keys = self._keys(words)
                name = NoteName(row.id, tuple(texts), kind, words, keys)
                for key in keys:
                    postings[key].append(len(self._names))
                self._names.append(name)
                for text in () if words else texts:
                    self._wordless.setdefault(plain_name(text), []).append(name)
        self._postings = postings

    @property
    def languages(self) -> tuple[str, ...]:
        return self.folder.languages

    def _keys(self, words: Iterable[str]) -> tuple[str, ...]:
        return tuple([self._forms.get(word) or self._key(word) for word in words])

    def _key(self, word: str) -> str:
        own, others = self.folder.keys(word)
        self._forms[word] = own
        for other in others:
            self._others.setdefault(other, set()).add(own)
        return own

    @cached_property
    def _sizes(self) -> NDArray[np.float64]:
        return np.array([max(1, len(name.keys)) for name in self._names], np.float64)

    @cached_property
    def _sorted_words(self) -> list[str]:
        return sorted(word for word in self._forms if word.isalpha())

    # --- Looking up ---

    def like(self, weights: Mapping[str, float], limit: int) -> list[NoteName]:
        """Names that have one of these keys: those first that have the most and little else."""
        found = [(self._places(key), w) for key, w in weights.items() if key in self._postings]
        if not found:
            return []
        places = np.concatenate([places for places, _ in found])
        own, at = np.unique(places, return_inverse=True)
        shared = np.bincount(at, np.concatenate([np.full(len(each), w) for each, w in found]))
        score = shared * shared / self._sizes[own]
        if len(own) > limit:
            some = np.argpartition(-score, limit - 1)[:limit]
            own, score = own[some], score[some]
        return [self._names[place] for place in own[np.lexsort((own, -score))].tolist()]

    def _places(self, key: str) -> NDArray[np.int64]:
        """The names that have a key."""
        if key not in self._arrays:
            self._arrays[key] = np.unique(np.array(self._postings[key], np.int64))
        return self._arrays[key]

    def maybe_called(self, name: str, limit: int) -> list[Head]:
        words = plain_words(name)
        keys = {key: 1.0 for word in words for key in self.keys(word)}
        some = self.like(keys, limit) if words else self._wordless.get(plain_name(name), [])
        rows = {each.note: self._rows[each.note] for each in some}
        if {".", "/"} & {*name}:
            rows |= {row.id: row for row in self._files.get(_file_of(name), ())}
        return list(rows.values())

    @cached_property
    def _rows(self) -> Mapping[int, Head]:
        return {row.id: row for row in self.rows}

    @cached_property
    def _files(self) -> Mapping[str, list[Head]]:
        """The notes by the names of their files, with the suffix and without."""
        found: defaultdict[str, list[Head]] = defaultdict(list)
        for row in self.rows:
            file = _file_of(row.path)
            for name in {file, file.rpartition(".")[0]}:
                found[name].append(row)
        return found

    def key(self, word: str) -> str:
        return self.folder.keys(word)[0]

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
        allowed = slips(word, LONG_IN_NAME)
        if not allowed:
            return {}
        first = [each for letter in {word[0], word[1]} for each in self._begins(letter)]
        return {
            self._forms[other]: (other, slipped)
            for other, slipped in sorted(
                near_words(word, first, allowed), key=lambda each: (-each[1], each[0])
            )
        }

    def _begins(self, letters: str) -> list[str]:
        words = self._sorted_words
        end = letters[:-1] + chr(ord(letters[-1]) + 1)
        return words[bisect_left(words, letters) : bisect_left(words, end)]


def _file_of(path: str) -> str:
    return plain_name(path).rpartition("/")[2]


def _names_of(
    note: Head, above: tuple[str, ...]
) -> dict[tuple[str, ...], tuple[NameKind, list[str]]]:
    """The words of each name of a note, with its kind and each way in which it is written.

    `above` are the words of its folder.
    """
    file = note.path.rpartition("/")[2]
    texts: dict[str, NameKind] = {note.title: "title"}
    texts.setdefault(file.rpartition(".")[0] or file, "file")
    for alias in note.aliases:
        texts.setdefault(alias, "alias")
    found: dict[tuple[str, ...], tuple[NameKind, list[str]]] = {}
    for text, kind in texts.items():
        words = plain_words(text)
        named: list[tuple[tuple[str, ...], NameKind]] = [(words, kind)]
        named += [(plain_words(form), kind) for form in name_forms(text)]
        if above and words and kind != "alias" and words[: len(above)] != above:
            named.append((above + words, "folder"))
        if letters := initials(text):
            named.append(((letters,), "initials"))
        for each, of in named:
            written = found.setdefault(each, (of, []))[1]
            if text not in written:
                written.append(text)
    return found


PLURAL = 0.95  # how well a word matches by another language's stem or an odd plural
