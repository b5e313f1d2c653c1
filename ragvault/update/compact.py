"""Compact: remove the last bytes of deleted notes and texts from every file of the index.

    keyword     rebuilt from the catalogue
    vectors     a file with a removed passage is rewritten
    vocabulary  words that no passage has any more are dropped
    catalogue   rewritten by SQLite's VACUUM, and its journal truncated

It runs at the end of an indexing run: after a note was removed, at once where that writes little,
as in most vaults, and in a large vault when much was removed or a day has passed. A watcher indexes
edits first and compacts when nothing else waits. Editing one note writes nothing more than the
edit. Removed text may come back (an undo, a `git checkout`), so its vectors are kept by their
hashes for a day; `ragvault forget` does not wait. Vectors of a replaced model are kept for a day as
well.
"""

from __future__ import annotations

import time
from contextlib import closing

from ragvault.engines import Engines
from ragvault.errors import EngineMissing, IndexUnusable
from ragvault.models.load import same_model
from ragvault.store.catalogue import Catalogue, file_sizes
from ragvault.update.keyword import prune_vocabulary, refresh_keyword
from ragvault.update.notes import Report
from ragvault.update.vectors import refresh_vectors, replaced_models

GRACE = 86_400.0  # seconds for which the vectors of removed text are kept
MANY_REMOVED = 0.05  # share of removed passages from which edits are compacted too
SMALL_INDEX = 8_000_000  # bytes of catalogue and keyword index, rewritten at once after a removal


def compact_if_due(
    catalogue: Catalogue, engines: Engines, report: Report, *, postpone: bool = False
) -> None:
    """The last step of a run: compact what is due, or only report that with `postpone`."""
    engines.drop_unused(catalogue)
    before = time.time() - GRACE
    due = _caches_due(catalogue, before)
    if due and not postpone:
        try:
            compact_caches(catalogue, engines)
        except EngineMissing as missing:
            report.warn(missing)
            return
    if _drop_old_vectors(catalogue, before) + _drop_replaced(catalogue, engines, before):
        catalogue.set_facts(vacuum_due=True)
    report.compact_due = due or catalogue.facts.vacuum_due or catalogue.is_wasteful
    if postpone or not report.compact_due:
        return
    try:
        _vacuum(catalogue)
    except IndexUnusable as error:  # a search still reads; the next run does it
        report.warn(error)
        return
    if due:
        catalogue.set_facts(compacted=catalogue.revision)
    report.compact_due = False


def compact_now(catalogue: Catalogue, engines: Engines) -> None:
    """Remove everything that was deleted, at once. The caches are up to date.

    Raises IndexUnusable.
    """
    engines.drop_unused(catalogue)
    compact_caches(catalogue, engines)
    catalogue.drop_unused_vectors()
    # First: without removed passages nothing else shows that something is due.
    catalogue.set_facts(vacuum_due=True, compacted=catalogue.revision)
    catalogue.drop_removals(catalogue.revision)
    _vacuum(catalogue)


def _vacuum(catalogue: Catalogue) -> None:
    """Rewrite the catalogue's file; if a search still reads it, or this is stopped, the next run
    does it. Raises IndexUnusable."""
    catalogue.set_facts(vacuum_due=True)
    catalogue.vacuum()
    catalogue.set_facts(vacuum_due=False)


def compact_caches(catalogue: Catalogue, engines: Engines) -> None:
    """Rewrite every cache that has something removed."""
    refresh_keyword(catalogue, engines, rebuild=True)
    with closing(engines.keyword(catalogue)) as keyword:
        prune_vocabulary(catalogue, keyword)
    dims, models = catalogue.model_dims(), engines.models(catalogue)
    for model in models:
        if model in dims:
            engines.progress.checkpoint()
            better = "" if model == models[0] else models[0]
            refresh_vectors(model, catalogue, engines, better, clean=True)


def _caches_due(catalogue: Catalogue, before: float) -> bool:
    """Whether caches are compacted now: much was removed, or long ago, or it costs little."""
    since = catalogue.facts.compacted
    removed = len(catalogue.removed_since(since))
    if removed > MANY_REMOVED * catalogue.passage_count():
        return True
    if not catalogue.removed_notes_since(since):
        return False
    old = max(since, catalogue.removed_before(before))
    is_old = len(catalogue.removed_since(old)) < removed
    return is_old or _rewritten_bytes(catalogue) <= SMALL_INDEX


def _rewritten_bytes(catalogue: Catalogue) -> int:
    """How much compacting writes: the catalogue and the keyword index, about."""
    return catalogue.file_bytes + file_sizes(catalogue.folder).get("keyword", 0)


def _drop_old_vectors(catalogue: Catalogue, before: float) -> int:
    """Delete the vectors of text that did not come back, and the record of its removal."""
    facts = catalogue.facts
    # Of vectors that were taken over, nobody knows when their texts were removed.
    dropped = catalogue.drop_unused_vectors(None if facts.taken_over else before)
    catalogue.set_facts(taken_over=False)
    catalogue.drop_removals(min(catalogue.removed_before(before), facts.compacted))
    return dropped


def _drop_replaced(catalogue: Catalogue, engines: Engines, before: float) -> int:
    """Delete the vectors of models that were replaced before a moment and are not configured."""
    wanted = (engines.choice(catalogue).embeds, engines.config.models.static)
    gone = (
        model
        for model in replaced_models(catalogue, before)
        if not any(same_model(model, name) for name in wanted)
    )
    return sum(catalogue.drop_model(model) for model in gone)
