"""Words: a keyword index follows the catalogue, from whatever revision it reflects.

Works for the keyword index and for the code index, which differ in what they take of a passage.
Changes are committed a page at a time, in the order of revisions, and each commit is stamped with
the revision it has reached: a run that is stopped goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from ragvault.ports import KeywordIndex
from ragvault.store.catalogue import Catalogue
from ragvault.store.read import Passage
from ragvault.types import KeywordNote, KeywordPassage, Note

PAGE = 5_000  # passages between two commits: about 30 MB of text and postings
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Taking:
    """What an index takes of a note and of a passage; None is nothing."""

    note: Callable[[int, Note], KeywordNote] | None
    passage: Callable[[Passage], KeywordPassage | None]


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
        index.remove(catalogue.removed_notes_since(since), catalogue.removed_since(since))
        if taking.note:
            _put_notes(index, catalogue, taking.note, since)
        taken = _put_passages(index, catalogue, taking, since, tell)
        index.commit(now)
    return taken


def _put_notes(
    index: KeywordIndex, catalogue: Catalogue, take: Callable[[int, Note], KeywordNote], since: int
) -> None:
    for page in _pages(catalogue.notes_since(since), PAGE):
        index.put([take(note_id, catalogue.note(path)) for note_id, path in page], [])


def _put_passages(
    index: KeywordIndex,
    catalogue: Catalogue,
    taking: Taking,
    since: int,
    tell: Callable[[int, int], None],
) -> int:
    wanted = catalogue.chunks_since(since)
    done = taken = 0
    for page in _pages(wanted, PAGE):
        found = catalogue.passages([chunk.id for chunk in page])
        words = [taking.passage(passage) for passage in found.values()]
        index.put([], [passage for passage in words if passage])
        taken += sum(passage is not None for passage in words)
        done += len(page)
        if done < len(wanted):
            index.commit(wanted[done].revision - 1)  # ids grow with revisions: all before is there
        tell(done, len(wanted))
    return taken


def _pages(items: Sequence[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page
