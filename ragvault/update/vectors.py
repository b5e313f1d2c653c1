"""Update vectors: embed new passages, and rewrite vector files when enough has changed.

    embed_all        every text without a vector of a model gets one, stored in the catalogue
    refresh_vectors  the vector file of a model is rewritten where that is due, or damaged
    use_model        searches use this model in its tier; the one before it is replaced

Vectors are stored under the full name of their model and the hash of the text (prepare.py). So a
note that moved, a paragraph copied into ten notes, a rebuilt index or a run that was killed never
costs an embedding twice, and the vectors of two models never mix. When a model is
replaced, the time is recorded: its vectors are kept for a day (upkeep.py).
"""

from __future__ import annotations

import time
from functools import partial
from itertools import permutations
from math import inf

from ragvault.config.settings import Vector
from ragvault.engines import Engines
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
    a crash can cost; `progress` is called after each. Returns how many passages there were to
    embed.
    """
    _use_again(catalogue, embedder.name)
    passages = catalogue.unembedded(embedder.name)
    seen: set[bytes] = set()
    for start in range(0, len(passages), PAGE):
        progress.step(step, start, len(passages))
        page = catalogue.passage_texts(passages[start : start + PAGE])
        texts = {each.hash: embedding_text(each) for each in page if each.hash not in seen}
        seen.update(texts)
        # By length, so that texts of one slab take about equally long.
        todo = sorted(texts.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        for first in range(0, len(todo), slab):
            part = todo[first : first + slab]
            matrix = embedder.embed([text for _, text in part], "passage")
            catalogue.put_vectors(embedder.name, embedder.dim, [key for key, _ in part], matrix)
            progress.step(step, start + first + len(part), len(passages))
            if time.monotonic() >= until:
                return len(passages)
    return len(passages)


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


def measure_unrelated(catalogue: Catalogue, embedder: Embedder) -> None:
    """Store, once for each model, which cosines say nothing."""
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
