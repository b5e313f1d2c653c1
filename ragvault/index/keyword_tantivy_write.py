"""Write: changes on their way into tantivy's two indexes.

    put, remove    into a draft of each level
    hand_over      the drafts go to tantivy's writers, in a thread of its own, and fresh ones begin
    wait           … until they are in the files

tantivy works in Rust and lets Python go on meanwhile: the next draft is filled on one core while
the last one is indexed on the other. Only one is under way at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from ragvault.errors import IndexLocked, disk_full
from ragvault.index.analyze import Analyzer
from ragvault.index.keyword_damage import is_panic
from ragvault.index.keyword_tantivy_draft import Draft, Written
from ragvault.index.keyword_tantivy_files import LEVELS
from ragvault.ports import CacheBroken
from ragvault.sought import KeywordNote, KeywordPassage

HEAP = 100_000_000  # bytes a writer may hold before it writes a segment


class Changes:
    """What has changed in the indexes of a folder, by level, until it is in their files."""

    def __init__(
        self,
        folder: Path,
        indexes: Mapping[str, Any],
        analyzer: Analyzer,
        fields: Mapping[str, Iterable[str]],
    ) -> None:
        self._folder, self._indexes = folder, indexes
        self._written, self._fields = Written(analyzer), fields
        self._writers: dict[str, Any] = {}
        self._drafts = self._no_drafts()
        self._under_way: Future[None] | None = None

    def put(self, notes: Iterable[KeywordNote], passages: Iterable[KeywordPassage]) -> None:
        for note in notes:
            self._drafts["note"].put({"id": note.id}, note.fields)
        for passage in passages:
            ids = {"id": passage.id, "note": passage.note}
            self._drafts["passage"].put(ids, passage.fields)

    def remove(self, notes: Iterable[int], passages: Iterable[int]) -> None:
        self.wait()  # for the writers
        for level, ids in (("note", notes), ("passage", passages)):
            for id_ in ids:
                self._drafts[level].drop(id_)
                self._writer(level).delete_documents_by_term("id", id_)

    def hand_over(self) -> None:
        """Let tantivy begin with what has changed; what is put from now on is another draft."""
        self.wait()
        drafts, self._drafts = self._drafts, self._no_drafts()
        done: Future[None] = Future()

        def run() -> None:
            try:
                self._write(drafts)
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

        self._under_way = done
        Thread(target=run, name="tantivy", daemon=True).start()

    def wait(self) -> None:
        """Until what was handed over is in the files; raises what went wrong with it."""
        if self._under_way:
            done, self._under_way = self._under_way, None
            done.result()

    def close(self) -> None:
        """What was not handed over is gone."""
        if self._under_way:
            self._under_way.exception()
            self._under_way = None
        for writer in self._writers.values():
            writer.rollback()
        self._writers, self._drafts = {}, self._no_drafts()

    def _write(self, drafts: Mapping[str, Draft]) -> None:
        for level in LEVELS:
            if drafts[level]:
                with self._writing():
                    drafts[level].hand_over(self._indexes[level], self._writer(level))
            if level in self._writers:
                writer = self._writers.pop(level)
                with self._writing():
                    writer.commit()
                    writer.garbage_collect_files()
                    writer.wait_merging_threads()

    def _no_drafts(self) -> dict[str, Draft]:
        return {level: Draft(self._written, self._fields[level]) for level in LEVELS}

    def _writer(self, level: str) -> Any:
        if level not in self._writers:
            try:
                self._writers[level] = self._indexes[level].writer(HEAP, 1)
            except ValueError as error:
                raise IndexLocked(self._folder, owner=f"another process ({error})") from error
            # What a killed writer left has the very names that we are going to use.
            with self._writing():
                self._writers[level].garbage_collect_files()
        return self._writers[level]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A full disk is said as such; whatever else tantivy cannot do needs a fresh index."""
        try:
            yield
        except BaseException as error:
            if "No space left" in str(error):
                raise disk_full(self._folder) from error
            if isinstance(error, ValueError) or is_panic(error):
                raise CacheBroken(f"tantivy cannot write it ({error})") from error
            raise
