"""The answer to one search: everything that JSON, text and other formats print.

    CorpusResponse   what one vault's search found, and what each step returned (search.py)
    SearchAnswer     results in order, the vaults they come from, warnings
    VaultAnswer      what one vault returned, with matches and how fresh its index is
    SearchResult     one result and its vault

Values only: vaults.py has read whatever needs an open index or a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ragvault.answer.match import Match
from ragvault.answer.snippet import Snippet
from ragvault.answer.suggest import Unmet
from ragvault.candidate import Candidate, LegRun, Ranked
from ragvault.config.settings import Config, Walk
from ragvault.plan import QueryPlan
from ragvault.rank.pipeline import Outcome, outcome_of
from ragvault.types import Date


@dataclass(frozen=True, slots=True)
class CorpusResponse:
    """What was found in one vault, and everything that was done to find it.

    `failed` names the legs and parts that failed, with the reason; `warnings` are sentences for
    the reader. `stages` is what each stage of the ranking returned. `tiers` are those of passages.
    `stale` are passages whose file has changed since it was indexed. `likely` is false if nothing
    here is likely to answer: then `results` has at most the closest five. `plans` has the plan of
    each query if there are several; `plan` is the first.
    """

    plan: QueryPlan
    results: tuple[Candidate, ...]
    likely: bool
    stages: tuple[Outcome, ...]
    runs: tuple[LegRun, ...]
    tiers: Mapping[int, str]
    tier: str
    revision: int
    failed: Mapping[str, str]
    warnings: tuple[str, ...]
    took_ms: float
    stale: frozenset[int] = frozenset()
    plans: tuple[QueryPlan, ...] = ()

    def plan_of(self, candidate: Candidate) -> QueryPlan:
        """The plan of the first query that found a candidate."""
        return self.plans[candidate.queries[0]] if candidate.queries else self.plan

    def queries_of(self, candidate: Candidate) -> tuple[str, ...]:
        """The queries that found a candidate; empty if there is only one query."""
        return tuple(self.plans[place].query for place in candidate.queries)

    def stage(self, name: str) -> Ranked:
        """What the stage of this name returned. Raises KeyError if it did not run."""
        return outcome_of(name, self.stages)


@dataclass(frozen=True, slots=True)
class VaultAnswer:
    """What one vault returned. `pending` is None when the vault's files were not compared."""

    vault: str
    root: Path
    config: Config
    response: CorpusResponse
    pending: int | None
    partial: str  # which part of the index does not cover all notes; empty if none
    unfinished: str  # why notes may never have been indexed; empty if the first run finished
    matches: Mapping[int, Match]  # by the passage's id
    count_tokens: Callable[[str], int] | None = None
    disk_names: Mapping[str, str] = field(default_factory=dict)  # path -> its spelling on disk
    remedy: str = ""  # what an index that is behind needs: see Corpus.remedy
    unmet: tuple[Unmet, ...] = ()  # conditions that no note meets, if nothing was found
    copied: tuple[float, float] | None = None  # when the vault was copied: see Corpus.copied

    @property
    def fresh(self) -> bool | None:
        """Whether the index covers the whole vault as it is now; None if that was not checked."""
        return None if self.pending is None else not self.pending and not self.partial


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result: a ranked candidate and the vault it comes from."""

    answer: VaultAnswer
    candidate: Candidate

    @property
    def path(self) -> Path:
        path = self.candidate.note.path
        return self.answer.root / self.answer.disk_names.get(path, path)

    @property
    def match(self) -> Match:
        return self.answer.matches[self.candidate.id]

    @property
    def snippet(self) -> Snippet:
        return self.match.snippet

    @property
    def line(self) -> int:
        """The line of the file in which the snippet begins."""
        return self.match.line

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings that the match stands under, outermost first."""
        return self.match.headings

    @property
    def date(self) -> Date | None:
        """When the note is from, by which lists are ordered.

        None if only its file's time is known, and that is when the vault was copied or cloned.
        """
        date, copied = self.candidate.note.date, self.answer.copied
        if date and copied and date.source == "mtime" and copied[0] <= date.at <= copied[1]:
            return None
        return date

    @property
    def stale(self) -> bool:
        return self.candidate.id in self.answer.response.stale

    @property
    def uri(self) -> str:
        """A link that opens the note: output.editor if set, else Obsidian's, else file://."""
        answer, note = self.answer, self.candidate.note.path
        place = NotePlace(answer.vault, answer.root, note, self.path, self.line)
        return note_uri(place, answer.config.output.editor)


class NotePlace(NamedTuple):
    """A line of a note: `note` is its path in the vault, `file` its file on disk."""

    vault: str
    root: Path
    note: str
    file: Path
    line: int = 1


def system_may_open(file: Path) -> bool:
    """Whether the file is text to the system; other suffixes of walk.extensions may be programs."""
    return file.suffix.lower() in Walk().extensions


def note_uri(place: NotePlace, template: str = "") -> str:
    """A link that opens a note: by the template if there is one, else Obsidian's, else file://."""
    path = quote(place.file.as_posix())
    values = {
        "path": path,
        "line": str(place.line),
        "vault": quote(place.vault, safe=""),
        "note": quote(place.note),
    }
    if template:
        for name, value in values.items():
            template = template.replace(f"{{{name}}}", value)
        return template
    if (place.root / ".obsidian").is_dir():
        return f"obsidian://open?path={quote(str(place.file), safe='')}"
    return f"file://{path}"


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The results of one search, best first, and the answers of the vaults they come from."""

    results: tuple[SearchResult, ...]
    answers: tuple[VaultAnswer, ...]
    left_out: int = 0
    warnings: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()  # why nothing was found, and what was probably meant

    @property
    def likely(self) -> bool:
        """Whether something here is likely to answer; if not, these are the closest notes."""
        return any(answer.response.likely for answer in self.answers)

    @property
    def several(self) -> bool:
        """Whether more than one vault was searched."""
        return len(self.answers) > 1

    @property
    def exit_code(self) -> int:
        """0 for a good match, 1 for none, 3 if there is none and a leg could not answer."""
        if self.results and self.likely:
            return 0
        # The graph leg does not count: it only adds neighbours of what other legs found.
        failed = (leg for answer in self.answers for leg in answer.response.failed)
        return 3 if any(leg != "graph" for leg in failed) else 1

    def notices(self, watched: Collection[Path] = ()) -> Iterator[str]:
        """What the reader must know beside the results, one line each.

        `watched` are the roots of vaults whose changes are being indexed already.
        """
        for answer in self.answers:
            label = f"{answer.vault}: " if self.several else ""
            for part, why in answer.response.failed.items():
                what = "not reranked" if part == "rerank" else f"{part} did not answer"
                yield f"{label}{what}: {why}"
            if answer.pending:
                remedy = "indexing now" if answer.root in watched else answer.remedy
                yield f"{label}{changed_files(answer.pending)}; {remedy}"
        yield from self.warnings
        if not self.results:
            plan = self.answers[0].response.plan
            what = plan.parse.removesuffix(", newest first")
            yield from self.suggestions or (
                f"no {what}" if plan.listing else f"no results for {what}",
            )
            for answer in self.answers:
                if answer.unfinished:
                    yield f"{answer.vault}: {answer.unfinished}"


def changed_files(number: int) -> str:
    """How many files the index does not reflect, in words."""
    files = "1 file has" if number == 1 else f"{number:,} files have"
    return f"{files} changed since the last index"
