"""Parse: the text of a file becomes a Note. A file type is one module that returns a Note.

    .md .markdown    markdown.py
    .canvas          canvas.py
    .txt             plain.py

To add a file type, write a module with a function like `parse_plain`, name its suffixes in PARSERS,
and add them to the default of walk.extensions, by which the walk, the watcher and the ignore rules
know what a note is. A file whose suffix is only in that setting is read as Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Protocol

from ragvault.config import settings as config
from ragvault.notes.canvas import parse_canvas
from ragvault.notes.markdown import blank_out, parse_markdown, stem
from ragvault.notes.plain import parse_plain
from ragvault.text.spans import Span, joined
from ragvault.types import Block, Layout, Note


class Parser(Protocol):
    """Turns the text of one file type into a Note. Never raises, whatever the text is."""

    def __call__(
        self,
        path: str,
        text: str,
        settings: config.Parse,
        links: config.Links,
        *,
        encoding: str,
        warnings: Sequence[str],
    ) -> Note: ...


PARSERS: Mapping[str, Parser] = {
    ".md": parse_markdown,
    ".markdown": parse_markdown,
    ".canvas": parse_canvas,
    ".txt": parse_plain,
}


def parse(
    path: str,
    text: str,
    settings: config.Parse,
    links: config.Links,
    *,
    encoding: str = "utf-8",
    warnings: Sequence[str] = (),
) -> Note:
    """Everything that is in one file, as a Note; its suffix selects the parser."""
    parser = PARSERS.get(PurePosixPath(path).suffix.lower(), parse_markdown)
    return within_limits(parser(path, text, settings, links, encoding=encoding, warnings=warnings))


def plain_note(path: str, text: str, encoding: str, warnings: Sequence[str]) -> Note:
    """A file that cannot be parsed, as a Note: one block of prose without properties or links."""
    layout = Layout((Block("prose", 0, len(text)),))
    return within_limits(
        Note(
            path=path,
            text=text,
            encoding=encoding,
            title=stem(path),
            warnings=tuple(warnings),
            layout=layout,
        )
    )


# --- Limits: no single note can make the index large or a search slow ---

# White space in a row, in characters, that a passage holds. It has no words, so a passage takes in
# any amount of it: 5 MB of blank lines would be read and shown with each result.
BLANKS = 200
_BLANKS = re.compile(rf"(?<!\s)\s{{{BLANKS + 1},}}")


def within_limits(note: Note) -> Note:
    """A note without what would cost every search, with a warning for each thing left out."""
    return replace(note, excluded=_with_blanks(note))


def _with_blanks(note: Note) -> tuple[Span, ...]:
    """What is not indexed, and the middle of long white space: its ends may be ends of lines."""
    shown = blank_out(note.text, note.excluded)
    half = BLANKS // 2
    runs = [(run.start() + half, run.end() - half) for run in _BLANKS.finditer(shown, note.body)]
    return tuple(joined([*note.excluded, *runs])) if runs else note.excluded
