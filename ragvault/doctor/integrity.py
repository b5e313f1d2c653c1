"""Integrity: the index against itself, and against the vault.

    catalogue    SQLite's own check
    caches       each is of this catalogue, of its revision, and holds exactly its passages
    vault        files that changed since, files that were skipped

Nothing is repaired here: `ragvault index` brings a cache that is behind up to date, and makes one
that is broken again, without embedding anything twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ragvault.answer.status import Status
from ragvault.doctor.findings import Finding, fine
from ragvault.engines import Engines
from ragvault.errors import EngineMissing
from ragvault.plan import Has
from ragvault.ports import CacheBroken, KeywordIndex
from ragvault.sought import Not, Words
from ragvault.store.caches import vector_cache
from ragvault.store.catalogue import Catalogue

INDEX = "ragvault index"
NOBODY = "qzxjvkqzxjvk"  # a word that no note holds
EVERYTHING = 100_000_000


def integrity(catalogue: Catalogue, engines: Engines, status: Status) -> Iterator[Finding]:
    """Everything that can be compared without asking a question."""
    wrong = catalogue.check()
    if wrong:
        yield Finding("catalogue", "broken", wrong, f"{INDEX} --rebuild")
        return
    held = status.counts
    said = f"{held.notes:,} notes, {held.chunks:,} passages, revision {held.revision}"
    yield fine("catalogue", said)
    with catalogue.snapshot():
        yield _stamp(catalogue, engines)
        for name in engines.word_indexes():
            yield _words(name, catalogue, engines)
        yield from _vectors(catalogue, engines)
    yield from vault(status)


def vault(status: Status) -> Iterator[Finding]:
    """What the files say of the index."""
    pending = status.pending
    if pending.why:
        yield Finding("vault", "broken", pending.why, "check that the folder is there and readable")
    elif pending:
        waits = {
            "files that changed since": pending.files,
            "passages to index by word": pending.words,
            "passages to embed": pending.passages,
            "links to look up": pending.links,
        }
        said = "; ".join(f"{what}: {number:,}" for what, number in waits.items() if number)
        yield Finding("vault", "behind", said, INDEX)
    else:
        yield fine("vault", "every file is as it was indexed")
    if status.skipped:
        said = f"{len(status.skipped):,} files are skipped"
        yield Finding("skipped", "note", said, "ragvault status -v tells why")
    if status.writer:
        yield Finding("writer", "note", f"{status.writer} is writing; what is behind may be its")


def _stamp(catalogue: Catalogue, engines: Engines) -> Finding:
    if engines.are_of(catalogue):
        return fine("caches", "are of this catalogue")
    return Finding("caches", "behind", "are of another catalogue", INDEX)


def _words(name: str, catalogue: Catalogue, engines: Engines) -> Finding:
    part = f"{name} index"
    try:
        index = engines.keyword() if name == "keyword" else engines.code()
    except CacheBroken as broken:
        return Finding(part, "broken", str(broken), broken.fix)
    try:
        _verify(index)
        if index.revision != catalogue.revision:
            said = f"is of revision {index.revision}, the catalogue of {catalogue.revision}"
            return Finding(part, "behind", said, INDEX)
        return _compared(part, holds(index), _wanted(name, catalogue))
    except CacheBroken as broken:
        return Finding(part, "broken", str(broken), broken.fix)
    finally:
        index.close()


def _verify(index: KeywordIndex) -> None:
    """Every byte. Raises CacheBroken."""
    try:
        index.verify()
    except CacheBroken:  # or a writer has merged a file away since we looked
        index.refresh()
        index.verify()


def holds(index: KeywordIndex) -> NDArray[np.int64]:
    """Every passage of a keyword index: those that do not hold a word that nobody has."""
    found = index.search(Not(Words(NOBODY)), limit=EVERYTHING, fuzzy=False, seconds=60.0)
    return np.array(sorted(hit.passage for hit in found.hits), np.int64)


def _wanted(name: str, catalogue: Catalogue) -> NDArray[np.int64]:
    some = catalogue.filtered_passages(Has("code")) if name == "code" else None
    return catalogue.chunk_ids() if some is None else np.sort(some)


def _vectors(catalogue: Catalogue, engines: Engines) -> Iterator[Finding]:
    dims, models = catalogue.model_dims(), engines.models(catalogue)
    if not models:
        yield Finding(
            "vector index", "note", "there is none: this vault is searched by word", INDEX
        )
    for place, model in enumerate(models):
        part = "vector index"
        try:
            if model not in dims:
                continue
            cache = catalogue.cache(vector_cache(model))
            if cache is not None:
                catalogue.check_cache(cache)
            index = engines.vectors(model, dims[model], catalogue)
        except (CacheBroken, EngineMissing) as broken:
            yield Finding(part, "broken", f"{model}: {broken}", broken.fix)
            continue
        try:
            own = index.ids()
            if place:  # what a better model has is no longer asked here
                own = np.intersect1d(own, np.array(catalogue.lacking(*models[:place]), np.int64))
            yield _compared(part, own, _embedded(catalogue, models, place), f"{model}: ")
        finally:
            index.close()


def _embedded(catalogue: Catalogue, models: list[str], place: int) -> NDArray[np.int64]:
    """The passages a model answers for: those it has read, and no better model has."""
    lacking = np.array(catalogue.lacking(models[place]), np.int64)
    mine = np.setdiff1d(catalogue.chunk_ids(), lacking)
    better = catalogue.lacking(*models[:place]) if place else mine
    return np.intersect1d(mine, np.array(better, np.int64))


def _compared(
    part: str, has: NDArray[np.int64], wanted: NDArray[np.int64], of: str = ""
) -> Finding:
    missing, extra = len(np.setdiff1d(wanted, has)), len(np.setdiff1d(has, wanted))
    if missing or extra:
        said = f"{of}{missing:,} passages are missing and {extra:,} are not in the catalogue"
        return Finding(part, "behind", said, f"{INDEX}, or {INDEX} --rebuild if that is not enough")
    return fine(part, f"{of}all {len(has):,} passages")
