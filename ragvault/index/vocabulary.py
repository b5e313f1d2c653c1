"""The vocabulary: the words that a vault is about, for finding words near a query.

    concepts       the words that could name something, each in the form that is used most
    choose         those of them that are not too rare and not too common, the same ones every time
    term_changes   which of them have to be embedded, and which embeddings can be dropped
    expand         the concepts nearest to a query's vector
    usual_cosine   what near means, for this model and this vault
    text_cosines   how near sentences are to a query, by the vectors of their words

The keyword index counts in how many passages each word is. The caller embeds the terms and stores
their vectors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ragvault.text.analyze import UNSPACED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 5000
SHORTEST, LONGEST = 3, 30  # characters; what is longer is a name of a file or a key
RAREST = 3  # passages; a word of one or two passages is found by itself, or is a slip of the pen
COMMONEST = 0.1  # share of passages; what is in more of them is near every query
_PAIR = re.compile(rf"[{UNSPACED}]{{2}}")

_SAMPLE = 1000  # terms compared with each other to know the model: half a million pairs


def concepts(
    words: Mapping[str, int],
    stem: Callable[[str], str] = str,
    stop_words: Container[str] = frozenset(),
) -> dict[str, int]:
    """What could name something, with the number of passages that have any of its forms.

    Words of letters, neither short nor long nor rare, and pairs of characters where no space parts
    words.

    `stem` gives the term that all forms of a word share. Of oven and ovens the one that is used
    more represents both: as an expansion of each other they would find nothing new.
    """
    forms: dict[str, str] = {}
    for word, count in words.items():
        if count >= RAREST and _may_name(word) and word not in stop_words:
            root = stem(word)
            other = forms.get(root, word)
            forms[root] = min(word, other, key=lambda form: (-words[form], form))
    return {form: max(words[form], words.get(root, 0)) for root, form in forms.items()}


def _may_name(word: str) -> bool:
    if _PAIR.fullmatch(word):
        return True
    return SHORTEST <= len(word) <= LONGEST and word.isalpha()


def choose(counts: Mapping[str, int], passages: int, limit: int = MOST) -> list[str]:
    """The concepts of a vault, best first, equal ones in the order of the alphabet.

    The score is (1 + log of the passages with the term) x (log of one in how many has it): high for
    words that are used again and again in a part of the vault, low for the rare and the everywhere.
    """
    # The index may still count passages that were removed: at worst there are no others.
    most = min(max(RAREST, COMMONEST * passages), passages)
    scored = [
        (-_score(count, passages), term)
        for term, count in counts.items()
        if RAREST <= count <= most
    ]
    return [term for _, term in sorted(scored)[:limit]]


def _score(count: int, passages: int) -> float:
    return (1 + math.log(count)) * math.log(passages / count)


def term_changes(chosen: Sequence[str], embedded: Iterable[str]) -> tuple[list[str], list[str]]:
    """The terms to embed and to forget, so that exactly the chosen ones have a vector."""
    wanted, have = set(chosen), set(embedded)
    return [term for term in chosen if term not in have], sorted(have - wanted)


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
    # Rounded, since a product's last digits depend on the place of a row in the matrix.
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


def text_cosines(
    query: Sequence[str],
    texts: Sequence[Sequence[str]],
    rows: Mapping[str, int],
    matrix: NDArray[np.float32],
) -> list[float] | None:
    """The cosine of each text with a query, each the sum of its terms' vectors; None without any.

    Needs no model: `rows` has the row of `matrix` of every term. A text without a term has 0.
    """
    import numpy as np

    def vector(terms: Sequence[str]) -> NDArray[np.float32]:
        known = [rows[term] for term in terms if term in rows]
        found: NDArray[np.float32] = matrix[known].sum(axis=0, dtype=np.float32)
        return found / (float(np.linalg.norm(found)) or 1.0)

    wanted = vector(query)
    return [float(vector(text) @ wanted) for text in texts] if wanted.any() else None
