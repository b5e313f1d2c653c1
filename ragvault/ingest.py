"""The write path.

    vault -> catalogue -> words        the vault can be searched by keyword
                       -> static       … and by meaning, roughly: seconds for a whole vault
                       -> vocabulary   the words it is about
                       -> links        backlinks, communities
                       -> full         … and by meaning, well: minutes to hours
                       -> tidy         what was removed is in no file any more

Each step follows the one before it from wherever it was left, so that a run may be stopped at any
moment, and whoever is told may raise (between two steps nothing in particular is told, for that).
The next run goes on from there and ends with the same index. The catalogue is the truth, and
everything after it can be made again without embedding a text twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Literal

from ragvault.engines import Engines
from ragvault.errors import EngineMissing, ModelUnavailable, ModelUnusable, RagvaultError
from ragvault.ports import Embedder
from ragvault.store.caches import KEYWORD
from ragvault.store.catalogue import Catalogue
from ragvault.update.compact import tidy
from ragvault.update.graph import REGROUP, LinkGraph
from ragvault.update.keyword import KeywordFollower, follow_vocabulary, is_due, refresh_keyword
from ragvault.update.notes import Look, Report, Tell, follow_notes, remember
from ragvault.update.vectors import PAGE, embed, refresh_vectors, take_over
from ragvault.update.workers import Stop, aside

# Pages of good vectors after which rough ones go: both tiers of a whole vault at once would make
# the index half as large again.
PAGES = 8
Tier = Literal["keyword", "static", "full"]
Say = Callable[[str], None]


def ingest(
    root: Path,
    catalogue: Catalogue,
    engines: Engines,
    tier: Tier = "full",
    *,
    tell: Tell = lambda *_: None,
    say: Say = lambda _: None,
    look: Look | None = None,
    allow_empty: bool = False,
    regroup: float = 0.0,
    tidies: bool = True,
) -> Report:
    """Bring the index up to date with the vault. The caller holds the writer's lock.

    Communities are computed again when at least the share `regroup` of the links has changed.
    Without `tidies`, compaction is left to a later run.
    """
    began = time.perf_counter()
    engines.remade.clear()
    following = KeywordFollower(catalogue, engines)
    report = follow_notes(
        root, catalogue, engines.config, tell, look, following, allow_empty=allow_empty
    )
    engines.own(catalogue)
    run = _Run(catalogue, engines, report, tell, say)
    if tier == "keyword":
        run.words()
    else:
        run.words_and_static()
    tell("", 0, 0)
    run.links(regroup)
    if tier == "full":
        run.full()
    else:
        run.keep_better()
    tell("", 0, 0)
    report.tier = run.searched_by()
    report.remade = tuple(sorted(engines.remade))
    if tidies:
        tidy(catalogue, engines, report)
    report.seconds = time.perf_counter() - began
    remember(catalogue, report)
    return report


class _Run:
    """The steps after the catalogue, each told what the others did."""

    def __init__(
        self, catalogue: Catalogue, engines: Engines, report: Report, tell: Tell, say: Say
    ) -> None:
        self.catalogue, self.engines, self.report = catalogue, engines, report
        self.tell, self.say = tell, say
        self.reached: Tier = "keyword"  # the best tier that this run saw every passage into

    def words(self) -> None:
        try:
            refresh_keyword(self.catalogue, self.engines, self._telling("indexing keyword"))
        except EngineMissing as missing:
            self._go_without(missing)
            return
        if self.report.anything:
            self.say("searchable now, by keyword")

    def words_and_static(self) -> None:
        """Rough vectors for what has no good one yet, made while words are indexed."""
        with aside(self.catalogue.folder, self._static, self._embed_static) as embedded:
            self.words()
            try:
                model, new = embedded()
            except (EngineMissing, ModelUnavailable, ModelUnusable) as missing:
                self._go_without(missing)
                return
        self.report.embedded += new
        self.tell("", 0, 0)
        take_over(self.catalogue, "static", model)
        self.reached = "static"
        if new:
            self.say("searchable now, by keyword and by meaning (static)")
        self._vocabulary(model)

    def _static(self) -> Embedder:
        return self.engines.embedder(self.engines.config.models.static)

    def _embed_static(
        self, catalogue: Catalogue, embedder: Embedder, stop: Stop
    ) -> tuple[str, int]:
        telling = self._telling("embedding (static)")

        def tell(done: int, total: int) -> None:
            stop()
            telling(done, total)

        better = catalogue.tier_model("full")
        new = embed(catalogue, embedder, tell, better=better, slab=PAGE)
        stop()
        refresh_vectors(
            embedder.name, catalogue, self.engines, better if better != embedder.name else ""
        )
        return embedder.name, new

    def _vocabulary(self, model: str) -> None:
        if self.catalogue.cache(KEYWORD) is None or not is_due(self.catalogue, model):
            return
        self.tell("choosing words", 0, 0)
        try:
            with closing(self.engines.keyword(self.catalogue)) as index:
                stemming = self.engines.config.keyword.stemming
                follow_vocabulary(self.catalogue, index, self.engines.embedder(model), stemming)
        except EngineMissing:
            return  # `words` has warned of it

    def links(self, regroup: float) -> None:
        """Backlinks, and communities where enough links have changed."""
        graph = LinkGraph(self.catalogue, self.engines.config.graph)
        graph.update()
        if graph.is_due(regroup):
            self.tell("", 0, 0)
            try:
                graph.update_communities(lambda: self.tell("computing communities", 0, 0))
            except EngineMissing as missing:
                self._go_without(missing)
        self.report.communities_due = graph.is_due(REGROUP)

    def full(self) -> None:
        """The transformer's vectors. Another model takes over when it has read everything."""
        self.tell("", 0, 0)
        choice = self.engines.choice(self.catalogue)
        try:
            embedder = self.engines.embedder(choice.embeds)
            if choice.answers is None:
                take_over(self.catalogue, "full", embedder.name)
            new = embed(
                self.catalogue,
                embedder,
                self._telling("embedding"),
                slab=self.engines.slab,
                after_page=self._taking_over(embedder.name),
            )
            self.tell("", 0, 0)
            refresh_vectors(embedder.name, self.catalogue, self.engines)
        except (EngineMissing, ModelUnavailable, ModelUnusable) as missing:
            self._go_without(missing)
            return
        take_over(self.catalogue, "full", embedder.name)
        self.reached = "full"
        self._retire_static()
        self.report.embedded += new
        if new:
            self.say("searchable now, by keyword and by meaning")

    def keep_better(self) -> None:
        """Vectors of better tiers than were asked for answer on: where they are gone, they are made
        again from the catalogue, which embeds nothing."""
        full, *others = self.engines.models(self.catalogue) or [""]
        try:
            for model, better in ((full, ""), *((model, full) for model in others)):
                if model:
                    refresh_vectors(model, self.catalogue, self.engines, better)
        except EngineMissing as missing:
            self._go_without(missing)

    def _taking_over(self, model: str) -> Callable[[], None]:
        """After each page good vectors answer, and now and then the rough ones make room."""
        pages = count(1)

        def take_over() -> None:
            refresh_vectors(model, self.catalogue, self.engines)
            if next(pages) % PAGES == 0:
                self._retire_static()

        return take_over

    def _retire_static(self) -> None:
        """Rough vectors of what has a good one answer nothing any more."""
        static, full = self.catalogue.tier_model("static"), self.catalogue.tier_model("full")
        if static and static != full and self.catalogue.model_dims().get(static):
            refresh_vectors(static, self.catalogue, self.engines, full)
            self.catalogue.drop_superseded_vectors(static, full)

    def searched_by(self) -> Tier:
        """The best tier that every passage is in, or in a better one.

        Only what this run did not see to is asked for: that looks at every passage.
        """
        full, static = self.catalogue.tier_model("full"), self.catalogue.tier_model("static")
        if self.reached == "full" or (full and not self.catalogue.is_lacking(full)):
            return "full"
        if self.reached == "static" or (static and not self.catalogue.is_lacking(static, full)):
            return "static"
        return "keyword"

    def _go_without(self, missing: RagvaultError) -> None:
        """The vault is searched by what it has; a later run adds the rest."""
        warning = f"{missing} (fix: {missing.fix})"
        if warning not in self.report.warnings:
            self.report.warnings = (*self.report.warnings, warning)

    def _telling(self, what: str) -> Callable[[int, int], None]:
        return lambda done, total: self.tell(what, done, total)
