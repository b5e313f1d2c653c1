"""Embed only what has no vector yet.

A text is known by `text_key`, a hash of exactly what the embedder is given as a passage, and its
vectors are kept by (full model name, key). So a note that moved, a paragraph copied into ten
notes, a rebuilt index or a run that was killed cost nothing twice, and another model never meets
vectors that are not its own. Where the vectors are kept is behind the VectorStore port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from ragvault.ports import Embedder, VectorStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Texts embedded between two writes: what a crash can cost, about two seconds of work.
SLAB = 64


def text_key(text: str) -> bytes:
    """The key of a text: 16 bytes, so that a chance meeting of two texts need not be feared."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def embed_missing(
    store: VectorStore,
    embedder: Embedder,
    texts: Sequence[str],
    *,
    slab: int = SLAB,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Give every text a vector of this embedder, and say how many had none.

    Each slab is kept before the next is begun; `progress` is told (done, total) after each, and
    may raise to stop there.
    """
    missing = _missing(store, embedder.name, texts)
    embed_new(store, embedder, missing, slab=slab, progress=progress)
    return len(missing)


def embed_new(
    store: VectorStore,
    embedder: Embedder,
    texts: Mapping[bytes, str],
    *,
    slab: int = SLAB,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """The same for texts, by their keys, that are known to have no vector."""
    todo = evenly(texts)
    for start in range(0, len(todo), slab):
        part = todo[start : start + slab]
        matrix = embedder.embed([text for _, text in part], "passage")
        store.put_vectors(embedder.name, embedder.dim, [key for key, _ in part], matrix)
        progress(start + len(part), len(todo))


def evenly(texts: Mapping[bytes, str]) -> list[tuple[bytes, str]]:
    """The longest first, so that a slab's work is even."""
    return sorted(texts.items(), key=lambda pair: (-len(pair[1]), pair[0]))


def vectors_of(store: VectorStore, embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """One row a text, in the order given, embedding those that have none."""
    embed_missing(store, embedder, texts)
    return store.get_vectors(embedder.name, [text_key(text) for text in texts])


def _missing(store: VectorStore, model: str, texts: Sequence[str]) -> dict[bytes, str]:
    """The texts without a vector, each once."""
    by_key = {text_key(text): text for text in texts}
    there = store.have(model, list(by_key))
    return {key: text for key, text in by_key.items() if key not in there}
