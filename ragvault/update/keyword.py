"""Update the keyword index from the catalogue, and the vocabulary from the keyword index.

    update    what changed since its revision goes into the current index, in one commit
    rebuild   a new index is built beside the current one, and the catalogue switches to it

It is rebuilt when it is missing or damaged, when its recipe (engine, format, stemming) has changed,
or when the catalogue no longer knows what was removed since. Repeating an update is harmless:
documents are replaced by id.

The vocabulary has the words a vault is about, with vectors of the static model. One edit hardly
changes it, so it is built again only when a share of the passages has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache, lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from ragvault.config.settings import Keyword
from ragvault.engines import Engines
from ragvault.errors import refusals
from ragvault.index.keyword import choose_engine, keyword_recipe, lacks_tantivy, open_writer
from ragvault.index.keyword.fields import Documents, note_words, passage_words
from ragvault.index.vocabulary import choose, concepts, term_changes
from ragvault.plan import EngineDocument
from ragvault.ports import (
    CacheBroken,
    Embedder,
    KeywordIndex,
    KeywordWriter,
    Progress,
)
from ragvault.store.catalogue import Catalogue
from ragvault.store.files import close_files
from ragvault.store.schema import KEYWORD, Cache
from ragvault.text.analyze import Analyzer
from ragvault.text.spelling import STOP_WORDS
from ragvault.update.workers import Failure, run_jobs

PAGE = 2_000  # passages read at a time
MANY = 20_000  # passages whose words are found by workers: some seconds of work
JOB = 64  # notes or passages of one job of a worker
STEP = "indexing keywords"
COMMIT = 20_000  # passages between two commits of a rebuild: what the writer holds in memory
T = TypeVar("T")


def update_keyword(
    catalogue: Catalogue,
    settings: Keyword,
    progress: Progress | None = None,
    *,
    rebuild: bool = False,
) -> bool:
    """Bring the keyword index up to date; returns whether it was rebuilt.

    Raises CacheBroken when the current index cannot be written to: then rebuild it.
    """
    progress = progress or Progress()
    cache = catalogue.cache(KEYWORD)
    wanted = wanted_cache(catalogue, settings, cache)
    if rebuild or cache is None or not can_update(catalogue, cache, wanted):

        def build(home: Path) -> None:
            _write(home, wanted.engine, settings, catalogue, 0, progress)

        catalogue.rebuild_cache(wanted, build)
        return True
    if cache.revision < wanted.revision:
        home = catalogue.cache_folder(cache)
        with refusals(catalogue.folder):
            _write(home, cache.engine, settings, catalogue, cache.revision, progress)
        catalogue.set_cache(cache._replace(revision=wanted.revision))
    return False


def wanted_cache(catalogue: Catalogue, settings: Keyword, cache: Cache | None) -> Cache:
    """The index as it should be now; its number is not chosen yet."""
    current = cache.engine if cache is not None else ""
    engine = choose_engine(settings, _many(catalogue), current)
    return Cache(KEYWORD, 0, engine, keyword_recipe(engine, settings), catalogue.revision)


def _many(catalogue: Catalogue) -> int:
    """The passages, for the choice of an engine. Those of scripts without spaces are long and have
    ten times the words: each 400 bytes count as one."""
    return max(catalogue.passage_count(), catalogue.text_bytes() // 400)


def can_update(catalogue: Catalogue, cache: Cache, wanted: Cache) -> bool:
    """Whether the current index can take in what changed, instead of being rebuilt."""
    same = cache.recipe == wanted.recipe and cache.revision > 0
    return same and catalogue.can_catch_up(cache.revision)


def _write(
    home: Path,
    engine: str,
    settings: Keyword,
    catalogue: Catalogue,
    since: int,
    progress: Progress,
) -> None:
    with closing(open_writer(home, engine, settings)) as writer, catalogue.snapshot():
        if since:
            writer.remove(catalogue.removed_notes_since(since), catalogue.removed_since(since))
        notes = [id_ for id_, _ in catalogue.notes_since(since)]
        passages = catalogue.passages_since(since)
        many = len(passages) >= MANY
        made = _documents(catalogue, settings, notes, passages) if many else None
        for page in _pages(notes, PAGE):
            if made is not None:
                writer.add(islice(made, len(page)))
            else:
                writer.put([note_words(head.id, head) for head in catalogue.heads(page)], [])
        _put_passages(writer, catalogue, passages, made, since, progress)
        writer.commit()
    close_files(home)


def _put_passages(
    writer: KeywordWriter,
    catalogue: Catalogue,
    wanted: Sequence[int],
    made: Iterator[EngineDocument] | None,
    since: int,
    progress: Progress,
) -> None:
    done = 0
    for page in _pages(wanted, PAGE):
        texts = catalogue.passage_texts(page)
        if made is not None:
            writer.add(islice(made, len(texts)))
        else:
            writer.put([], [passage_words(p.id, p.note_id, p) for p in texts])
        done += len(page)
        if not since and done % COMMIT == 0:
            writer.commit()
        progress.step(STEP, done, len(wanted))


# --- Documents made by workers: finding the words of a large vault takes most of the time ---


def _documents(
    catalogue: Catalogue, settings: Keyword, notes: Sequence[int], passages: Sequence[int]
) -> Iterator[EngineDocument]:
    """The documents of notes and of many passages, in their order."""
    read = partial(_read_documents, catalogue.folder, settings)
    jobs = [partial(read, ids, []) for ids in _pages(notes, JOB)]
    jobs += [partial(read, [], ids) for ids in _pages(passages, JOB)]
    for job, found in zip(jobs, run_jobs(jobs), strict=True):
        # What ends a worker is no reason to leave a note or a passage out.
        yield from job() if isinstance(found, Failure) else found


def _read_documents(
    folder: Path, settings: Keyword, notes: Sequence[int], passages: Sequence[int]
) -> list[EngineDocument]:
    make = _documents_of(settings)
    with Catalogue.open(folder) as catalogue:
        heads, texts = catalogue.heads(notes), catalogue.passage_texts(passages)
    found = [make.of_note(note_words(head.id, head)) for head in heads]
    return found + [make.of_passage(passage_words(p.id, p.note_id, p)) for p in texts]


@lru_cache(maxsize=1)  # it remembers the words it has seen
def _documents_of(settings: Keyword) -> Documents:
    return Documents(settings)


def _pages(items: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page


# --- With recovery from damage ---

EVERY = 2.0  # seconds of reading between two updates, so that a changed note is soon found


def refresh_keyword(
    catalogue: Catalogue,
    engines: Engines,
    *,
    rebuild: bool = False,
) -> None:
    """Bring the keyword index up to date, and rebuild it where that is due or it is damaged."""
    settings, progress = engines.config.keyword, engines.progress
    rebuild = engines.must_rebuild(KEYWORD) or rebuild
    was = catalogue.cache(KEYWORD)
    try:
        if was is not None and not rebuild:
            engines.keyword(catalogue).close()  # an index that cannot be opened is rebuilt
        rebuilt = update_keyword(catalogue, settings, progress, rebuild=rebuild)
    except CacheBroken as broken:
        progress.info(f"keyword index: {broken}; rebuilding it")
        rebuilt = update_keyword(catalogue, settings, progress, rebuild=True)
    if rebuilt and lacks_tantivy(settings, _many(catalogue)):
        progress.info("tantivy would index and search this vault faster: pip install tantivy")
    if rebuilt and (was is not None or catalogue.facts.last_run):
        engines.rebuilt.add(KEYWORD)


def keyword_catch_up(catalogue: Catalogue, engines: Engines) -> Callable[[], None]:
    """Updates the keyword index while notes are still being read: call it now and then.

    A note whose passages were replaced is not found until the keyword index is updated. Without
    an index there is nothing to update: all words are written at once when all notes are read.
    """
    last = time.monotonic()

    @cache
    def can_update_it() -> bool:
        current = catalogue.cache(KEYWORD)
        if current is None:
            return False
        wanted = wanted_cache(catalogue, engines.config.keyword, current)
        return can_update(catalogue, current, wanted)

    def catch_up() -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY and can_update_it():
            refresh_keyword(catalogue, engines)
            last = time.monotonic()

    return catch_up


# --- The vocabulary ---

LAG = 0.02  # share of the passages that may change before the vocabulary is built again


def vocabulary_is_due(catalogue: Catalogue, model: str) -> bool:
    """Whether enough has changed since the terms were chosen."""
    last = catalogue.facts
    if last.vocabulary_model != model:
        return True
    added, now = len(catalogue.passages_since(last.vocabulary_revision)), catalogue.passage_count()
    gone = last.vocabulary_passages + added - now
    return added + gone > LAG * now


def build_vocabulary(
    catalogue: Catalogue, index: KeywordIndex, embedder: Embedder, stemming: str
) -> int:
    """Choose the terms again and embed new ones; returns how many were new."""
    passages = catalogue.passage_count()
    known = concepts(index.words(), Analyzer(stemming).term_of, STOP_WORDS)
    have, same = catalogue.terms(), catalogue.facts.vocabulary_model == embedder.name
    new, unwanted = term_changes(choose(known, passages), have if same else ())
    vectors = embedder.embed(new, "passage")
    with catalogue.batch():
        catalogue.change_terms(new, vectors, unwanted if same else have)
        catalogue.set_facts(
            vocabulary_model=embedder.name,
            vocabulary_revision=catalogue.revision,
            vocabulary_passages=passages,
        )
    return len(new)


def prune_vocabulary(catalogue: Catalogue, index: KeywordIndex) -> None:
    """Drop the terms that no passage has; `index` is the keyword index, compacted."""
    catalogue.drop_terms(term for term in catalogue.terms() if not index.holders(term))
