"""Read: a note, or one part of it, from its file as it is now.

    whole note       read("Steam")
    section          heading="Setup > Linux": from that heading to the next of its level or above
    block            heading="^id": the block or list item that has this id
    lines            lines="40-80"

A note may also be named with its part, as links and results write it: `Steam#Setup`, `Steam#^id`,
`Steam.md:40-80`. With a budget the text ends after the last block that fits, and `rest` has the
lines that were left out.

A note is read only if the index or a walk of the vault knows its path, so no name, however it is
spelled, leads out of the vault or to an ignored file. Loads no model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import ceil
from pathlib import Path
from typing import NamedTuple

from ragvault.answer.note_lookup import NoSuchNote, find_place, no_such_note, of_file
from ragvault.config.settings import Config
from ragvault.errors import RagvaultError, UsageError
from ragvault.rank.budget import CHARS_PER_TOKEN
from ragvault.store.catalogue import Catalogue
from ragvault.text.printable import Encodable
from ragvault.text.spans import Lines, cut_points
from ragvault.types import File, Heading, Note, Skipped

MAX_NAME = 1000  # characters of a note's name, a heading or lines; no file name is longer
FAR = 0.4  # similarity of names: an agent can choose from a poor list, and not from none
MAX_HEADINGS = 30  # that an error lists
PATIENCE = 30.0  # seconds: several times the CPU time that parsing may take, for a busy machine
_LINES = re.compile(r"(?P<first>\d{1,9})(?P<to>-(?P<last>\d{1,9})?)?")


class NoteUnreadable(RagvaultError):
    """The note is known, but its file cannot be read now."""


@dataclass(frozen=True, slots=True)
class NoteText(Encodable):
    """A note, or a part of it. `lines` count from 1 in the file, both ends included.

    `headings` is the path of the heading that was asked for. `rest` are the lines that did not
    fit into the budget; the text was cut if there are any. `links` counts the note's links out and
    in, as they were indexed; a note that is not `indexed` yet has none.
    """

    vault: str
    note: str
    title: str
    headings: tuple[str, ...]
    lines: tuple[int, int]
    total_lines: int
    text: str
    rest: tuple[int, int] | None
    links: dict[str, int]
    indexed: bool

    def __repr__(self) -> str:
        first, last = self.lines
        return f"<NoteText {self.vault}/{self.note}:{first}-{last}>"


class _Part(NamedTuple):
    """What is shown of a note: offsets in its text, and the heading path it was named by."""

    start: int
    end: int
    headings: tuple[str, ...] = ()


def read(
    root: Path,
    vault: str,
    catalogue: Catalogue,
    config: Config,
    named: str,
    *,
    heading: str | None = None,
    lines: str | None = None,
    budget: int | None = None,
    numbered: bool = False,
) -> NoteText:
    """The part of the note that is asked for. Raises UsageError, NoteUnreadable."""
    for value in (named, heading or "", lines or ""):
        if len(value) > MAX_NAME:
            raise UsageError(
                f"no name has {len(value):,} characters", fix="give the name or path of a note"
            )
    file, named_heading, named_lines = _find(root, catalogue, config, named)
    heading, lines = heading or named_heading, lines or named_lines
    if heading and lines:
        raise UsageError("a heading and lines were given", fix="leave one of them out")
    note = _parsed(root, file, config)
    span = _part(note, heading, lines)
    at = Lines(note.text)
    fits = partial(_fits, note.text, at, budget, CHARS_PER_TOKEN, numbered)
    shown = span if fits(span) else _cut(note, span, fits)
    first, last = at.of(shown.start), at.of(max(shown.start, shown.end - 1))
    known = file.path in catalogue.files()
    return NoteText(
        vault=vault,
        note=file.path,
        title=note.title,
        headings=shown.headings,
        lines=(first, last),
        total_lines=at.of(max(0, len(note.text) - 1)),
        text=_text(note.text, at, shown, numbered),
        rest=_rest(note.text, at, shown.end, span.end),
        links={
            "out": len(catalogue.outgoing(file.path)) if known else 0,
            "in": len(catalogue.incoming(file.path)) if known else 0,
        },
        indexed=known,
    )


# --- Which note ---


def _find(root: Path, catalogue: Catalogue, config: Config, named: str) -> tuple[File, str, str]:
    """The file that is meant, with the heading and the lines that its name has.

    A note that is not indexed yet is found by a walk.
    """
    with suppress(NoSuchNote):
        path, typed = find_place(root, catalogue.names(), named)
        return catalogue.stored(path).file, typed.heading, typed.lines
    files = _walked(root, config)
    with suppress(NoSuchNote):
        path, typed = find_place(root, list(map(of_file, count(), files)), named)
        return files[path], typed.heading, typed.lines
    raise no_such_note(catalogue.names(), named, named, 3, FAR)


def _walked(root: Path, config: Config) -> dict[str, File]:
    from ragvault.notes.walk import walk

    try:
        return {file.path: file for file in walk(root, config.walk).files}
    except RagvaultError:  # the vault is not there: the index is all that is known
        return {}


# --- Its text ---


def _parsed(root: Path, file: File, config: Config) -> Note:
    """The note as its file is now. A worker parses it: a hostile note may crash the parser."""
    from ragvault.update.workers import Failure, run_job

    found = run_job(partial(read_and_parse, root, file, config), PATIENCE)
    if isinstance(found, Note):
        return found
    why = f"reading it {found}" if isinstance(found, Failure) else _reason(found)
    raise NoteUnreadable(
        f"{file.path} cannot be read: {why}",
        fix="if it was moved or deleted, run: ragvault index; otherwise check the file",
    )


def _reason(skipped: Skipped) -> str:
    return skipped.detail or skipped.reason


def read_and_parse(root: Path, file: File, config: Config) -> Note | Skipped:
    """Read and parse one file; one that cannot be parsed becomes plain text."""
    from ragvault.notes.parse import parse, plain_note
    from ragvault.notes.read import read_file
    from ragvault.update.prepare import NOTE_SECONDS
    from ragvault.update.workers import Overrun, cpu_limit

    found = read_file(root, file, config.walk.max_bytes)
    if isinstance(found, Skipped):
        return found
    try:
        with cpu_limit(NOTE_SECONDS):
            return parse(file.path, found.text, config.parse, config.links, encoding=found.encoding)
    except (Overrun, Exception):
        return plain_note(file.path, found.text, found.encoding, ())


# --- Which part ---


def _part(note: Note, heading: str, lines: str) -> _Part:
    if lines:
        return _of_lines(note, lines)
    if not heading:
        return _Part(0, len(note.text))
    wanted = heading.strip()
    block = wanted.removeprefix("#")
    return _of_block(note, block) if block.startswith("^") else _of_heading(note, wanted)


def _of_lines(note: Note, typed: str) -> _Part:
    found = _LINES.fullmatch(typed.strip())
    starts = [0, *(match.end() for match in re.finditer("\n", note.text))]
    if len(starts) > 1 and starts[-1] == len(note.text):
        starts.pop()  # the last line ends in a newline
    if found is None:
        raise UsageError(f"“{typed}” is not a line range", fix="write it like 40-80, or 40")
    first = int(found["first"])
    last = len(starts) if found["to"] and not found["last"] else int(found["last"] or first)
    if not 1 <= first <= last:
        raise UsageError(f"“{typed}” is not a line range", fix="write it like 40-80, or 40")
    if first > len(starts):
        raise UsageError(
            f"{note.path} has {len(starts):,} lines, and none with the number {first:,}",
            fix=f"ask for lines from 1 to {len(starts)}",
        )
    end = starts[last] if last < len(starts) else len(note.text)
    return _Part(starts[first - 1], end)


def _of_heading(note: Note, typed: str) -> _Part:
    """From a heading to the next one of its level or above."""
    from ragvault.notes.links import Places

    # `A > B` may be one heading; `A#B` never is.
    chains = ([typed], typed.split(" > ")) if "#" not in typed else (typed.split("#"),)
    wanted = [[part.strip() for part in chain if part.strip()] for chain in chains]
    places = Places(note.headings, {})
    starts = (places.find(chain) for chain in wanted if chain)
    start = next((start for start in starts if start is not None), None)
    if start is None:
        raise UsageError(
            f"{note.path} has no heading “{typed}”", fix=_headings_in_words(note.headings)
        )
    number = next(at for at, each in enumerate(note.headings) if each.start == start)
    heading = note.headings[number]
    after = (each.start for each in note.headings[number + 1 :] if each.level <= heading.level)
    return _trimmed(note, _Part(start, next(after, len(note.text)), heading.path))


def _trimmed(note: Note, part: _Part) -> _Part:
    """Without blank lines at its end."""
    shown = note.text[part.start : part.end]
    return part._replace(end=min(part.end, part.start + len(shown.rstrip()) + 1))


def _headings_in_words(headings: Sequence[Heading]) -> str:
    if not headings:
        return "it has no headings; read it whole, or some of its lines"
    listed = "; ".join(" > ".join(each.path) for each in headings[:MAX_HEADINGS])
    more = len(headings) - MAX_HEADINGS
    return f"its headings are: {listed}" + (f"; and {more} more" if more > 0 else "")


def _of_block(note: Note, typed: str) -> _Part:
    """The block or the list item with an id, up to where the next one begins."""
    start = note.blocks.get(typed[1:].casefold())
    if start is None:
        ids = ", ".join(f"^{name}" for name in list(note.blocks)[:MAX_HEADINGS])
        raise UsageError(
            f"{note.path} has no block “{typed}”",
            fix=f"its blocks are: {ids}" if ids else "it has no block ids; name a heading or lines",
        )
    ends = (end for end in _boundaries(note) if end > start)
    return _trimmed(note, _Part(start, next(ends, len(note.text))))


def _boundaries(note: Note) -> list[int]:
    """Where a block, a list item or a table row begins, in order; and the end of the text."""
    starts = {place for block in note.layout.blocks for place in (block.start, *block.cuts)}
    return sorted({*starts, note.body, len(note.text)})


# --- The budget ---


def _fits(
    text: str, at: Lines, budget: int | None, chars_per_token: float, numbered: bool, part: _Part
) -> bool:
    """Whether a part is within the budget, in estimated tokens: no model is loaded to count."""
    if budget is None:
        return True
    return ceil(len(_text(text, at, part, numbered)) / chars_per_token) <= budget


def _cut(note: Note, part: _Part, fits: Callable[[_Part], bool]) -> _Part:
    """The part up to the last block that fits, else to a sentence, else to a character.

    A heading belongs to what follows it: no cut leaves one alone at the end.
    """
    headings = {block.end for block in note.layout.blocks if block.kind == "heading"}
    blocks = [end for end in _boundaries(note) if end not in headings]
    least = min((end for end in blocks if end > part.start), default=part.end)
    first = max((end for end in headings if end < least), default=part.start)
    sentences = cut_points(note.text, first, part.end)
    for ends in (blocks, sentences, range(part.start + 1, part.end)):
        inside = [end for end in ends if part.start < end < part.end]
        low, high = 0, len(inside)
        while low < high:  # the first end that is too far
            middle = (low + high) // 2
            is_near = fits(part._replace(end=inside[middle]))
            low, high = (middle + 1, high) if is_near else (low, middle)
        if low:
            return part._replace(end=inside[low - 1])
    return part._replace(end=part.start + 1)


def _rest(text: str, at: Lines, cut: int, end: int) -> tuple[int, int] | None:
    """The lines from where the text was cut; a line that was cut in two is among them."""
    return (at.of(cut), at.of(end - 1)) if cut < end else None


def _text(text: str, at: Lines, part: _Part, numbered: bool) -> str:
    shown = text[part.start : part.end]
    if not numbered or not shown:
        return shown
    ended = shown.endswith("\n")
    lines = shown.removesuffix("\n").split("\n")
    first = at.of(part.start)
    width = len(str(first + len(lines) - 1))
    return "\n".join(f"{first + n:>{width}}  {line}" for n, line in enumerate(lines)) + "\n" * ended
