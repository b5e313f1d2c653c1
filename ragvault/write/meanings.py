"""Meanings: vectors follow the passages, one tier after the other.

    embed   every text without a vector of a model gets one, kept in the catalogue at once
    follow  the vector indexes take what they lack from the catalogue, and drop what is gone

An id belongs to one text for ever, so an index is behind exactly by the ids it lacks: no revision
needs to be compared. What was embedded before a crash is in the catalogue, and is not embedded
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from ragvault.models.embed import SLAB, embed_new
from ragvault.ports import Embedder, OpensElsewhere, VectorIndex
from ragvault.store.catalogue import Catalogue
from ragvault.write.answering import begin
from ragvault.write.elsewhere import embedded, new_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAGE = 1024  # passages embedded between two looks at the clock and the keyboard
# Passages to embed: below it a process of its own starts for longer than it helps.
MANY = 4 * PAGE
VECTORS = 8192  # vectors handed to an index at a time: 12 MB


def embed(
    catalogue: Catalogue,
    embedder: Embedder,
    tell: Callable[[int, int], None] = lambda *_: None,
    *,
    better: str = "",
    slab: int = SLAB,
    after_page: Callable[[], None] = lambda: None,
) -> int:
    """Give every passage a vector of this model; how many had none.

    What has a vector of the model `better` needs none of this one. A slab is what is stored at
    once, and so what a crash can cost.
    """
    begin(catalogue, embedder.name)
    lacking = catalogue.lacking(embedder.name, better)
    seen: set[bytes] = set()
    done = _elsewhere(catalogue, embedder, lacking, seen, tell) if len(lacking) >= MANY else 0
    for start in range(done, len(lacking), PAGE):
        page = lacking[start : start + PAGE]
        tell(start, len(lacking))
        texts = new_texts(catalogue, page, seen)
        onwards = _onwards(tell, start, len(lacking))
        embed_new(catalogue, embedder, texts, slab=slab, progress=onwards)
        after_page()
    return len(lacking)


def _elsewhere(
    catalogue: Catalogue,
    embedder: Embedder,
    lacking: Sequence[int],
    seen: set[bytes],
    tell: Callable[[int, int], None],
) -> int:
    """Have a model that can be opened there embed in another process; how many passages it did."""
    if not isinstance(embedder, OpensElsewhere):
        return 0
    done = 0
    tell(done, len(lacking))
    pages = [lacking[start : start + PAGE] for start in range(0, len(lacking), PAGE)]
    with closing(embedded(catalogue.folder, embedder.opening(), pages)) as made:
        for keys, vectors in made:
            catalogue.put_vectors(embedder.name, embedder.dim, keys, vectors)
            seen.update(keys)
            done += PAGE
            tell(min(done, len(lacking)), len(lacking))
    return done


def _onwards(
    tell: Callable[[int, int], None], start: int, total: int
) -> Callable[[int, int], None]:
    return lambda done, _: tell(start + done, total)


def follow_vectors(catalogue: Catalogue, index: VectorIndex, better: str = "") -> int:
    """Bring a vector index up to date; how many passages it took.

    It holds the passages that have no vector of the model `better`, and no others.
    """
    import numpy as np

    with catalogue.snapshot():
        revision = catalogue.revision
        lacking = np.array(catalogue.lacking(better), np.int64) if better else None
        wanted = catalogue.chunk_ids() if lacking is None else lacking
        held = index.ids()
        gone = np.setdiff1d(held, wanted, assume_unique=True)
        taken = 0
        for ids, vectors in _known(catalogue, index.model, np.setdiff1d(wanted, held)):
            index.add(ids, vectors)
            taken += len(ids)
        if len(gone):
            index.remove(gone)
    if taken or len(gone) or index.revision != revision:
        index.commit(revision)
    while index.merge():
        pass
    return taken


def _known(
    catalogue: Catalogue, model: str, ids: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """The ids that have a vector of this model, with it, a page at a time."""
    import numpy as np

    for start in range(0, len(ids), VECTORS):
        page = ids[start : start + VECTORS]
        vectors = catalogue.chunk_vectors(model, page)
        have = ~np.isnan(vectors[:, 0])
        if have.any():
            yield page[have], vectors[have]
