"""The keyword index on Whoosh: segments on a shelf, scored as arrays.

    put, remove  a draft in memory                      keyword_changes
    commit       new segments and one new manifest      keyword_segment, keyword_shelf
    refresh      the manifest's segments as arrays      keyword_view
    search       spell, plan, score, pick               keyword_find

Many threads may ask one object while one of them writes: a search keeps the view it began with.
There is no lock here: who may write is decided for the whole index folder, and a writer that was
killed leaves files that the next one deletes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragvault.config.settings import Keyword
from ragvault.index import keyword_shelf
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_changes import Changes
from ragvault.index.keyword_damage import damage_told
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_find import Finder
from ragvault.index.keyword_mark import highlight
from ragvault.index.keyword_plan import check_fields
from ragvault.index.keyword_segment import Segment
from ragvault.index.keyword_shelf import Manifest
from ragvault.index.keyword_view import LEVELS, View
from ragvault.ports import CacheBroken
from ragvault.sought import KeywordAnswer, KeywordNote, KeywordPassage, Sought

if TYPE_CHECKING:
    from ragvault.ports import Allowed, ReadKeywords

TRIES = 10  # to open a manifest whose files a writer sweeps away meanwhile


class WhooshIndex:
    """Keeps the promises of `KeywordIndex` with Whoosh's files.

    Raises CacheBroken when what is in the folder is damaged, or was made with other settings.
    """

    def __init__(self, folder: Path, fields: Fields, analyzer: Analyzer, settings: Keyword) -> None:
        self._folder, self._fields = folder, fields
        self._analyzer, self._settings = analyzer, settings
        self._made_by = f"whoosh {analyzer.name} {' '.join(fields.names())}"
        self._segments: dict[str, Segment] = {}
        self._manifest = Manifest(-1, "")  # none yet
        for each in (folder.parent, folder):  # parents=True would leave those above open to others
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._changes = self._no_changes()
        self.refresh()

    @property
    def revision(self) -> int:
        return self._manifest.revision

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
        allowance = self._settings.seconds if seconds is None else seconds
        fuzzy = fuzzy and self._settings.fuzzy
        check_fields(sought, self._fields)
        fields = self._fields.boosted(boosts)
        finder = Finder(self._view, fields, self._analyzer, self._settings)
        return finder.find(sought, limit, allowed, per_note, fuzzy, allowance)

    def score_of(
        self, sought: Sought, passages: Sequence[int], *, boosts: Mapping[str, float] | None = None
    ) -> KeywordAnswer:
        ids = np.array(passages, dtype=np.int64)
        return self.search(sought, limit=len(ids), allowed=ids, boosts=boosts)

    def highlight(self, text: str, sought: Sought) -> list[tuple[int, int]]:
        return highlight(text, sought, self._analyzer)

    @damage_told
    def words(self) -> dict[str, int]:
        return dict(self._view.counted(self._fields.main))

    @damage_told
    def holders(self, term: str) -> int:
        return self._view.holders(self._fields.main, term)

    def refresh(self) -> None:
        for _ in range(TRIES):
            manifest = self._read_manifest()
            try:
                self._show(manifest)
                return
            except CacheBroken:
                # Damage, or a writer that swept the files away between our two looks?
                if self._read_manifest() == manifest:
                    raise

    def verify(self) -> None:
        keyword_shelf.check(self._folder, self._manifest, thorough=True)

    def put(self, notes: Iterable[KeywordNote], passages: Iterable[KeywordPassage]) -> None:
        for note in notes:
            self._changes.put_note(note)
        for passage in passages:
            self._changes.put_passage(passage)

    def remove(self, notes: Iterable[int], passages: Iterable[int]) -> None:
        for note in notes:
            self._changes.remove("note", note)
        for passage in passages:
            self._changes.remove("passage", passage)

    def commit(self, revision: int, *, wait: bool = True) -> None:
        self._show(self._changes.commit(self._manifest, revision))
        self._changes = self._no_changes()

    def rubbish(self) -> int:
        return sum(entry.size for entry in self._manifest.segments if entry.removed)

    def compact(self, read: ReadKeywords) -> None:
        self._show(self._changes.compacted(self._manifest))

    def close(self) -> None:
        for segment in self._segments.values():
            segment.close()
        self._segments = {}

    def _no_changes(self) -> Changes:
        return Changes(self._folder, self._fields, self._analyzer)

    def _read_manifest(self) -> Manifest:
        found = keyword_shelf.read(self._folder, self._made_by)
        return found or Manifest(0, self._made_by)

    def _show(self, manifest: Manifest) -> None:
        """Let searches see this commit from now on."""
        keyword_shelf.check(self._folder, manifest)
        if manifest == self._manifest:
            return  # every search looks whether there is another
        try:
            segments = [
                self._segments.get(entry.name) or Segment(self._folder, entry.name)
                for entry in manifest.segments
            ]
            dead = [{level: entry.dead(level) for level in LEVELS} for entry in manifest.segments]
            view = View(self._fields, segments, dead)
        except Exception as error:  # whatever Whoosh and numpy make of a damaged file
            raise CacheBroken(f"a segment cannot be read ({error})") from error
        self._segments = {segment.name: segment for segment in segments}
        self._manifest = manifest
        self._view = view
