"""Update vectors: embed new passages, and rewrite vector files when enough has changed.

    embed_all        every text without a vector of a model gets one, stored in the catalogue
    refresh_vectors  the vector file of a model is rewritten where that is due, or damaged
    use_model        searches use this model in its tier; the one before it is replaced

What was embedded before a crash is in the catalogue, and is not embedded again. When a model is
replaced, the time is recorded: its vectors are kept for a day (upkeep.py).
"""

from __future__ import annotations

import time
from functools import partial
from math import inf

from ragvault.config.settings import Vector
from ragvault.engines import Engines
from ragvault.models.embed import embed_new, unrelated_cosine
from ragvault.notes.chunk import embedding_text
from ragvault.ports import CacheBroken, Embedder, Progress
from ragvault.store.catalogue import Catalogue
from ragvault.store.schema import Cache, vector_cache

PAGE = 1024  # passages whose texts are read at a time


def embed_all(
    catalogue: Catalogue,
    embedder: Embedder,
    progress: Progress,
    step: str = "embedding",
    *,
    slab: int = PAGE,
    until: float = inf,
) -> int:
    """Embed the passages without a vector of a model, each text once.

    Ends early at the moment `until` (time.monotonic). A slab is what is stored at once, and so what
    a crash can cost. Returns how many passages there were to embed.
    """
    _use_again(catalogue, embedder.name)
    passages = catalogue.unembedded(embedder.name)
    seen: set[bytes] = set()
    for start in range(0, len(passages), PAGE):
        progress.step(step, start, len(passages))

        def after_slab(done: int, _: int, start: int = start) -> None:
            progress.step(step, start + done, len(passages))
            if time.monotonic() >= until:
                raise _TimeIsUp

        page = catalogue.passage_texts(passages[start : start + PAGE])
        texts = {each.hash: embedding_text(each) for each in page if each.hash not in seen}
        seen.update(texts)
        try:
            embed_new(catalogue.put_vectors, embedder, texts, slab=slab, progress=after_slab)
        except _TimeIsUp:
            break
    return len(passages)


class _TimeIsUp(Exception):
    """Not an error: what was embedded is stored, and a later run goes on."""


# --- The vector file ---


def update_vectors(
    catalogue: Catalogue,
    model: str,
    settings: Vector,
    *,
    clean: bool = False,
    rebuild: bool = False,
) -> bool:
    """Rewrite the vector file of a model where that is due; returns whether it was.

    Until it is due, readers take what is new from the catalogue. With `clean`, one removed passage
    in the file is enough.
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
    if not rebuild and not _is_due(catalogue, model, dim, same, clean):
        return False
    ids = catalogue.embedded_passages(model)
    if len(ids):
        fetch = partial(catalogue.passage_vectors, model)
        catalogue.rebuild_cache(wanted, lambda home: write_file(home, ids, fetch, dim, settings))
    elif cache is not None:
        catalogue.drop_cache(name)
        catalogue.sweep_caches()
    return True


def _is_due(catalogue: Catalogue, model: str, dim: int, cache: Cache | None, clean: bool) -> bool:
    from ragvault.index.vector import open_file, vectors_are_due

    if cache is None:
        return catalogue.count_vectors_since(model, 0, 0) > 0
    held = open_file(catalogue.cache_folder(cache), dim).ids
    removed = int(catalogue.gone(held, cache.revision).sum())
    tail = catalogue.count_vectors_since(model, cache.revision, cache.upto)
    return vectors_are_due(len(held), tail, removed) or (clean and removed > 0)


# --- With recovery from damage ---


def refresh_vectors(
    model: str, catalogue: Catalogue, engines: Engines, *, clean: bool = False
) -> None:
    """Rewrite the vector file of one model where that is due, or where it is damaged."""
    settings = engines.config.vector
    rebuild = engines.must_rebuild(model) and catalogue.cache(vector_cache(model)) is not None
    try:
        if not rebuild:
            update_vectors(catalogue, model, settings, clean=clean)
    except CacheBroken as broken:
        engines.progress.info(f"vector index of {model}: {broken}; rebuilding it")
        rebuild = True
    if rebuild:
        engines.rebuilt.add("vectors")
        update_vectors(catalogue, model, settings, rebuild=True)


def refresh_answering(catalogue: Catalogue, engines: Engines, *, clean: bool = False) -> None:
    """The same for the model that answers."""
    if answering := engines.answering(catalogue):
        engines.progress.checkpoint()
        refresh_vectors(answering[1], catalogue, engines, clean=clean)


# --- Which model is used ---


def measure_unrelated(catalogue: Catalogue, embedder: Embedder) -> None:
    """Store, once for each model, which cosines say nothing (models/embed.py)."""
    known = catalogue.facts.unrelated
    if embedder.name not in known:
        cosine = unrelated_cosine(embedder)
        catalogue.set_facts(unrelated={**known, embedder.name: cosine})


def use_model(catalogue: Catalogue, tier: str, model: str) -> None:
    """Searches use this model in the tier from now on."""
    facts = catalogue.facts
    replaced = _replaced(catalogue, facts.models.get(tier), model)
    embedding = "" if tier == "full" else facts.embedding
    catalogue.set_facts(
        models={**facts.models, tier: model}, replaced=replaced, embedding=embedding
    )


def begin_model(catalogue: Catalogue, model: str) -> None:
    """The first full vectors will be of this model; searches use it once every passage has one.

    Without static vectors they use it at once.
    """
    facts = catalogue.facts
    if "static" not in facts.models:
        use_model(catalogue, "full", model)
    elif facts.embedding != model:
        replaced = _replaced(catalogue, facts.embedding, model)
        catalogue.set_facts(embedding=model, replaced=replaced)


def _replaced(catalogue: Catalogue, before: str | None, model: str) -> dict[str, float]:
    replaced = catalogue.facts.replaced
    return {**replaced, before: time.time()} if before and before != model else replaced


def _use_again(catalogue: Catalogue, model: str) -> None:
    """A replaced model is in use again: keep its vectors."""
    replaced = catalogue.facts.replaced
    catalogue.set_facts(replaced={name: at for name, at in replaced.items() if name != model})


def replaced_models(catalogue: Catalogue, before: float) -> list[str]:
    """Models that were replaced before a moment, and are not used again."""
    facts = catalogue.facts
    gone = [model for model, when in facts.replaced.items() if when < before]
    return [model for model in gone if model not in (*facts.models.values(), facts.embedding)]
