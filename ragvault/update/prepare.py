"""Prepare: one file becomes everything the catalogue keeps of it, before anything is written.

    read -> parse -> chunk -> hash

Depends on the file and the settings alone, so many files are prepared in several processes and
stored in one. A note that was prepared by another recipe (freshness.py) is prepared again, from
the text that is stored.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragvault.config.settings import Config
from ragvault.models.embed import text_key
from ragvault.notes.chunk import chunk, embedding_text
from ragvault.notes.parse import parse
from ragvault.notes.read import Read, read
from ragvault.types import File, Layout, Note, Passage, Section, Skipped
from ragvault.update.workers import live_with_the_parent, starting

if TYPE_CHECKING:
    from concurrent.futures import Future

MANY = 400  # files: below it, starting processes takes longer than they save
BATCH = 32  # files a process prepares at a time
AHEAD = 3  # batches a process may be ahead of the writer, so that memory stays bounded


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file, read and cut. `hashes` has one for each passage: that of the text to embed.

    `read_ns` is the clock just before the file was read: only what is older than that is known.
    """

    file: File
    read_ns: int
    digest: bytes
    note: Note
    sections: Sequence[Section]
    passages: Sequence[Passage]
    hashes: Sequence[bytes]


def prepare(root: Path, file: File, config: Config) -> Prepared | Skipped:
    """Read one file and cut it."""
    now = time.time_ns()
    found = read(root, file, config.walk.max_bytes)
    return found if isinstance(found, Skipped) else cut(found, config, now)


def cut(found: Read, config: Config, read_ns: int) -> Prepared:
    """The same for a text that is known already."""
    note = parse(
        found.file.path,
        found.text,
        config.parse,
        config.links,
        encoding=found.encoding,
        warnings=found.warnings,
    )
    sections, passages = chunk(note, config.chunk)
    hashes = [text_key(embedding_text(passage)) for passage in passages]
    note = replace(note, layout=Layout())  # the chunker alone needed it
    return Prepared(found.file, read_ns, found.digest, note, sections, passages, hashes)


def prepare_all(root: Path, files: Sequence[File], config: Config) -> Iterator[Prepared | Skipped]:
    """Prepare files in their order, many of them in several processes."""
    workers = min(os.cpu_count() or 1, 8)
    if len(files) < MANY or workers < 2:
        yield from (prepare(root, file, config) for file in files)
    else:
        yield from _in_processes(root, files, config, workers)


def _in_processes(
    root: Path, files: Sequence[File], config: Config, workers: int
) -> Iterator[Prepared | Skipped]:
    """Where processes cannot be started, or one is killed, the rest is prepared in this one."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    batches = [files[i : i + BATCH] for i in range(0, len(files), BATCH)]
    under_way: deque[Future[list[Prepared | Skipped]]] = deque()
    pool = ProcessPoolExecutor(workers, get_context("spawn"), live_with_the_parent)
    try:
        for done, batch in enumerate(batches):
            try:
                with starting():
                    for ahead in batches[done + len(under_way) : done + workers * AHEAD]:
                        under_way.append(pool.submit(_batch, root, ahead, config))
                found = under_way.popleft().result()
            except BrokenProcessPool:
                under_way.clear()
                found = _batch(root, batch, config)
            yield from found
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _batch(root: Path, files: Sequence[File], config: Config) -> list[Prepared | Skipped]:
    return [prepare(root, file, config) for file in files]
