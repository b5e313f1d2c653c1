"""Verify: no answer shows what is no longer so.

Every file behind a result is looked at as it is returned. Where all are as they were indexed, the
answer stands. Otherwise the candidates before the last stages are looked at, and those stages run
again on what is left of them:

    gone         removed; the next candidate takes its place
    moved        the passage stands in the note word for word: shown from where it is now
    edited       a passage that is mostly the same: shown as it is on disk, and marked stale;
                 so is any of a changed note under a filter, which it may no longer meet
    rewritten    nothing like it is left: removed
    unreadable   shown as it was indexed, and marked stale

Reads notes and writes nothing. What a search does before that is search.py's.
"""

from __future__ import annotations

import re
import time
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from msgspec.structs import replace as changed

from ragvault.candidate import Candidate, Context, Passage, Ranked, Removal, Stretch, best_first
from ragvault.freshness import Disk
from ragvault.library import SECTIONS, blank
from ragvault.opened import Opened
from ragvault.rank.pipeline import SHOWING_STAGES, Outcome, run_stages, stage_name
from ragvault.search import Asked, Response, read_shown
from ragvault.spans import cut
from ragvault.types import Chunk, Section
from ragvault.update.prepare import Prepared

STAGE = "verify"
ALIKE = 0.5  # of the words of both passages: below it, another passage stands there now
WORD = re.compile(r"\w+")


def verified(response: Response, asked: Asked, index: Opened, root: Path) -> Response:
    """The same answer, true of the files as they are now. Raises VaultUnreadable."""
    began = time.perf_counter()
    disk = Disk(root, index.catalogue, index.config)
    if all(disk.look(each.note.path).state == "same" for each in response.results):
        return _timed(response, began)
    review = _Review(disk, filtered=response.plan.filter is not None)
    kept = [now for each in _before(response) if (now := review.now(each))]
    context = _context(asked, response, index, review)
    ranked, stages = run_stages(kept, context, SHOWING_STAGES)
    read_shown(stages)
    outcome = Outcome(STAGE, Ranked(tuple(kept), tuple(review.removed)))
    said = [line for stage in stages for line in stage.ranked.said]
    again_run = {stage_name(stage) for stage in SHOWING_STAGES}
    before = [stage for stage in response.stages if stage.stage not in again_run]
    earlier = [line for name in again_run for line in response.stage(name).said]
    again = replace(
        response,
        results=ranked.kept,
        stages=(*before, outcome, *stages),
        tiers={**response.tiers, **_tiers(response.tiers, review.ids)},
        said=(*(line for line in response.said if line not in earlier), *said),
        stale=frozenset(review.stale),
    )
    return _timed(again, began)


def _timed(response: Response, began: float) -> Response:
    return replace(response, took_ms=response.took_ms + (time.perf_counter() - began) * 1000)


def _before(response: Response) -> Sequence[Candidate]:
    """The candidates as they came to the last three stages."""
    if not response.plan.listing:
        return response.stage("rerank").kept
    # A list by date has no stage before: its order is that of the scores.
    first = response.stage("parents")
    return best_first([*first.kept, *(gone.candidate for gone in first.removed)])


def _context(asked: Asked, response: Response, index: Opened, review: _Review) -> Context:
    library = index.library()
    return Context(
        settings=index.config,
        limit=asked.limit,
        note_length=index.catalogue.median_length(),
        sections=_over(review.sections, library.sections()),
        passages=_over(review.passages, library.stretches()),
        count_tokens=None if response.plan.listing else index.count_tokens(),
    )


def _over(above: dict[int, Stretch], below: Mapping[int, Stretch]) -> Mapping[int, Stretch]:
    """What was read from disk, over what the catalogue has."""
    return ChainMap(above, cast("dict[int, Stretch]", below))  # which is only read


def _tiers(tiers: Mapping[int, str], ids: Mapping[int, int]) -> dict[int, str]:
    return {now: tiers[was] for was, now in ids.items() if was in tiers}


