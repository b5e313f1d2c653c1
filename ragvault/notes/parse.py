"""Parse: the text of a file becomes a Note. A file type is one function that returns a Note.

    .md .markdown    markdown.py
    .canvas          its cards as Markdown
    .txt             nothing in it is Markdown but `[[links]]`

To add a file type, write a function like `parse_plain`, name its suffixes in PARSERS,
and add them to the default of walk.extensions, by which the walk, the watcher and the ignore rules
know what a note is. A file whose suffix is only in that setting is read as Markdown.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, TypeVar

from ragvault.config import settings as config
from ragvault.notes.links import find_wiki, is_attachment
from ragvault.notes.markdown import blank_out, file_title, parse_markdown, stem
from ragvault.notes.read import plain
from ragvault.text.printable import valid_unicode
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


# --- Canvases: JSON Canvas, as Obsidian writes it ---
#
#   text card     its Markdown, with its links, tags and headings
#   file card     a link to the file it shows
#   web card      its address
#   group         its label is a heading, with the cards inside it below
#   edge          with a label: `from → to: label`; without one it has no text
#
# The cards are read from top to bottom, those outside of groups first. A note's text is then this
# Markdown and not the JSON. Its lines are those of the file in which the cards are: Obsidian writes
# one card a line. Nothing here raises: what is no canvas is a note without text, with a warning.

_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*")')
_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})", re.M)
_MARKS = re.compile(r"^[#>*\-! \t]+|\[\[|\]\]|[<>]")
CARD_NAME = 60  # characters of a card that name it in an edge
NOT_READ = "the canvas was not read: "


@dataclass(frozen=True, slots=True)
class Card:
    """A node of a canvas; `text` is its Markdown, the label for a group."""

    id: str
    kind: str
    text: str
    line: int
    x: float
    y: float
    width: float
    height: float

    @property
    def name(self) -> str:
        """The beginning of its first line, for an edge."""
        first = _MARKS.sub("", self.text.strip().partition("\n")[0])
        return first if len(first) <= CARD_NAME else first[:CARD_NAME].rstrip() + "\u2026"

    def contains(self, other: Card) -> bool:
        """Whether the middle of another card is inside this one."""
        x, y = other.x + other.width / 2, other.y + other.height / 2
        return self.x <= x <= self.x + self.width and self.y <= y <= self.y + self.height


def parse_canvas(
    path: str,
    text: str,
    settings: config.Parse,
    links: config.Links,
    *,
    encoding: str = "utf-8",
    warnings: Sequence[str] = (),
) -> Note:
    """Everything that is written on a canvas, as a Note."""
    try:
        # A number of a thousand digits is infinite, and no place.
        canvas = json.loads(text, parse_int=float) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        return _unread(path, encoding, warnings, f"it is not valid JSON ({error})")
    if not isinstance(canvas, dict):
        return _unread(path, encoding, warnings, "it has no cards")
    written, places = _written(list(_parts(canvas, text)))
    note = parse_markdown(path, written, settings, links, encoding=encoding, warnings=warnings)
    lines = Lines(written, places)
    return replace(
        note,
        title=file_title(path),
        headings=tuple(replace(each, line=lines.of(each.start)) for each in note.headings),
        links=tuple(replace(each, line=lines.of(each.start)) for each in note.links),
        layout=replace(note.layout, places=places),
    )


def _unread(path: str, encoding: str, warnings: Sequence[str], why: str) -> Note:
    return Note(
        path=path,
        text="",
        encoding=encoding,
        title=file_title(path),
        warnings=(*warnings, NOT_READ + why),
    )


Part = tuple[str, int]  # Markdown, and the line of the file that it comes from


def _parts(canvas: Mapping[str, Any], text: str) -> Iterator[Part]:
    """The texts of a canvas in reading order."""
    line_of = _id_lines(text)  # valid JSON, and so is every string in it
    nodes = [_card(each, line_of) for each in _objects(canvas.get("nodes"))]
    cards = sorted((each for each in nodes if each.text.strip()), key=lambda each: (each.y, each.x))
    groups = [each for each in cards if each.kind == "group"]
    inside: dict[str, list[Card]] = {group.id: [] for group in groups}
    for card in cards:
        if card.kind != "group":
            around = [group for group in groups if group.contains(card)]
            smallest = min(around, key=lambda each: each.width * each.height, default=None)
            if smallest is None:
                yield card.text, card.line
            else:
                inside[smallest.id].append(card)
    for group in groups:
        yield f"# {' '.join(group.text.split())}", group.line
        yield from ((card.text, card.line) for card in inside[group.id])
    yield from _edges(canvas, {each.id: each.name for each in nodes}, line_of)


def _edges(
    canvas: Mapping[str, Any], names: Mapping[str, str], line_of: Mapping[str, int]
) -> Iterator[Part]:
    for edge in _objects(canvas.get("edges")):
        label = " ".join(_text(edge.get("label")).split())
        ends = [names.get(_text(edge.get(end)), "") for end in ("fromNode", "toNode")]
        if label:
            yield f"- {' → '.join(filter(None, ends))}: {label}", line_of.get(_id(edge), 1)


def _card(node: Mapping[str, Any], line_of: Mapping[str, int]) -> Card:
    kind = _text(node.get("type"))
    if kind == "file":
        text = _embedded(_text(node.get("file")), _text(node.get("subpath")))
    elif kind == "link":
        url = "".join(_text(node.get("url")).split())
        text = f"<{url}>" if url else ""
    else:
        text = _text(node.get("label" if kind == "group" else "text"))
    x, y, width, height = (_number(node.get(key)) for key in ("x", "y", "width", "height"))
    id_ = _id(node)
    return Card(id_, kind, text, line_of.get(id_, 1), x, y, width, height)


def _embedded(file: str, subpath: str) -> str:
    """A file card as the link that embeds it; one that no link can write is only named."""
    target = " ".join(f"{file}{subpath}".split())
    if not target or re.search(r"\[\[|\]\]|\|", target):
        return target
    return f"![[{target}]]"


def _written(parts: Sequence[Part]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """One text of all parts, and which line of the file each one begins with."""
    written, places = "\n", []  # not at the very beginning, where `---` would open frontmatter
    pieces = [written]
    size = len(written)
    for text, line in parts:
        places.append((size, line))
        piece = _closed(text.strip("\n")) + "\n\n"
        pieces.append(piece)
        size += len(piece)
    return "".join(pieces), tuple(places)


def _closed(text: str) -> str:
    """A card's text, with what it opens closed: the next card begins anew."""
    if len(_FENCE.findall(text)) % 2:
        text += "\n```"
    if text.count("%%") % 2:
        text += " %%"
    return text + " -->" if text.rfind("<!--") > text.rfind("-->") else text


def _id_lines(text: str) -> dict[str, int]:
    """The line on which each id is defined."""
    lines, found = Lines(text), dict[str, int]()
    for match in _ID.finditer(text):
        found.setdefault(json.loads(match[1], strict=False), lines.of(match.start()))
    return found


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _id(node: Mapping[str, Any]) -> str:
    value = node.get("id")
    return value if isinstance(value, str) else ""


def _text(value: Any) -> str:
    """A string of the JSON as text; anything else is nothing."""
    return plain(valid_unicode(value)) if isinstance(value, str) else ""


def _number(value: Any) -> float:
    return value if isinstance(value, float) and math.isfinite(value) else 0.0


# --- Files by their suffix ---

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
