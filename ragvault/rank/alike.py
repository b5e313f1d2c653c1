"""Which candidates say the same: by text, by letters, by meaning. For dedup.

Each function returns, for the candidates that repeat an earlier one, which ones those are and how
alike they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragvault.candidate import Candidate, Fetches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Alike = dict[int, dict[int, str]]
# A sketch has two to this many bits; 1,500 characters have about 900 different trigrams.
_BITS = 10


def same_text(candidates: Sequence[Candidate]) -> Alike:
    """Candidates of one text."""
    first: dict[str, int] = {}
    alike: Alike = {}
    for at, each in enumerate(candidates):
        before = first.setdefault(each.passage.text.strip(), at)
        if before != at:
            alike[at] = {before: "the same text"}
    return alike


def same_grams(candidates: Sequence[Candidate], n: int, threshold: float) -> Alike:
    """Candidates whose character n-grams are nearly the same."""
    texts = [each.passage.text for each in candidates]
    sets: dict[int, frozenset[str]] = {}
    alike: Alike = {}
    for at, before in _maybe(texts, n, threshold):
        for each in (at, before):
            if each not in sets:
                sets[each] = grams(texts[each], n)
        found = jaccard(sets[at], sets[before])
        if found >= threshold:
            alike.setdefault(at, {})[before] = f"{found:.2f} of the {n}-grams are the same"
    return alike


def same_meaning(
    candidates: Sequence[Candidate], vectors: Mapping[int, Any], threshold: float
) -> Alike:
    """Candidates whose vectors are nearly the same."""
    import numpy as np

    if isinstance(vectors, Fetches):
        vectors.fetch([each.id for each in candidates])
    known = [at for at, each in enumerate(candidates) if each.id in vectors]
    alike: Alike = {}
    if len(known) < 2:
        return alike
    matrix = np.stack([vectors[candidates[at].id] for at in known])
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


def _maybe(texts: Sequence[str], n: int, threshold: float) -> Iterable[tuple[int, int]]:
    """Pairs that may pass the threshold: never one too few, and seldom one too many.

    A text is sketched as the bits that its n-grams hash to. A bit that A has and B has not is at
    least one n-gram that only A has; so A and B differ in at least d n-grams, share at most s, and
    their Jaccard is at most s / (s + d). One product of two matrices says it of all pairs.
    """
    import numpy as np

    bits = _sketches(texts, n)
    both, own = np.einsum("ik,jk->ij", bits, bits), bits.sum(1)
    only = own[:, None] - both  # bits of the row that the column has not
    sizes = np.array([max(0, len(text) - n + 1) for text in texts], np.float32)[:, None]
    shared = np.minimum(sizes - only, (sizes - only).T)
    bound = shared / np.maximum(shared + only + only.T, 1.0)
    # A little less than the threshold: these are 32-bit numbers.
    return [(i, j) for i, j in np.argwhere(np.tril(bound >= threshold - 1e-4, -1)).tolist()]


def _sketches(texts: Sequence[str], n: int) -> NDArray[np.float32]:
    """One row of bits a text, all texts hashed in one sweep."""
    import numpy as np

    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = np.array([len(text) for text in texts])
    count = max(0, len(letters) - n + 1)
    mixed = np.zeros(count, np.uint32)
    for at in range(n):
        mixed = mixed * np.uint32(0x85EBCA6B) + letters[at : at + count]
    mixed *= np.uint32(0x9E3779B1)  # letters are small numbers: spread them over all bits
    rows = np.repeat(np.arange(len(texts)), sizes)[:count]
    ends = np.cumsum(sizes)[rows]
    inside = np.arange(count) + n <= ends  # not across the end of one text into the next
    bits = np.zeros((len(texts), 1 << _BITS), np.float32)
    bits[rows[inside], mixed[inside] >> np.uint32(32 - _BITS)] = 1.0
    return bits
