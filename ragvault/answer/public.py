"""What programs get from a search: values with the names of the JSON contract.

    Response   the answer: results in order, and what to know about them
    Result     one result

The fields of a Response are those of `ragvault search --json`, in its order, and its JSON is its
encoding; fields that JSON leaves out are None or empty. Nothing here refers to an open index, so a
Response can be kept, pickled and passed to other threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, overload

from msgspec import Struct
from msgspec.structs import replace

from ragvault.answer.json_output import encode
from ragvault.candidate import LegRun, SectionPlace, Step


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
