"""Verify: compare every result with its file before it is returned.

If all files are as they were indexed, the response is returned unchanged. Otherwise all ranked
candidates are compared, and the last stages (parents, limit, budget) run again on the rest:

    file gone           removed; the next candidate takes its place
    passage moved       the same text is elsewhere in the note: shown with its new lines
    passage edited      a similar passage is there: shown as it is on disk, marked stale.
                        With a filter any passage of a changed note is marked stale, because
                        the note may no longer match the filter
    passage rewritten   nothing similar is left: removed
    file unreadable     shown as it was indexed, marked stale

Reads notes and writes nothing.
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

from ragvault.answer.freshness import Disk
from ragvault.candidate import (
    Candidate,
    Context,
    PassageFacts,
    Ranked,
    Removal,
    Stretch,
    best_first,
)
from ragvault.library import SECTIONS, blank
from ragvault.opened import Opened
from ragvault.rank.pipeline import SHOWING_STAGES, Outcome, run_stages, stage_name
from ragvault.search import Asked, Response, read_shown
from ragvault.text.spans import cut
from ragvault.types import Passage, Section
from ragvault.update.prepare import Prepared

STAGE = "verify"
SHOWING = tuple(map(stage_name, SHOWING_STAGES))  # the stages that run again
SIMILAR = 0.5  # Jaccard similarity of the words; below it, it is another passage
WORD = re.compile(r"\w+")


def verified(response: Response, asked: Asked, index: Opened, root: Path) -> Response:
    """The response, corrected for files that changed. Raises VaultUnreadable."""
    began = time.perf_counter()
    disk = Disk(root, index.catalogue, index.config)
    if all(disk.look(each.note.path).state == "same" for each in response.results):
        return _timed(response, began)
    review = _Review(disk, filtered=response.plan.filter is not None)
    kept = [now for each in _ranked(response) if (now := review.now(each))]
    context = _context(asked, response, index, review)
    ranked, stages = run_stages(kept, context, SHOWING_STAGES)
    read_shown(stages)
    outcome = Outcome(STAGE, Ranked(tuple(kept), tuple(review.removed)))
    said = [line for stage in stages for line in stage.ranked.said]
    earlier = [line for name in SHOWING for line in response.stage(name).said]
    again = replace(
        response,
        results=ranked.kept,
        stages=(*_ranking_stages(response), outcome, *stages),
        tiers={**response.tiers, **_tiers(response.tiers, review.ids)},
        said=(*(line for line in response.said if line not in earlier), *said),
        stale=frozenset(review.stale),
    )
    return _timed(again, began)


def _timed(response: Response, began: float) -> Response:
    return replace(response, took_ms=response.took_ms + (time.perf_counter() - began) * 1000)


def _ranking_stages(response: Response) -> list[Outcome]:
    return [outcome for outcome in response.stages if outcome.stage not in SHOWING]


def _ranked(response: Response) -> Sequence[Candidate]:
    """The candidates as the ranking left them, before `parents`."""
    ranking = _ranking_stages(response)
    if ranking:
        return ranking[-1].ranked.kept
    # A list by date is not ranked: its scores give the order.
    first = response.stage("parents")
    return best_first([*first.kept, *(removal.candidate for removal in first.removed)])


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
    """What was read from disk first, then what the catalogue has."""
    return ChainMap(above, cast("dict[int, Stretch]", below))  # only read, never written


def _tiers(tiers: Mapping[int, str], ids: Mapping[int, int]) -> dict[int, str]:
    return {now: tiers[was] for was, now in ids.items() if was in tiers}


@dataclass(slots=True)
class _Review:
    """Compares candidates with their files, best first.

    A passage of a changed note is not in the catalogue, so it gets a negative id made of its note's
    id and its position.
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
        """The candidate as it is on disk now, or None if it was removed."""
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
        found, same = located(each.passage, look.now.passages)
        if found is None:
            self._remove(each, "its note has changed and no longer contains it")
            return None
        return self._placed(each, look.now, found, same)

    def _was_blank(self, each: Candidate, now: Prepared) -> Candidate | None:
        """A note that had no passage: its first passage now, or still none."""
        if now.passages:
            return self._placed(each, now, now.passages[0], same=False)
        self.stale.add(each.id)
        note = changed(each.note, title=now.note.title, modified=now.file.mtime_ns / 1e9)
        return changed(each, passage=blank(note, now.note.text), shown=None)

    def _placed(
        self, each: Candidate, now: Prepared, passage: Passage, same: bool
    ) -> Candidate | None:
        self._keep(each.note.id, now)
        id_ = _id(each.note.id, passage.ordinal)
        if id_ in self._taken:
            self._remove(each, "shown by another passage of its note", self._taken[id_])
            return None
        if not same or self.filtered:
            self.stale.add(id_)
        self.ids[each.id] = id_
        note = changed(each.note, title=now.note.title, modified=now.file.mtime_ns / 1e9)
        facts = PassageFacts(
            id_,
            note,
            passage.ordinal,
            note.id * SECTIONS + passage.section,
            passage.headings,
            passage.kind,
            passage.text,
            passage.lines,
            passage.subheadings,
        )
        self._taken[id_] = changed(each, passage=facts, shown=None, merged=(), cut=False)
        return self._taken[id_]

    def _remove(self, each: Candidate, reason: str, by: Candidate | None = None) -> None:
        self.removed.append(Removal(each, reason, by))

    def _keep(self, note: int, now: Prepared) -> None:
        """Keep the sections and passages of a changed note, for the stages that run again."""
        if _id(note, 0) in self.passages:
            return
        text, excluded = now.note.text, now.note.excluded
        ids = [_id(note, passage.ordinal) for passage in now.passages]
        self.passages.update(
            _with_neighbours(ids, [passage.text for passage in now.passages], now.passages)
        )
        ids = [note * SECTIONS + section.ordinal for section in now.sections]
        texts = [cut(text, part.start, part.end, excluded) for part in now.sections]
        self.sections.update(_with_neighbours(ids, texts, now.sections))


def _with_neighbours(
    ids: Sequence[int], texts: Sequence[str], parts: Sequence[Section | Passage]
) -> dict[int, Stretch]:
    """Parts of a note by id, each with the ids of its neighbours."""
    before, after = [None, *ids[:-1]], [*ids[1:], None]
    rows = zip(ids, texts, parts, before, after, strict=True)
    return {
        id_: Stretch(id_, text, part.lines, part.headings, first, last)
        for id_, text, part, first, last in rows
    }


def _id(note: int, ordinal: int) -> int:
    return -(note * SECTIONS + ordinal) - 1


def located(wanted: PassageFacts, passages: Sequence[Passage]) -> tuple[Passage | None, bool]:
    """The passage of the changed note that matches, and whether its text is the same."""
    text = wanted.text.strip()
    if not text:  # the index has changed too, and no longer has this passage
        return None, False
    same = [passage for passage in passages if text in passage.text]
    if same:
        return min(same, key=lambda passage: abs(passage.lines[0] - wanted.lines[0])), True
    words = set(WORD.findall(wanted.text.casefold()))
    best = max(passages, key=lambda passage: _similarity(words, passage), default=None)
    if best is None or _similarity(words, best) < SIMILAR:
        return None, False
    return best, False


def _similarity(words: set[str], passage: Passage) -> float:
    """Jaccard similarity of the words."""
    others = set(WORD.findall(passage.text.casefold()))
    return len(words & others) / (len(words | others) or 1)
