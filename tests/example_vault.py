"""A small vault whose legs give the ranks of a worked example, and what `--explain` says of them.

The vector leg looks for BERTH (the hypothesis), the keyword leg for CLAM (the query). A note with
vector rank 3 has the third most of BERTH in its text; one with keyword rank 5 has the fifth most of
CLAM in its description, which is not embedded. No other note has either word.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from vault_kit import ragvault

BERTH, CLAM = "berth", "clam"
NOW = datetime.now(timezone.utc)


@dataclass(frozen=True)
class Wanted:
    """One note: its rank in each leg (0: not found), its links, its age in days, its properties."""

    vector: int = 0
    keyword: int = 0
    links: tuple[str, ...] = ()
    days: float = 90
    properties: str = ""
    body: str = ""


def write_notes(root: Path, notes: Mapping[str, Wanted]) -> None:
    root.mkdir(parents=True)
    for name, wanted in notes.items():
        path = root / f"{name}.md"
        path.write_text(_text(name, wanted), "utf-8")
        written = (NOW - timedelta(days=wanted.days)).timestamp()
        os.utime(path, (written, written))
    assert ragvault("index", root, "-q").code == 0


def _text(name: str, wanted: Wanted) -> str:
    # Of one length: both legs then go by how much of their word a note has.
    many = 18 - 3 * wanted.keyword if wanted.keyword else 0
    words = " ".join([CLAM] * many + [f"x{name}"] * (18 - many))
    body = wanted.body
    if not body:
        berths = round(60 * 0.5**wanted.vector) if wanted.vector else 0
        body = " ".join([BERTH] * berths + [f"{name}{place}" for place in range(8)])
    links = " ".join(f"[[{link}]]" for link in wanted.links)
    return f"---\ndescription: {words}\n{wanted.properties}---\n{body} {links}".rstrip() + "\n"


def explained(
    root: Path,
    *flags: str,
    query: str = CLAM,
    hypothesis: str = BERTH,
    limit: int | None = 50,
) -> Any:
    """The answer of `ragvault search --explain --json`, with these settings."""
    settings = [part for flag in flags for part in ("--set", flag)]
    asked = ["search", query, "--vault", root, "--explain", "--json"]
    asked += [] if limit is None else ["-n", str(limit)]
    hypotheses = ["--hypothesis", hypothesis] if hypothesis else []
    said = ragvault(*asked, *hypotheses, *settings)
    assert said.out, said.err
    return said.json


def ranks(answer: Any) -> dict[str, dict[str, int]]:
    """Note -> leg -> its rank there."""
    return {
        each["note"].removesuffix(".md"): {leg: of["rank"] for leg, of in each["legs"].items()}
        for each in answer["results"]
    }


def step(answer: Any, note: str, stage: str) -> Any:
    """What a stage did to a note."""
    result = next(each for each in answer["results"] if each["note"] == f"{note}.md")
    return next(each for each in result["steps"] if each["stage"] == stage)


def scores(answer: Any, stage: str) -> dict[str, float]:
    """Note -> its score after a stage, best first."""
    found = {}
    for each in answer["results"]:
        done = [s for s in each["steps"] if s["stage"] in ("fuse", stage)]
        found[each["note"].removesuffix(".md")] = done[-1]["score"]
    return found
