"""The layout of a Markdown text: its blocks end to end, and what the inline rules must skip.

pyromark (pulldown-cmark) does the parsing: CommonMark with tables, tasks, footnotes and math, at
about 40 MB/s, with byte ranges. This module turns its events into our blocks, headings, links and
ranges of code, math and HTML, in character offsets. It knows no wikilinks, tags or notes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ragvault.text.markup import label_wikilinks
from ragvault.types import Block, Held

_CALLOUT = re.compile(r"(?:[ \t]*>)+[ \t]*\[![\w-]+(?:\|[^\]\n]*)?\]")
_BLOCK_ID = re.compile(r"[ \t]+\^[A-Za-z0-9-]+[ \t]*$")
_LANGUAGE = re.compile(r"[\s{.]*([^\s,{}]+)")
_LINE_LEAD = re.compile(r"[ \t>]*")  # what may be on a line before a nested block


@dataclass(slots=True)
class MdLink:
    """A Markdown link or image, with the destination as written."""

    start: int
    end: int
    image: bool
    destination: str
    text: str


@dataclass(slots=True)
class Parsed:
    """One text, parsed: every offset counts its characters."""

    blocks: list[Block] = field(default_factory=list)
    headings: list[tuple[int, int, str]] = field(default_factory=list)  # start, level, text
    links: list[MdLink] = field(default_factory=list)
    code: list[tuple[int, int]] = field(default_factory=list)
    math: list[tuple[int, int]] = field(default_factory=list)
    html: list[tuple[int, int]] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    marks: list[tuple[int, str]] = field(default_factory=list)


Events = Iterable[tuple[Any, dict[str, int]]]
BlockKind = Literal["heading", "prose", "code", "table", "list", "callout"]

_OPTIONS: Any = None
_TOP: dict[str, BlockKind] = {
    "Heading": "heading",
    "BlockQuote": "callout",  # or prose, where it is a plain quotation
    "CodeBlock": "code",
    "List": "list",
    "Table": "table",
    "HtmlBlock": "prose",
    "FootnoteDefinition": "prose",
}
_NESTED_CUTS = {"Item", "TableRow", "CodeBlock", "BlockQuote", "List", "HtmlBlock", "Table"}
_BLOCKS = _TOP.keys() | _NESTED_CUTS
# Characters of a heading. A paragraph right above `---` is one, however long, and every passage
# below it carries its headings: a log of 260 kB would become one of 300 MB.
_HEADING = 300


def read_layout(text: str, body: int = 0) -> Parsed:
    """Parse a text whose blocks begin at `body`. Never raises, whatever the text."""
    parsed = _Reader(_events(text)).parsed
    if not text.isascii():
        _to_characters(text, parsed)
    parsed.blocks = list(_end_to_end(text, parsed.blocks, body))
    return parsed


def _events(text: str) -> Events:
    global _OPTIONS
    import pyromark

    if _OPTIONS is None:
        o = pyromark.Options
        _OPTIONS = o.ENABLE_TABLES | o.ENABLE_FOOTNOTES | o.ENABLE_TASKLISTS
        _OPTIONS |= o.ENABLE_STRIKETHROUGH | o.ENABLE_MATH
    events: Any = pyromark.events_with_range(_encodable(text), options=_OPTIONS)
    return events  # type: ignore[no-any-return]


def _encodable(text: str) -> str:
    """The text, any lone surrogate in it replaced by one character that has an encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


@dataclass(slots=True)
class _Open:
    """A top-level block whose end has not come yet; offsets are bytes."""

    tag: str
    start: int
    level: int = 0
    cuts: list[int] = field(default_factory=list)

    def closed(self, end: int) -> Block:
        kind = _TOP.get(self.tag, "prose")
        return Block(kind, self.start, end, self.level, tuple(self.cuts))


