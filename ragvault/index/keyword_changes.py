"""Changes: what was put and removed since the last commit, on its way to the shelf.

A put replaces by id: the older document is marked as removed in the segment it lies in, and stays
in its files until they are merged. A commit merges small segments when they have become many, and
rewrites no more than a few megabytes beside what it was given; `compacted` rewrites every segment
that holds something removed, one at a time, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from ragvault.errors import refused
from ragvault.index import keyword_merge, keyword_shelf
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_draft import Draft
from ragvault.index.keyword_fields import Fields
from ragvault.index.keyword_segment import LIMIT, Block, Columns, Segment, write
from ragvault.index.keyword_shelf import Manifest, SegmentEntry
from ragvault.index.keyword_view import LEVELS
from ragvault.sought import KeywordNote, KeywordPassage

DRAFT_WORDS = 3_000_000  # what a draft holds; about 400 MB while it is sorted into a segment
DRAFT_DOCS = 40_000  # of one level; a segment numbers at most 65,535
SMALL = 1 << 20  # bytes: segments below this are merged when there are
MANY = 8  # of them
MERGED = 3 << 20  # bytes: what one commit may rewrite beside what it was given


class Changes:
    """The one writer's memory."""

    def __init__(self, folder: Path, fields: Fields, analyzer: Analyzer) -> None:
        self._folder, self._fields, self._analyzer = folder, fields, analyzer
        self._level_of = {
            **dict.fromkeys([*fields.note, "note"], "note"),
            **dict.fromkeys([*fields.passage, "passage"], "passage"),
        }
        self._draft = Draft(analyzer, fields.names())
        self._written: list[SegmentEntry] = []  # drafts that became too large to hold
        # By level: which draft holds an id as what, and which ids are no longer what they were.
        self._new: dict[str, dict[int, tuple[int, int]]] = {level: {} for level in LEVELS}
        self._void: dict[str, dict[int, list[int]]] = {level: {} for level in LEVELS}
        self._gone: dict[str, set[int]] = {level: set() for level in LEVELS}

    def put_note(self, note: KeywordNote) -> None:
        self._put("note", note.id, {"id": note.id}, self._fields.note, note.fields)

    def put_passage(self, passage: KeywordPassage) -> None:
        ids = {"id": passage.id, "note": passage.note}
        self._put("passage", passage.id, ids, self._fields.passage, passage.fields)

    def _put(
        self,
        level: str,
        id_: int,
        ids: dict[str, int],
        names: Iterable[str],
        texts: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.remove(level, id_)
        doc = self._draft.add(level, ids, {name: texts.get(name, ()) for name in names})
        self._new[level][id_] = (len(self._written), doc)
        if self._draft.size > DRAFT_WORDS or doc + 1 >= DRAFT_DOCS:
            self._write_draft()

    def remove(self, level: str, id_: int) -> None:
        """Take out by id, wherever it is."""
        self._gone[level].add(id_)
        held = self._new[level].pop(id_, None)
        if held is not None:
            self._void[level].setdefault(held[0], []).append(held[1])

    def _write_draft(self) -> None:
        counts = {level: self._draft.count(level) for level in LEVELS}
        if any(counts.values()):
            entry = self._write(self._draft.blocks(), self._draft.columns(), counts)
            self._written.append(entry)
        self._draft = Draft(self._analyzer, self._fields.names())

    def _write(
        self, blocks: Iterable[tuple[str, str, Block]], columns: Columns, counts: dict[str, int]
    ) -> SegmentEntry:
        try:
            name = write(self._folder, blocks, columns, self._fields.names())
            return keyword_shelf.entry(self._folder, name, counts)
        except OSError as error:
            raise refused(self._folder, error) from error

    def commit(self, old: Manifest, revision: int) -> Manifest:
        """Write everything down and return what the index consists of now."""
        self._write_draft()
        segments = [self._without_gone(entry) for entry in old.segments]
        segments += [self._without_void(at, entry) for at, entry in enumerate(self._written)]
        segments = self._merged_small([s for s in segments if s.living])
        return self._publish(old, segments, revision)

    def _publish(self, old: Manifest, segments: list[SegmentEntry], revision: int) -> Manifest:
        manifest = msgspec.structs.replace(old, segments=segments, revision=revision)
        keyword_shelf.write(self._folder, manifest)
        return manifest

    def compacted(self, old: Manifest) -> Manifest:
        """Rewrite each segment that holds something removed, and the small ones as one."""
        manifest = old
        for entry in old.segments:
            if entry.removed:
                rest = [s for s in manifest.segments if s.name != entry.name]
                manifest = self._publish(old, [*rest, *self._merged([entry])], old.revision)
        small = [entry for entry in manifest.segments if entry.size < SMALL]
        if len(small) > 1:
            rest = [entry for entry in manifest.segments if entry not in small]
            for group in _groups(small):
                rest += self._merged(group) if len(group) > 1 else group
            manifest = self._publish(old, rest, old.revision)
        return manifest

    def _merged_small(self, segments: list[SegmentEntry]) -> list[SegmentEntry]:
        small = [entry for entry in segments if entry.size < SMALL]
        if len(small) <= MANY:
            return segments
        group = next((group for group in _groups(small) if len(group) > 1), [])
        rest = [entry for entry in segments if entry not in group]
        return [*rest, *self._merged(group)] if group else segments

    def _merged(self, entries: Sequence[SegmentEntry]) -> list[SegmentEntry]:
        """One segment of what is left of these, or none when nothing is."""
        parts = [
            (Segment(self._folder, e.name), {lv: ~e.dead(lv) for lv in LEVELS}) for e in entries
        ]
        counts = {level: sum(int(a[level].sum()) for _, a in parts) for level in LEVELS}
        try:
            if not any(counts.values()):
                return []
            columns = keyword_merge.columns(parts, self._level_of)
            return [self._write(keyword_merge.blocks(parts, self._level_of), columns, counts)]
        finally:
            for segment, _ in parts:
                segment.close()

    def _without_gone(self, entry: SegmentEntry) -> SegmentEntry:
        if not any(self._gone.values()):
            return entry
        ids = keyword_shelf.ids(self._folder, entry.name)
        dead = {}
        for level in LEVELS:
            gone = np.fromiter(self._gone[level], dtype=np.int64, count=len(self._gone[level]))
            dead[level] = entry.dead(level) | np.isin(ids[level], gone)
        return keyword_shelf.without(entry, dead)

    def _without_void(self, at: int, entry: SegmentEntry) -> SegmentEntry:
        dead = {level: entry.dead(level) for level in LEVELS}
        for level in LEVELS:
            dead[level][self._void[level].get(at, [])] = True
        return keyword_shelf.without(entry, dead)


def _groups(entries: Sequence[SegmentEntry]) -> list[list[SegmentEntry]]:
    """Smallest first, as many together as one commit may rewrite and one segment may hold."""
    groups: list[list[SegmentEntry]] = [[]]
    for entry in sorted(entries, key=lambda entry: entry.size):
        if groups[-1] and not _fit([*groups[-1], entry]):
            groups.append([])
        groups[-1].append(entry)
    return groups


def _fit(entries: Sequence[SegmentEntry]) -> bool:
    held = [sum(entry.documents.get(level, 0) for entry in entries) for level in LEVELS]
    return sum(entry.size for entry in entries) <= MERGED and max(held) <= LIMIT
