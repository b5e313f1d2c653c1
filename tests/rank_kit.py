"""Builders for the tests of ranking: what does not matter to a test has a value already."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st

from ragvault.candidate import Candidate, Context, NoteFacts, PassageFacts
from ragvault.config import profiles
from ragvault.config.settings import Config
from ragvault.types import Date

DAY = 86_400.0
NOW = 1_700_000_000.0


def note(name: str = "a", *, days: float | None = None, **facts: Any) -> NoteFacts:
    """A note; `days` is its age by its name, and by its file."""
    at = None if days is None else NOW - days * DAY
    facts.setdefault("date", None if at is None else Date(at, "name"))
    facts.setdefault("modified", at)
    facts.setdefault("file_time", at)
    return NoteFacts(
        facts.pop("id", int.from_bytes(name.encode(), "big")), f"{name}.md", name, **facts
    )


def candidate(
    name: str = "a",
    *,
    ordinal: int = 0,
    id: int | None = None,  # noqa: A002 - as the field is called
    of: NoteFacts | None = None,
    scores: dict[str, float] | None = None,
    evidence: dict[str, float] | None = None,
    exact: str = "",
    score: float = 0.0,
    passage: dict[str, Any] | None = None,
    **ranks: int,
) -> Candidate:
    """A candidate of the note `name`, found by the legs in `ranks`."""
    facts = of or note(name)
    number = facts.id * 1000 + ordinal if id is None else id
    about: dict[str, Any] = {"section": number, **(passage or {})}
    about["source"] = about.pop("text", f"the text of {name} {ordinal}")
    found = PassageFacts(number, facts, ordinal, **about)
    return Candidate(found, ranks, scores or {}, evidence or {}, exact, score)


def context(profile: str = "plain", /, **more: Any) -> Context:
    """A profile with some settings changed: context("ragdocs", fuse__k=20, limit=3)."""
    changes = {key: value for key, value in more.items() if "__" in key}
    rest = {key: value for key, value in more.items() if "__" not in key}
    rest.setdefault("now", NOW)
    return Context(_settings(profile, json.dumps(changes)), **rest)


@cache
def _settings(profile: str, changes: str) -> Config:
    own = Config() if profile == "plain" else profiles.config(profile)
    tree = msgspec.to_builtins(own)
    for key, value in json.loads(changes).items():
        table, parts = tree, key.split("__")
        for part in parts[:-1]:
            table = table[part]
        assert parts[-1] in table, key
        table[parts[-1]] = value
    return msgspec.convert(tree, Config)


def names(candidates: Any) -> list[str]:
    return [each.note.title for each in candidates]


def ids(candidates: Any) -> list[int]:
    return [each.id for each in candidates]


# A law that is tried for each method or stage need not be tried a hundred times for each.
few = settings(max_examples=settings.default.max_examples // 3)  # for a test that searches
unit = st.floats(0, 1, width=32)
_texts = st.lists(
    st.sampled_from(
        ["red", "green", "blue", "one", "two", "three.", "A list\n- of", "\u00e9t\u00e9"]
    ),
    min_size=1,
    max_size=12,
).map(" ".join)


@st.composite
def pools(draw: Any, most: int = 10, scored: bool = False) -> list[Candidate]:
    """Candidates of a few notes, each leg a proper list: no rank twice."""
    count = draw(st.integers(0, most))
    ranks = {
        leg: draw(st.permutations(range(1, count + 1)))
        for leg in ("name", "vector", "keyword", "graph")
    }
    return [
        _drawn(draw, at, {leg: of[at] for leg, of in ranks.items()}, scored) for at in range(count)
    ]


def _drawn(draw: Any, at: int, ranks: dict[str, int], scored: bool) -> Candidate:
    number = draw(st.integers(0, 4))
    # Facts of a note are the same in all of its passages.
    facts = NoteFacts(
        number,
        f"{number}.md",
        str(number),
        date=Date(NOW - 20 * number * DAY, "name") if number else None,
        modified=NOW - 5 * number * DAY,
        linkers=number * 3,
        links=number * 5,
        community=number % 2,
        importance="high" if number == 3 else "",
        access=number,
    )
    found = {leg: rank for leg, rank in ranks.items() if draw(st.booleans())}
    scores = {"vector": draw(unit), "keyword": 20 * draw(unit)}
    evidence = {name: draw(unit) for name in ("name", "coverage", "passage", "note", "title")}
    exact = draw(st.sampled_from(["", "", "", "title", "alias", "phrase"]))
    passage = PassageFacts(
        at, facts, at, at // 2, ("Overview",), "prose", draw(_texts), (at + 1, at + 1)
    )
    score = draw(unit) if scored else 0.0
    return Candidate(passage, found, scores, evidence, exact, score)
