"""The corpus of one local vault: the catalogue, FAISS, Whoosh or tantivy, and stored links.

LocalCorpus is the port `Corpus` for an index on this machine. What it reads from the catalogue
stays in memory until a writer commits something. Models are loaded when the first query needs
them. A corpus belongs to the thread that opened it, as its catalogue does; only searching and
scoring by vector and by word may happen in other threads.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal
from weakref import WeakValueDictionary

from msgspec.structs import replace

from ragvault.candidate import (
    Excerpt,
    LazyExcerpts,
    LazyVectors,
    NoteFacts,
    PassageFacts,
)
from ragvault.config.settings import Config
from ragvault.engines import Engines
from ragvault.errors import EngineMissing, IndexMissing, RagvaultError
from ragvault.plan import (
    Filter,
    KeywordQuery,
    MatchesWords,
    Words,
)
from ragvault.ports import (
    CacheBroken,
    CountsTokens,
    Embedder,
    KeywordIndex,
    Neighbour,
    NoteOnDisk,
    Reranker,
    Role,
    Scope,
    VaultFacts,
)
from ragvault.store.access import Accesses, path_digest, read_accesses
from ragvault.store.catalogue import Catalogue
from ragvault.store.layout import CATALOGUE
from ragvault.store.links import LinkStats, file_stem
from ragvault.store.notes import PassagePlace
from ragvault.store.schema import KEYWORD, Cache
from ragvault.text.dates import in_calendar
from ragvault.text.spans import Span, cut
from ragvault.text.spelling import fold, plain_name
from ragvault.update import freshness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragvault.index.vector import FaissVectors
    from ragvault.store.vectors import Vocabulary
    from ragvault.text.name_index import NameIndex
    from ragvault.types import Head, Passage, Section
    from ragvault.update.prepare import Prepared

# Three legs of a search, and two that then score each other's hits. A leg that is late still has
# its thread; a thread is started only when none is free.
LEG_THREADS = 12
# Of the default model, for an index that was made before this was measured.
UNRELATED = 0.45
MAX_PLACES = 20_000  # passages whose facts stay in memory between searches: some 10 MB
MAX_CHARACTERS = 4_000_000  # of note texts that stay in memory: about a thousand notes
WORD = re.compile(r"[^\W\d_]+")
WRITTEN = 10  # passages that show how a word is written
SECTIONS_PER_NOTE = 1 << 20  # more than any note has


# By catalogue and languages, as long as a corpus uses them: the threads of a resident process share
# them. The names of 14,593 notes take 33 MB.
_name_indexes: WeakValueDictionary[tuple[str, tuple[str, ...]], NameIndex] = WeakValueDictionary()
_reading_names = Lock()  # threads that begin together share them, too


class _Snapshot:
    """What was read from one state of the catalogue; after a commit, a new one takes its place."""

    def __init__(self, catalogue: Catalogue, accesses: Accesses) -> None:
        self.state = catalogue.data_version, accesses
        self.notes: dict[int, NoteFacts] = {}
        self.facts: VaultFacts | None = None
        self.names: NameIndex | None = None
        self.places: dict[int, PassagePlace] = {}
        self.texts = NoteTexts(catalogue.bodies)
        self.link_lists = cache(catalogue.link_lists)
        self.has_unembedded = cache(catalogue.has_unembedded)
        self.successors = cache(catalogue.successors)
        self.median_length = cache(catalogue.median_length)
        self.note_count = cache(catalogue.note_count)
        self.passage_count = cache(catalogue.passage_count)
        self.copied = cache(catalogue.copied)


class LocalCorpus:
    """The index of one vault, opened for searching. The caller closes it.

    The port says what each public method returns; where it has no docstring here, that is all.
    """

    def __init__(self, root: Path, catalogue: Catalogue, engines: Engines) -> None:
        self.root, self.catalogue, self.engines = root, catalogue, engines
        self.pool = ThreadPoolExecutor(max_workers=LEG_THREADS, thread_name_prefix="leg")
        self.missing: dict[str, str] = {}
        self._closed = False
        self._reranker: Reranker | None = None
        self._vocabulary: tuple[tuple[str, int], Vocabulary] | None = None
        self._name_index: NameIndex | None = None
        self._term_rows: dict[str, int] | None = None  # of the vocabulary, by the terms' stems
        self.accesses: Accesses = {}
        self.keyword: KeywordIndex | None = None
        self._keyword_cache: Cache | None = None
        self._open_keyword()
        self._vectors: FaissVectors | None = None
        self._embedder: Embedder | None = None
        self._open_vectors()
        self._seen = _Snapshot(self.catalogue, self.accesses)

    # --- Opening, refreshing, closing ---

    def refresh(self) -> None:
        """See what was committed since; inside a snapshot nothing changes."""
        if self.catalogue.in_snapshot:  # the files that it names may have been deleted since
            return
        self._refresh_keyword()
        self._refresh_vectors()
        if _uses_accesses(self.config):
            self._read_accesses()
        self._seen.facts = None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self.refresh()
        with self._one_state():
            yield

    @contextmanager
    def _one_state(self) -> Iterator[None]:
        with self.catalogue.snapshot():
            if self._seen.state != (self.catalogue.data_version, self.accesses):
                self._seen = _Snapshot(self.catalogue, self.accesses)
            yield

    def close(self) -> None:
        self._closed = True
        self.pool.shutdown(wait=False, cancel_futures=True)
        for index in (self.keyword, self._vectors):
            if index is not None:
                index.close()
        self.catalogue.close()

    def stamp(self) -> tuple[object, ...]:
        """What must stay the same for an open index to be used again: its file and its models.

        Raises IndexMissing.
        """
        try:
            file = (self.catalogue.folder / CATALOGUE).stat()
        except FileNotFoundError:
            raise IndexMissing(self.root) from None
        answering = self.engines.answering(self.catalogue)
        return file.st_dev, file.st_ino, self.catalogue.identity, answering

    def __enter__(self) -> LocalCorpus:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _read_accesses(self) -> None:
        try:
            self.accesses = read_accesses(self.catalogue.folder)
            self.missing.pop("access", None)
        except RagvaultError as error:
            self.accesses = {}
            self.missing["access"] = f"{error}; {error.fix}"

    def _open_keyword(self) -> None:
        self.keyword, self._keyword_cache = None, self.catalogue.cache(KEYWORD)
        if self._keyword_cache is None:
            if self.catalogue.revision:
                self.missing[KEYWORD] = f"the keyword index has not been made yet; {self._remedy()}"
            return
        try:
            self.keyword = self.engines.keyword(self.catalogue)
            self.missing.pop(KEYWORD, None)
        except (CacheBroken, EngineMissing) as broken:
            self.missing[KEYWORD] = f"{broken}; run: {broken.fix}"

    def _refresh_keyword(self) -> None:
        """A rebuild may have switched to an index in another folder."""
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

    def _refresh_vectors(self) -> None:
        """A run may have finished a better tier, and deleted the one that it replaces."""
        if self._vectors is not None and self.engines.answering(self.catalogue) == self._answering:
            with suppress(CacheBroken):  # opened again, it answers or is named as missing
                self._vectors.refresh()
                return
        self._open_vectors()

    def _open_vectors(self) -> None:
        """The vectors of the tier that answers."""
        if self._vectors is not None:
            self._vectors.close()
        self._vectors = self._embedder = None
        while True:
            self.missing = {k: why for k, why in self.missing.items() if not k.startswith("vector")}
            with self.catalogue.snapshot():
                caches = self.catalogue.caches()
                self._answering = self.engines.answering(self.catalogue)
                if self._answering is None:
                    return
                tier, model, dim = self._answering
                try:
                    self._vectors = self.engines.vectors(model, dim, self.catalogue)
                    return
                except (CacheBroken, EngineMissing) as broken:
                    self.missing[f"vector ({tier})"] = f"{broken}; run: {broken.fix}"
            # Damage, or has a rebuild deleted these files after the catalogue named them?
            if caches == self.catalogue.caches():
                return

    # --- The state of the index ---

    @property
    def config(self) -> Config:
        return self.engines.config

    @property
    def facts(self) -> VaultFacts:
        if self._seen.facts is None:
            self._seen.facts = self._read_facts()
        return self._seen.facts

    def _read_facts(self) -> VaultFacts:
        parts = {"vector": self._vectors is not None, "keyword": self.keyword is not None}
        tier, model, _ = self._answering or ("keyword", "", 0)
        return VaultFacts(
            revision=self.catalogue.revision,
            tier=tier if self._vectors is not None else "keyword",
            searchable=frozenset(part for part, there in parts.items() if there),
            missing=dict(self.missing),
            behind=self._behind(),
            remedy=self._remedy(),
            unfinished=self._unfinished(),
            notes=self._seen.note_count(),
            passages=self._seen.passage_count(),
            median_length=self._seen.median_length(),
            unrelated_cosine=self.catalogue.facts.unrelated.get(model, UNRELATED),
            copied=self._seen.copied(),
        )

    def _behind(self) -> str:
        from ragvault.index.keyword import keyword_recipe

        cached = self.catalogue.cache(KEYWORD) if self.keyword is not None else None
        if cached is None:
            return ""
        if cached.recipe != keyword_recipe(cached.engine, self.config.keyword):
            return "the keyword index was made with other settings"
        if cached.revision < self.catalogue.revision:
            return "the latest changes are not in the keyword index yet"
        tier, model, _ = self._answering or ("keyword", "", 0)
        # Static ones come with every run; a full one may wait for its model or for time.
        lags = tier == "full" and self._seen.has_unembedded(model)
        return "the latest changes have no vectors yet" if lags else ""

    def _remedy(self) -> str:
        from ragvault.store.files import lock_owner

        return "indexing now" if lock_owner(self.catalogue.folder) else "run: ragvault index"

    def _unfinished(self) -> str:
        from ragvault.store.files import lock_owner

        if self.catalogue.facts.last_run:
            return ""
        if lock_owner(self.catalogue.folder):
            return "still being indexed; search again when it is done (see: ragvault status)"
        return "its first index run did not finish; to continue: ragvault index"

    def heads(self) -> Sequence[Head]:
        return self.catalogue.heads()

    def left_out(self, name: str) -> str:
        from ragvault.answer.note_lookup import left_out

        return str(left_out(self.root, self.catalogue, self.config.walk, name) or "")

    # --- Filters ---

    def scope(self, tree: Filter | None, newest: int = 0) -> Scope:
        """The ids of the passages that a filter keeps, ascending; None is all of them."""
        import numpy as np

        kept = self.catalogue.filtered_passages(tree, self._matching)
        if not newest:
            return kept
        latest = self.catalogue.newest(newest, self._opened_lately() if self.accesses else ())
        window = np.unique(np.array(latest, np.int64))
        return window if kept is None else np.intersect1d(window, kept)

    def _opened_lately(self) -> list[int]:
        """The notes that were opened, the last one first."""
        paths = self.catalogue.notes_since(0)
        opened = {note: self.accesses.get(path_digest(path)) for note, path in paths}
        last = {note: times[1] for note, times in opened.items() if times}
        return sorted(last, key=lambda note: (-last[note], note))

    def within(self, passages: Iterable[int], scope: Scope) -> set[int]:
        import numpy as np

        from ragvault.index.ids import among

        ids = np.array(list(passages), np.int64)
        return set((ids if scope is None else ids[among(ids, scope)]).tolist())

    def notes_by_date(
        self, tree: Filter | None, limit: int
    ) -> tuple[Sequence[tuple[PassageFacts, bool]], int]:
        """The notes that a filter keeps by date, each as its first passage that is kept."""
        matching = cache(self._matching)  # both filters below ask for the same words
        templates = self.config.boost.templates
        folders = templates.folders if templates.enabled else ()
        notes = self.catalogue.notes_by_date(tree, matching, folders)
        kept = self.catalogue.filtered_passages(tree, matching)
        permitted = None if kept is None else set(kept.tolist())
        firsts: dict[int, bool] = {}  # and whether its note says nothing
        for note, nothing in notes[:limit]:
            passages = self.catalogue.passage_ids_of(note)
            kept_of_note = (id_ for id_ in passages if permitted is None or id_ in permitted)
            firsts.update((id_, nothing) for id_ in islice(kept_of_note, 1))
        known = self.passages(list(firsts))
        listed = [(known[id_], nothing) for id_, nothing in firsts.items() if id_ in known]
        return listed, len(notes)

    def _matching(self, holds: MatchesWords) -> list[int]:
        """Every passage that a condition on words keeps."""
        if self.keyword is None:
            raise RagvaultError(
                "this query needs the keyword index, which cannot be read", fix="ragvault index"
            )
        try:
            found = self.keyword.matching(holds.query)
        except CacheBroken as broken:
            raise CacheBroken(f"this query needs the keyword index: {broken}") from broken
        if found is None:  # a part of them would keep what the query excludes
            raise RagvaultError(
                "the keyword index had no time to look up every word that this query excludes or "
                "wants",
                fix="give it more, in seconds: --set keyword.seconds=10",
            )
        return [int(passage) for passage in found]

    # --- By vector ---

    @property
    def model_is_loaded(self) -> bool:
        return self._embedder is not None

    def embed_query(self, text: str, role: Role) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.embedder().embed([text], role)[0]
        return vector

    def embedder(self) -> Embedder:
        """The model of the tier that answers, loaded when the first query needs it."""
        _, model, _ = self._answering or ("", "", 0)
        found = self._embedder
        if found is None or found.name != model:  # of a late leg, which began before a switch
            # Offline: a search downloads nothing. A model that is gone is reported as missing.
            found = self._embedder = self.engines.embedder(model, offline=True)
        return found

    def nearest(
        self, vector: NDArray[np.float32], limit: int, scope: Scope
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return self._searched.search(vector, limit=limit, allowed=scope)

    def cosines(self, vector: NDArray[np.float32], passages: Sequence[int]) -> NDArray[np.float64]:
        return self._searched.scores_of(vector, passages)

    @property
    def _searched(self) -> FaissVectors:
        if self._vectors is None:
            raise CacheBroken("there are no vectors yet")
        return self._vectors

    def vectors(self, passages: Sequence[int]) -> Mapping[int, NDArray[np.float32]]:
        return LazyVectors(self._vectors_of, passages)

    def _vectors_of(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of passages, a row each; NaN where there is none."""
        import numpy as np

        if self._vectors is None:
            return np.full((len(ids), 1), np.nan, np.float32)
        return self._vectors.vectors_of(ids)

    # --- By word ---

    @property
    def words(self) -> KeywordIndex:
        if self.keyword is None:
            raise CacheBroken("there is no keyword index yet")
        return self.keyword

    def corrected(self, query: KeywordQuery) -> KeywordQuery:
        return self.words.corrected(query, self._is_word)

    def _is_word(self, text: str) -> bool:
        """Whether a text is the initials of a name, or it or its singular a word to the model of
        this vault: one token.

        A word that the notes do not have is not misspelt for that: `pony` is not a slip of pong.
        """
        if self.names().keys(text):
            return True
        if "vector" not in self.config.retrieve.legs or self._vectors is None:
            return False
        with suppress(RagvaultError):  # without its model; the leg says so
            model = self.embedder()
            if isinstance(model, CountsTokens):
                return any(model.count_tokens(each) == 1 for each in {text, text.removesuffix("s")})
        return False

    def written(self, word: str) -> str:
        hits = self.words.search(Words(word), limit=WRITTEN).hits
        ids = [hit.passage for hit in hits]
        forms: Counter[str] = Counter()
        for each in self.passages(ids, ids).values():
            text = "\n".join((each.note.title, *each.headings, each.text))
            forms.update(form for form in WORD.findall(text) if fold(form) == word)
        return max(forms, key=lambda form: (forms[form], form), default=word)

    def near_terms(
        self, text: str, count: int, *, percentile: float, exclude: frozenset[str]
    ) -> tuple[Sequence[tuple[str, float]], float]:
        """The terms of the vocabulary nearest to a text, by the model that embedded them."""
        from ragvault.index.vocabulary import expand, usual_cosine

        known = self.vocabulary()
        if not known.terms:
            return (), 1.0
        query = self.engines.embedder(known.model, offline=True).embed([text], "query")[0]
        near = expand(query, known.terms, known.matrix, top=count, min_cosine=-1.0, own=exclude)
        return near, usual_cosine(known.matrix, 100 * percentile)

    def vocabulary(self) -> Vocabulary:
        """The vocabulary, read again only after it was chosen anew."""
        facts = self.catalogue.facts
        chosen = facts.vocabulary_model, facts.vocabulary_revision
        if self._vocabulary is None or self._vocabulary[0] != chosen:
            self._vocabulary = chosen, self.catalogue.vocabulary()
            self._term_rows = None
        return self._vocabulary[1]

    def query_cosines(self, query: str, texts: Sequence[str]) -> list[float] | None:
        from ragvault.index.vocabulary import text_cosines

        known = self.vocabulary()
        if not known.terms or self.keyword is None:
            return None
        stem = self.keyword.analyzers[""].term_of
        if self._term_rows is None:
            self._term_rows = {stem(term): row for row, term in enumerate(known.terms)}

        def terms(text: str) -> list[str]:
            return [stem(word) for word in WORD.findall(text.casefold())]

        return text_cosines(terms(query), list(map(terms, texts)), self._term_rows, known.matrix)

    # --- By name and by link ---

    def names(self) -> NameIndex:
        if self._seen.names is None:
            self._seen.names = self._read_names()
        return self._seen.names

    def _read_names(self) -> NameIndex:
        """The names of all notes; those of before, or of another thread, if they are the same."""
        from ragvault.text.name_index import NameIndex
        from ragvault.text.names import NameFolder, vault_languages

        rows = self.catalogue.names()
        languages = vault_languages(self._share, self.config.keyword.stemming)
        of = self.catalogue.identity, languages
        with _reading_names:
            known = _name_indexes.get(of)
            if known is None or known.rows != rows:
                known = NameIndex(rows, known.folder if known else NameFolder(languages))
                _name_indexes[of] = known
        self._name_index = known  # kept for the next revision: few edits change a name
        return known

    def _share(self, word: str) -> float:
        return 0.0 if self.keyword is None else self.keyword.share(word)

    def neighbours(self, seeds: Mapping[int, int], depth: int) -> list[Neighbour]:
        from ragvault.index.graph import Edge, neighbours

        notes = list(seeds)
        edges = list(map(Edge._make, self.catalogue.link_rows(notes)))
        for _ in range(depth - 1):
            reached = sorted({note for edge in edges for note in (edge.source, edge.target)})
            if reached == notes:
                break
            notes = reached
            edges = list(map(Edge._make, self.catalogue.link_rows(notes)))
        return neighbours(edges, seeds, depth, self._seen.link_lists(), of_each_other=True)

    def passages_of(self, parts: Sequence[tuple[int, int | None]]) -> list[list[int]]:
        found = self.catalogue.passage_ids_by_note([note for note, _ in parts])
        return [
            [id_ for id_, own in found.get(note, ()) if section in (None, own)]
            for note, section in parts
        ]

    # --- Facts and texts ---

    def passages(
        self, passages: Sequence[int], texts: Iterable[int] = ()
    ) -> dict[int, PassageFacts]:
        places = self._seen.places
        if len(places) > MAX_PLACES:
            places.clear()
        new = self.catalogue.places(sorted({id_ for id_ in passages if id_ not in places}))
        places.update((place.id, place) for place in new)
        self._read_notes(place.note_id for place in new)
        found = [places[id_] for id_ in passages if id_ in places]
        now = set(texts)
        # Note by note: a long text may stay in memory only until the next one is read.
        shown = sorted((each for each in found if each.id in now), key=lambda each: each.note_id)
        self._seen.texts.fetch(place.note_id for place in shown)
        cuts = {place.id: self._cut(place) for place in shown}
        return {
            place.id: PassageFacts(
                place.id,
                self._seen.notes[place.note_id],
                place.ordinal,
                _section_id(place.note_id, place.section),
                place.headings,
                place.kind,
                cuts[place.id] if place.id in cuts else cache(partial(self._text_of, place.id)),
                place.lines,
                place.subheadings,
            )
            for place in found
            if place.note_id in self._seen.notes
        }

    def load_texts(self, passages: Sequence[PassageFacts]) -> None:
        for each in passages:
            if callable(each.source):
                each.source()

    def excerpts(self, of: Literal["section", "passage"]) -> Mapping[int, Excerpt]:
        return LazyExcerpts(self._section if of == "section" else self._excerpt)

    def property_lines(self, note: int) -> list[str]:
        from ragvault.index.keyword.fields import property_lines

        found = self.catalogue.heads([note])
        return property_lines(found[0].properties) if found else []

    def note_text(self, note: int) -> str:
        return self.catalogue.text(note)

    def _text_of(self, id_: int) -> str:
        """The text of a passage; empty if it is gone by now, or the corpus is closed."""
        if self._closed:
            return ""
        with self._one_state():
            if id_ in self._seen.places:
                return self._cut(self._seen.places[id_])
            places = self.catalogue.places([id_])
            return self._cut(places[0]) if places else ""

    def _cut(self, place: PassagePlace) -> str:
        return place.text(*self._seen.texts(place.note_id))

    def _section(self, id_: int) -> Excerpt | None:
        note, ordinal = divmod(id_, SECTIONS_PER_NOTE)
        try:
            text, excluded = self._seen.texts(note)
        except KeyError:
            return None
        near = self.catalogue.sections_near(note, ordinal)
        if ordinal not in near:
            return None
        section = near[ordinal]
        return Excerpt(
            id_,
            cut(text, section.start, section.end, excluded),
            section.lines,
            section.headings,
            _section_id(note, ordinal - 1) if ordinal - 1 in near else None,
            _section_id(note, ordinal + 1) if ordinal + 1 in near else None,
        )

    def _excerpt(self, id_: int) -> Excerpt | None:
        places = self.catalogue.places([id_])
        if not places:
            return None
        (place,) = places
        ids = self.catalogue.passage_ids_of(place.note_id)
        at = ids.index(id_)
        return Excerpt(
            id_,
            self._cut(place),
            place.lines,
            place.headings,
            ids[at - 1] if at else None,
            ids[at + 1] if at + 1 < len(ids) else None,
        )

    def _read_notes(self, notes: Iterable[int]) -> None:
        # Not a difference of sets: that would look at every note known so far.
        ids = sorted({note for note in notes if note not in self._seen.notes})
        stats = self.catalogue.link_stats(ids) if ids else {}
        for row in self.catalogue.stored_notes(ids):
            linked = stats.get(row.id, LinkStats())
            own = (row.title, file_stem(row.file.path), *row.aliases)
            times, _ = self.accesses.get(path_digest(row.file.path), (0, 0.0))
            self._seen.notes[row.id] = NoteFacts(
                id=row.id,
                path=row.file.path,
                title=row.title,
                disk=row.file.disk,
                names=frozenset(map(plain_name, own)) - {""},
                date=row.dates.date,
                modified=row.dates.modified,
                file_time=row.file.mtime_ns / 1e9,
                linkers=linked.linking_notes,
                links=linked.linking_links,
                community=linked.community,
                importance=row.importance,
                access=times,
                superseded_by=tuple(sorted(self._seen.successors().get(row.id, ()))),
            )

    # --- Files ---

    def check_files(self) -> None:
        freshness.check_vault(self.root, self.catalogue)

    def note_on_disk(self, note: NoteFacts) -> NoteOnDisk:
        found = freshness.compare_note(self.root, self.catalogue, self.config, note.path)
        return NoteOnDisk(found) if isinstance(found, str) else _changed_note(note, found)

    # --- Models ---

    def reranker(self) -> Reranker:
        if self._reranker is None:
            self._reranker = self.engines.reranker()
        return self._reranker

    def count_tokens(self) -> Callable[[str], int] | None:
        return self._embedder.count_tokens if isinstance(self._embedder, CountsTokens) else None


