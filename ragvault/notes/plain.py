"""Plain text: the text of a .txt file becomes a Note.

Its title is the file's name: the first line of such a file is seldom one. Paragraphs lie between
blank lines. Nothing is Markdown, so `#` makes no heading or tag and `*` no list; only `[[links]]`
mean what they mean in a note, because nobody writes them by accident.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath

from ragvault.config import settings as config
from ragvault.notes.links import find_wiki, is_attachment
from ragvault.text.spans import Lines
from ragvault.types import Block, Layout, Note

_BLANK_LINES = re.compile(r"\n[ \t\f\v]*\n\s*")


def parse_plain(
    path: str,
    text: str,
    settings: config.Parse,
    links: config.Links,
    *,
    encoding: str = "utf-8",
    warnings: Sequence[str] = (),
) -> Note:
    """Everything that is in one file, as a Note."""
    lines = Lines(text)
    found = (link for link in find_wiki(text, links.order) if not is_attachment(link))
    return Note(
        path=path,
        text=text,
        encoding=encoding,
        title=file_title(path),
        links=tuple(replace(link, line=lines.of(link.start)) for link in found),
        warnings=tuple(warnings),
        layout=Layout(tuple(_paragraphs(text))),
    )


def file_title(path: str) -> str:
    """The file's name without folder and suffix, as a person reads it."""
    return unicodedata.normalize("NFC", PurePosixPath(path).stem)


def _paragraphs(text: str) -> Iterator[Block]:
    """Blocks that lie end to end, each with the blank lines after it."""
    starts = [0, *(match.end() for match in _BLANK_LINES.finditer(text))]
    for start, end in pairwise(sorted({*starts, len(text)})):
        yield Block("prose", start, end)
