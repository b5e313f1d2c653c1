"""Words: a keyword index follows the catalogue, from whatever revision it reflects.

Works for the keyword index and for the code index, which differ in what they take of a passage.
Changes are committed a page at a time, in the order of revisions, and each commit is stamped with
the revision it has reached: a run that is stopped goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from ragvault.index.code import code_words
from ragvault.index.keyword_fields import note_words, passage_words
from ragvault.plan import Has, Part
from ragvault.ports import KeywordIndex
from ragvault.sought import KeywordNote, KeywordPassage
from ragvault.store.catalogue import Catalogue
from ragvault.store.history import ChunkRef
from ragvault.types import Head, Said

PAGE = 2_000  # passages read at a time
# Passages between two commits, and so in a segment: what compaction rewrites for one deleted note.
# 11,500 passages took 7.1 s of CPU in one segment and 9.2 s in three.
COMMIT = 20_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Taking:
    """What an index takes of a note and of a passage; `has` names what a passage must hold."""

    note: Callable[[int, Head], KeywordNote] | None
    passage: Callable[[Said], KeywordPassage]
    has: Part | None = None


TAKING = {
    "keyword": Taking(note_words, lambda p: passage_words(p.id, p.note_id, p)),
    "code": Taking(None, lambda p: code_words(p.id, p.note_id, p), has="code"),
}


def follow_words(
    index: KeywordIndex,
    catalogue: Catalogue,
    taking: Taking,
    tell: Callable[[int, int], None] = lambda *_: None,
) -> int:
    """Bring an index up to date; how many passages it took."""
    since = index.revision
    with catalogue.snapshot():
        now = catalogue.revision
        if since == now:
            return 0
        if since:  # an empty one holds nothing that was removed, and nobody may remember what was
            index.remove(catalogue.removed_notes_since(since), catalogue.removed_since(since))
        if taking.note:
            _put_notes(index, catalogue, taking.note, since)
        taken = _put_passages(index, catalogue, taking, since, tell)
        index.commit(now)
    return taken


def _put_notes(
    index: KeywordIndex, catalogue: Catalogue, take: Callable[[int, Head], KeywordNote], since: int
) -> None:
    for page in _pages(catalogue.notes_since(since), PAGE):
        heads = catalogue.heads([note_id for note_id, _ in page])
        index.put([take(head.id, head) for head in heads], [])


def _put_passages(
    index: KeywordIndex,
    catalogue: Catalogue,
    taking: Taking,
    since: int,
    tell: Callable[[int, int], None],
) -> int:
    wanted = _wanted(catalogue, taking, since)
    done = 0
    for page in _pages(wanted, PAGE):
        index.put([], _taken(catalogue, taking, [chunk.id for chunk in page]))
        done += len(page)
        if done < len(wanted) and done % COMMIT == 0:
            # Ids grow with revisions: all before is there.
            index.commit(wanted[done].revision - 1, wait=False)
        tell(done, len(wanted))
    return done


def _wanted(catalogue: Catalogue, taking: Taking, since: int) -> list[ChunkRef]:
    """What is new, and of much of it only what will be taken: reading the rest takes long."""
    wanted = catalogue.chunks_since(since)
    if taking.has is None or len(wanted) <= PAGE:
        return wanted
    kept = catalogue.filtered_passages(Has(taking.has))
    chosen = set() if kept is None else set(kept.tolist())
    return [chunk for chunk in wanted if chunk.id in chosen]


def _taken(catalogue: Catalogue, taking: Taking, ids: Sequence[int]) -> list[KeywordPassage]:
    return [
        taking.passage(passage)
        for passage in catalogue.said(ids)
        if taking.has is None or taking.has in passage.has
    ]


def compact_words(index: KeywordIndex, catalogue: Catalogue, taking: Taking) -> None:
    """Leave no byte of what was removed in the files of an index that is up to date."""

    def read(
        notes: Sequence[int], passages: Sequence[int]
    ) -> tuple[Iterable[KeywordNote], Iterable[KeywordPassage]]:
        take = taking.note
        held = [take(head.id, head) for head in catalogue.heads(notes)] if take else []
        pages = (_taken(catalogue, taking, page) for page in _pages(passages, PAGE))
        return held, (passage for page in pages for passage in page)

    with catalogue.snapshot():
        index.compact(read)


def _pages(items: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page
