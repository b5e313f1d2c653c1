"""Prepare: one file becomes everything the catalogue keeps of it, before anything is written.

    read -> parse -> chunk -> hash -> rows of the catalogue

The outcome depends on the file and the settings alone, so workers (workers.py) prepare files, and
one process stores them. A note that was prepared by another recipe (freshness.py) is read again.

No note can stop the others. One that cannot be parsed, or not within its time, becomes plain text
with a warning. One that ends its worker, or of which no rows can be made, is skipped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from ragvault.config.settings import Config
from ragvault.notes.chunk import chunk, embedding_text
from ragvault.notes.parse import parse, plain_note
from ragvault.notes.read import FAILED, Read, read_file
from ragvault.store.notes import NoteRows, note_rows
from ragvault.types import File, Layout, Note, Passage, Section, Skipped
from ragvault.update.workers import Failure, Overrun, cpu_limit, run_job, run_jobs

# CPU seconds to parse and chunk a note; 5 MB of given notes take 2. Its plain text, a last resort,
# may take twice as many; it takes up to 4. A note that a user allows to be larger gets more.
NOTE_SECONDS = 4.0
NOTE_CHARS = 5_000_000
SEARCH_PATIENCE = 0.5  # seconds that a search waits for a changed file
T = TypeVar("T")


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
    read_ns = time.time_ns()
    found = read_file(root, file, config.walk.max_bytes)
    if isinstance(found, Skipped):
        return found
    seconds = NOTE_SECONDS * max(1.0, len(found.text) / NOTE_CHARS)
    try:
        with cpu_limit(seconds):
            note = parse(
                file.path,
                found.text,
                config.parse,
                config.links,
                encoding=found.encoding,
                warnings=found.warnings,
            )
            return _chunked(note, found, config, read_ns)
    except Overrun:
        problem = f"parsing it took longer than {seconds:g} s"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a parser in Rust that panics raises no Exception
        problem = f"parsing it failed: {str(error) or type(error).__name__}"
    warning = f"indexed as plain text, because {problem}"
    try:
        with cpu_limit(2 * seconds):
            note = plain_note(file.path, found.text, found.encoding, (*found.warnings, warning))
            return _chunked(note, found, config, read_ns)
    except Overrun:
        return Skipped(file.path, FAILED, f"{problem}, and so did cutting it into passages")


def text_key(text: str) -> bytes:
    """The key of a text to embed: 16 bytes, enough that two texts never share one by chance."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _chunked(note: Note, found: Read, config: Config, read_ns: int) -> Prepared:
    sections, passages = chunk(note, config.chunk)
    hashes = [text_key(embedding_text(passage)) for passage in passages]
    note = replace(note, layout=Layout())  # the chunker alone needed it
    return Prepared(found.file, read_ns, found.digest, note, sections, passages, hashes)


# --- In workers ---


def prepare_all(root: Path, files: Sequence[File], config: Config) -> Iterator[NoteRows | Skipped]:
    """Prepare files in their order."""
    found = run_jobs([partial(_prepare_rows, root, file, config) for file in files])
    return (_or_skipped(file, each) for file, each in zip(files, found, strict=True))


def _prepare_rows(root: Path, file: File, config: Config) -> NoteRows | Skipped:
    found = prepare(root, file, config)
    if isinstance(found, Skipped):
        return found
    return note_rows(
        found.note,
        found.sections,
        found.passages,
        found.hashes,
        file=found.file,
        digest=found.digest,
        read_ns=found.read_ns,
    )


def prepare_for_search(root: Path, file: File, config: Config) -> Prepared | Skipped:
    """Prepare a file that changed since it was indexed, unless a search would wait for it long."""
    job = partial(prepare, root, file, config)
    return _or_skipped(file, run_job(job, SEARCH_PATIENCE))


def _or_skipped(file: File, found: T | Skipped | Failure) -> T | Skipped:
    if isinstance(found, Failure):
        return Skipped(file.path, FAILED, f"reading it {found}")
    return found