class _Reader:
    """Reads the events once, keeping the top-level blocks and the inline ranges."""

    def __init__(self, events: Events) -> None:
        self.parsed = Parsed()
        self._depth = 0
        self._open: _Open | None = None
        self._text: list[str] | None = None  # of the heading or link being read
        self._links: list[tuple[int, bool, str, list[str] | None]] = []
        for event, span in events:
            if type(event) is str:
                self._word(event, span)
                continue
            ((name, value),) = event.items()
            if name == "Text":
                if self._text is not None:
                    self._text.append(value)
            elif value == "Paragraph":  # the commonest, and there is no block inside
                if name == "Start" and self._depth == 0:
                    self.parsed.blocks.append(Block("prose", span["start"], span["end"]))
            elif name == "Start":
                self._start(value, span)
            elif name == "End":
                self._end(value, span)
            else:
                self._inline(name, value, span)

    def _word(self, event: str, span: dict[str, int]) -> None:
        if event == "Rule" and self._depth == 0:
            self.parsed.blocks.append(Block("prose", span["start"], span["end"]))
        elif event in ("SoftBreak", "HardBreak") and self._text is not None:
            self._text.append(" ")

    def _inline(self, name: str, value: Any, span: dict[str, int]) -> None:
        where = (span["start"], span["end"])
        if name == "Code":
            self.parsed.code.append(where)
            if self._text is not None:
                self._text.append(value)
        elif name in ("InlineMath", "DisplayMath"):
            self.parsed.math.append(where)
            if self._text is not None:
                self._text.append(value)
        elif name in ("Html", "InlineHtml"):
            self.parsed.html.append(where)

    def _start(self, tag: Any, span: dict[str, int]) -> None:
        name, value = _named(tag)
        start = span["start"]
        if name in ("Link", "Image"):
            self._links.append((start, name == "Image", value["dest_url"], self._text))
            self._text = []
            if name == "Image":
                self.parsed.marks.append((start, "image"))
            elif value["link_type"] in ("Autolink", "Email"):
                self._links[-1] = (start, False, "", self._links[-1][3])
            return
        if name not in _BLOCKS:
            return
        if name == "CodeBlock":
            lang = fence_language(value.get("Fenced", "")) if isinstance(value, dict) else ""
            self.parsed.code.append((start, span["end"]))
            self.parsed.held.append(Held(start, span["end"], "code", lang))
        elif name == "Table":
            self.parsed.held.append(Held(start, span["end"], "table"))
        if self._depth == 0:
            self._open = _Open(name, start)
            if name == "Heading":
                self._open.level = int(value["level"][1])
        elif name in _NESTED_CUTS and self._open is not None:
            self._open.cuts.append(start)
        if name == "Heading":
            self._text = []
        self._depth += 1

    def _end(self, tag: Any, span: dict[str, int]) -> None:
        name, value = _named(tag)
        if name in ("Link", "Image"):
            start, image, destination, outer = self._links.pop()
            text = "".join(self._text or ())
            self.parsed.links.append(MdLink(start, span["end"], image, destination, text))
            self._text = outer
            if outer is not None:
                outer.append(text)
            return
        if name not in _BLOCKS:
            return
        self._depth -= 1
        if name == "Heading":
            level = int(str(value)[1]) if value else 1
            heading = heading_text("".join(self._text or ())[:_HEADING])
            self.parsed.headings.append((span["start"], level, heading))
            self._text = None
        if self._depth == 0 and self._open is not None:
            self.parsed.blocks.append(self._open.closed(span["end"]))
            self._open = None


def _named(tag: Any) -> tuple[str, Any]:
    """A tag is a word, or one word with details."""
    return (tag, None) if isinstance(tag, str) else next(iter(tag.items()))


def fence_language(info: str) -> str:
    """The language an info string names: ```` ```py title="x" ````, `py{1,3}`, `{.py}` are py."""
    named = _LANGUAGE.match(info)
    return named[1].lower() if named else ""


