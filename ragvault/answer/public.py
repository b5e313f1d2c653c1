"""What programs get from a search: frozen values with the names of the JSON contract.

    Response   the answer: results in order, and what to know about them
    Result     one result

Attributes have the names and values of `ragvault search --json`; lists are tuples. `to_dict()`
returns that JSON as Python objects. Nothing here refers to an open index, so a Response can be
kept, pickled and passed to other threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from ragvault.answer.results import SearchAnswer


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """One result. `note` is its path in the vault, `path` that of the file; lines count from 1.

    `text` is what is shown (by default the section), `passage` the part of it that matched, and
    `snippet` a line or two of that. `score` orders one answer; `confidence` (0 to 1) can be
    compared between answers, and `band` is its word. `queries` are those that found it, if several
    were asked. `also` are other sections of its note that matched, with `headings` and `lines`.
    """

    rank: int
    vault: str
    note: str
    path: Path
    title: str
    headings: tuple[str, ...]
    lines: tuple[int, int]
    text: str
    passage: str
    snippet: str
    line: int
    score: float
    confidence: float | None
    band: str
    kind: str
    tier: str
    stale: bool
    uri: str
    modified: str | None
    legs: Mapping[str, Mapping[str, Any]]
    queries: tuple[str, ...]
    also: tuple[Mapping[str, Any], ...]
    _json: Mapping[str, Any] = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The result as `--json` has it."""
        return dict(deepcopy(self._json))

    def __repr__(self) -> str:
        sure = "" if self.confidence is None else f" {self.band} {self.confidence:.2f}"
        return (
            f"<Result {self.rank} {self.vault}/{self.note}:{self.lines[0]}-{self.lines[1]}{sure}>"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Response:
    """The answer to a search. It is also a sequence of its results.

    `likely` is false if nothing here is likely to answer: then these are the closest few. `parse`
    says in words how the query was understood. `fresh` is whether the index covers the files as
    they are now, `pending` how many it does not; both are None if they were not compared. `failed`
    has the legs that could not answer, with the reason.
    """

    query: str
    queries: tuple[str, ...]
    vaults: tuple[str, ...]
    results: tuple[Result, ...]
    likely: bool
    parse: str
    tier: str
    fresh: bool | None
    pending: int | None
    left_out: int
    failed: Mapping[str, str]
    warnings: tuple[str, ...]
    took_ms: float
    _json: Mapping[str, Any] = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The answer as `--json` has it."""
        return dict(deepcopy(self._json))

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


def public_response(answer: SearchAnswer, *, explain: bool = False) -> Response:
    """An answer as programs get it; with `explain`, `to_dict()` has the steps of every result."""
    from ragvault.answer.json_output import search_dict

    found = search_dict(answer, explain=explain)
    pairs = zip(found["results"], answer.results, strict=True)
    return Response(
        query=found["query"],
        queries=tuple(found.get("queries", (found["query"],))),
        vaults=tuple(found["vaults"]),
        results=tuple(_result(shown, each.path) for shown, each in pairs),
        likely=found["likely"],
        parse=found["plan"]["parse"],
        tier=found["index"]["tier"],
        fresh=found["index"]["fresh"],
        pending=found["index"]["pending"],
        left_out=found["left_out"],
        failed={each["leg"]: each["why"] for each in found["legs_failed"]},
        warnings=tuple(found["warnings"]),
        took_ms=found["took_ms"],
        _json=found,
    )


def _result(found: Mapping[str, Any], path: Path) -> Result:
    first, last = found["lines"]
    same = (
        "rank vault note title text passage snippet line score confidence band kind tier stale uri "
        "modified legs"
    )
    return Result(
        path=path,
        headings=tuple(found["headings"]),
        lines=(first, last),
        queries=tuple(found.get("queries", ())),
        also=tuple(found.get("also", ())),
        _json=found,
        **{name: found[name] for name in same.split()},
    )
