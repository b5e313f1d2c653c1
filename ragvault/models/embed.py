"""Embed texts that have no vector yet, and store the vectors.

Vectors are stored under (full model name, `text_key`), where the key is a hash of exactly the text
the embedder gets as a passage. So a note that moved, a paragraph copied into ten notes, a rebuilt
index or a run that was killed never costs an embedding twice, and the vectors of two models never
mix. The caller passes what stores vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from itertools import permutations
from typing import TYPE_CHECKING

from ragvault.ports import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Texts embedded between two writes: what a crash can cost, about two seconds of work.
SLAB = 64


def text_key(text: str) -> bytes:
    """The key of a text: 16 bytes, enough that two texts never share one by chance."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def embed_new(
    put: Callable[[str, int, Sequence[bytes], NDArray[np.float32]], None],
    embedder: Embedder,
    texts: Mapping[bytes, str],
    *,
    slab: int = SLAB,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Embed texts, given by their keys, that are known to have no vector of this embedder.

    `put` stores vectors of a model (its name and dimension) by their texts' keys, all or none.
    Each slab is stored before the next one starts. `progress` is called with (done, total) after
    each, and may raise to stop there.
    """
    todo = longest_first(texts)
    for start in range(0, len(todo), slab):
        part = todo[start : start + slab]
        matrix = embedder.embed([text for _, text in part], "passage")
        put(embedder.name, embedder.dim, [key for key, _ in part], matrix)
        progress(start + len(part), len(todo))


def longest_first(texts: Mapping[bytes, str]) -> list[tuple[bytes, str]]:
    """Keys and texts by length, so that texts of one slab take about equally long."""
    return sorted(texts.items(), key=lambda pair: (-len(pair[1]), pair[0]))


# Questions and passages about twelve things that have nothing to do with each other.
TOPICS = (
    (
        "how long should bread dough rise",
        "Leave the dough under a cloth for two hours, until it has doubled in size.",
    ),
    (
        "reset my router password",
        "Hold the small button at the back for ten seconds; the default password is on the label.",
    ),
    (
        "who wrote the fugue in D minor",
        "The organ piece is usually attributed to Bach, though some scholars doubt it.",
    ),
    (
        "train times to the coast on Sunday",
        "Weekend services leave every two hours from platform four and reach the sea before noon.",
    ),
    (
        "symptoms of iron deficiency",
        "Low iron makes people tired and pale, and their nails may become brittle.",
    ),
    (
        "rent contract notice period",
        "Either side may end the lease with three months' written notice.",
    ),
    (
        "pruning apple trees in winter",
        "Cut back crossing branches of fruit trees while they are dormant, before the sap rises.",
    ),
    (
        "what is a hash table",
        "A structure that finds a value by computing an index from its key, in constant time.",
    ),
    (
        "ideas for a birthday party",
        "We could rent the boat house, bake two cakes and hide small gifts in the garden.",
    ),
    (
        "minutes of the budget meeting",
        "The board agreed to spend less on travel this year and to hire one more accountant.",
    ),
    (
        "battle that ended the empire",
        "The army was beaten near the river in autumn, and the emperor went into exile.",
    ),
    (
        "stretching the lower back",
        "Lie on your back, pull both knees to your chest and breathe slowly for a minute.",
    ),
)
UNRELATED_SHARE = 0.9  # of unrelated pairs stay below `unrelated_cosine`


def unrelated_cosine(embedder: Embedder) -> float:
    """The cosine that nine of ten questions and unrelated passages stay below, by this model.

    Models differ: 0.45 for bge-small, 0.16 for potion. Only what is above it says anything.
    """
    questions = embedder.embed([question for question, _ in TOPICS], "query")
    passages = embedder.embed([passage for _, passage in TOPICS], "passage")
    cosines = questions @ passages.T
    pairs = sorted(float(cosines[pair]) for pair in permutations(range(len(TOPICS)), 2))
    return min(0.99, max(0.0, pairs[int(UNRELATED_SHARE * len(pairs))]))
