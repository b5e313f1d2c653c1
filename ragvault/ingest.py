"""The write path.

    vault -> catalogue -> words        the vault can be searched by keyword
                       -> static       … and by meaning, roughly: seconds for a whole vault
                       -> links        backlinks, communities
                       -> full         … and by meaning, well: minutes to hours

Each step follows the one before it from wherever it was left, so that a run may be stopped at any
moment: the next one goes on from there and ends with the same index. The catalogue is the truth,
and everything after it can be made again without embedding a text twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from ragvault.config import Config
from ragvault.engines import Engines
from ragvault.errors import ModelUnavailable
from ragvault.index.code import code_words
from ragvault.index.keyword_fields import note_words, passage_words
from ragvault.store.catalogue import Catalogue
from ragvault.store.read import Passage
from ragvault.types import KeywordPassage
from ragvault.write.graph import follow_links
from ragvault.write.meanings import embed, follow_vectors
from ragvault.write.notes import Report, Tell, follow_notes, remember
from ragvault.write.words import Taking, follow_words

Tier = Literal["keyword", "static", "full"]
Say = Callable[[str], None]

WORDS = Taking(note_words, lambda p: passage_words(p.id, p.note_id, p.chunk))


def ingest(
    root: Path,
    catalogue: Catalogue,
    engines: Engines,
    tier: Tier = "full",
    *,
    tell: Tell = lambda *_: None,
    say: Say = lambda _: None,
) -> Report:
    """Bring the index up to date with the vault. The caller holds the writer's lock."""
    began, config = time.perf_counter(), engines.config
    report = follow_notes(root, catalogue, config, tell)
    engines.own(catalogue)
    _words(catalogue, engines, config, tell)
    report.tier = "keyword"
    if report.anything:
        say("searchable now, by keyword")
    try:
        if tier != "keyword":
            _static(catalogue, engines, config, report, tell, say)
        follow_links(catalogue, config.graph)
        if tier == "full":
            _full(catalogue, engines, report, tell, say)
    except ModelUnavailable as missing:
        # Without the weights the vault is searched by what it has; a later run adds the rest.
        report.warnings = (*report.warnings, f"{missing} (fix: {missing.fix})")
    report.seconds = time.perf_counter() - began
    remember(catalogue, report)
    return report


def _words(catalogue: Catalogue, engines: Engines, config: Config, tell: Tell) -> None:
    indexes = [("indexing words", engines.keyword(write=True), WORDS)]
    if config.code.enabled:
        indexes.append(("indexing code", engines.code(write=True), Taking(None, _code)))
    for what, index, taking in indexes:
        try:
            follow_words(index, catalogue, taking, lambda done, all_, w=what: tell(w, done, all_))
        finally:
            index.close()


def _code(passage: Passage) -> KeywordPassage | None:
    chunk = passage.chunk
    return code_words(passage.id, passage.note_id, chunk) if "code" in chunk.has else None


def _static(
    catalogue: Catalogue, engines: Engines, config: Config, report: Report, tell: Tell, say: Say
) -> None:
    """Rough vectors for what has no good one yet."""
    embedder = engines.embedder(config.models.static)
    new = embed(catalogue, embedder, lambda done, all_: tell("embedding (static)", done, all_))
    report.embedded += new
    index = engines.vectors(embedder.name, embedder.dim, catalogue, write=True)
    try:
        follow_vectors(catalogue, index)
    finally:
        index.close()
    catalogue.set_fact("static", embedder.name)
    report.tier = "static"
    if new:
        say("searchable now, by keyword and by meaning (static)")


def _full(catalogue: Catalogue, engines: Engines, report: Report, tell: Tell, say: Say) -> None:
    """The transformer's vectors. Another model takes over when it has read everything."""
    choice = engines.choice(catalogue)
    embedder = engines.embedder(choice.embeds)
    index = engines.vectors(embedder.name, embedder.dim, catalogue, write=True)
    if choice.answers is None:
        catalogue.set_fact("full", embedder.name)
    try:
        new = embed(
            catalogue,
            embedder,
            lambda done, all_: tell("embedding", done, all_),
            lambda: follow_vectors(catalogue, index),
        )
        follow_vectors(catalogue, index)
    finally:
        index.close()
    if choice.answers not in (None, embedder.name):
        catalogue.set_fact("full", embedder.name)
    report.embedded += new
    report.tier = "full"
    if new:
        say("searchable now, by keyword and by meaning")