@dataclass(slots=True)
class _Review:
    """Candidates against the disk, one after the other, best first.

    A passage of a changed note gets an id of its own, below 0: that of the note and its place.
    """

    disk: Disk
    filtered: bool = False
    removed: list[Removal] = field(default_factory=list)
    stale: set[int] = field(default_factory=set)
    ids: dict[int, int] = field(default_factory=dict)
    sections: dict[int, Stretch] = field(default_factory=dict)
    passages: dict[int, Stretch] = field(default_factory=dict)
    _taken: dict[int, Candidate] = field(default_factory=dict)

    def now(self, each: Candidate) -> Candidate | None:
        """A candidate as it is now, or None and a removal."""
        look = self.disk.look(each.note.path)
        if look.state == "gone":
            self._remove(each, "its file is gone")
            return None
        if look.state == "unreadable":
            self.stale.add(each.id)
        if look.now is None:
            return each
        if each.id < 0:
            return self._was_blank(each, look.now)
        found, same = located(each.passage, look.now.chunks)
        if found is None:
            self._remove(each, "its note has changed and no longer says this")
            return None
        return self._placed(each, look.now, found, same)

    def _was_blank(self, each: Candidate, now: Prepared) -> Candidate | None:
        """A note that had no passage: its first one now, or the note as it is by now."""
        if now.chunks:
            return self._placed(each, now, now.chunks[0], same=False)
        self.stale.add(each.id)
        note = changed(each.note, title=now.note.title, modified=now.file.mtime_ns / 1e9)
        return changed(each, passage=blank(note, now.note.text), shown=None)

    def _placed(self, each: Candidate, now: Prepared, chunk: Chunk, same: bool) -> Candidate | None:
        self._learn(each.note.id, now)
        id_ = _id(each.note.id, chunk.ordinal)
        if id_ in self._taken:
            self._remove(each, "shown by another passage of its note", self._taken[id_])
            return None
        if not same or self.filtered:
            self.stale.add(id_)
        self.ids[each.id] = id_
        note = changed(each.note, title=now.note.title, modified=now.file.mtime_ns / 1e9)
        passage = Passage(
            id_,
            note,
            chunk.ordinal,
            note.id * SECTIONS + chunk.section,
            chunk.headings,
            chunk.kind,
            chunk.text,
            chunk.lines,
            chunk.subheadings,
        )
        self._taken[id_] = changed(each, passage=passage, shown=None, merged=(), cut=False)
        return self._taken[id_]

    def _remove(self, each: Candidate, reason: str, by: Candidate | None = None) -> None:
        self.removed.append(Removal(each, reason, by))

    def _learn(self, note: int, now: Prepared) -> None:
        """Sections and passages of a changed note, for the stages that show them."""
        if _id(note, 0) in self.passages:
            return
        text, excluded = now.note.text, now.note.excluded
        ids = [_id(note, chunk.ordinal) for chunk in now.chunks]
        self.passages.update(_strung(ids, [chunk.text for chunk in now.chunks], now.chunks))
        ids = [note * SECTIONS + section.ordinal for section in now.sections]
        says = [cut(text, part.start, part.end, excluded) for part in now.sections]
        self.sections.update(_strung(ids, says, now.sections))


def _strung(
    ids: Sequence[int], texts: Sequence[str], parts: Sequence[Section | Chunk]
) -> dict[int, Stretch]:
    """Parts of a note that know their neighbours."""
    before, after = [None, *ids[:-1]], [*ids[1:], None]
    rows = zip(ids, texts, parts, before, after, strict=True)
    return {
        id_: Stretch(id_, text, part.lines, part.headings, first, last)
        for id_, text, part, first, last in rows
    }


def _id(note: int, ordinal: int) -> int:
    return -(note * SECTIONS + ordinal) - 1


def located(passage: Passage, chunks: Sequence[Chunk]) -> tuple[Chunk | None, bool]:
    """Where a passage stands among those of its note now, and whether it says the very same."""
    said = passage.text.strip()
    if not said:  # the index has changed as well, and has it no longer
        return None, False
    same = [chunk for chunk in chunks if said in chunk.text]
    if same:
        return min(same, key=lambda chunk: abs(chunk.lines[0] - passage.lines[0])), True
    words = set(WORD.findall(passage.text.casefold()))
    best = max(chunks, key=lambda chunk: _alike(words, chunk), default=None)
    if best is None or _alike(words, best) < ALIKE:
        return None, False
    return best, False


def _alike(words: set[str], chunk: Chunk) -> float:
    """How many of the words of both are words of each."""
    others = set(WORD.findall(chunk.text.casefold()))
    return len(words & others) / (len(words | others) or 1)
