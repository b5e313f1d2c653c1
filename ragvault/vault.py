"""A vault, opened: the one door for the command line and for programs.

    with Vault.open("~/notes") as vault:
        vault.index()
        vault.search("how did we size the cache?").results

Opening reads settings and finds the index folder; nothing is written before `index` is called.
engines.py knows which engines and models there are. A search waits for what this file
imports, so everything else is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from ragvault.candidate import Candidate
from ragvault.config import folders
from ragvault.config.load import Loaded, data_folder, load_settings
from ragvault.corpus import LocalCorpus
from ragvault.engines import SLAB, Engines
from ragvault.errors import (
    IndexMissing,
    IndexUnusable,
    RagvaultError,
    UsageError,
    VaultEmptied,
    VaultNotFound,
    VaultUnreadable,
    in_shell,
)
from ragvault.models.load import ModelPool
from ragvault.ports import Interrupted, Progress
from ragvault.store import access, layout
from ragvault.store.catalogue import Catalogue
from ragvault.types import TIERS, SearchRequest, Tier

if TYPE_CHECKING:
    from ragvault.answer.contents import Contents, Kind
    from ragvault.answer.links import LinkPath, Links
    from ragvault.answer.note_lookup import NoSuchNote
    from ragvault.answer.read import NoteText
    from ragvault.answer.related import Related
    from ragvault.answer.results import NotePlace, Response
    from ragvault.answer.status import Status
    from ragvault.answer.vaults import OpenCorpus
    from ragvault.notes.walk import Walked
    from ragvault.plan import QueryPlan
    from ragvault.update.notes import Report
    from ragvault.update.upkeep import Forgotten

MOST_VAULTS = 100  # that one search may name: to look each up takes a millisecond
# Settings that decide what is in an index, by the beginning of their names.
WRITE_SETTINGS = ("walk.", "parse.", "links.", "chunk.", "models.", "keyword.")


class Vault:
    """One folder of notes and its index.

    As a context manager it keeps the index and the models open between searches. All methods may
    be called from several threads.
    """

    def __init__(self, root: Path, folder: Path, settings: Loaded) -> None:
        self.root = root
        self.folder = folder
        self.settings = settings
        self._kit = ModelPool()
        # Inside `with`: an open index belongs to one thread, so one thread answers all searches.
        self._thread: ThreadPoolExecutor | None = None
        self._kept: tuple[LocalCorpus, tuple[object, ...]] | None = None

    def __repr__(self) -> str:
        return f"<Vault {self.name} at {self.root}>"

    def __enter__(self) -> Vault:
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="vault")
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what `with` has kept open. The vault can still be used."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._drop_kept)
            thread.shutdown()

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
        settings = load_settings(root, tuned=tuned, flags=flags, environ=environ)
        return cls(root, folder, settings)

    @property
    def name(self) -> str:
        known = layout.vault_of(self.folder)
        return known.name if known else self.root.name

    @property
    def tier(self) -> Tier:
        """How far this vault is to be indexed: as last asked for, at first full."""
        known = layout.vault_of(self.folder)
        return next((tier for tier in TIERS if known and tier == known.tier), "full")

    def index(
        self,
        tier: Tier | None = None,
        *,
        at_most: Tier = "full",
        rebuild: bool = False,
        allow_empty: bool = False,
        offline: bool = False,
        progress: Progress | None = None,
        engines: Engines | None = None,
        walked: Walked | None = None,
        regroup: float = 0.0,
        postpone_compact: bool = False,
        command: str = "ragvault index",
        time_limit: float = inf,
    ) -> Report:
        """Bring the index up to date with the files, and remember the vault.

        The tier is remembered: without one it is the one last asked for, at first "full". `at_most`
        is how far this run goes, whatever was asked for.

        A folder without any note gets no index, and is not remembered, unless `allow_empty`.

        `progress` may raise to cancel: finished work is kept. Communities are computed again when
        at least the share `regroup` of the links changed. With `postpone_compact` the bytes of
        removed notes stay in the files until a later run (`Report.compact_due`). After `time_limit`
        seconds no more full vectors are embedded; a later run goes on (`Report.unembedded`).

        A caller with many runs passes its own `engines`, which keep their models open; then
        `offline` and `progress` are those of the engines. One that has walked already, perhaps
        only some paths, passes `walked`. `command` is who has the lock, for another one's message.

        `rebuild` rebuilds all caches from the catalogue, reusing stored vectors; a damaged
        catalogue is rebuilt from the vault, with the vectors that can still be read. A vault
        without notes, whose index has some, is treated as a disk that is not mounted unless
        `allow_empty`. Raises VaultEmptied then, IndexLocked while another process writes,
        VaultUnreadable, IndexUnusable; before anything is done ModelUnknown, and offline
        ModelUnavailable for a model that a flag names.
        """
        from ragvault.ingest import ingest
        from ragvault.notes.walk import walk
        from ragvault.store.files import BRIEF, WriterLock
        from ragvault.update.freshness import LINK
        from ragvault.update.notes import Report
        from ragvault.update.upkeep import adopt_index, rebuild_catalogue

        if self.root.is_symlink():  # its target is another vault, and nobody asked for that one
            raise VaultUnreadable(self.root, LINK)
        if not (self.folder / layout.CATALOGUE).exists() and not allow_empty:
            walked = walk(self.root, self.settings.config.walk)
            if not walked.files:
                return Report(skipped=walked.skipped)
        engines = engines or self.engines(offline=offline, progress=progress)
        upto = min(tier or self.tier, at_most, key=TIERS.index)
        if upto != "keyword":
            engines.check_models(upto)
        adopt_index(self.root, self.folder, self.settings.config, engines.progress)
        asked = tier or self.tier  # an adopted index has a tier of its own
        layout.register_vault(self.root, self.folder.parent.parent, tier=asked)
        with WriterLock(self.folder, command):
            if rebuild:
                self._demand_notes(allow_empty)  # before anything is deleted
                engines.demand_room()
                engines.progress.info("rebuilding all indexes from the catalogue")
                engines.rebuild_all()
            rebuild_catalogue(self.folder, engines.progress, check=rebuild)
            with self.catalogue(write=True) as catalogue:
                if command != BRIEF:
                    catalogue.set_facts(forgotten=frozenset())
                return ingest(
                    self.root,
                    catalogue,
                    engines,
                    min(asked, at_most, key=TIERS.index),
                    walked=walked,
                    allow_empty=allow_empty,
                    regroup=regroup,
                    postpone_compact=postpone_compact,
                    time_limit=time_limit,
                )

    def take_in_changes(self, corpus: LocalCorpus) -> int:
        """Index the files that have changed, if they are few; return how many files still wait.

        `corpus` is this vault's, and is brought up to date. `search.update` is the time this may
        take. Nothing is done if another process writes, and nothing is fetched; what fails is left
        for `index`, which reports it.
        """
        from ragvault.config.schema import duration_seconds
        from ragvault.store.files import BRIEF
        from ragvault.update.freshness import PendingFiles, patience

        changes = PendingFiles(self.root, corpus.catalogue, corpus.config)
        seconds = duration_seconds(corpus.config.search.update) or 0.0
        if not changes.are_few(seconds) or self._has_write_flags():
            return changes.waiting
        engines = self.engines(offline=True, progress=patience(seconds), kit=corpus.engines.kit)
        with suppress(RagvaultError, OSError, Interrupted):
            self.index(
                at_most=changes.tier,
                engines=engines,
                walked=changes.walked,
                regroup=inf,
                postpone_compact=True,
                command=BRIEF,
            )
        corpus.refresh()
        return changes.count()

    def _has_write_flags(self) -> bool:
        """Whether a flag of this command decides what is indexed: it is meant for this search."""
        origin = self.settings.origin
        kinds = ["flag"]
        if origin["search.profile"].startswith("flag"):
            kinds.append("profile")
        return any(
            key.startswith(WRITE_SETTINGS) and origin[key].startswith(tuple(kinds))
            for key in origin
        )

    def forget(self, note: str | None, *, progress: Progress | None = None) -> Forgotten:
        """Remove a note, or all notes of a folder, from the index, with every byte of it.

        Also erases what was removed earlier; without a note, only that.

        Raises UsageError when the name is unknown or ambiguous, IndexLocked, IndexUnusable.
        """
        from ragvault.store.catalogue import is_rebuilding
        from ragvault.store.files import WriterLock
        from ragvault.update.upkeep import forget

        engines = self.engines(progress=progress)
        self._demand_index()  # before a lock makes a folder
        with WriterLock(self.folder, "ragvault forget"):
            if is_rebuilding(self.folder):  # the old catalogue has its bytes, and vectors to keep
                raise IndexUnusable(
                    self.folder,
                    "a run that began to rebuild it was stopped",
                    fix="run first: ragvault index",
                )
            with self.catalogue(write=True) as catalogue, self._telling_why(catalogue):
                return forget(self.root, catalogue, engines, note)

    def corpus(
        self, *, progress: Progress | None = None, kit: ModelPool | None = None
    ) -> LocalCorpus:
        """The index opened for searching. The caller closes it."""
        return LocalCorpus(self.root, self.catalogue(), self.engines(progress=progress, kit=kit))

    def engines(
        self,
        *,
        offline: bool = False,
        progress: Progress | None = None,
        kit: ModelPool | None = None,
        slab: int = SLAB,
    ) -> Engines:
        """The caches and models of this vault, for several runs of `index`."""
        return Engines(
            self.folder, self.settings, offline=offline, progress=progress, kit=kit, slab=slab
        )

    def search(
        self,
        query: str = "",
        *,
        queries: Sequence[str] = (),
        limit: int | None = None,
        hypothesis: str | None = None,
        explain: bool = False,
        require_fresh: bool = False,
        now: datetime | None = None,
    ) -> Response:
        """Answer a query, or several as one list, true of the files as they are.

        Inside `with` the index and the models stay open for the next search. Raises UsageError for
        a query with a mistake, IndexMissing, VaultUnreadable, and with `require_fresh` IndexBehind
        if a file is not indexed as it is now.
        """
        first, *also = [each for each in (query, *queries) if each] or [query]
        request = SearchRequest(
            first, now or datetime.now(), limit, hypothesis, also=tuple(dict.fromkeys(also))
        )
        if self._thread is None:
            return self._respond(
                request, lambda vault: vault.corpus(kit=self._kit), explain, require_fresh
            )
        answered = self._thread.submit(
            self._respond, request, Vault._kept_corpus, explain, require_fresh
        )
        return answered.result()

    def _respond(
        self,
        request: SearchRequest,
        open_corpus: OpenCorpus[Vault, LocalCorpus],
        explain: bool,
        require_fresh: bool,
    ) -> Response:
        from ragvault.answer.results import respond
        from ragvault.answer.vaults import search_vaults

        answer = search_vaults([self], request, open_corpus, require_fresh=require_fresh)
        return respond(answer, explain=explain)

    @contextmanager
    def _kept_corpus(self) -> Iterator[LocalCorpus]:
        """The index that stays open; opened again if it was rebuilt, or after an error."""
        if self._kept and self._kept[1] != self._kept[0].stamp():
            self._drop_kept()
        if not self._kept:
            corpus = self.corpus(kit=self._kit)
            self._kept = corpus, corpus.stamp()
        try:
            yield self._kept[0]
        except BaseException:
            self._drop_kept()
            raise

    def _drop_kept(self) -> None:
        if self._kept:
            self._kept[0].close()
            self._kept = None

    def record_access(self, results: Iterable[Candidate], now: float) -> None:
        """Count the notes of results that were opened or given as context, if settings say so."""
        if self.settings.config.access.record:
            access.record_accesses(self.folder, {each.note.path for each in results}, now)

    def read(
        self,
        note: str,
        *,
        heading: str | None = None,
        lines: str | None = None,
        budget: int | None = None,
        numbered: bool = False,
    ) -> NoteText:
        """A note as its file is now, or a section, a block (`^id`) or lines (`40-80`) of it.

        With a budget in tokens it ends after the last block that fits. Raises UsageError,
        NoteUnreadable, IndexMissing.
        """
        from ragvault.answer.read import read

        config = self.settings.config
        with self._named_note() as catalogue:
            return read(
                self.root,
                self.name,
                catalogue,
                config,
                note,
                heading=heading,
                lines=lines,
                budget=budget,
                numbered=numbered,
            )

    def place(self, named: str) -> NotePlace:
        """Where a note is: the line or heading in its name, else its first line.

        Raises UsageError, IndexMissing.
        """
        with self._named_note() as catalogue:
            return self._place(catalogue, named)

    def _place(self, catalogue: Catalogue, named: str) -> NotePlace:
        from ragvault.answer.note_lookup import find_place
        from ragvault.answer.results import NotePlace
        from ragvault.text.spelling import plain_name

        path, typed = find_place(self.root, catalogue.names(), named)
        file = self.root / catalogue.stored(path).file.disk
        heading, line = plain_name(typed.last_heading), typed.first_line
        headings = catalogue.note(path).headings if heading and not line else ()
        under = [each.line for each in headings if plain_name(each.text) == heading]
        return NotePlace(self.name, self.root, path, file, line or (under or [1])[0])

    def miss(self, named: str, *, why: bool = False) -> NoSuchNote | None:
        """The error for a note that is not here; None if one or several notes have that name.

        With `why` the vault is walked for a file that is not indexed.
        """
        from ragvault.answer.note_lookup import NoSuchNote

        try:
            if why:
                self.place(named)
            else:
                with self.catalogue() as catalogue, catalogue.snapshot():
                    self._place(catalogue, named)
        except NoSuchNote as error:
            return error
        except UsageError:
            return None
        return None

    def record_opened(self, note: str, now: float) -> None:
        """Count a note that was opened, if settings say so."""
        if self.settings.config.access.record:
            access.record_accesses(self.folder, [note], now)

    def links(self, note: str) -> Links:
        """The links of a note, in both directions. Raises UsageError, IndexMissing."""
        from ragvault.answer.links import links

        with self._named_note() as catalogue:
            return links(self.root, catalogue, note)

    def link_path(self, note: str, other: str) -> LinkPath:
        """How two notes are connected: the shortest way over links, in both directions.

        Raises UsageError, IndexMissing, and EngineMissing without NetworkX.
        """
        from ragvault.answer.links import link_path

        with self._named_note() as catalogue:
            return link_path(self.root, catalogue, note, other)

    def related(self, note: str, limit: int = 10) -> Related:
        """The notes nearest to a note, with reasons. Raises UsageError, IndexMissing."""
        from ragvault.answer.related import related

        engines = Engines(self.folder, self.settings)
        with self._named_note() as catalogue:
            return related(self.root, catalogue, engines, note, limit)

    def list(
        self,
        kind: Kind,
        query: str = "",
        *,
        limit: int | None = None,
        cursor: str | None = None,
        now: datetime | None = None,
    ) -> Contents:
        """The tags, folders, properties or notes of the vault, counted, a page at a time.

        The words of `query` must be in the name of what is listed; its conditions choose the notes
        that count. Raises UsageError, IndexMissing.
        """
        from ragvault.answer.contents import contents

        plan = self._plan(query, now or datetime.now()) if query.strip() else None
        with self.catalogue() as catalogue, catalogue.snapshot():
            chosen = (
                None
                if plan is None or plan.filter is None
                else catalogue.filtered_notes(plan.filter)
            )
            rows = catalogue.stored_notes(chosen)
            dates = {row.id: row.dates.date.at for row in rows if row.dates.date}
            words = plan.text if plan else ""
            notes = catalogue.heads(chosen)
            page = contents(kind, notes, dates, words=words, limit=limit, cursor=cursor)
            return replace(page, vault=self.name)

    def _plan(self, query: str, now: datetime) -> QueryPlan:
        from ragvault.plan import MatchesWords, leaves
        from ragvault.query.understand import understand

        plan = understand(query, self.settings.config.query, now=now)
        if plan.filter and any(isinstance(each, MatchesWords) for each in leaves(plan.filter)):
            raise UsageError(
                "a list cannot be narrowed by the text of notes",
                fix="use conditions such as path:journal or #tag; to find text: ragvault search",
            )
        return plan

    def status(self) -> Status:
        """What is indexed, skipped and pending. Loads no model and writes nothing."""
        from ragvault.answer.status import status

        with self.catalogue() as catalogue:
            return status(self.name, self.root, catalogue, self.settings.config, self.tier)

    def catalogue(self, write: bool = False) -> Catalogue:
        """The catalogue itself. The caller closes it."""
        if not write:
            self._demand_index()
        return Catalogue.open(self.folder, write=write)

    @contextmanager
    def _named_note(self) -> Iterator[Catalogue]:
        """The catalogue, to look for a note that a person names."""
        with self.catalogue() as catalogue, catalogue.snapshot(), self._telling_why(catalogue):
            yield catalogue

    @contextmanager
    def _telling_why(self, catalogue: Catalogue) -> Iterator[None]:
        """For a note that is unknown because its file is not indexed: an error that says why."""
        from ragvault.answer.note_lookup import NoSuchNote, left_out

        try:
            yield
        except NoSuchNote as error:
            walk = self.settings.config.walk
            raise left_out(self.root, catalogue, walk, error.named, here=True) or error from None

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


def around_here() -> list[layout.KnownVault]:
    """The vaults that a command without --vault is about: the one around this folder, else the
    default vault, else all.
    """
    return layout.vaults_around(data_folder(), folders.here())


def vault_with(note: str, where: str | None = None) -> Vault:
    """The vault of a named note: the one that is meant anyway, else the only one that has it.

    Raises UsageError if no vault or several have such a note.
    """
    from ragvault.answer.note_lookup import NoSuchNote

    around = [] if where else around_here()
    if len(around) < 2:
        return Vault.open(where)
    vaults = [Vault.open(each.root) for each in around if not absence(each)]
    misses = {vault.root: vault.miss(note) for vault in vaults}
    found = [vault for vault in vaults if misses[vault.root] is None]
    if len(found) == 1:
        return found[0]
    names = ", ".join(vault.name for vault in found or around)
    if found:
        raise UsageError(f"several vaults have “{note}”: {names}", fix="add --vault NAME")
    for vault in vaults:
        if (miss := vault.miss(note, why=True)) and miss.left_out:
            raise miss
    raise NoSuchNote(
        note,
        next((miss.near for miss in misses.values() if miss and miss.near), ()),
        message=f"no note called “{note}” in {names}",
        fix="ragvault list notes --vault NAME",
    )


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
    """The vaults that a search means, each once: by name, by `in:` in the query, or by the folder.

    Without a name it is the vault around the current folder, else the default vault, else every
    vault that can be searched now. Raises UsageError if `in:` names none of the named vaults,
    VaultNotFound, ConfigError.
    """
    data, here = data_folder(environ), folders.here() if cwd is None else Path(cwd)

    def opened(where: str | Path | None) -> Vault:
        return Vault.open(where, flags=flags, environ=environ, cwd=cwd)

    mistake: UsageError | None = None
    inside: list[layout.KnownVault] = []
    if "in:" in query.casefold():
        try:
            names = names_after_in(query, now, hypothesis)
            inside = [layout.known_vault(name, data, here) for name in names]
        except UsageError as error:
            mistake = error
    if named:
        spelled = dict.fromkeys(
            where for each in dict.fromkeys(named) for where in _single_names(each, data, here)
        )
        if len(spelled) > MOST_VAULTS:
            raise UsageError(
                f"{len(spelled):,} vaults are too many to name in one search",
                fix=f"name at most {MOST_VAULTS}; outside of all vaults, all are searched",
            )
        wanted = [opened(where) for where in spelled]
    elif inside:
        wanted = [opened(vault.root) for vault in inside]
    else:
        around = layout.vaults_around(data, here)
        there = [vault for vault in around if around[1:] and not absence(vault)]
        try:
            wanted = [opened(vault.root) for vault in there] or [opened(None)]
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


def unsearchable(
    environ: Mapping[str, str] | None = None, cwd: str | Path | None = None
) -> list[str]:
    """Vaults that a search of all vaults leaves out; empty where it would search only one."""
    around = layout.vaults_around(
        data_folder(environ), folders.here() if cwd is None else Path(cwd)
    )
    return [vault.name for vault in around if around[1:] and absence(vault)]


def absence(vault: layout.KnownVault) -> RagvaultError | None:
    """Why a vault cannot be searched: its folder or its index is not there. None if both are."""
    if not vault.root.is_dir():
        return VaultNotFound(
            f"the folder of vault {vault.name} is not there: {vault.root}",
            fix=f"mount or restore it; or forget it: ragvault vaults remove {in_shell(vault.name)}",
        )
    return None if (vault.folder / layout.CATALOGUE).exists() else IndexMissing(vault.root)


def _single_names(typed: str, data: Path, here: Path) -> list[str]:
    """`a,b` as its parts, unless a vault or a folder has a comma in its name."""
    parts = [part.strip() for part in typed.split(",") if part.strip()]
    if len(parts) < 2:
        return [typed]
    try:
        layout.find_vault(typed, data, here)
    except VaultNotFound:
        return parts
    return [typed]


def names_after_in(query: str, now: datetime, hypothesis: str | None = None) -> Sequence[str]:
    """The vaults that `in:` names. Raises UsageError if the query has a mistake."""
    from ragvault.config.settings import Query
    from ragvault.query.understand import understand

    return understand(query, Query(), now=now, hypothesis=hypothesis).vaults
