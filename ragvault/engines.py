"""Engines: the caches and the models of one index folder, opened.

    keyword/   code/   vectors/MODEL/        each a cache of the catalogue beside them

A cache that is missing or damaged, was made with other settings, or belongs to a catalogue that
has been made again, is emptied here, with a line about it; whoever brings it up to date fills it
from the catalogue. This is the only place that names engines and models together.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from ragvault.config.load import Loaded
from ragvault.errors import IndexUnusable
from ragvault.models.cache import SLAB
from ragvault.models.choose import Choice, choose
from ragvault.models.kit import Kit
from ragvault.models.talk import Quiet, Talk
from ragvault.ports import CacheBroken, Embedder, KeywordIndex, Reranker, VectorIndex
from ragvault.store.caches import vector_cache
from ragvault.store.catalogue import Catalogue
from ragvault.store.files import discard, write_file
from ragvault.store.model_vectors import ModelVectors

CACHES = ("keyword", "code", "vectors")
STAMP = "stamp"  # which catalogue the caches are of
# Seconds after which words are looked at byte by byte again: every run of a command does, and a
# watcher, which has a run for each edit, now and then.
VERIFIED_FOR = 600.0
MISPLACED = (FileExistsError, NotADirectoryError, IsADirectoryError)  # a file for a folder, or so


class Engines:
    """Opens what a vault's settings ask for. `talk` hears of downloads and of caches made again.

    Models are kept once they are open, in the `kit`: whoever indexes again and again, or answers
    many searches, keeps one kit and hands it to every run. A `slab` is how many texts are embedded
    between two moments at which a run can be stopped.
    """

    def __init__(
        self,
        folder: Path,
        settings: Loaded,
        *,
        offline: bool = False,
        talk: Talk | None = None,
        kit: Kit | None = None,
        slab: int = SLAB,
    ) -> None:
        self.folder = folder
        self.config = settings.config
        self.offline = offline
        self.talk: Talk = talk or Quiet()
        self._explicit = settings.origin["models.embedder"] != "default"
        self.slab = slab
        self._emptied: set[str] = set()  # caches that are missing because we deleted them
        self._kit = kit or Kit()
        self.remade: set[str] = set()  # caches that this run has made again
        self._rebuilt: set[str] | None = None  # models whose vectors are rebuilt since `empty`
        self._verified: dict[str, float] = {}  # when every byte of a word index was as written

    def own(self, catalogue: Catalogue) -> None:
        """Empty caches of another catalogue, before any of them is opened to be written."""
        if self.are_of(catalogue):
            return
        if any((self.folder / name).exists() for name in CACHES):
            self.talk.say("the indexes are not of this catalogue; they are made again from it")
        self.empty()
        discard(self.folder / STAMP)
        if (self.folder / "caches").is_file():  # the stamp of an index of format 1
            discard(self.folder / "caches")
        write_file(self.folder / STAMP, catalogue.identity.encode())

    def are_of(self, catalogue: Catalogue) -> bool:
        """Whether the caches are those of this catalogue."""
        stamp = self.folder / STAMP
        return stamp.is_file() and stamp.read_bytes() == catalogue.identity.encode()

    def demand_room(self) -> None:
        """Raise IndexUnusable where caches would be deleted that there is no room to make again.

        As much as they take is wanted beside them, since notes that are new make them larger.
        """
        size = sum(
            path.lstat().st_size
            for name in CACHES
            for path in (self.folder / name).rglob("*")
            if path.is_file()
        )
        free = shutil.disk_usage(self.folder).free
        if free < size:
            raise IndexUnusable(
                self.folder,
                f"making its indexes again takes about {size / 1e6:.0f} MB of room, and "
                f"{free / 1e6:.0f} MB are free; they are as they were",
                fix="free some space, then run it again",
            )

    def empty(self) -> None:
        """Delete every cache."""
        self._emptied.update(CACHES)
        self._rebuilt = set()
        for name in CACHES:
            discard(self.folder / name)

    def keyword(self, *, write: bool = False) -> KeywordIndex:
        """The keyword index. Without `write`, CacheBroken is the caller's to meet."""
        from ragvault.index.keyword_open import open_keyword

        settings = self.config.keyword
        return self._words("keyword", lambda folder: open_keyword(folder, settings), write)

    def code(self, *, write: bool = False) -> KeywordIndex:
        """The code index."""
        from ragvault.index.code import open_code

        keyword, code = self.config.keyword, self.config.code
        return self._words("code", lambda folder: open_code(folder, keyword, code), write)

    def _words(
        self, name: str, opened: Callable[[Path], KeywordIndex], write: bool
    ) -> KeywordIndex:
        folder = self.folder / name
        try:
            index = _opened(opened, folder)
            if write:
                self._verify(name, index)
            return index
        except CacheBroken as broken:
            if not write:
                raise
            self.lose(name, broken)
            return opened(folder)

    def _verify(self, name: str, index: KeywordIndex) -> None:
        """Look at every byte, before anything is made of it: a changed one keeps size and time."""
        now = time.monotonic()
        if now - self._verified.get(name, -VERIFIED_FOR) < VERIFIED_FOR:
            return
        try:
            index.verify()
        except CacheBroken:
            index.close()
            raise
        self._verified[name] = now

    def words(self, name: str, catalogue: Catalogue) -> KeywordIndex:
        """The keyword or the code index, to be written: one that can be brought up to date."""
        index = self.keyword(write=True) if name == "keyword" else self.code(write=True)
        if not index.revision:
            if catalogue.revision and catalogue.last_run():
                self.remade.add(name)
            self._say_if_lost(name, self.config.keyword.engine, catalogue)
            return index
        if catalogue.can_catch_up(catalogue.identity, index.revision):
            return index
        index.close()
        self.talk.say(f"the {name} index is not of this time; it is made again from the catalogue")
        self._wipe(name)
        return self.words(name, catalogue)

    def words_made(self, name: str, catalogue: Catalogue) -> None:
        """From now on this index should be there; until its first commit it cannot be lost."""
        self._note_made(name, self.config.keyword.engine, catalogue)

    def word_indexes(self) -> tuple[str, ...]:
        """The names `words` knows, as the settings want them."""
        return ("keyword", "code") if self.config.code.enabled else ("keyword",)

    def has_words(self, name: str) -> bool:
        """Whether a word index was ever committed; opening one that was not would make it."""
        from ragvault.index.keyword_reached import MANIFEST

        return (self.folder / name / self.config.keyword.engine / MANIFEST).exists()

    def lose(self, name: str, broken: CacheBroken) -> None:
        """Empty a keyword or code index that cannot be used, and say so."""
        self.talk.say(f"the {name} index: {broken}; it is made again from the catalogue")
        self._wipe(name)

    def _wipe(self, name: str) -> None:
        from ragvault.index.keyword_open import wipe

        self._emptied.add(name)
        wipe(self.folder / name)

    def vectors(self, model: str, dim: int, catalogue: Catalogue) -> VectorIndex:
        """The vectors of one model; `catalogue` must be of this thread.

        Raises CacheBroken, or EngineMissing without FAISS.
        """
        from ragvault.index.vector.index import FaissVectors

        source = ModelVectors(catalogue, model, dim)
        return FaissVectors(source, self.config.vector)

    def must_rebuild(self, model: str) -> bool:
        """Whether the vector file of a model is to be written anew, asked once for each."""
        if self._rebuilt is None or model in self._rebuilt:
            return False
        self._rebuilt.add(model)
        return True

    def check_vectors(self, model: str, catalogue: Catalogue) -> None:
        """Raise CacheBroken when the vector file of a model is not as it was written."""
        cache, now = catalogue.cache(vector_cache(model)), time.monotonic()
        if cache is None:
            return
        place = str(catalogue.cache_folder(cache))
        if now - self._verified.get(place, -VERIFIED_FOR) >= VERIFIED_FOR:
            catalogue.check_cache(cache)
            self._verified[place] = now

    def _say_if_lost(self, cache: str, which: str, catalogue: Catalogue) -> None:
        """A cache is empty: the first time that is as it should be, and later it was lost."""
        if catalogue.fact(_made(cache, which)) and cache not in self._emptied:
            name = "vector" if cache == "vectors" else cache
            self.talk.say(f"the {name} index ({which}) is gone; it is made again")

    def _note_made(self, cache: str, which: str, catalogue: Catalogue) -> None:
        if not catalogue.fact(_made(cache, which)):
            catalogue.set_fact(_made(cache, which), "once")

    def models(self, catalogue: Catalogue) -> list[str]:
        """The models whose vectors answer, the best first."""
        found = (catalogue.fact("full"), catalogue.fact("static"))
        return list(dict.fromkeys(filter(None, found)))

    def drop_unused(self, catalogue: Catalogue) -> None:
        """Delete caches that answer nothing: of another engine, of a model that was replaced or
        whose vectors have all been outdone.

        What somebody has open stays readable for them.
        """
        dims = catalogue.model_dims()
        answering = {vector_cache(model) for model in self.models(catalogue) if model in dims}
        for cache in catalogue.caches():
            if cache.engine == "faiss" and cache.name not in answering:
                catalogue.drop_cache(cache.name)
        catalogue.sweep_caches()
        used = {self.folder / name / self.config.keyword.engine for name in self.word_indexes()}
        for name in CACHES:
            held = self.folder / name
            for folder in held.iterdir() if held.is_dir() else ():
                if folder not in used:
                    discard(folder)
                    catalogue.set_fact(_made(name, folder.name), "")

    def choice(self, catalogue: Catalogue) -> Choice:
        """Which transformer a vault uses, and which one answers until then."""
        stored = catalogue.fact("full") or None
        configured = self.config.models.embedder
        return choose(stored=stored, configured=configured, explicit=self._explicit)

    def embedder(self, name: str, *, offline: bool = False) -> Embedder:
        """A model by name, fetched where that is needed and allowed; opened once."""
        from ragvault.models.load import opening

        how = opening(self.config.models, self.talk, offline=offline or self.offline)
        return self._kit.embedder(name, self.config.models, how)

    def reranker(self) -> Reranker:
        """The model that reads results again. Only searches ask for it, and a search fetches
        nothing: a vault could switch reranking on, and 73 MB would come with the first query."""
        from ragvault.models.load import opening

        settings = self.config.models
        how = opening(settings, self.talk, offline=True)
        return self._kit.reranker(settings.reranker, settings, how)


def _opened(opened: Callable[[Path], KeywordIndex], folder: Path) -> KeywordIndex:
    try:
        return opened(folder)
    except MISPLACED as error:
        raise CacheBroken(f"{error.filename or folder} is not what it should be") from error


def _made(cache: str, which: str) -> str:
    """The fact that a cache has been made, and should be there."""
    return f"made {cache} {which}"
