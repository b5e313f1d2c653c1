"""Embed texts that have no vector yet, and store the vectors.

Vectors are stored under (full model name, `text_key`), where the key is a hash of exactly the text
the embedder gets as a passage. So a note that moved, a paragraph copied into ten notes, a rebuilt
index or a run that was killed never costs an embedding twice, and the vectors of two models never
mix. The VectorStore port hides where vectors are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b

from ragvault.ports import Embedder, VectorStore

# Texts embedded between two writes: what a crash can cost, about two seconds of work.
SLAB = 64


def text_key(text: str) -> bytes:
    """The key of a text: 16 bytes, enough that two texts never share one by chance."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def embed_new(
    store: VectorStore,
    embedder: Embedder,
    texts: Mapping[bytes, str],
    *,
    slab: int = SLAB,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Embed texts, given by their keys, that are known to have no vector of this embedder.

    Each slab is stored before the next one starts. `progress` is called with (done, total) after
    each, and may raise to stop there.
    """
    todo = longest_first(texts)
    for start in range(0, len(todo), slab):
        part = todo[start : start + slab]
        matrix = embedder.embed([text for _, text in part], "passage")
        store.put_vectors(embedder.name, embedder.dim, [key for key, _ in part], matrix)
        progress(start + len(part), len(todo))


def longest_first(texts: Mapping[bytes, str]) -> list[tuple[bytes, str]]:
    """Keys and texts by length, so that texts of one slab take about equally long."""
    return sorted(texts.items(), key=lambda pair: (-len(pair[1]), pair[0]))