def _uses_accesses(config: Config) -> bool:
    """Whether any setting needs to know how often notes were opened."""
    weighted = config.fuse.method == "weighted" and config.fuse.weighted.access
    listed = "access" in config.retrieve.lists
    return bool(listed or weighted or config.retrieve.window or config.boost.access.enabled)


# --- Ids: those of passages are the catalogue's, the others are made here ---


def _section_id(note: int, ordinal: int) -> int:
    """The id of a section, by its note and its position there."""
    return note * SECTIONS_PER_NOTE + ordinal


def _unindexed_id(note: int, ordinal: int) -> int:
    """The id of a passage that the catalogue does not have: below 0, so it is nobody else's."""
    return -_section_id(note, ordinal) - 1


# --- Notes that changed on disk ---


def _changed_note(note: NoteFacts, now: Prepared) -> NoteOnDisk:
    """The passages and sections of a note that was read again."""
    at = in_calendar(now.file.mtime_ns / 1e9)
    note = replace(note, title=now.note.title, modified=at, file_time=at)
    passages = [
        PassageFacts(
            _unindexed_id(note.id, passage.ordinal),
            note,
            passage.ordinal,
            # Without a section it must not be taken for one of the index.
            _section_id(note.id, passage.section)
            if now.sections
            else _unindexed_id(note.id, passage.ordinal),
            passage.headings,
            passage.kind,
            passage.text,
            passage.lines,
            passage.subheadings,
            "file",
        )
        for passage in now.passages
    ]
    sections = [_section_id(note.id, section.ordinal) for section in now.sections]
    texts = [cut(now.note.text, part.start, part.end, now.note.excluded) for part in now.sections]
    return NoteOnDisk(
        "changed",
        passages,
        _with_neighbours(sections, texts, now.sections),
        _with_neighbours(
            [each.id for each in passages], [each.text for each in now.passages], now.passages
        ),
    )


