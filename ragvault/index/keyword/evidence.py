"""Evidence: how much of a query a passage and its note hold, counted by our own analyzer.

The same for every engine: an engine says what it found and how it scores it, and the texts of the
candidates say what of the query is in them. Each term weighs its rarity, a guessed spelling half.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragvault.index.keyword.fields import CODE
from ragvault.text.analyze import STEM, Analyzer

if TYPE_CHECKING:
    from ragvault.plan import Covered, KeywordNote, KeywordPassage

NEAR_COVERS = 0.5  # how much of a word a guessed spelling covers


class Coverage:
    """Counts coverage for the candidates of one query; what a note holds is looked at once."""

    def __init__(self, terms: Sequence[Covered], analyzers: Mapping[str, Analyzer]) -> None:
        self._terms, self._analyzers = terms, analyzers
        self._whole = sum(term.weight for term in terms if not term.near) or 1.0
        self._wanted = {term.term for term in terms}
        self._fields = {term.field for term in terms}
        # A word begins like its stem, but for short ones (dying, die): few words are analyzed.
        bare = {term.removeprefix(STEM) for term in self._wanted}
        starts = {term[: 3 if len(term) > 3 else 1] for term in bare}
        self._may_hold = re.compile("|".join(map(re.escape, starts)), re.IGNORECASE).search
        self._of_notes: dict[int, dict[str, set[str]]] = {}
        self._runs: dict[str, tuple[set[str], dict[str, frozenset[str]]]] = {}

    def of(self, passage: KeywordPassage, note: KeywordNote) -> float:
        """The share of the query that a passage and its note hold, from 0 to 1."""
        if note.id not in self._of_notes:
            self._of_notes[note.id] = self._held(note.fields)
        own, of_note = self._held(passage.fields), self._of_notes[note.id]
        found = 0.0
        for term in self._terms:
            if term.term in own.get(term.field, ()) or term.term in of_note.get(term.field, ()):
                found += term.weight * (NEAR_COVERS if term.near else 1.0)
        return min(found / self._whole, 1.0)

    def _held(self, fields: Mapping[str, tuple[str, ...]]) -> dict[str, set[str]]:
        """The terms of the query in each field; those in any but code under the empty name."""
        held: dict[str, set[str]] = {}
        for name, texts in fields.items():
            if name not in self._fields and ("" not in self._fields or name == CODE):
                continue
            analyzer = self._analyzers.get(name) or self._analyzers[""]
            terms = self._terms_in(texts, analyzer)
            held[name] = terms
            if name != CODE:
                held[""] = held.get("", set()) | terms
        return held

    def _terms_in(self, texts: Sequence[str], analyzer: Analyzer) -> set[str]:
        """The terms of the query that stand in some texts. Most words of a vault come again."""
        seen, holding = self._runs.setdefault(analyzer.name, (set(), {}))
        runs = {run for text in texts for run in analyzer.runs(text)}
        for run in runs - seen:
            if run.isascii() and not self._may_hold(run):
                continue
            if held := analyzer.run_terms(run) & self._wanted:
                holding[run] = held
        seen |= runs
        return {term for run in runs & holding.keys() for term in holding[run]}
