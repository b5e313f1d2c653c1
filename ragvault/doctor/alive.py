"""Alive: does each leg find, and does each signal of the ranking move anything, on this vault?

`signals` takes any queries and tells what fired in the search of each: the legs that found
something, the boosts that changed a score, names that were met exactly, terms that were added. It
reads them from the response, which is what ranked the results. The queries of `probes` are made
of the vault's own words, a few for each signal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from ragvault.config import Config
from ragvault.doctor.findings import Finding, fine
from ragvault.opened import Opened
from ragvault.plan import Has
from ragvault.retrieve.neighbours import SEEDS
from ragvault.search import Asked, Response, search
from ragvault.store.catalogue import Catalogue

LEGS = ("vector", "keyword", "code", "graph")
SIGNALS = (*LEGS, "aliases", "backlinks", "recency", "community", "expansion")
EACH = 3  # probes a signal: one note may be odd, three hardly
WORDS = 8  # of a passage: enough to be about something, short enough to be a question
_WORD = re.compile(r"[^\W\d_]{3,}")
_BLOCK = re.compile(r"^[ >]*(?:```|~~~)[^\n]*\n(.*?)(?:```|~~~|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]{3,}\b")


@dataclass(frozen=True, slots=True)
class Fired:
    """In how many of the `asked` searches each signal fired, and which legs failed, and why."""

    asked: int
    times: Mapping[str, int]
    failed: Mapping[str, str]


def signals(queries: Iterable[str], index: Opened, now: datetime) -> Fired:
    """Search for each query and tell what fired."""
    times: Counter[str] = Counter()
    failed: dict[str, str] = {}
    asked = 0
    for query in queries:
        response = search(Asked(query, now), index)
        times.update(set(fired(response)))
        failed.update(response.failed)
        asked += 1
    return Fired(asked, times, failed)


def fired(response: Response) -> Iterator[str]:
    """The signals that one search shows: of its legs, its plan and its candidates."""
    yield from (run.leg for run in response.runs if run.hits)
    if response.plan.expansions:
        yield "expansion"
    for outcome in response.stages:
        if outcome.stage == "boost":
            for each in outcome.ranked:
                yield from (t.name for s in each.steps if s.stage == "boost" for t in s.terms)
                if each.exact == "alias":
                    yield "aliases"


def alive(queries: Iterable[str], index: Opened, now: datetime) -> Iterator[Finding]:
    """Each signal that settings want: alive, without anything to go by here, or dead."""
    found = signals(queries, index, now)
    material, on = has(index), enabled(index.config)
    for signal in SIGNALS:
        yield _finding(signal, found, on.get(signal, False), material.get(signal, ""))


def _finding(signal: str, found: Fired, on: bool, lacks: str) -> Finding:
    if not on:
        return Finding(signal, "note", "is off in your settings")
    if signal in found.failed:
        return Finding(signal, "broken", f"fails: {found.failed[signal]}", "ragvault index")
    times = found.times.get(signal, 0)
    if times:
        return fine(signal, f"fired in {times} of {found.asked} searches for the vault's own words")
    if lacks:
        return Finding(signal, "note", lacks)
    said = f"fired in none of {found.asked} searches for the vault's own words"
    return Finding(signal, "broken", said, "ragvault index --rebuild, and report it if that fails")


def enabled(config: Config) -> dict[str, bool]:
    """Which signals the settings want."""
    boost = config.boost
    return {
        **{leg: leg in config.retrieve.legs for leg in LEGS},
        "code": "code" in config.retrieve.legs and config.code.enabled,
        "aliases": True,
        "backlinks": boost.enabled and boost.backlinks.enabled,
        "recency": boost.enabled and boost.recency.enabled,
        "community": boost.enabled and boost.community.enabled,
        "expansion": config.query.expand.method != "off",
    }


def has(index: Opened) -> dict[str, str]:
    """What a signal lacks on this vault so that its silence is no fault; empty for nothing."""
    catalogue = index.catalogue
    standings = catalogue.standings()
    return {
        "vector": "" if index.tiers and len(index.tiers) else "no passage has a vector",
        "keyword": "" if len(catalogue.chunk_ids()) else "there is no passage",
        "code": "" if _code(catalogue) else "no passage has code with a name in it",
        "graph": _no_graph(len(catalogue.files()), bool(standings)),
        "backlinks": "" if standings else "no note links to another",
        "community": "" if any(p.community is not None for p in standings.values()) else "no links",
        "aliases": "" if _aliases(catalogue) else "no note has an alias",
        "recency": "no result was young or old enough to be moved",
        "expansion": "no word of the vocabulary was near enough to a query",
    }


def _no_graph(notes: int, linked: bool) -> str:
    if not linked:
        return "no note links to another"
    return "" if notes > SEEDS else "the other legs bring every note of so small a vault"


def probes(catalogue: Catalogue) -> list[str]:
    """A few queries for each signal, from the vault itself; each once, in a fixed order."""
    found = [*_texts(catalogue), *_code(catalogue), *_aliases(catalogue), *_linked(catalogue)]
    return list(dict.fromkeys(query for query in found if query))


def _texts(catalogue: Catalogue) -> list[str]:
    """Words of passages from all over the vault."""
    ids = catalogue.chunk_ids()
    some = ids[:: max(1, len(ids) // EACH)][:EACH].tolist()
    return [_words(passage.chunk.text) for passage in catalogue.passages(some).values()]


def _code(catalogue: Catalogue) -> list[str]:
    """Names that stand in code, the longest of each block: the shorter ones are keywords."""
    ids = catalogue.kept_passages(Has("code"))
    some = [] if ids is None else ids[: EACH * 10].tolist()
    texts = [each.chunk.text for each in catalogue.passages(some).values()]
    blocks = [block for text in texts for block in _BLOCK.findall(text)]
    names = [max(found, key=len) for block in blocks if (found := _NAME.findall(block))]
    return names[:EACH]


def _aliases(catalogue: Catalogue) -> list[str]:
    """Aliases that are plain words: others might be read as operators."""
    every = (alias for _, _, aliases in catalogue.names() for alias in aliases)
    plain = (alias for alias in every if _words(alias) == " ".join(alias.split()))
    return [alias for alias, _ in zip(plain, range(EACH), strict=False)]


def _linked(catalogue: Catalogue) -> list[str]:
    """The names of the notes that most others link to: their links are the vault's best."""
    standings = catalogue.standings()
    most = sorted(standings, key=lambda note: (-standings[note].linking_notes, note))[:EACH]
    return [_words(fact.title) for fact in catalogue.facts(most)]


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text)[:WORDS])
