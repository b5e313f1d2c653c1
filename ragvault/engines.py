"""Engines: the caches and the models of one index folder, opened.

    caches/keyword-N   caches/vector-MODEL-N      each a cache of the catalogue beside them

The catalogue says which of them is current (store/catalogue.py). This is the only place that names
engines and models together.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ragvault.config.load import Loaded
from ragvault.errors import EngineMissing, IndexUnusable, ModelUnavailable, ModelUnusable
from ragvault.models.load import ModelPool, choose_model
from ragvault.ports import (
    CacheBroken,
    Embedder,
    KeywordIndex,
    Progress,
    Reranker,
)
from ragvault.store.catalogue import Catalogue
from ragvault.store.schema import KEYWORD, vector_cache
from ragvault.store.vectors import ModelVectors
from ragvault.types import Tier

if TYPE_CHECKING:
    from ragvault.index.vector import FaissVectors

SLAB = 64  # texts; about two seconds of work, which is what a crash can cost


class Engines:
    """Opens what a vault's settings ask for. `progress` receives downloads, rebuilds and steps.

    The `kit` contains the open models. A process that indexes or searches many times passes the
    same kit to every run. A `slab` is the number of texts embedded between two points at which a
    run can be stopped.
    """

    def __init__(
        self,
        folder: Path,
        settings: Loaded,
        *,
        offline: bool = False,
        progress: Progress | None = None,
        kit: ModelPool | None = None,
        slab: int = SLAB,
    ) -> None:
        self.folder = folder
        self.config = settings.config
        self.offline = offline
        self.progress: Progress = progress or Progress()
        origin = settings.origin["models.embedder"]
        self._explicit, self._is_flag = origin != "default", origin == "flag"
        self.slab = slab
        self.kit = kit or ModelPool()
        self.rebuilt: set[str] = set()  # caches that this run has rebuilt
        self._rebuilt: set[str] | None = None  # caches rebuilt since `rebuild_all`

    def demand_room(self) -> None:
        """Raise IndexUnusable if there is no room to build new caches beside the current ones.

        The free space must be at least their size: with new notes they become larger.
        """
        held = (self.folder / "caches").rglob("*")
        size = sum(path.lstat().st_size for path in held if path.is_file())
        free = shutil.disk_usage(self.folder).free
        if free < size:
            raise IndexUnusable(
                self.folder,
                f"rebuilding its indexes needs about {size / 1e6:.0f} MB, and "
                f"{free / 1e6:.0f} MB are free; nothing was changed",
                fix="free some space, then run it again",
            )

    def rebuild_all(self) -> None:
        """Rebuild every cache in this run; the current ones are used until then."""
        self._rebuilt = set()

    def keyword(self, catalogue: Catalogue) -> KeywordIndex:
        """The current keyword index, to search. Raises CacheBroken."""
        from ragvault.index.keyword import open_index

        while True:
            cache = catalogue.cache(KEYWORD)
            if cache is None:
                raise CacheBroken("there is no keyword index yet")
            try:
                home = catalogue.cache_folder(cache)
                return open_index(home, cache.engine, self.config.keyword)
            except CacheBroken:
                # Damage, or has a rebuild switched to another folder between our two looks?
                again = catalogue.cache(KEYWORD)
                if again is None or again.number == cache.number:
                    raise

    def vectors(self, model: str, dim: int, catalogue: Catalogue) -> FaissVectors:
        """The vectors of one model; `catalogue` must be of this thread.

        Raises CacheBroken, or EngineMissing without FAISS.
        """
        from ragvault.index.vector import FaissVectors

        source = ModelVectors(catalogue, model, dim)
        return FaissVectors(source, self.config.vector)

    def must_rebuild(self, name: str) -> bool:
        """Whether to rebuild a cache, whatever its state; true only at the first call for each."""
        if self._rebuilt is None or name in self._rebuilt:
            return False
        self._rebuilt.add(name)
        return True

    def answering(self, catalogue: Catalogue) -> tuple[Tier, str, int] | None:
        """The tier whose vectors answer, their model and their dimension; None without vectors.

        Static until every passage has a full vector, then full for good.
        """
        dims = catalogue.model_dims()
        tiers: tuple[Tier, ...] = ("full", "static")
        models = ((tier, catalogue.tier_model(tier)) for tier in tiers)
        return next(((tier, model, dims[model]) for tier, model in models if model in dims), None)

    def drop_unused(self, catalogue: Catalogue) -> None:
        """Delete caches that answer nothing: of another engine, of a model that was replaced.

        What somebody has open stays readable for them.
        """
        found = self.answering(catalogue)
        answering = vector_cache(found[1]) if found else ""
        for cache in catalogue.caches().values():
            if cache.engine == "faiss" and cache.name != answering:
                catalogue.drop_cache(cache.name)
        catalogue.sweep_caches()

    def full_model(self, catalogue: Catalogue) -> str:
        """The transformer that a vault is to be embedded with."""
        stored, configured = catalogue.full_model, self.config.models.embedder
        return choose_model(stored=stored, configured=configured, explicit=self._explicit)

    def check_models(self, tier: Tier) -> None:
        """Raise ModelUnknown for a mistyped name, before a vault is remembered or indexed.

        Raises ModelUnavailable for a model that a flag names, if full vectors are to be embedded
        and it can be neither found nor fetched. Of others that are missing the run warns.
        """
        models = self.config.models
        warned = (EngineMissing, ModelUnavailable, ModelUnusable)
        with suppress(*warned):
            self.embedder(models.static, offline=True)
        demanded = self._is_flag and tier == "full" and (self.offline or models.offline)
        with suppress(*(warned if not demanded else (EngineMissing, ModelUnusable))):
            if self._explicit:
                self.embedder(models.embedder, offline=True)

    def embedder(self, name: str, *, offline: bool = False) -> Embedder:
        """A model by name, fetched where that is needed and allowed; opened once."""
        from ragvault.models.load import load_options

        how = load_options(self.config.models, self.progress, offline=offline or self.offline)
        return self.kit.embedder(name, self.config.models, how)

    def reranker(self) -> Reranker:
        """The model that reads results again. Only searches ask for it, and a search fetches
        nothing: a vault could switch reranking on, and 73 MB would come with the first query."""
        from ragvault.models.load import load_options

        settings = self.config.models
        how = load_options(settings, self.progress, offline=True)
        return self.kit.reranker(settings.reranker, settings, how)
