"""The answer to one search, as it is before it is written: what text, JSON and other formats show.

    VaultAnswer    what was found in one vault, and everything that was done to find it
    SearchResult   one result and its vault
    SearchAnswer   results in order, the vaults they come from, warnings
    Response       the same for programs, with the names of the JSON contract; Result is one result
    respond        makes it of a SearchAnswer

Values only: vaults.py has read whatever needs an open index or a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, overload
from urllib.parse import quote

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragvault.answer.contents import Unmet
from ragvault.answer.match import Match, Snippet
from ragvault.candidate import Candidate, LegRun, Ranked, SectionPlace, Step
from ragvault.config.settings import Config, Walk
from ragvault.plan import QueryPlan
from ragvault.ports import VaultFacts
from ragvault.rank.pipeline import Outcome, outcome_of
from ragvault.text.dates import iso_utc
from ragvault.text.printable import encode
from ragvault.types import TIERS, Date


@dataclass(frozen=True, slots=True)
class VaultAnswer:
    """What was found in one vault, and everything that was done to find it.

    `failed` names the legs and parts that failed, with the reason; `warnings` are sentences for
    the reader. `stages` is what each stage of the ranking returned. `tiers` are those of passages.
    `stale` are passages whose file has changed since it was indexed. `likely` is false if nothing
    here is likely to answer: then `results` has at most the closest five. `plans` has the plan of
    each query if there are several; `plan` is the first.

    The rest is what answer/vaults.py adds. `pending` is None when the vault's files were not
    compared. `count_tokens` is the tokenizer of the loaded model.
    """

    plan: QueryPlan
    config: Config
    results: tuple[Candidate, ...]
    likely: bool
    stages: tuple[Outcome, ...]
    runs: tuple[LegRun, ...]
    tiers: Mapping[int, str]
    facts: VaultFacts
    failed: Mapping[str, str]
    warnings: tuple[str, ...]
    took_ms: float
    stale: frozenset[int] = frozenset()
    plans: tuple[QueryPlan, ...] = ()

    vault: str = ""
    root: Path = Path()
    pending: int | None = None
    partial: str = ""  # which part of the index does not cover all notes; empty if none
    matches: Mapping[int, Match] = field(default_factory=dict)  # by the passage's id
    unmet: tuple[Unmet, ...] = ()  # conditions that no note meets, if nothing was found
    count_tokens: Callable[[str], int] | None = None

    @property
    def fresh(self) -> bool | None:
        """Whether the index covers the whole vault as it is now; None if that was not checked."""
        return None if self.pending is None else not self.pending and not self.partial

    def plan_of(self, candidate: Candidate) -> QueryPlan:
        """The plan of the first query that found a candidate."""
        return self.plans[candidate.queries[0]] if candidate.queries else self.plan

    def stage(self, name: str) -> Ranked:
        """What the stage of this name returned. Raises KeyError if it did not run."""
        return outcome_of(name, self.stages)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result: a ranked candidate and the vault it comes from."""

    answer: VaultAnswer
    candidate: Candidate

    @property
    def path(self) -> Path:
        return self.answer.root / self.candidate.note.disk

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
        date, copied = self.candidate.note.date, self.answer.facts.copied
        if date and copied and date.source == "mtime" and copied[0] <= date.at <= copied[1]:
            return None
        return date

    @property
    def stale(self) -> bool:
        return self.candidate.id in self.answer.stale

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
        return any(answer.likely for answer in self.answers)

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
        failed = (leg for answer in self.answers for leg in answer.failed)
        return 3 if any(leg != "graph" for leg in failed) else 1

    def notices(self, watched: Collection[Path] = ()) -> Iterator[str]:
        """What the reader must know beside the results, one line each.

        `watched` are the roots of vaults whose changes are being indexed already.
        """
        for answer in self.answers:
            label = f"{answer.vault}: " if self.several else ""
            for part, why in answer.failed.items():
                what = "not reranked" if part == "rerank" else f"{part} did not answer"
                yield f"{label}{what}: {why}"
            if answer.pending:
                remedy = "indexing now" if answer.root in watched else answer.facts.remedy
                yield f"{label}{changed_files(answer.pending)}; {remedy}"
        yield from self.warnings
        if not self.results:
            plan = self.answers[0].plan
            what = plan.parse.removesuffix(", newest first")
            yield from self.suggestions or (
                f"no {what}" if plan.listing else f"no results for {what}",
            )
            for answer in self.answers:
                if answer.facts.unfinished:
                    yield f"{answer.vault}: {answer.facts.unfinished}"


