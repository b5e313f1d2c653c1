"""Compact: what was removed is in no file any more.

    keyword    rebuilt from the catalogue
    vectors    a file that holds a removed passage is written anew
    vocabulary words that stand nowhere any more go
    catalogue  written anew by SQLite's VACUUM, and its journal truncated

It runs by itself at the end of an indexing run: at once after a note was removed where that writes
little, as in most vaults, and in a large one when much was removed or a day has passed. An edit of
one note alone writes nothing more than the edit. What was removed may come back (an undo, a `git
checkout`), so the vectors of texts are kept by their hashes for a day; `ragvault forget` waits for
nothing. Vectors of a model that another one has replaced are kept for a day as well.
"""

from __future__ import annotations

import time
from contextlib import closing

from ragvault.engines import Engines
from ragvault.errors import EngineMissing, IndexUnusable
from ragvault.models.load import same_model
from ragvault.store.caches import KEYWORD
from ragvault.store.catalogue import Catalogue
from ragvault.update.keyword import prune_vocabulary, refresh_keyword
from ragvault.update.notes import Report
from ragvault.update.vectors import refresh_vectors, replaced

GRACE = 86_400.0  # seconds in which a text that comes back finds its vectors
RUBBISH = 0.05  # share of removed passages from which edits are compacted too
LITTLE = 4_000_000  # bytes: what one removed note may cost at once


def tidy(catalogue: Catalogue, engines: Engines, report: Report) -> None:
    """What a run leaves to do when everything can be searched."""
    engines.drop_unused(catalogue)
    due = _due(catalogue, engines, time.time() - GRACE)
    if due:
        try:
            compact_caches(catalogue, engines)
        except EngineMissing as missing:
            report.warnings = (*report.warnings, f"{missing} (fix: {missing.fix})")
            return
    dropped = _drop_old_vectors(catalogue, time.time() - GRACE)
    dropped += _drop_replaced(catalogue, engines, time.time() - GRACE)
    if due or dropped or catalogue.scrub_due or catalogue.is_wasteful():
        try:
            _vacuum(catalogue)
        except IndexUnusable as error:  # while a search reads on; the next run does it
            report.warnings = (*report.warnings, f"{error} (fix: {error.fix})")
            return
    if due:
        catalogue.set_compacted_revision(catalogue.revision)


def compact(catalogue: Catalogue, engines: Engines) -> None:
    """Everything that was removed, at once. The caches are up to date. Raises IndexUnusable."""
    engines.drop_unused(catalogue)
    compact_caches(catalogue, engines)
    catalogue.drop_unused_vectors()
    catalogue.set_scrub_due(True)  # first: once no tombstone is left, nothing else says so
    catalogue.set_compacted_revision(catalogue.revision)
    catalogue.forget_tombstones(catalogue.revision)
    _vacuum(catalogue)


def _vacuum(catalogue: Catalogue) -> None:
    """The catalogue's own files; when a search reads on, or this is stopped, the next run's to do.

    Raises IndexUnusable.
    """
    catalogue.set_scrub_due(True)
    catalogue.compact()
    catalogue.set_scrub_due(False)


def compact_caches(catalogue: Catalogue, engines: Engines) -> None:
    """Write what held something removed again, in every cache."""
    refresh_keyword(catalogue, engines, rebuild=True)
    with closing(engines.keyword(catalogue)) as keyword:
        prune_vocabulary(catalogue, keyword)
    dims, models = catalogue.model_dims(), engines.models(catalogue)
    for model in models:
        if model in dims:
            better = "" if model == models[0] else models[0]
            refresh_vectors(model, catalogue, engines, better, clean=True)


def _due(catalogue: Catalogue, engines: Engines, before: float) -> bool:
    """Whether what was removed goes now: there is much of it, or it is old, or it costs little."""
    since = catalogue.compacted_revision
    gone = len(catalogue.removed_since(since))
    if gone > RUBBISH * catalogue.passage_count():
        return True
    if not catalogue.removed_notes_since(since):
        return False
    old = max(since, catalogue.removed_before(before))
    return len(catalogue.removed_since(old)) < gone or _keyword_bytes(catalogue) <= LITTLE


def _keyword_bytes(catalogue: Catalogue) -> int:
    """What rebuilding the keyword index writes."""
    cache = catalogue.cache(KEYWORD)
    return sum(size for size, *_ in cache.files.values()) if cache else 0


def _drop_old_vectors(catalogue: Catalogue, before: float) -> int:
    """Forget the vectors of texts that did not come back, and that they were ever there."""
    dropped = catalogue.drop_unused_vectors(before)
    compacted = catalogue.compacted_revision
    catalogue.forget_tombstones(min(catalogue.removed_before(before), compacted))
    return dropped


def _drop_replaced(catalogue: Catalogue, engines: Engines, before: float) -> int:
    """Forget the vectors of models that another one replaced before a moment, and nobody wants."""
    wanted = (engines.choice(catalogue).embeds, engines.config.models.static)
    gone = (
        model
        for model in replaced(catalogue, before)
        if not any(same_model(model, name) for name in wanted)
    )
    return sum(catalogue.drop_model(model) for model in gone)
