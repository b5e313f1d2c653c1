"""A small embedder and a small reranker without weights, for our tests and those of users.

Both are deterministic, need no file and know a few groups of synonyms, so a test can assert which
passage must be found. They are used only when the settings name "fake": a real model is far better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from ragvault.ports import Role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "fake"
DIM = 256

# A word also counts as its group's first word.
SYNONYMS = (
    "big large huge great",
    "small little tiny",
    "fast quick rapid speedy",
    "slow sluggish",
    "car automobile vehicle",
    "dog hound puppy",
    "cat kitten feline",
    "buy purchase acquire",
    "begin start commence",
    "end finish stop",
    "repair fix mend",
    "error fault bug failure mistake",
    "delete remove erase",
    "picture image photo",
    "meeting appointment",
    "money cash payment",
    "doctor physician",
    "bread loaf sourdough",
    "cold chilly freezing",
    "hot warm heat",
    "house home dwelling",
    "note memo",
    "postpone delay defer",
    "search find lookup",
)
_STOPWORDS = """
a an and are as at be by did do does for from has have how in is it its of on or that the this to
was we were what when where which who why will with you your
"""
_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?<=\w{3})(ing|ed|es|s|e)$")
_SKIPPED = frozenset(_STOPWORDS.split())


class FakeEmbedder:
    """An Embedder: words, their groups and their trigrams, hashed into one vector."""

    name = f"{NAME}@1"
    dim = DIM
    max_tokens = 0

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        import numpy as np

        rows = np.zeros((len(texts), DIM), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text):
                place, sign = _slot(feature)
                row[place] += sign * weight
            if not row.any():
                row[0] = 1.0
            row /= np.linalg.norm(row)
        return rows


class FakeReranker:
    """A Reranker: the share of the query's concepts that the passage has."""

    name = f"{NAME}@1"

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        wanted = set(_concepts(query))
        return [len(wanted & set(_concepts(each))) / max(len(wanted), 1) for each in passages]


def _features(text: str) -> Iterator[tuple[str, float]]:
    """What a text is made of. Trigrams weigh little: they only bring `baking` near `bake`."""
    for word in _words(text):
        yield f"concept {_concept(word)}", 1.0
        yield f"word {word}", 0.3
        padded = f"<{word}>"
        for at in range(len(padded) - 2):
            yield f"trigram {padded[at : at + 3]}", 0.15


def _concepts(text: str) -> Iterator[str]:
    return map(_concept, _words(text))


def _words(text: str) -> Iterator[str]:
    return (word for word in _WORD.findall(text.casefold()) if word not in _SKIPPED)


def _concept(word: str) -> str:
    return _CONCEPT.get(_stem(word), _stem(word))


def _stem(word: str) -> str:
    """Crude, and enough for `baking` to be `baked`."""
    return _ENDING.sub("", word)


_CONCEPT = {_stem(word): group.split()[0] for group in SYNONYMS for word in group.split()}


def _slot(feature: str) -> tuple[int, float]:
    digest = int.from_bytes(
        blake2b(feature.encode("utf-8", "replace"), digest_size=4).digest(), "big"
    )
    return digest % DIM, 1.0 if digest & 0x80000000 else -1.0
