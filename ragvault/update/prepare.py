"""Prepare: one file becomes everything the catalogue keeps of it, before anything is written.

    read -> parse -> chunk -> hash

The outcome depends on the file and the settings alone, so many files are prepared in several
processes and stored in one. A note that was prepared by another recipe (freshness.py) is chunked
again, from the stored text.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ragvault.config.settings import Config
from ragvault.models.embed import text_key
from ragvault.notes.chunk import chunk, embedding_text
from ragvault.notes.parse import parse
from ragvault.notes.read import Read, read
from ragvault.types import File, Layout, Note, Passage, Section, Skipped

if TYPE_CHECKING:
    from concurrent.futures import Future

MANY = 400  # files: below it, starting processes takes longer than they save
BATCH = 32  # files a process prepares at a time
AHEAD = 3  # batches a process may be ahead of the writer, so that memory stays bounded


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file, read, parsed and chunked. `hashes` are of the texts to embed, one for each passage.

    `read_ns` is the clock just before the file was read: a later change is not in it.
    """

    file: File
    read_ns: int
    digest: bytes
    note: Note
    sections: Sequence[Section]
    passages: Sequence[Passage]
    hashes: Sequence[bytes]


def prepare(root: Path, file: File, config: Config) -> Prepared | Skipped:
    """Read, parse and chunk one file."""
    now = time.time_ns()
    found = read(root, file, config.walk.max_bytes)
    return found if isinstance(found, Skipped) else parse_and_chunk(found, config, now)


def parse_and_chunk(found: Read, config: Config, read_ns: int) -> Prepared:
    """Parse and chunk a text that was read already."""
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
    """Prepare in several processes; if one is killed or cannot be started, do the rest here."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    batches = [files[i : i + BATCH] for i in range(0, len(files), BATCH)]
    under_way: deque[Future[list[Prepared | Skipped]]] = deque()
    pool = ProcessPoolExecutor(workers, get_context("spawn"), end_with_parent)
    try:
        for done, batch in enumerate(batches):
            try:
                with starting_processes():
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


# --- Child processes ---


@contextmanager
def starting_processes() -> Iterator[None]:
    """Start processes in here: they ignore Ctrl-C and do not import the program's own script."""
    with _ignoring_ctrl_c(), _without_main():
        yield


@contextmanager
def _ignoring_ctrl_c() -> Iterator[None]:
    """A process started in here ignores Ctrl-C from its first instruction on.

    Until it has imported what it needs it could not ignore one itself, and would die of it with a
    traceback. This process receives the Ctrl-C when the block ends.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not import the program's own script, of which they need nothing.

    A script that indexes a vault in its first lines would otherwise begin again in each of them.
    """
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name, None) for name in ("__file__", "__spec__")}
    for name in hidden:
        setattr(main, name, None)
    try:
        yield
    finally:
        for name, value in hidden.items():
            setattr(main, name, value)


def end_with_parent() -> None:
    """Call first in a child process: ignore Ctrl-C, and end when the parent process does.

    A killed parent could not stop its children, and a pool's processes hold both ends of their
    queue, so they do not notice by themselves.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_wait_for_parent, name="end with parent", daemon=True).start()


def _wait_for_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent:
        parent.join()
        os._exit(1)
