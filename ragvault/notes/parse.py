"""Parse: the text of a file becomes a Note. A file type is one module that returns a Note.

    .md .markdown    markdown.py
    .canvas          canvas.py
    .txt             here: nothing in it is Markdown but `[[links]]`

To add a file type, write a module with a function like `parse_plain`, name its suffixes in PARSERS,
and add them to the default of walk.extensions, by which the walk, the watcher and the ignore rules
know what a note is. A file whose suffix is only in that setting is read as Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, TypeVar

from ragvault.config import settings as config
from ragvault.notes.canvas import parse_canvas
from ragvault.notes.links import find_wiki, is_attachment
from ragvault.notes.markdown import blank_out, file_title, parse_markdown, stem
from ragvault.text.spans import Lines, Span, merged
from ragvault.types import Block, Held, Layout, Note

T = TypeVar("T")
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
    """A .txt file. Its title is the file's name: the first line of such a file is seldom one.

    Paragraphs lie between blank lines. `#` makes no heading or tag, `*` no list; `[[links]]` alone
    mean what they mean in a note, because nobody writes them by accident.
    """
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


def _paragraphs(text: str) -> Iterator[Block]:
    """Blocks that lie end to end, each with the blank lines after it."""
    starts = [0, *(match.end() for match in _BLANK_LINES.finditer(text))]
    for start, end in pairwise(sorted({*starts, len(text)})):
        yield Block("prose", start, end)


# Each takes what `parse` takes, and never raises, whatever the text is.
PARSERS: Mapping[str, Callable[..., Note]] = {
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
# What is in a note once is stored, looked up or shown again with each of its passages and results.

BLANKS = 200  # white space in a row, in characters, that a passage holds; it has no words
LANGUAGE = 50  # characters of the language of a block of code, which all of its passages repeat
NAME = 300  # characters of a title, an alias or a tag; a heading has as many
TEXT = 2000  # characters of a description, an author or the value of a property
WORDS = 1000  # aliases, keywords and notes that it supersedes; tags; values of properties: each
LINKS = 10_000  # and as many headings: several times those of the longest books
_BLANKS = re.compile(rf"(?<!\s)\s{{{BLANKS + 1},}}")


def within_limits(note: Note) -> Note:
    """A note without what would cost every search, and a warning for each thing left out."""
    left_out: dict[str, None] = {}

    def text(value: str, name: str, most: int) -> str:
        if len(value) <= most:
            return value
        left_out[f"{name} was cut to {most:,} characters"] = None
        return value[:most]

    def first(values: Sequence[T], name: str, most: int) -> tuple[T, ...]:
        if len(values) > most:
            left_out[f"only the first {most:,} of its {len(values):,} {name} are indexed"] = None
        return tuple(values[:most])

    def names(values: Sequence[str], name: str) -> tuple[str, ...]:
        return tuple(text(each, f"one of its {name}", NAME) for each in first(values, name, WORDS))

    def language(held: Held) -> Held:
        if len(held.lang) <= LANGUAGE:
            return held
        left_out[f"the language of a block of code has over {LANGUAGE} characters"] = None
        return held._replace(lang="")

    left = WORDS

    def has_room() -> bool:
        if left <= 0:
            left_out[f"only the first {WORDS:,} values of its properties are indexed"] = None
        return left > 0

    def value(known: Any) -> Any:
        nonlocal left
        if isinstance(known, Mapping):
            return {key: value(each) for key, each in known.items() if has_room()}
        if isinstance(known, list):
            return [value(each) for each in known if has_room()]
        left -= 1
        return text(known, "the value of a property", TEXT) if isinstance(known, str) else known

    return replace(
        note,
        title=text(note.title, "the title", NAME),
        aliases=names(note.aliases, "aliases"),
        tags=names(note.tags, "tags"),
        keywords=names(note.keywords, "keywords"),
        supersedes=names(note.supersedes, "superseded notes"),
        description=text(note.description, "the description", TEXT),
        author=text(note.author, "the author", TEXT),
        importance=note.importance[:NAME],
        properties=value(note.properties),
        links=first(note.links, "links", LINKS),
        headings=first(note.headings, "headings", LINKS),
        excluded=_with_blanks(note),
        layout=replace(note.layout, held=tuple(map(language, note.layout.held))),
        warnings=(*note.warnings, *left_out),
    )


def _with_blanks(note: Note) -> tuple[Span, ...]:
    """What is not indexed, and the middle of long white space: its ends may be ends of lines."""
    shown = blank_out(note.text, note.excluded)
    half = BLANKS // 2
    runs = [(run.start() + half, run.end() - half) for run in _BLANKS.finditer(shown, note.body)]
    return tuple(merged([*note.excluded, *runs])) if runs else note.excluded
