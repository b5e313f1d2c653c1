"""A vault, opened: the one door for the command line and for programs.

    vault = Vault.open("~/notes")
    vault.index()
    vault.search("how did we size the cache?").results

Opening reads settings and finds the index folder; nothing is written before `index` is called.
engines.py knows which engines and models there are. A search waits for what this file
imports, so everything else is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragvault.candidate import Candidate
from ragvault.config import folders, profiles
from ragvault.config.load import Loaded, load_settings
from ragvault.corpus import LocalCorpus
from ragvault.engines import Engines
from ragvault.errors import (
    IndexMissing,
    IndexUnusable,
    RagvaultError,
    UsageError,
    VaultEmptied,
)
from ragvault.models.embed import SLAB
from ragvault.models.load import ModelPool
from ragvault.models.progress import Reporter
from ragvault.store import access, layout
from ragvault.store.catalogue import Catalogue
from ragvault.types import SearchRequest

if TYPE_CHECKING:
    from ragvault.answer.links import LinkPath, Links
    from ragvault.answer.related import Related
    from ragvault.answer.results import Response
    from ragvault.answer.status import Status
    from ragvault.ingest import Tier
    from ragvault.notes.walk import Walked
    from ragvault.update.forget import Forgotten
    from ragvault.update.notes import Report, Tell


class Vault:
    """One folder of notes and its index."""

    def __init__(self, root: Path, folder: Path, settings: Loaded) -> None:
        self.root = root
        self.folder = folder
        self.settings = settings

    @classmethod
    def open(
        cls,
        where: str | Path | None = None,
        *,
        flags: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> Vault:
        """Open a vault by its path or its name; without either, the one around this folder.

        `environ` and `cwd` are those of this process unless they are given. Raises VaultNotFound
        and ConfigError.
        """
        data = data_folder(environ)
        root = layout.find_vault(where, data, folders.here() if cwd is None else Path(cwd))
        folder = layout.index_folder(root, data)
        tuned = partial(layout.tuned_file, folder)
        settings = profiles.load(root, tuned=tuned, flags=flags, environ=environ)
        return cls(root, folder, settings)

    @property
    def name(self) -> str:
        known = layout.vault_of(self.folder)
        return known.name if known else self.root.name

    def index(
        self,
        tier: Tier = "full",
        *,
        rebuild: bool = False,
        allow_empty: bool = False,
        offline: bool = False,
        tell: Tell = lambda *_: None,
        talk: Reporter | None = None,
        engines: Engines | None = None,
        look: Callable[[], Walked] | None = None,
        regroup: float = 0.0,
        tidies: bool = True,
    ) -> Report:
        """Bring the index up to date with the files, and remember the vault.

        Whoever does so again and again hands in `engines` of its own (see `engines`), which keep
        their models; then `offline` and `talk` are theirs. Whoever knows what has changed looks at
        the vault in a way of its own. `tell` may raise to stop between two pages: what was done is
        kept. Communities are computed again when at least the share `regroup` of the links changed.
        Without `tidies`, compaction is left to a later run.

        `rebuild` makes all caches again from the catalogue, embedding nothing that is known; a
        damaged catalogue is made again from the vault, with the vectors that can still be read.
        A vault without a single note, whose index has some, is taken for a disk that is not
        mounted, unless `allow_empty` says that they are gone. Raises VaultEmptied then, IndexLocked
        while another process writes, VaultUnreadable, IndexUnusable.
        """
        from ragvault.ingest import ingest
        from ragvault.store.lock import WriterLock
        from ragvault.update.moved_vault import take_over

        engines = engines or self.engines(offline=offline, talk=talk)
        say = engines.talk.info
        take_over(self.root, self.folder, self.settings.config, say)
        layout.register_vault(self.root, self.folder.parent.parent)
        with WriterLock(self.folder, "ragvault index"):
            if rebuild:
                self._demand_notes(allow_empty)  # before anything is deleted
                engines.demand_room()
                say("rebuilding all indexes from the catalogue")
                engines.empty()
            _mend(self.folder, rebuild, say)
            how: dict[str, Any] = {"tell": tell, "say": say, "look": look, "regroup": regroup}
            how["tidies"] = tidies
            with self.catalogue(write=True) as catalogue:
                return ingest(self.root, catalogue, engines, tier, allow_empty=allow_empty, **how)

    def forget(self, note: str | None, *, talk: Reporter | None = None) -> Forgotten:
        """Take a note, or all notes of a folder, out of the index, with every byte of it.

        With every byte of what was removed earlier as well, for which no note needs to be named.

        Raises UsageError when it is not clear which is meant, IndexLocked, IndexUnusable.
        """
        from ragvault.store.lock import WriterLock
        from ragvault.store.repair import undo_unstarted_repair
        from ragvault.update.forget import forget

        engines = self.engines(talk=talk)
        self._demand_index()  # before a lock makes a folder
        with WriterLock(self.folder, "ragvault forget"):
            undo_unstarted_repair(self.folder)  # before anything is opened without its journal
            with self.catalogue(write=True) as catalogue:
                return forget(self.root, catalogue, engines, note)

    def corpus(self, *, talk: Reporter | None = None, kit: ModelPool | None = None) -> LocalCorpus:
        """The index opened for searching. The caller closes it."""
        return LocalCorpus(self.root, self.catalogue(), self.engines(talk=talk, kit=kit))

    def engines(
        self,
        *,
        offline: bool = False,
        talk: Reporter | None = None,
        kit: ModelPool | None = None,
        slab: int = SLAB,
    ) -> Engines:
        """The caches and models of this vault, for several runs of `index`."""
        return Engines(self.folder, self.settings, offline=offline, talk=talk, kit=kit, slab=slab)

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        hypothesis: str | None = None,
        now: datetime | None = None,
    ) -> Response:
        """Answer one query, true of the files as they are. To ask several, use `corpus`."""
        from ragvault.search import search

        with self.corpus() as corpus:
            return search(SearchRequest(query, now or datetime.now(), limit, hypothesis), corpus)

    def record_access(self, results: Iterable[Candidate], now: float) -> None:
        """Count the notes of results that were opened or given as context, if settings say so."""
        if self.settings.config.access.record:
            with self.catalogue() as catalogue:
                notes = {each.note.id for each in results}
                access.record_accesses(self.folder, catalogue.identity, notes, now)

    def links(self, note: str) -> Links:
        """The links of a note, in both directions. Raises UsageError, IndexMissing."""
        from ragvault.answer.links import links

        with self.catalogue() as catalogue, catalogue.snapshot():
            return links(self.root, catalogue, note)

    def link_path(self, note: str, other: str) -> LinkPath:
        """How two notes are connected: the shortest way over links, in both directions.

        Raises UsageError, IndexMissing, and EngineMissing without NetworkX.
        """
        from ragvault.answer.links import link_path

        with self.catalogue() as catalogue, catalogue.snapshot():
            return link_path(self.root, catalogue, note, other)

    def related(self, note: str, limit: int = 10) -> Related:
        """The notes nearest to a note, with reasons. Raises UsageError, IndexMissing."""
        from ragvault.answer.related import related

        engines = Engines(self.folder, self.settings)
        with self.catalogue() as catalogue, catalogue.snapshot():
            return related(self.root, catalogue, engines, note, limit)

    def status(self) -> Status:
        """What is indexed, skipped and pending. Loads no model and writes nothing."""
        from ragvault.answer.status import status

        with self.catalogue() as catalogue:
            return status(self.name, self.root, catalogue, self.settings.config)

    def catalogue(self, write: bool = False) -> Catalogue:
        """The catalogue itself. The caller closes it."""
        if not write:
            self._demand_index()
        return Catalogue.open(self.folder, write=write)

    def _demand_notes(self, allow_empty: bool) -> None:
        from ragvault.notes.walk import walk

        if allow_empty or walk(self.root, self.settings.config.walk).files:
            return
        with suppress(IndexMissing, IndexUnusable), self.catalogue() as catalogue:
            if notes := catalogue.note_count():
                raise VaultEmptied(self.root, notes)

    def _demand_index(self) -> None:
        if not (self.folder / layout.CATALOGUE).exists():
            raise IndexMissing(self.root)


def open_once() -> Callable[[Vault], LocalCorpus]:
    """Opens each index for one search; a model that several vaults need is loaded once."""
    kit = ModelPool()
    return lambda vault: vault.corpus(kit=kit)


def known(environ: Mapping[str, str] | None = None) -> list[layout.KnownVault]:
    """Every vault that has an index."""
    return layout.known_vaults(data_folder(environ))


def vaults_to_search(
    query: str,
    named: Sequence[str] = (),
    *,
    now: datetime,
    hypothesis: str | None = None,
    flags: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> list[Vault]:
    """The vaults that a search means, each once: by name, by `in:` in the query, or the default.

    Raises UsageError if `in:` names none of the named vaults, VaultNotFound, ConfigError.
    """

    def opened(where: str | Path | None) -> Vault:
        return Vault.open(where, flags=flags, environ=environ, cwd=cwd)

    mistake: UsageError | None = None
    inside: list[layout.KnownVault] = []
    if "in:" in query.casefold():
        try:
            names = _names_after_in(query, now, hypothesis)
            data, here = data_folder(environ), folders.here() if cwd is None else Path(cwd)
            inside = [layout.known_vault(name, data, here) for name in names]
        except UsageError as error:
            mistake = error
    if named:
        wanted = [opened(where) for where in named]
    elif inside:
        wanted = [opened(vault.root) for vault in inside]
    else:
        try:
            wanted = [opened(None)]
        except RagvaultError as error:  # a mistake in the query is reported first
            raise mistake or error from None
    roots = {vault.root for vault in inside}
    kept = {vault.root: vault for vault in wanted if not roots or vault.root in roots}
    if not kept:
        searched = ", ".join(vault.name for vault in wanted)
        raise UsageError(
            f"in:{inside[0].name} is not one of the vaults to search ({searched})",
            fix="leave out in: or --vault, or name the same vault with both",
        )
    return list(kept.values())


def _names_after_in(query: str, now: datetime, hypothesis: str | None) -> Sequence[str]:
    """The vaults that `in:` names. Raises UsageError if the query has a mistake."""
    from ragvault.config.settings import Query
    from ragvault.query.understand import understand

    return understand(query, Query(), now=now, hypothesis=hypothesis).vaults


def _mend(folder: Path, look: bool, say: Callable[[str], None]) -> None:
    """Make a damaged catalogue again, or go on with that; only a rebuild looks for damage."""
    from ragvault.store.repair import (
        find_damage,
        is_repair_unfinished,
        repair,
        undo_unstarted_repair,
    )

    undo_unstarted_repair(folder)
    wrong = find_damage(folder) if look else ""
    if wrong:
        say(f"{wrong}; it is made again from the vault")
    if wrong or is_repair_unfinished(folder):
        saved = repair(folder)
        kept = f"{saved:,} vectors were saved; what they are of is not embedded again"
        say(kept if saved else "none of its vectors could be saved; all notes are embedded again")


def data_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where indexes are. No vault may say, so its own settings are not asked."""
    override = load_settings(environ=environ).config.paths.data
    return folders.data_dir(environ, override)