def _with_neighbours(
    ids: Sequence[int], texts: Sequence[str], parts: Sequence[Section | Passage]
) -> dict[int, Excerpt]:
    """Parts of a note by id, each with the ids of its neighbours."""
    rows = zip(ids, texts, parts, [None, *ids], [*ids[1:], None], strict=False)
    return {
        id_: Excerpt(id_, text, part.lines, part.headings, first, last)
        for id_, text, part, first, last in rows
    }


# --- Note texts ---

NoteText = tuple[str, tuple[Span, ...]]  # the text of a note, and what of it is not indexed


class NoteTexts:
    """The texts of notes; the last few million characters, at least one note's, stay in memory."""

    def __init__(
        self,
        read: Callable[[Sequence[int]], Mapping[int, NoteText]],
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        self._read, self._room = read, max_characters
        self._known: OrderedDict[int, NoteText] = OrderedDict()

    def __call__(self, note: int) -> NoteText:
        if note not in self._known:
            self._add({note: self._read([note])[note]})
        self._known.move_to_end(note)
        return self._known[note]

    def fetch(self, notes: Iterable[int]) -> None:
        """Read these in one go."""
        self._add(self._read([note for note in dict.fromkeys(notes) if note not in self._known]))

    def _add(self, texts: Mapping[int, NoteText]) -> None:
        self._known.update(texts)
        self._room -= sum(len(text) for text, _ in texts.values())
        while self._room < 0 and len(self._known) > 1:  # a longer one is not read for each passage
            self._room += len(self._known.popitem(last=False)[1][0])