def heading_text(text: str) -> str:
    """A heading as people read it: wikilinks as their label, no block id, single spaces."""
    return " ".join(_BLOCK_ID.sub("", label_wikilinks(text)).split())


def _end_to_end(text: str, blocks: list[Block], body: int) -> Iterator[Block]:
    """The blocks without gaps: each reaches to the first line of the next.

    Text that is in no block (reference definitions) belongs to the block before it, or, at the
    very beginning, to the first.
    """
    lines = _LineStarts(text)
    starts = [lines.of(block.start) for block in blocks]
    if starts:
        starts[0] = body
    elif body < len(text):
        yield Block("prose", body, len(text))
    starts.append(len(text))
    for start, end, block in zip(starts, starts[1:], blocks, strict=False):
        inner = tuple(_inner_cuts(lines, block.cuts, start, end)) if block.cuts else ()
        yield Block(_kind(lines, block), start, end, block.level, inner)


def _inner_cuts(lines: _LineStarts, cuts: Iterable[int], start: int, end: int) -> Iterator[int]:
    """The cuts inside [start, end) that are at the beginning of a line."""
    for cut in sorted({lines.of(cut) for cut in cuts}):
        if start < cut < end and lines.text[cut - 1] == "\n":
            yield cut


def _kind(lines: _LineStarts, block: Block) -> BlockKind:
    if block.kind == "callout" and not _CALLOUT.match(lines.text, lines.of(block.start)):
        return "prose"
    return block.kind


class _LineStarts:
    """Finds the beginning of the line that a block is on, in a time that no long line can raise."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._lead_ends: dict[int, int] = {}

    def of(self, offset: int) -> int:
        """The beginning of its line if only indentation is before it, else the offset itself."""
        if not offset or self.text[offset - 1] == "\n":
            return offset
        start = self._starts[bisect_right(self._starts, offset) - 1]
        if start not in self._lead_ends:
            self._lead_ends[start] = _LINE_LEAD.match(self.text, start).end()  # type: ignore[union-attr]
        return start if offset <= self._lead_ends[start] else offset


# --- The parser counts bytes of UTF-8; everything else counts characters ---


def _to_characters(text: str, parsed: Parsed) -> None:
    """Count everything that was found in a text in its characters."""
    at = _character_of(text, parsed)
    for spans in (parsed.code, parsed.math, parsed.html):
        spans[:] = [(at(start), at(end)) for start, end in spans]
    parsed.blocks[:] = [
        Block(b.kind, at(b.start), at(b.end), b.level, tuple(map(at, b.cuts)))
        for b in parsed.blocks
    ]
    parsed.held[:] = [h._replace(start=at(h.start), end=at(h.end)) for h in parsed.held]
    for link in parsed.links:
        link.start, link.end = at(link.start), at(link.end)
    parsed.headings[:] = [(at(start), level, text) for start, level, text in parsed.headings]
    parsed.marks[:] = [(at(start), mark) for start, mark in parsed.marks]


def _character_of(text: str, parsed: Parsed) -> Callable[[int], int]:
    """A map from byte offsets to character offsets, made for the offsets that occur."""
    raw = text.encode("utf-8", "replace")
    at, characters, known = 0, 0, {}
    for offset in sorted(set(_offsets(parsed))):
        characters += len(raw[at:offset].decode("utf-8", "replace"))
        known[offset] = characters
        at = offset
    return known.__getitem__


def _offsets(parsed: Parsed) -> Iterator[int]:
    for spans in (parsed.code, parsed.math, parsed.html):
        for span in spans:
            yield from span
    for held in parsed.held:
        yield from (held.start, held.end)
    for block in parsed.blocks:
        yield from (block.start, block.end, *block.cuts)
    for link in parsed.links:
        yield from (link.start, link.end)
    yield from (start for start, _, _ in parsed.headings)
    yield from (start for start, _ in parsed.marks)