def changed_files(number: int) -> str:
    """How many files the index does not reflect, in words."""
    files = "1 file has" if number == 1 else f"{number:,} files have"
    return f"{files} changed since the last index"


# --- The same for programs ---
# The fields of a Response are those of `ragvault search --json`, in its order, and its JSON is its
# encoding; fields that JSON leaves out are None or empty. Nothing here refers to an open index, so
# a Response can be kept, pickled and passed to other threads.


class LegPlace(Struct, frozen=True):
    """The place of a result in the list of a leg, and its score there; None if it has none."""

    rank: int
    score: float | None


class Result(Struct, frozen=True, omit_defaults=True):
    """One result. `note` is its path in the vault, `path` that of the file; lines count from 1.

    `text` is what is shown (by default the section), `passage` the part of it that matched, and
    `snippet` a line or two of that. `score` orders one answer; `confidence` (0 to 1) can be
    compared between answers, and `band` is its word. `date` is what lists are ordered by. `queries`
    are those that found it, if several were asked. `also` are other sections of its note that
    matched. `steps` explain the score. `path` is not in JSON.
    """

    rank: int
    vault: str
    note: str
    title: str
    headings: tuple[str, ...]
    lines: tuple[int, int]
    score: float
    confidence: float | None
    band: str
    kind: str
    tier: str
    stale: bool
    text: str
    passage: str
    snippet: str
    line: int
    uri: str
    date: str | None
    modified: str | None
    legs: dict[str, LegPlace]
    queries: tuple[str, ...] = ()
    also: tuple[SectionPlace, ...] = ()
    steps: tuple[Step, ...] | None = None
    path: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """The result as `--json` has it."""
        found: dict[str, Any] = json.loads(encode(replace(self, path=None)))
        return found

    def __repr__(self) -> str:
        sure = "" if self.confidence is None else f" {self.band} {self.confidence:.2f}"
        return (
            f"<Result {self.rank} {self.vault}/{self.note}:{self.lines[0]}-{self.lines[1]}{sure}>"
        )


class PlanShown(Struct, frozen=True):
    """How the query was understood; `parse` says it in words."""

    type: str
    text: str
    filters: Any
    expansions: tuple[str, ...]
    weights: dict[str, float]
    parse: str


class IndexState(Struct, frozen=True):
    """How true an index is of its files: `fresh` and `pending` are None if that is not known."""

    revision: int
    fresh: bool | None
    pending: int | None
    tier: str


class FailedLeg(Struct, frozen=True):
    """A leg, or another part of the search, that could not answer."""

    vault: str
    leg: str
    why: str


class RemovedPassage(Struct, frozen=True):
    """A passage that a stage removed, and the one that is shown instead, as `note:line`."""

    passage: str
    reason: str
    by: str | None


