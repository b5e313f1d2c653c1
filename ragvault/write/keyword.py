"""The keyword index follows the catalogue.

    update    what changed since its revision goes into the current index, in one commit
    rebuild   a new index is built beside the current one, and the catalogue switches to it

It is rebuilt when it is missing or damaged, when its recipe (engine, format, stemming) is another
one, or when the catalogue no longer knows what was removed since. Replaying an update is harmless:
documents are replaced by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TypeVar

from ragvault.config.settings import Keyword
from ragvault.index.keyword import choose_engine, open_writer, recipe
from ragvault.index.keyword.fields import note_words, passage_words
from ragvault.ports import KeywordWriter
from ragvault.store.caches import KEYWORD, Cache
from ragvault.store.catalogue import Catalogue

PAGE = 2_000  # passages read at a time
COMMIT = 20_000  # passages between two commits of a rebuild: what the writer holds in memory
T = TypeVar("T")


def update_keyword(
    catalogue: Catalogue,
    settings: Keyword,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    rebuild: bool = False,
) -> bool:
    """Bring the keyword index up to date; whether it was rebuilt.

    Raises CacheBroken when the current index cannot be written to: then rebuild it.
    """
    cache = catalogue.cache(KEYWORD)
    wanted = wanted_cache(catalogue, settings, cache)
    if rebuild or cache is None or not can_update(catalogue, cache, wanted):

        def build(home: Path) -> None:
            _write(home, wanted.engine, settings, catalogue, 0, progress)

        catalogue.rebuild_cache(wanted, build)
        return True
    if cache.revision < wanted.revision:
        home = catalogue.cache_folder(cache)
        _write(home, cache.engine, settings, catalogue, cache.revision, progress)
        catalogue.stamp_cache(cache._replace(revision=wanted.revision))
    return False


def wanted_cache(catalogue: Catalogue, settings: Keyword, cache: Cache | None) -> Cache:
    """The index as it should be now; its number is not chosen yet."""
    current = cache.engine if cache is not None else ""
    engine = choose_engine(settings.engine, catalogue.chunk_count(), current)
    return Cache(KEYWORD, 0, engine, recipe(engine, settings), catalogue.revision)


def can_update(catalogue: Catalogue, cache: Cache, wanted: Cache) -> bool:
    """Whether the current index can take in what changed, instead of being rebuilt."""
    same = cache.recipe == wanted.recipe and cache.revision > 0
    return same and catalogue.can_catch_up(catalogue.identity, cache.revision)


def _write(
    home: Path,
    engine: str,
    settings: Keyword,
    catalogue: Catalogue,
    since: int,
    progress: Callable[[int, int], None],
) -> None:
    with closing(open_writer(home, engine, settings)) as writer, catalogue.snapshot():
        if since:
            writer.remove(catalogue.removed_notes_since(since), catalogue.removed_since(since))
        for page in _pages([id_ for id_, _ in catalogue.notes_since(since)], PAGE):
            writer.put([note_words(head.id, head) for head in catalogue.heads(page)], [])
        _put_passages(writer, catalogue, since, progress)
        writer.commit()


def _put_passages(
    writer: KeywordWriter, catalogue: Catalogue, since: int, progress: Callable[[int, int], None]
) -> None:
    wanted = [chunk.id for chunk in catalogue.chunks_since(since)]
    done = 0
    for page in _pages(wanted, PAGE):
        writer.put([], [passage_words(p.id, p.note_id, p) for p in catalogue.said(page)])
        done += len(page)
        if not since and done % COMMIT == 0:
            writer.commit()
        progress(done, len(wanted))


def _pages(items: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page
