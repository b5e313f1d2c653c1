"""Verify: compare every result with its file before it is returned.

If all files are as they were indexed, the response is returned unchanged. Otherwise all ranked
candidates are compared, and the last stages (parents, limit, budget) run again on the rest:

    file gone           removed; the next candidate takes its place
    passage moved       the same text is elsewhere in the note: shown with its new lines
    passage edited      a similar passage is there: shown as it is on disk, marked stale.
                        With a filter any passage of a changed note is marked stale, because
                        the note may no longer match the filter
    passage rewritten   nothing similar is left: removed. If the note itself was asked for, by its
                        name, or had no text: its first passage, marked stale
    file unreadable     shown as it was indexed, marked stale

The corpus reads the files; nothing is written.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from msgspec.structs import replace

from ragvault.candidate import (
    Candidate,
    Context,
    Excerpt,
    NoteFacts,
    PassageFacts,
    Ranked,
    Removal,
    best_first,
)
from ragvault.plan import QueryPlan
from ragvault.ports import Corpus, NoteOnDisk
from ragvault.rank.pipeline import SHOWING_STAGES, Outcome, outcome_of, run_stages, stage_name

STAGE = "verify"
SHOWING = tuple(map(stage_name, SHOWING_STAGES))  # the stages that run again
MIN_SIMILARITY = 0.5  # Jaccard similarity of the words; below it, it is another passage
WORD = re.compile(r"\w+")


def verify(
    stages: tuple[Outcome, ...],
    context: Context,
    plan: QueryPlan,
    corpus: Corpus,
    wanted: bool = True,
) -> Verified:
    """The outcomes of the stages, corrected for files that changed. Raises VaultUnreadable."""
    found = Verified(stages, corpus, filtered=plan.filter is not None)
    if not wanted:
        return found
    corpus.check_files()
    results = outcome_of("budget", stages)
    if all(found.on_disk(each.note).state == "same" for each in results):
        return found
    kept = [now for each in _ranked(stages) if (now := found.compare(each))]
    # What was read from disk comes first, then what the corpus has. Both are only read.
    context = replace(
        context,
        sections=ChainMap(found.sections, cast("dict[int, Excerpt]", context.sections)),
        passages=ChainMap(found.excerpts, cast("dict[int, Excerpt]", context.passages)),
    )
    again = run_stages(kept, context, SHOWING_STAGES)[1]
    corpus.load_texts([each.passage for each in outcome_of("limit", again)])
    outcome = Outcome(STAGE, Ranked(tuple(kept), tuple(found.removed)))
    found.stages = (*_ranking_stages(stages), outcome, *again)
    return found


def _ranking_stages(stages: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in stages if outcome.stage not in SHOWING]


def _ranked(stages: Sequence[Outcome]) -> Sequence[Candidate]:
    """The candidates as the ranking left them, before `parents`."""
    ranking = _ranking_stages(stages)
    if ranking:
        return ranking[-1].ranked.kept
    # A list by date is not ranked: its scores give the order.
    first = outcome_of("parents", stages)
    return best_first([*first.kept, *(removal.candidate for removal in first.removed)])


@dataclass(slots=True)
class Verified:
    """What each stage returned once all results are true of the files.

    Compares candidates with their files, best first. Each file is looked at once. `stale` are
    passages that differ from the index; `ids` the ids in the index of passages that were read
    again.
    """

    stages: tuple[Outcome, ...]
    corpus: Corpus
    filtered: bool = False
    removed: list[Removal] = field(default_factory=list)
    stale: set[int] = field(default_factory=set)
    ids: dict[int, int] = field(default_factory=dict)
    sections: dict[int, Excerpt] = field(default_factory=dict)
    excerpts: dict[int, Excerpt] = field(default_factory=dict)
    _seen: dict[str, NoteOnDisk] = field(default_factory=dict)
    _taken: dict[int, Candidate] = field(default_factory=dict)

    def was(self, passage: int) -> int:
        """The id that a passage has in the index: that of a passage that was read again."""
        return self.ids.get(passage, passage)

    def on_disk(self, note: NoteFacts) -> NoteOnDisk:
        if note.path not in self._seen:
            self._seen[note.path] = self.corpus.note_on_disk(note)
        return self._seen[note.path]

    def compare(self, each: Candidate) -> Candidate | None:
        """The candidate as it is on disk now, or None if it was removed."""
        file = self.on_disk(each.note)
        if file.state == "gone":
            self._remove(each, "its file is gone")
            return None
        if file.state == "unreadable":
            self.stale.add(each.id)
        if file.state != "changed":
            return each
        found, same = located(each.passage, file.passages)
        if found is None and _stands_for_note(each):
            found = file.passages[0]
        if found is None:
            self._remove(each, "its note has changed and no longer contains it")
            return None
        return self._placed(each, file, found, same)

    def _placed(
        self, each: Candidate, file: NoteOnDisk, passage: PassageFacts, same: bool
    ) -> Candidate | None:
        self.sections.update(file.sections)
        self.excerpts.update(file.excerpts)
        if passage.id in self._taken:
            self._remove(each, "shown by another passage of its note", self._taken[passage.id])
            return None
        if not same or self.filtered:
            self.stale.add(passage.id)
        self.ids[passage.id] = each.id
        now = replace(each, passage=passage, shown=None, merged=(), cut=False)
        self._taken[passage.id] = now
        return now

    def _remove(self, each: Candidate, reason: str, by: Candidate | None = None) -> None:
        self.removed.append(Removal(each, reason, by))


def _stands_for_note(each: Candidate) -> bool:
    """Whether the note itself is the result, whatever it says: by its name, or without text."""
    return each.exact in ("title", "alias") or each.passage.kind == "properties"


def located(
    wanted: PassageFacts, passages: Sequence[PassageFacts]
) -> tuple[PassageFacts | None, bool]:
    """The passage of the changed note that matches, and whether its text is the same."""
    text = wanted.text.strip()
    if not text:  # the index has changed too, and no longer has this passage
        return None, False
    same = [passage for passage in passages if text in passage.text]
    if same:
        return min(same, key=lambda passage: abs(passage.lines[0] - wanted.lines[0])), True
    words = set(WORD.findall(wanted.text.casefold()))
    best = max(passages, key=lambda passage: _similarity(words, passage), default=None)
    if best is None or _similarity(words, best) < MIN_SIMILARITY:
        return None, False
    return best, False


def _similarity(words: set[str], passage: PassageFacts) -> float:
    """Jaccard similarity of the words."""
    others = set(WORD.findall(passage.text.casefold()))
    return len(words & others) / (len(words | others) or 1)
