"""An index opened for searching: its catalogue, its caches, its models, kept warm between searches.

Models are loaded when the first query needs them. `refresh` lets the next search see what a
writer has committed since. Belongs to one thread, as its catalogue does; the legs run in a pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from ragvault.config.settings import Config
from ragvault.engines import Engines
from ragvault.errors import EngineMissing, RagvaultError
from ragvault.index.tiers import Tiers
from ragvault.library import Library
from ragvault.ports import CacheBroken, CountsTokens, Embedder, KeywordIndex, Reranker, VectorIndex
from ragvault.retrieve.ask import Leg
from ragvault.retrieve.legs import CodeLeg, KeywordLeg, VectorLeg
from ragvault.store import access
from ragvault.store.access import Accesses
from ragvault.store.caches import KEYWORD, Cache
from ragvault.store.catalogue import Catalogue
from ragvault.store.vectors import Chosen, Vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Three of a search, and two that tell scores of each other's hits after them; a thread is made when
# none is free, and a leg that is late still holds its own.
LEGS_AT_ONCE = 12
TIERS = ("full", "static")  # the best first


class Opened:
    """What a search asks. `missing` names the parts that cannot answer, and why."""

    def __init__(self, catalogue: Catalogue, engines: Engines) -> None:
        self.catalogue, self.engines = catalogue, engines
        self.missing: dict[str, str] = {}
        self.pool = ThreadPoolExecutor(max_workers=LEGS_AT_ONCE, thread_name_prefix="leg")
        self.keyword: KeywordIndex | None = None
        self._keyword_cache: Cache | None = None
        self._open_keyword()
        self._vectors: dict[str, VectorIndex] = {}
        self._open_tiers()
        self._reranker: Reranker | None = None
        self.accesses = Accesses()
        self._library: tuple[tuple[int, int], Library] | None = None
        self._vocabulary: tuple[Chosen, Vocabulary] | None = None

    @property
    def config(self) -> Config:
        return self.engines.config

    def refresh(self) -> None:
        """See what was committed since."""
        self._refresh_keyword()
        self._refresh_tiers()
        if _counts_opening(self.config):
            self._read_accesses()

    def legs(self) -> list[Leg]:
        """The legs that settings want and that can answer."""
        legs: list[Leg] = []
        wanted = self.config.retrieve.legs
        if "vector" in wanted and self._vectors:
            legs.append(VectorLeg(self.tiers, self.embedders))
        if "keyword" in wanted and self.keyword is not None:
            legs.append(KeywordLeg(self.keyword))
        if "code" in wanted and self.config.code.enabled and self.keyword is not None:
            legs.append(CodeLeg(self.keyword))
        return legs

    def library(self) -> Library:
        """The catalogue as a search asks it; what it has read is kept until something changes."""
        state = (self.catalogue.data_version, self.accesses.revision)
        if self._library is None or self._library[0] != state:
            self._library = state, Library(self.catalogue, self.accesses, self.vectors_of)
        return self._library[1]

    def vocabulary(self) -> Vocabulary:
        """The words the vault is about, read again only when they were chosen anew."""
        chosen = self.catalogue.vocabulary_chosen()
        if self._vocabulary is None or self._vocabulary[0] != chosen:
            self._vocabulary = chosen, self.catalogue.vocabulary()
        return self._vocabulary[1]

    def count_tokens(self) -> Callable[[str], int] | None:
        """The tokenizer of the best model that is loaded, if it has one."""
        for embedder in self.embedders.opened():
            if isinstance(embedder, CountsTokens):
                return embedder.count_tokens
        return None

    def reranker(self) -> Reranker:
        if self._reranker is None:
            self._reranker = self.engines.reranker()
        return self._reranker

    @property
    def tier(self) -> str:
        """The best tier that every passage is in, for the reader to know."""
        counts = self.tiers.counts() if self._vectors else {}
        if counts.get("full") and not counts.get("static"):
            return "full"
        return "static" if any(counts.values()) else "keyword"

    @property
    def behind(self) -> str:
        """What is said where notes are in the catalogue and not yet in its words; empty else."""
        cache = self.catalogue.cache(KEYWORD) if self.keyword is not None else None
        lags = cache is not None and cache.revision < self.catalogue.revision
        return "its last notes are not in the keyword index yet" if lags else ""

    def vectors_of(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of the best model there are any of, a row each; NaN where there is none."""
        import numpy as np

        best = next(iter(self._vectors.values()), None)
        return np.full((len(ids), 1), np.nan, np.float32) if best is None else best.vectors_of(ids)

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        if self._library is not None:
            self._library[1].close()
        for index in (self.keyword, self.tiers if self._vectors else None):
            if index is not None:
                index.close()
        self.catalogue.close()

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _read_accesses(self) -> None:
        try:
            self.accesses = access.read_accesses(self.catalogue.folder, self.catalogue.identity)
            self.missing.pop("access", None)
        except RagvaultError as error:
            self.accesses = Accesses()
            self.missing["access"] = f"{error}; {error.fix}"

    def _open_keyword(self) -> None:
        self.keyword, self._keyword_cache = None, self.catalogue.cache(KEYWORD)
        if self._keyword_cache is None:
            if self.catalogue.revision:
                self.missing[KEYWORD] = (
                    "the keyword index has not been made yet; run: ragvault index"
                )
            return
        try:
            self.keyword = self.engines.keyword(self.catalogue)
            self.missing.pop(KEYWORD, None)
        except (CacheBroken, EngineMissing) as broken:
            self.missing[KEYWORD] = f"{broken}; run: {broken.fix}"

    def _refresh_keyword(self) -> None:
        """A run may have rebuilt the index, in another folder."""
        now, before = self.catalogue.cache(KEYWORD), self._keyword_cache
        same = now is not None and before is not None and now.number == before.number
        if self.keyword is not None and same:
            try:
                self.keyword.refresh()
                return
            except CacheBroken:
                pass
        if self.keyword is not None:
            self.keyword.close()
        self._open_keyword()

    def _refresh_tiers(self) -> None:
        """A run may have finished a better tier, and deleted the one that it outdoes."""
        with suppress(CacheBroken):  # opened again, it answers or is named as missing
            with self.catalogue.snapshot():  # of all tiers at one moment
                self.tiers.refresh()
                models = self._models()
            if models == self._opened_models and len(self._vectors) == len(models):
                return
        self._open_tiers()

    def _models(self) -> dict[str, tuple[str, int]]:
        """Which models the tiers are of, and how many numbers their vectors have."""
        dims = self.catalogue.model_dims()
        found = ((tier, self.catalogue.tier_model(tier)) for tier in TIERS)
        return {tier: (model, dims[model]) for tier, model in found if model in dims}

    def _open_tiers(self) -> None:
        self.missing = {k: why for k, why in self.missing.items() if not k.startswith("vector")}
        for outdated in self._vectors.values():
            outdated.close()
        with self.catalogue.snapshot():
            self._opened_models = self._models()
            self._vectors = dict(self._open_vectors())
        self.tiers = Tiers(self._vectors)
        self.embedders = Embedders(self.engines, {n: v.model for n, v in self._vectors.items()})

    def _open_vectors(self) -> Iterator[tuple[str, VectorIndex]]:
        for tier, (model, dim) in self._opened_models.items():
            try:
                yield tier, self.engines.vectors(model, dim, self.catalogue)
            except (CacheBroken, EngineMissing) as broken:  # noqa: PERF203 - two turns at most
                self.missing[f"vector ({tier})"] = f"{broken}; run: {broken.fix}"


def _counts_opening(config: Config) -> bool:
    """Does any setting ask how often notes were opened?"""
    weighted = config.fuse.method == "weighted" and config.fuse.weighted.access
    listed = "access" in config.retrieve.lists
    return bool(listed or weighted or config.retrieve.window or config.boost.access.enabled)


class Embedders(Mapping[str, Embedder]):
    """The model of each tier, opened when the first query needs it."""

    def __init__(self, engines: Engines, models: Mapping[str, str]) -> None:
        self._engines, self._models = engines, models
        self._open: dict[str, Embedder] = {}

    @property
    def loaded(self) -> bool:
        """Whether a query has been embedded before."""
        return bool(self._open)

    def opened(self) -> list[Embedder]:
        """Those that are loaded, the best tier first."""
        return [self._open[tier] for tier in self._models if tier in self._open]

    def __getitem__(self, tier: str) -> Embedder:
        if tier not in self._open:
            # A search fetches nothing: what indexed the vault is here, or is named as missing.
            self._open[tier] = self._engines.embedder(self._models[tier], offline=True)
        return self._open[tier]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)
