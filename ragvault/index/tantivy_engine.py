"""The keyword index on tantivy: the same promises, kept by an engine written in Rust.

    notes/      one document a note       two indexes, because tantivy takes the number of documents
    passages/   one document a passage    and their mean length from the whole of an index
    stamp       revision, settings, and the files as they were at the last commit

Text goes in cut by our own analyzer, several terms at one place (keyword_tantivy_draft.py), so that
words, stems and phrases mean the same as on Whoosh. k1 and b are compiled in, and the length of a
field is kept in one byte: exact up to 40 words, cut down by less than an eighth above. A commit is
two commits and a stamp: a writer killed between them leaves the old stamp, and what is put again is
put by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tantivy

from ragvault.config.settings import Keyword
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_damage import damage_told
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_mark import highlight
from ragvault.index.keyword_plan import check_fields
from ragvault.index.keyword_shelf import Manifest
from ragvault.index.keyword_tantivy_answer import Finder
from ragvault.index.keyword_tantivy_files import LEVELS, Stamps
from ragvault.index.keyword_tantivy_query import ABSENT, PLACES, Asking, Level, schema
from ragvault.index.keyword_tantivy_write import Changes
from ragvault.index.keyword_time import Deadline
from ragvault.ports import CacheBroken
from ragvault.sought import KeywordAnswer, KeywordNote, KeywordPassage, Sought

if TYPE_CHECKING:
    from ragvault.ports import Allowed, ReadKeywords

SLICE = 20_000  # documents put again at a time: a draft holds them all, some 2 kB each


class TantivyIndex:
    """Keeps the promises of `KeywordIndex` with tantivy's files."""

    def __init__(self, folder: Path, fields: Fields, analyzer: Analyzer, settings: Keyword) -> None:
        self._folder, self._fields = folder, fields
        self._analyzer, self._settings = analyzer, settings
        engine = f"tantivy {version('tantivy')} {PLACES}"
        made_by = f"{engine} {analyzer.name} {' '.join(fields.names())}"
        self._stamps = Stamps(folder, made_by)
        self._boosts = {"note": dict(fields.note), "passage": dict(fields.passage)}
        self._schemas = {
            "note": schema(fields.note, ["id"]),
            "passage": schema(fields.passage, ["id", "note"]),
        }
        for each in (folder.parent, folder):  # parents=True would leave those above open to others
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._stamp = self._stamps.read()
        self._shown: Manifest | None = None  # the commit that searches see
        self._indexes = {level: self._open(level) for level in LEVELS}
        self._changes = Changes(folder, self._indexes, analyzer, self._boosts)
        self._handed_over: int | None = None  # the revision of what is not yet stamped
        self.refresh()

    @property
    def revision(self) -> int:
        return self._stamp.revision

    # Reading

    @damage_told
    def search(
        self,
        sought: Sought,
        *,
        limit: int,
        allowed: Allowed = None,
        per_note: int = 0,
        fuzzy: bool = True,
        boosts: Mapping[str, float] | None = None,
        seconds: float | None = None,
    ) -> KeywordAnswer:
        deadline = Deadline(self._settings.seconds if seconds is None else seconds)
        finder = self._finder(sought, boosts, deadline)
        return finder.find(sought, limit, allowed, per_note, fuzzy and self._settings.fuzzy)

    @damage_told
    def score_of(
        self, sought: Sought, passages: Sequence[int], *, boosts: Mapping[str, float] | None = None
    ) -> KeywordAnswer:
        deadline = Deadline(self._settings.seconds)
        return self._finder(sought, boosts, deadline).score_of(sought, passages)

    def _finder(
        self, sought: Sought, boosts: Mapping[str, float] | None, deadline: Deadline
    ) -> Finder:
        check_fields(sought, self._fields)
        asking = self._asking.boosted(self._fields.boosted(boosts))
        return Finder(asking, self._analyzer, self._settings, deadline)

    def highlight(self, text: str, sought: Sought) -> list[tuple[int, int]]:
        return highlight(text, sought, self._analyzer)

    @damage_told
    def words(self) -> dict[str, int]:
        searcher, main = self._asking.passages.searcher, self._fields.main
        return {term: held for term, held in searcher.terms_with_prefix(main, "") if term != ABSENT}

    @damage_told
    def holders(self, term: str) -> int:
        return int(self._asking.passages.holders(self._fields.main, term))

    @damage_told
    def refresh(self) -> None:
        self._stamp = self._stamps.read()
        if self._stamp == self._shown:
            return  # every search looks whether there is another
        levels = {}
        for level, index in self._indexes.items():
            try:
                index.reload()
            except ValueError as error:
                raise CacheBroken(f"tantivy cannot read it ({error})") from error
            removed = sum(each.removed for each in self._stamps.segments(level))
            levels[level] = Level(index.schema, index.searcher(), self._boosts[level], removed)
        self._asking = Asking(levels["note"], levels["passage"], self._fields)
        self._shown = self._stamp

    def verify(self) -> None:
        self._stamps.verify()

    # Writing

    def put(self, notes: Iterable[KeywordNote], passages: Iterable[KeywordPassage]) -> None:
        self._changes.put(notes, passages)

    def remove(self, notes: Iterable[int], passages: Iterable[int]) -> None:
        self._settle()
        self._changes.remove(notes, passages)

    def commit(self, revision: int, *, wait: bool = True) -> None:
        self._settle()
        self._changes.hand_over()
        self._handed_over = revision
        if wait:
            self._settle()

    def _settle(self) -> None:
        """Stamp what was handed over, when it is in the files."""
        if self._handed_over is not None:
            self._changes.wait()
            self._stamps.write(self._handed_over, self._stamp)
            self._handed_over = None
            self.refresh()

    @damage_told
    def rubbish(self) -> int:
        held = {
            segment.name
            for level in LEVELS
            for segment in self._stamps.segments(level)
            if segment.removed
        }
        sizes = {path: path.stat().st_size for path in self._folder.glob("*/*")}
        return sum(size for path, size in sizes.items() if path.name.partition(".")[0] in held)

    @damage_told
    def compact(self, read: ReadKeywords) -> None:
        """Put again what shares a segment with something removed; tantivy drops empty segments."""
        notes, passages = (self._beside_removed(level) for level in LEVELS)
        for start in range(0, max(len(notes), len(passages)), SLICE):
            some = notes[start : start + SLICE], passages[start : start + SLICE]
            fresh = read(*some)
            self.remove(*some)
            self.put(*fresh)
            self.commit(self.revision)

    def close(self) -> None:
        self._changes.close()

    def _beside_removed(self, level: str) -> list[int]:
        """Ids of all documents in segments that also hold removed ones, those too."""
        searcher = self._indexes[level].searcher()
        ids: list[int] = []
        for at, segment in enumerate(self._stamps.segments(level)):
            if segment.removed:
                where = [tantivy.DocAddress(at, doc) for doc in range(segment.max_doc)]
                ids += searcher.fast_field_values("id", where)
        return ids

    @damage_told
    def _open(self, level: str) -> Any:
        folder = self._folder / level
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            if self._stamp.revision and not tantivy.Index.exists(str(folder)):
                raise CacheBroken(f"{level} is missing")
            return tantivy.Index(self._schemas[level], path=str(folder))
        except (ValueError, OSError) as error:
            raise CacheBroken(f"tantivy cannot open it ({error})") from error
