"""The write path: bring an index up to date with its vault.

    walk -> diff -> read, parse, chunk -> store -> resolve links     the catalogue is up to date
         -> keyword                  the vault can be searched by keyword
         -> static vectors           … and by quick semantic search: seconds for a whole vault
         -> vocabulary, graph        query expansion; backlinks and communities
         -> full vectors             … and by full semantic search: minutes to hours
         -> compact                  bytes of removed text are gone from every file

Each step continues from wherever the last run stopped, so a run may be stopped at any moment: by
`progress`, which may raise, or by a crash. The next run ends with the same index. The catalogue is
the truth, and everything after it can be rebuilt without embedding a text twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from math import inf
from pathlib import Path

from ragvault.config.settings import Config
from ragvault.engines import Engines
from ragvault.errors import EngineMissing, ModelUnavailable, ModelUnusable
from ragvault.notes.walk import Walked, walk
from ragvault.ports import Progress
from ragvault.store.catalogue import Catalogue
from ragvault.store.schema import KEYWORD
from ragvault.types import Tier
from ragvault.update.graph import REGROUP, LinkGraph
from ragvault.update.keyword import (
    build_vocabulary,
    keyword_catch_up,
    refresh_keyword,
    vocabulary_is_due,
)
from ragvault.update.notes import Report, compare, remember_run, resolve_links, store
from ragvault.update.prepare import prepare_all
from ragvault.update.upkeep import compact_if_due
from ragvault.update.vectors import (
    begin_model,
    embed_all,
    measure_unrelated,
    refresh_answering,
    refresh_vectors,
    use_model,
)


def ingest(
    root: Path,
    catalogue: Catalogue,
    engines: Engines,
    tier: Tier = "full",
    *,
    walked: Walked | None = None,
    allow_empty: bool = False,
    regroup: float = 0.0,
    postpone_compact: bool = False,
    time_limit: float = inf,
) -> Report:
    """Bring the index up to date with the vault. The caller holds the writer's lock.

    `walked` is for a caller that has walked already, perhaps only some paths. Communities are
    computed again when at least the share `regroup` of the links has changed. After `time_limit`
    seconds no more full vectors are embedded; everything else is finished (`Report.unembedded`).

    Raises VaultEmptied where every note would be removed, unless `allow_empty`, and whatever
    `engines.progress` raises.
    """
    began, progress = time.perf_counter(), engines.progress
    until = time.monotonic() + time_limit
    engines.rebuilt.clear()

    report = update_catalogue(
        root,
        catalogue,
        engines.config,
        progress,
        walked=walked,
        meanwhile=keyword_catch_up(catalogue, engines),
        allow_empty=allow_empty,
    )

    run = _Caches(catalogue, engines, report)
    run.update_keyword()
    if tier != "keyword":
        models = engines.config.models
        run.update_static(more_follows=tier == "full" and models.embedder != models.static)
        run.update_vocabulary()
    run.update_graph(regroup)
    if tier == "full" or (tier == "static" and catalogue.tier_model("full")):
        run.update_full(until, switch=tier == "full")
    else:
        run.refresh_answering()

    progress.checkpoint()
    report.tier = run.reached_tier()
    report.rebuilt = tuple(sorted(engines.rebuilt))
    compact_if_due(catalogue, engines, report, postpone=postpone_compact)
    report.notes, report.passages = catalogue.note_count(), catalogue.passage_count()
    report.seconds = time.perf_counter() - began
    remember_run(catalogue, report)
    return report


def update_catalogue(
    root: Path,
    catalogue: Catalogue,
    config: Config,
    progress: Progress,
    *,
    walked: Walked | None = None,
    meanwhile: Callable[[], None] = lambda: None,
    allow_empty: bool = False,
) -> Report:
    """The first half: bring the catalogue up to date with the vault.

    `meanwhile` is called whenever some more notes are stored, and may read the catalogue.
    """
    now_ns = time.time_ns()
    progress.step("looking for notes")
    if walked is None or (walked.only is not None and not catalogue.facts.last_run):
        walked = walk(root, config.walk)  # some paths say nothing to an index that has no others
    pending = compare(root, catalogue, walked, config, now_ns, allow_empty=allow_empty)
    prepared = prepare_all(root, pending.to_read(), config)
    report = store(catalogue, pending, prepared, config, progress, meanwhile)
    report.links = resolve_links(catalogue, progress)
    return report


class _Caches:
    """The second half: each step brings one cache up to date with the catalogue."""

    def __init__(self, catalogue: Catalogue, engines: Engines, report: Report) -> None:
        self.catalogue, self.engines, self.report = catalogue, engines, report
        self.progress = engines.progress
        self.reached: Tier = "keyword"  # the best tier that this run completed

    @contextmanager
    def or_warn(self) -> Iterator[None]:
        """What lacks an engine or a model is left to a later run, with a warning."""
        try:
            yield
        except (EngineMissing, ModelUnavailable, ModelUnusable) as missing:
            self.report.warn(missing)

    def update_keyword(self) -> None:
        """The keyword index."""
        with self.or_warn():
            refresh_keyword(self.catalogue, self.engines)
            if self.report.anything:
                self.progress.info("Ready: keyword search.")

    def update_static(self, *, more_follows: bool) -> None:
        """Quick vectors of the static model, until the full ones answer."""
        self.progress.checkpoint()
        with self.or_warn():
            embedder = self.engines.embedder(self.engines.config.models.static)
            if not self.catalogue.tier_model("full"):
                step = "embedding (static)"
                self.report.embedded = embed_all(self.catalogue, embedder, self.progress, step)
                refresh_vectors(embedder.name, self.catalogue, self.engines)
            use_model(self.catalogue, "static", embedder.name)
            measure_unrelated(self.catalogue, embedder)
            self.reached = "static"
            if self.report.embedded:
                follows = " Full quality follows." if more_follows else ""
                self.progress.info(f"Ready: keyword + quick semantic search.{follows}")

    def update_vocabulary(self) -> None:
        """The words the vault is about, with vectors of the static model."""
        model = self.catalogue.tier_model("static")
        if self.reached != "static" or self.catalogue.cache(KEYWORD) is None:
            return
        if vocabulary_is_due(self.catalogue, model):
            self.progress.step("building vocabulary")
            with self.or_warn(), closing(self.engines.keyword(self.catalogue)) as index:
                stemming = self.engines.config.keyword.stemming
                build_vocabulary(self.catalogue, index, self.engines.embedder(model), stemming)

    def update_graph(self, regroup: float) -> None:
        """Backlinks, and communities where enough links have changed."""
        self.progress.checkpoint()
        graph = LinkGraph(self.catalogue)
        graph.update()
        if graph.is_due(regroup):
            self.progress.checkpoint()
            with self.or_warn():
                graph.update_communities(self.progress)
        self.report.communities_due = graph.is_due(REGROUP)

    def update_full(self, until: float, *, switch: bool) -> None:
        """Vectors of the transformer, as many as can be embedded until then.

        They answer when every passage has one. With `switch`, a newly chosen model may take the
        place of the one that answers, which gets the changed passages first.
        """
        chosen = self.engines.full_model(self.catalogue)
        answering = self.catalogue.tier_model("full") or chosen
        models = dict.fromkeys((answering, chosen) if switch else (answering,))
        embedded = [
            self._embed_full(model, until, "embedding" if model == chosen else "embedding changes")
            for model in models
        ]
        if any(embedded) and self.reached == "full":
            self.progress.info("Ready: keyword + full semantic search.")

    def _embed_full(self, model: str, until: float, step: str) -> int:
        """Embed what this model has not yet. Returns how many passages that were."""
        self.progress.checkpoint()
        embedded = 0
        with self.or_warn():
            embedder = self.engines.embedder(model)
            if not self.catalogue.tier_model("full"):
                begin_model(self.catalogue, embedder.name)
            total = embed_all(
                self.catalogue,
                embedder,
                self.progress,
                step,
                slab=self.engines.slab,
                until=until,
            )
            is_late = time.monotonic() >= until
            left = len(self.catalogue.unembedded(embedder.name)) if is_late else 0
            if not left:
                self.progress.checkpoint()
                refresh_vectors(embedder.name, self.catalogue, self.engines)
                use_model(self.catalogue, "full", embedder.name)
                measure_unrelated(self.catalogue, embedder)
                self.reached = "full"
                self._drop_static()
            embedded, self.report.unembedded = total - left, left
            # Every passage that got a static vector in this run has got a full one as well.
            self.report.embedded = max(self.report.embedded, embedded)
        return embedded

    def _drop_static(self) -> None:
        """Drop the static vectors: every passage has a full one."""
        static, full = self.catalogue.tier_model("static"), self.catalogue.tier_model("full")
        if static and static != full and self.catalogue.model_dims().get(static):
            self.catalogue.drop_superseded_vectors(static, full)
            refresh_vectors(static, self.catalogue, self.engines)

    def refresh_answering(self) -> None:
        """Keep vectors of a better tier than this run has; a lost file is rebuilt from the
        catalogue, which embeds nothing."""
        with self.or_warn():
            refresh_answering(self.catalogue, self.engines)

    def reached_tier(self) -> Tier:
        """The best tier that every passage is in, or in a better one.

        Asks the catalogue only about tiers that this run did not complete: that reads all passages.
        """
        full, static = self.catalogue.tier_model("full"), self.catalogue.tier_model("static")
        if self.reached == "full" or (full and not self.catalogue.has_unembedded(full)):
            return "full"
        if full:  # some passages wait for theirs
            return "keyword"
        if self.reached == "static" or (static and not self.catalogue.has_unembedded(static)):
            return "static"
        return "keyword"
