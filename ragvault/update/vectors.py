"""Vectors follow the passages, one tier after the other.

    embed           every text without a vector of a model gets one, stored in the catalogue at once
    update_vectors  the vector file of a model is written anew, when much has changed since it was
    take_over       a model answers from now on in its tier; the one before it is replaced

What was embedded before a crash is in the catalogue, and is not embedded again. Which models once
answered is recorded when another one takes over: a model on its way to answering is not replaced,
however long it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from ragvault.config.settings import Vector
from ragvault.engines import Engines
from ragvault.models.embed import SLAB, embed_new
from ragvault.ports import CacheBroken, Embedder, OpensElsewhere
from ragvault.store.caches import Cache, vector_cache
from ragvault.store.catalogue import Catalogue
from ragvault.update.embed_process import embedded, new_texts

PAGE = 1024  # passages embedded between two looks at the clock and the keyboard
# Passages to embed: below it a process of its own starts for longer than it helps.
MANY = 4 * PAGE


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


def update_vectors(
    catalogue: Catalogue,
    model: str,
    settings: Vector,
    better: str = "",
    *,
    clean: bool = False,
    rebuild: bool = False,
) -> bool:
    """Write the vector file of a model anew where that is due; whether it was.

    It holds the passages that have no vector of the model `better`. Until it is due, readers take
    what is new from the catalogue. With `clean`, one removed passage in the file is enough.
    """
    from ragvault.index.vector import vector_recipe, write_file

    dim = catalogue.model_dims().get(model)
    name = vector_cache(model)
    cache = catalogue.cache(name)
    if dim is None:
        catalogue.drop_cache(name)
        return False
    with catalogue.snapshot():  # before the ids: a file may hold more than its row says
        reached = catalogue.revision, catalogue.last_vector()
    wanted = Cache(name, 0, "faiss", vector_recipe(dim, settings), *reached)
    same = cache if cache is not None and cache.recipe == wanted.recipe else None
    if not rebuild and not _is_due(catalogue, model, dim, same, better, clean):
        return False
    ids = catalogue.embedded(model, better)
    if len(ids):
        fetch = partial(catalogue.passage_vectors, model)
        catalogue.rebuild_cache(wanted, lambda home: write_file(home, ids, fetch, dim, settings))
    elif cache is not None:
        catalogue.drop_cache(name)
        catalogue.sweep_caches()
    return True


def _is_due(
    catalogue: Catalogue, model: str, dim: int, cache: Cache | None, better: str, clean: bool
) -> bool:
    import numpy as np

    from ragvault.index.ids import among
    from ragvault.index.vector import SMALL_TAIL, open_file, vectors_are_due

    if cache is None:
        # The few passages that wait for their better vector need no file.
        tail = catalogue.count_vectors_since(model, 0, 0)
        return tail > (SMALL_TAIL if better else 0)
    catalogue.check_cache(cache, thorough=False)
    held = open_file(catalogue.cache_folder(cache), dim).ids
    unwanted = catalogue.gone(held, cache.revision)
    if better:
        unwanted |= ~among(held, np.array(catalogue.lacking(better), np.int64))
    removed = int(np.count_nonzero(unwanted))
    tail = catalogue.count_vectors_since(model, cache.revision, cache.upto)
    return vectors_are_due(len(held), tail, removed) or (clean and removed > 0)


# --- With recovery from damage ---


def refresh_vectors(
    model: str, catalogue: Catalogue, engines: Engines, better: str = "", *, clean: bool = False
) -> None:
    """Write the vector file of one model anew where that is due, or where it is damaged."""
    settings = engines.config.vector
    rebuild = engines.must_rebuild(model) and catalogue.cache(vector_cache(model)) is not None
    try:
        if not rebuild:
            engines.check_cache(vector_cache(model), catalogue)
            update_vectors(catalogue, model, settings, better, clean=clean)
    except CacheBroken as broken:
        engines.talk.info(f"the vector index of {model}: {broken}; rebuilding it")
        rebuild = True
    if rebuild:
        engines.remade.add("vectors")
        update_vectors(catalogue, model, settings, better, rebuild=True)


# --- Which model answers ---


def take_over(catalogue: Catalogue, tier: str, model: str) -> None:
    """From now on this model answers in the tier."""
    before = catalogue.tier_model(tier)
    if before and before != model:
        catalogue.set_replaced_at(before, time.time())
    catalogue.set_tier_model(tier, model)


def begin(catalogue: Catalogue, model: str) -> None:
    """Somebody wants this model's vectors, though another one may have taken its place."""
    if catalogue.replaced_at(model):
        catalogue.set_replaced_at(model, 0)


def replaced(catalogue: Catalogue, before: float) -> list[str]:
    """The models with vectors that answer no more, and last did before a moment."""
    answering = (catalogue.tier_model("full"), catalogue.tier_model("static"))
    since = {model: catalogue.replaced_at(model) for model in catalogue.model_dims()}
    gone = [model for model, when in since.items() if 0 < when < before]
    return [model for model in gone if model not in answering]
