"""Which candidates say the same: by text, by letters, by meaning. For dedup.

Each of them returns, for the candidates that repeat an earlier one, which ones those are and how
alike they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragvault.candidate import Candidate, together

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Alike = dict[int, dict[int, str]]
# A sketch has two to this many bits; 1,500 characters have about 900 different trigrams.
_BITS = 10
_ROUNDING = 1e-6
_ROWS = 64  # sketches that are compared with all before them at once
_MASKS = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F)


def same_text(candidates: Sequence[Candidate]) -> Alike:
    """Candidates of one text."""
    first: dict[str, int] = {}
    alike: Alike = {}
    for at, each in enumerate(candidates):
        said = each.passage.text.strip()
        before = first.setdefault(said, at)
        if before != at and said:
            alike[at] = {before: "the same text"}
    return alike


class SameGrams:
    """Candidates whose character n-grams are nearly the same. What it learns of one it keeps.

    Asked again, it knows that those it was asked about before, and of which copies have been taken
    out since, are not alike.
    """

    def __init__(self, n: int, threshold: float) -> None:
        self._n, self._threshold = n, threshold
        self._sketches: dict[int, Sketch] = {}
        self._grams: dict[int, frozenset[str]] = {}

    def __call__(self, candidates: Sequence[Candidate]) -> Alike:
        is_new = [each.id not in self._sketches for each in candidates]
        new = [each for each, fresh in zip(candidates, is_new, strict=True) if fresh]
        sketches = sketched([each.passage.text for each in new], self._n)
        self._sketches.update(zip((each.id for each in new), sketches, strict=True))
        known = [self._sketches[each.id] for each in candidates]
        alike: Alike = {}
        for at, before in _maybe(known, self._threshold, is_new):
            found = jaccard(self._of(candidates[at]), self._of(candidates[before]))
            if found >= self._threshold:
                why = f"{found:.2f} of the {self._n}-grams are the same"
                alike.setdefault(at, {})[before] = why
        return alike

    def _of(self, each: Candidate) -> frozenset[str]:
        if each.id not in self._grams:
            self._grams[each.id] = grams(each.passage.text, self._n)
        return self._grams[each.id]


def same_meaning(
    candidates: Sequence[Candidate], vectors: Mapping[int, Any], threshold: float
) -> Alike:
    """Candidates whose vectors are nearly the same."""
    import numpy as np

    together(vectors, [each.id for each in candidates])
    found = [
        (at, row) for at, each in enumerate(candidates) if (row := vectors.get(each.id)) is not None
    ]
    alike: Alike = {}
    if len(found) < 2:
        return alike
    known = [at for at, _ in found]
    matrix = np.stack([row for _, row in found])
    cosines = np.einsum("ik,jk->ij", matrix, matrix)  # few: BLAS would wait for its threads
    for i, j in np.argwhere(np.tril(cosines >= threshold, -1)).tolist():
        alike.setdefault(known[i], {})[known[j]] = f"cosine {cosines[i, j]:.3f}"
    return alike


def grams(text: str, n: int) -> frozenset[str]:
    """The character n-grams of a text."""
    return frozenset(text[at : at + n] for at in range(len(text) - n + 1))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """What two sets share, against what either has; two empty ones share nothing."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if shared else 0.0


def _maybe(
    sketches: Sequence[Sketch], threshold: float, is_new: Sequence[bool]
) -> Iterator[tuple[int, int]]:
    """Pairs with a new one, the later first, that may pass: none too few, seldom one too many.

    A bit that A has and B has not is at least one n-gram that only A has; so A and B differ in at
    least d n-grams, share at most s, and their Jaccard is at most s / (s + d).
    """
    import numpy as np

    bits = np.array([each.bits for each in sketches])
    size = np.array([each.size for each in sketches])
    spare = np.array([each.spare for each in sketches])
    new = np.array(is_new, bool)
    for first in range(0, len(sketches), _ROWS):
        rows, before = slice(first, first + _ROWS), slice(first + _ROWS)
        both = _ones(bits[rows, np.newaxis] & bits[before])
        shared = both + np.minimum.outer(spare[rows], spare[before])
        apart = np.add.outer(size[rows], size[before]) - 2 * both
        close = shared + _ROUNDING >= threshold * (shared + apart)
        wanted = close & np.logical_or.outer(new[rows], new[before])
        for at, earlier in np.argwhere(np.tril(wanted, first - 1)).tolist():
            yield first + at, earlier


def _ones(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many bits are set in each last row: added in pairs, then fours, then bytes.

    The bytes of 16 numbers can be added as they stand: none gets above 8 * 16.
    """
    import numpy as np

    twos, fours, eights = (np.uint64(mask) for mask in _MASKS)
    numbers = numbers - ((numbers >> np.uint64(1)) & twos)
    numbers = (numbers & fours) + ((numbers >> np.uint64(2)) & fours)
    numbers = (numbers + (numbers >> np.uint64(4))) & eights
    added = numbers.sum(axis=-1, keepdims=True).view(np.uint8)
    found: NDArray[np.int64] = added.sum(axis=-1, dtype=np.int64)
    return found


class Sketch(NamedTuple):
    """A text as the bits that its n-grams hash to; `spare` are n-grams that share a bit."""

    bits: NDArray[np.uint64]
    size: int
    spare: int


def sketched(texts: Sequence[str], n: int) -> list[Sketch]:
    """One sketch a text, all texts hashed in one sweep."""
    if not texts:
        return []
    import numpy as np

    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = np.array([len(text) for text in texts])
    count = max(0, len(letters) - n + 1)
    mixed = np.zeros(count, np.uint32)
    for at in range(n):
        mixed = mixed * np.uint32(0x85EBCA6B) + letters[at : at + count]
    mixed *= np.uint32(0x9E3779B1)  # letters are small numbers: spread them over all bits
    rows = np.repeat(np.arange(len(texts), dtype=np.uint32), sizes)[:count]
    inside = np.repeat(np.cumsum(sizes) - n, sizes)[:count] >= np.arange(count)
    # A gram that reaches over the end of one text into the next goes to a row of its own.
    rows[~inside] = len(texts)
    every = np.zeros((len(texts) + 1) << _BITS, bool)
    every[(rows << np.uint32(_BITS)) | (mixed >> np.uint32(32 - _BITS))] = True
    bits = every.reshape(len(texts) + 1, -1)[:-1]
    size = bits.sum(axis=1)
    spare = np.maximum(sizes - n + 1, 0) - size
    numbers = np.packbits(bits, axis=1).view(np.uint64)
    parts = zip(numbers, size.tolist(), spare.tolist(), strict=True)
    return [Sketch(*each) for each in parts]