class StageTrace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one stage kept and removed; it names its vault if there are several."""

    vault: str = ""
    stage: str
    kept: int
    removed: tuple[RemovedPassage, ...]


class Response(Struct, frozen=True, omit_defaults=True):
    """The answer to a search. It is also a sequence of its results.

    `likely` is false if nothing here is likely to answer: then these are the closest few. `plan`
    and `index` are those of all vaults together, `indexes` those of each if there are several.
    `queries` are all queries if there are several. `explain` and `legs` are there if asked for.
    """

    query: str
    vaults: tuple[str, ...]
    profile: str
    took_ms: float
    plan: PlanShown
    index: IndexState
    results: tuple[Result, ...]
    likely: bool
    legs_failed: tuple[FailedLeg, ...]
    left_out: int
    warnings: tuple[str, ...]
    queries: tuple[str, ...] | None = None
    indexes: dict[str, IndexState] | None = None
    explain: tuple[StageTrace, ...] | None = None
    legs: tuple[LegRun, ...] | None = None

    @property
    def parse(self) -> str:
        """How the query was understood, in words."""
        return self.plan.parse

    @property
    def tier(self) -> str:
        return self.index.tier

    @property
    def fresh(self) -> bool | None:
        """Whether the index covers the files as they are now; None if they were not compared."""
        return self.index.fresh

    @property
    def pending(self) -> int | None:
        """How many files the index does not cover as they are now."""
        return self.index.pending

    @property
    def failed(self) -> Mapping[str, str]:
        """The legs that could not answer, with the reason."""
        return {each.leg: each.why for each in self.legs_failed}

    def to_json(self) -> str:
        """The answer as `--json` prints it."""
        results = tuple(replace(each, path=None) for each in self.results)
        return encode(replace(self, results=results))

    def to_dict(self) -> dict[str, Any]:
        """The answer as `--json` has it."""
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, at: int) -> Result: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Result, ...]: ...
    def __getitem__(self, at: int | slice) -> Result | tuple[Result, ...]:
        return self.results[at]

    def __repr__(self) -> str:
        shown = self.query if len(self.query) <= 40 else f"{self.query[:39]}…"
        return f"<Response {shown!r}: {len(self.results)} results in {', '.join(self.vaults)}>"


def respond(answer: SearchAnswer, *, explain: bool = False) -> Response:
    """An answer as programs get it; with `explain`, with the steps of every result."""
    answers, first = answer.answers, answer.answers[0]
    failed = [FailedLeg(each.vault, *leg) for each in answers for leg in each.failed.items()]
    return Response(
        query=first.plan.query,
        vaults=tuple(each.vault for each in answers),
        profile=first.config.search.profile,
        took_ms=round(sum(each.took_ms for each in answers), 1),
        plan=_plan(answer),
        index=_index_of_all(answer),
        results=tuple(_result(*pair, explain) for pair in enumerate(answer.results, 1)),
        likely=answer.likely,
        legs_failed=tuple(failed),
        left_out=answer.left_out,
        warnings=(*answer.warnings, *answer.suggestions),
        queries=tuple(plan.query for plan in first.plans) or None,
        indexes={each.vault: _index(each) for each in answers} if answer.several else None,
        explain=tuple(_stages(answer)) if explain else None,
        legs=tuple(_legs(answer)) if explain else None,
    )


def _result(rank: int, result: SearchResult, explain: bool) -> Result:
    each, answer = result.candidate, result.answer
    return Result(
        rank=rank,
        vault=answer.vault,
        note=each.note.path,
        title=each.note.title,
        headings=result.headings,
        lines=each.lines,
        score=each.score,
        confidence=each.confidence,
        band=each.band,
        kind=each.passage.kind,
        tier=answer.tiers.get(each.id, "keyword"),
        stale=result.stale,
        text=each.text,
        passage=each.passage.text,
        snippet=result.snippet.text,
        line=result.line,
        uri=result.uri,
        date=None if result.date is None else iso_utc(result.date.at),
        modified=iso_utc(each.note.modified),
        legs={leg: LegPlace(place, each.scores.get(leg)) for leg, place in each.ranks.items()},
        queries=tuple(answer.plans[place].query for place in each.queries),
        also=each.also,
        steps=each.steps if explain else None,
        path=result.path,
    )


def _plan(answer: SearchAnswer) -> PlanShown:
    from ragvault.query.restate import filter_json

    plan = answer.answers[0].plan
    terms = [expansion.term for each in answer.answers for expansion in each.plan.expansions]
    return PlanShown(
        plan.type,
        plan.text,
        filter_json(plan.filter),
        tuple(dict.fromkeys(terms)),
        dict(plan.weights),
        plan.parse,
    )


def _index(answer: VaultAnswer) -> IndexState:
    return IndexState(answer.facts.revision, answer.fresh, answer.pending, answer.facts.tier)


def _index_of_all(answer: SearchAnswer) -> IndexState:
    """The newest revision, the lowest tier and the sum of what is pending."""
    each = list(map(_index, answer.answers))
    counts = [one.pending for one in each if one.pending is not None]
    compared = len(counts) == len(each)
    tiers: Sequence[str] = TIERS
    return IndexState(
        max(one.revision for one in each),
        all(one.fresh for one in each) if compared else None,
        sum(counts) if compared else None,
        min((one.tier for one in each), key=tiers.index),
    )


def _stages(answer: SearchAnswer) -> Iterator[StageTrace]:
    """What each stage kept and removed, vault by vault."""
    for each in answer.answers:
        for outcome in each.stages:
            removed = (
                RemovedPassage(
                    _place(gone.candidate), gone.reason, _place(gone.by) if gone.by else None
                )
                for gone in outcome.ranked.removed
            )
            yield StageTrace(
                vault=each.vault if answer.several else "",
                stage=outcome.stage,
                kept=len(outcome.ranked),
                removed=tuple(removed),
            )


def _legs(answer: SearchAnswer) -> Iterator[LegRun]:
    """When each leg ran, in seconds since retrieval began, and how many hits it had."""
    for each in answer.answers:
        vault = each.vault if answer.several else UNSET
        yield from (replace(run, vault=vault) for run in each.runs)


def _place(candidate: Candidate) -> str:
    return f"{candidate.note.path}:{candidate.lines[0]}"
