"""The vocabulary: the words that a vault is about, for finding words near a query.

    terms_of   the words of one passage that could be concepts
    Counts     in how many passages each stands, kept by adding and removing passages
    choose     the concepts: not too rare, not too common, the same ones every time
    plan       which of them have to be embedded, and which embeddings are to be forgotten
    expand     the concepts nearest to a query's vector

Tokens come from the caller's analyzer and vectors from the caller's embedder; counts and vectors
are kept by the caller too. A word that stands in no passage any more is in nothing here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 5000
SHORTEST, LONGEST = 3, 30  # characters; what is longer is a name of a file or a key
RAREST = 3  # passages; a word of one or two passages is found by itself, or is a slip of the pen
COMMONEST = 0.1  # share of passages; what is in more of them is near every query

_SAMPLE = 1000  # terms compared with each other to know the model: half a million pairs


def terms_of(tokens: Iterable[str], stop_words: Container[str] = frozenset()) -> set[str]:
    """Those of a passage's words that could name something: letters, neither few nor many."""
    return {
        token
        for token in tokens
        if SHORTEST <= len(token) <= LONGEST and token.isalpha() and token not in stop_words
    }


@dataclass(slots=True)
class Counts:
    """In how many passages each term stands, and how many passages there are.

    `changed` are the terms whose count is not yet stored; `take_changes` hands them over. Removing
    takes the terms that were added: a passage's text is still known when it goes.
    """

    passages: int = 0
    terms: Counter[str] = field(default_factory=Counter)
    changed: set[str] = field(default_factory=set)

    def add(self, terms: Iterable[str]) -> None:
        self._count(terms, 1)

    def remove(self, terms: Iterable[str]) -> None:
        self._count(terms, -1)

    def take_changes(self) -> dict[str, int]:
        """The count of each changed term, 0 for one to forget; from now on they are stored."""
        changes = {term: self.terms.get(term, 0) for term in sorted(self.changed)}
        self.changed.clear()
        return changes

    def _count(self, terms: Iterable[str], by: int) -> None:
        distinct = set(terms)
        below = [term for term in distinct if self.terms.get(term, 0) + by < 0]
        if self.passages + by < 0 or below:
            raise ValueError("a passage was removed that was never added")
        self.passages += by
        self.changed |= distinct
        for term in distinct:
            self.terms[term] += by
            if not self.terms[term]:
                del self.terms[term]


def choose(counts: Counts, limit: int = MOST) -> list[str]:
    """The concepts of a vault, best first, equal ones in the order of the alphabet.

    The score is (1 + log of the passages with the term) x (log of one in how many has it): high for
    words that are used again and again in a part of the vault, low for the rare and the everywhere.
    """
    most = max(RAREST, COMMONEST * counts.passages)
    scored = [
        (-_score(count, counts.passages), term)
        for term, count in counts.terms.items()
        if RAREST <= count <= most
    ]
    return [term for _, term in sorted(scored)[:limit]]


def _score(count: int, passages: int) -> float:
    return (1 + math.log(count)) * math.log(passages / count)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do so that exactly the chosen terms are embedded."""

    embed: tuple[str, ...]
    forget: tuple[str, ...]


def plan(chosen: Sequence[str], embedded: Iterable[str]) -> Plan:
    """From the terms that have a vector to those that should; nothing is embedded twice."""
    wanted, have = set(chosen), set(embedded)
    return Plan(tuple(t for t in chosen if t not in have), tuple(sorted(have - wanted)))


# --- Expansion ---


def expand(
    query: NDArray[np.float32],
    terms: Sequence[str],
    matrix: NDArray[np.float32],
    *,
    top: int = 3,
    min_cosine: float = 0.5,
    own: Container[str] = frozenset(),
) -> list[tuple[str, float]]:
    """The terms nearest to a query, with their cosines: at most `top`, none of the query's `own`.

    `matrix` has a unit row for each term. What a cosine means depends on the model: see
    `usual_cosine` for a `min_cosine` that fits it. Equal ones are in the order of the alphabet.
    """
    import numpy as np

    if not len(terms):
        return []
    # Rounded, since a product's last digits depend on where in the matrix a row stands.
    cosines = np.round(matrix.astype(np.float64) @ query, 6)
    near = np.flatnonzero(cosines >= min_cosine)
    found = [(-float(cosines[i]), terms[i]) for i in near.tolist() if terms[i] not in own]
    return [(term, -cosine) for cosine, term in sorted(found)[:top]]


def usual_cosine(matrix: NDArray[np.float32], percentile: float) -> float:
    """The cosine that this share (0 to 100) of pairs of terms stay below, for this model and vault.

    With some models two unrelated words have a cosine above 0.5 more often than not, so a fixed
    threshold lets everything through. Terms are sampled evenly, so the same terms give the same
    number. 1.0, which nothing passes, when there are too few to know.
    """
    import numpy as np

    sample = matrix[:: max(1, math.ceil(len(matrix) / _SAMPLE))]
    if len(sample) < 2:
        return 1.0
    cosines = sample @ sample.T
    pairs = cosines[np.triu_indices(len(sample), k=1)]
    return float(np.percentile(pairs, percentile))
