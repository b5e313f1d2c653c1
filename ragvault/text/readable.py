"""Readable: Markdown as people read it, one line for each paragraph, item, row and line of code.

    link or wikilink   its label; an address becomes its site: example.org
    list item, task    • item, 1. item, ☐ open, ☑ done
    table row          a · b · c, and no rules
    code               each line between backticks, and no fences
    emphasis, HTML, comments, footnote marks, block ids    without their marks

The parser (markup.py) says what is a paragraph, an item, a row or code; only the marks that it does
not know are looked for here, in its texts. The text may be any part of a note: it may begin inside
a fence, a table or a list. Every character knows where in the Markdown it comes from, so a match in
the readable text has a true line in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, NamedTuple

from ragvault.text.markup import WIKILINK, Event, Order, events, split_label

LineKind = Literal["prose", "item", "row", "code", "heading"]
ITEM, OPEN, DONE, CELL = "\u2022 ", "\u2610 ", "\u2611 ", " \u00b7 "

# What the parser must not look into is masked, in its length: a wikilink, a tag in a block of HTML
# that is not shown, and one that ends a line.
_LINK, _GONE, _END = "\ue001", "\ue002", "\ue003"
_WIKI = re.compile(rf"(?<!\\)!?{WIKILINK}")
_HTML = re.compile(r"<!--.*?(?:-->|\Z)|<[^<>]*>?", re.S)
_BREAK = re.compile(r"</?(?:br|p|div|li|tr|(t[dh])|h[1-6])\b", re.I)

# The marks that the parser does not know, and what a cut has left of others. No two runs in a row
# match the same characters: the time is linear in the length of the text.
_IN_PLAIN_TEXT = (
    rf"(?P<link>{_LINK}{_GONE}*)"
    rf"|(?P<url>(?<![^\W_])(?:https?|ftp|obsidian|file)://[^\s<>\[\]|`{_LINK}-{_END}]+)"
)
_PLAIN_MARKS = re.compile(rf"{_IN_PLAIN_TEXT}|(?P<left>\[\[|\]\])")
_MARKS = re.compile(
    rf"{_IN_PLAIN_TEXT}"
    rf"|(?P<end>{_END}+)"
    rf"|(?P<gone>{_GONE}+|%%.*?%%|\[\^[^\]\s]+\]:?|(?<=[ \t])\^[A-Za-z0-9-]+[ \t]*\Z)"
    r"|(?P<callout>\A\[!(?P<type>[\w-]+)(?:\|[^\]]*)?\][+-]?)"
    r"|(?P<reference>\[(?P<label>[^\[\]]*)\]\[[^\[\]]*\])"
    r"|(?P<field>[\[(](?P<key>[\w -]+)::[ \t]*(?P<value>[^\[\]()]*)[\])])"
    r"|(?P<left>\[\[|\]\]|%%|\]\((?:[^()\s]*\))?|(?<![*\w])[*_]{1,3}(?=\w)|(?<=[^\W_])[*_]{1,3}(?![*\w])"
    r"|(?<![=\w])==(?=[^\s=])|(?<=[^\s=])==(?![=\w]))"
)
_SITE = re.compile(r"(?:\w+:)?(?://)?(?:www\.)?([^/?#\s]+)")
_TRAILING = ".,;:!?'\")*_"  # marks after a bare address that belong to the sentence
_END_OF_ROW = re.compile(r"\s*\|[ \t]*(?:\Z|\n(?=[ \t]*\|))")  # of which a cut has left no more
_FENCE = re.compile(
    r"^(?P<quote>[ \t>]*)(?P<item>[-*+][ \t]*|\d+[.)][ \t]*)?(?P<fence>`{3}|~{3})[`~]*"
    r"(?P<info>[^\n`]*)$",
    re.M,
)
_BULLET = re.compile(  # of an item that, indented by tabs, may begin on the line before
    r"\s*(?:[-*+]|(\d{1,9}[.)]))(?:[ \t]+|$)(?:\[([^\]\n])\](?:[ \t]+|$))?", re.M
)

_INLINE_TAGS = {"Emphasis", "Strong", "Strikethrough", "Link", "Image", "TableCell"}
_LINE_KINDS: Mapping[str, LineKind] = {"Heading": "heading", "TableHead": "row", "TableRow": "row"}
_DEEPEST = 40  # columns of indentation for which the list around a part is made up


class Line(NamedTuple):
    """One line of a readable text; `level` is that of a heading."""

    kind: LineKind
    start: int
    end: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Readable:
    """Lines of plain text; `origin` has the offset in the Markdown of each character."""

    text: str
    lines: tuple[Line, ...]
    origin: tuple[int, ...]

    def source(self, at: int) -> int:
        """The offset in the Markdown of a character."""
        return self.origin[min(at, len(self.origin) - 1)] if self.origin else 0

    def headings(self, until: int | None = None) -> list[tuple[int, int, str]]:
        """The headings as (offset in the Markdown, level, text); those before `until` of it."""
        found = (
            (self.source(line.start), line.level, self.text[line.start : line.end])
            for line in self.lines
            if line.kind == "heading"
        )
        return [each for each in found if until is None or each[0] <= until]

    @property
    def has_body(self) -> bool:
        """Whether there is more than headings."""
        return any(line.kind != "heading" for line in self.lines)


def readable(text: str, *, code: bool = False, order: Order = "target-first") -> Readable:
    """A part of a note as plain lines. `code` says that most of it is code, with or without fences.

    `order` is how the vault's wikilinks are written, as in the setting links.order.
    """
    writer = _Writer(text, order, _MARKS)
    masked = _WIKI.sub(_as_link, text)
    rest = _END_OF_ROW.match(masked)
    skipped = rest.end() if rest else 0
    writer.read(masked[skipped:], skipped, code=code)
    return writer.finished()


def plain_lines(text: str, *, order: Order = "target-first", paragraphs: bool = True) -> Readable:
    """Text that is no Markdown, as lines: one for each paragraph and list item.

    Without `paragraphs` each line stays one.
    """
    writer = _Writer(text, order, _PLAIN_MARKS)
    at = 0
    for line in _WIKI.sub(_as_link, text).split("\n"):
        bullet = _BULLET.match(line)
        if bullet or not paragraphs or not line.strip():
            writer.end_line()
        writer.sign = _sign(bullet) if bullet else writer.sign
        skipped = bullet.end() if bullet else 0
        writer.add(line[skipped:], at + skipped)
        writer.show(" ", at)
        at += len(line) + 1
    writer.end_line()
    return writer.finished()


# --- A part of a note, and what it was cut out of ---


def _part_events(text: str, *, code: bool) -> list[Event]:
    """What the parser reads in a part of a note, below what it needs to be read rightly."""
    fences = list(_FENCE.finditer(text))
    if not fences:
        found = _events_of_part(*_surroundings(text))
        blocks = [each for each in found if each.name == "CodeBlock" and each.kind == "Start"]
        indented = sum(each.end - each.start for each in blocks)
        return _events_of_part("```\n", text) if code and 2 * indented < len(text) else found
    first = fences[0]
    # An odd number: the part begins or ends inside a block.
    if (
        len(fences) % 2
        and not first["item"]
        and not first["info"].strip()
        and (code or len(fences) > 1)
    ):
        return _events_of_part(f"{first['quote']}{first['fence']}\n", text)
    return _events_of_part(*_surroundings(text))


def _surroundings(text: str) -> tuple[str, str, str]:
    """A part between what it is cut out of: the head of a table or the items of a list, and a
    table's rule."""
    lines = text.strip("\n").split("\n")
    first, last = lines[0], lines[-1]
    above = below = ""
    if len(lines) > 1 and _is_row(last) and not _is_row(lines[-2]):
        below = f"\n{_rule(_columns(last))}\n"
    is_cut_row = "|" in first and len(lines) > 1 and _is_row(lines[1]) and not _is_rule(lines[1])
    if _is_row(first) or is_cut_row:
        rule = _rule(max(_columns(line) for line in lines if _is_row(line))) + "\n"
        if _is_rule(first):
            above = rule
        elif len(lines) == 1 or not _is_rule(lines[1]):
            above = rule * 2  # as a head, and as the rule below it
    else:
        written = first.expandtabs(4)
        indented = min(len(written) - len(written.lstrip()), _DEEPEST)
        if indented > 3:
            above = "".join(f"{' ' * at}- .\n" for at in range(0, indented - 1, 2)) + "\n"
    return above, text, below


def _rule(columns: int) -> str:
    return f"|{'-|' * columns}"


def _columns(row: str) -> int:
    return row.strip().removeprefix("|").removesuffix("|").replace("\\|", "").count("|") + 1


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _is_rule(line: str) -> bool:
    return "-" in line and not line.strip(" \t|:-")


def _events_of_part(above: str, text: str, below: str = "") -> list[Event]:
    """The events of a text between two others, without those of the others alone."""
    size, text = len(above), text.rstrip() if below else text
    found = (
        Event(kind, name, value, start - size, end - size)
        for kind, name, value, start, end in events(above + text + below)
    )
    return [each for each in found if each.end > 0 and each.start < len(text)]


# --- What is shown ---


class _Writer:
    """Writes lines, and for each character where in the source it comes from."""

    def __init__(self, source: str, order: Order, marks: re.Pattern[str]) -> None:
        self._source, self._order, self._marks = source, order, marks
        self._text: list[str] = []
        self._origin: list[int] = []
        self._lines: list[Line] = []
        self._size = 0
        self._shown: list[str] = []  # of the line that is being written
        self._places: list[int] = []
        self._raw: list[str] = []  # its end, of which the marks are still to be found
        self._raw_places: list[int] = []
        self._callout: tuple[str, int] | None = None  # whose title is being written; type, place
        self._between = ""  # two cells
        self.sign = ""  # of the list item that the next line begins

    def read(
        self, text: str, shift: int = 0, *, code: bool = False, is_inner: bool = False
    ) -> None:
        """Write what the parser reads in a text that is, but for its masks, the source's.

        `is_inner`: it is a block of a larger text.
        """
        until, level, in_code = 0, 0, False
        for kind, name, value, first, last in _part_events(text, code=code):
            start, end = first + shift, last + shift
            if name and name not in _INLINE_TAGS:
                self.end_line(_LINE_KINDS.get(name, "prose") if kind == "End" else "prose", level)
                in_code = name == "CodeBlock" and kind == "Start"
                self.sign = "" if name in ("Item", "CodeBlock") else self.sign
                level = int(value["level"][1]) if name == "Heading" and kind == "Start" else 0
                if kind == "End":
                    continue
                if name == "Item" and first >= 0 and (bullet := _BULLET.match(text, first)):
                    self.sign, until = _sign(bullet), bullet.end() + shift
                elif name == "HtmlBlock" and start >= until:
                    self.read(_HTML.sub(_as_tag, text[first:last]), start, is_inner=True)
                    until = end
                elif in_code and value == "Indented" and not code and not is_inner:
                    line = text.rfind("\n", 0, first) + 1
                    if _BULLET.match(text, line):  # a list below no item: most people indent it
                        self.read(text[line:last], line + shift, is_inner=True)
                        until = end
            elif end <= until:
                continue  # it is shown already
            elif kind == "Text" and in_code:
                self._write_code(start, end)
            elif kind == "Text" and text[first - 1 : first] == "\\" and value[0] in "*_":
                self.show(value, start)
            elif kind == "Text":
                rest = max(until - start, 0)
                self.add(value[rest:], start + rest, as_written=len(value) == end - start)
            elif kind in ("Code", "InlineMath"):
                self.show(self._source[start:end], start)
            elif kind == "DisplayMath":
                self.show(self._source[start + 2 : end - 2], start + 2)
            elif kind in ("SoftBreak", "HardBreak"):
                self._end_callout()
                if bullet := _BULLET.match(text, last):  # indented too far for the parser
                    self.end_line()
                    self.sign, until = _sign(bullet), bullet.end() + shift
                self.show(" ", start)
            elif kind == "InlineHtml" and _BREAK.match(value):
                self.show(" ", start)
            elif name == "TableCell" and kind == "Start":
                self._end_raw()
                self._between = CELL if self._shown else ""
            elif name == "Link" and kind == "Start" and value["link_type"] in ("Autolink", "Email"):
                self.show(_site(value["dest_url"]), start, as_written=False)
                until = end

    def add(self, text: str, at: int, *, as_written: bool = True) -> None:
        """Add to the line a text that may have marks."""
        self._raw.append(text)
        self._raw_places += range(at, at + len(text)) if as_written else [at] * len(text)

    def show(self, text: str, at: int, *, as_written: bool = True) -> None:
        """Add to the line a text as it is."""
        self._end_raw()
        self._show(text, range(at, at + len(text)) if as_written else [at] * len(text))

    def end_line(self, kind: LineKind = "prose", level: int = 0) -> None:
        """End the line, unless it has no text yet."""
        self._end_raw()
        self._end_callout()
        text, places = "".join(self._shown), self._places
        self._shown, self._places, self._between = [], [], ""
        if not text.strip(" |"):  # nor is a row of empty cells shown that a cut has left alone
            return
        if self.sign and kind == "prose":
            text, places = self.sign + text, [places[0]] * len(self.sign) + places
            kind, self.sign = "item", ""
        self._write(kind, text, places, level)

    def finished(self) -> Readable:
        return Readable("".join(self._text), tuple(self._lines), tuple(self._origin))

    def _end_raw(self) -> None:
        if self._raw:
            text, places = "".join(self._raw), self._raw_places
            self._raw, self._raw_places = [], []
            self._show_marked(text, places)

    def _show_marked(self, text: str, places: Sequence[int]) -> None:
        """Add to the line a text without its marks."""
        at = 0
        for found in self._marks.finditer(text):
            first, last = found.span()
            self._show(text[at:first], places[at:first])
            self._show_mark(found, places)
            at = last
        self._show(text[at:], places[at:])

    def _show_mark(self, found: re.Match[str], places: Sequence[int]) -> None:
        kind, at = found.lastgroup, places[found.start()]
        if kind == "link":
            written = self._source[at : at + len(found[0])]
            self._show_one(_wikilink_label(written, self._order), at)
        elif kind == "url":
            site = found[0].rstrip(_TRAILING)
            self._show_one(_site(site), at)
            self._show(found[0][len(site) :], places[found.start() + len(site) : found.end()])
        elif kind == "end":
            self.end_line()
        elif kind == "callout":
            self._callout = (found["type"], at)
        elif kind in ("reference", "field"):
            group = "label" if kind == "reference" else "value"
            if kind == "field":
                self._show_one(f"{found['key'].strip()}: ", at)
            self._show_marked(found[group], places[found.start(group) : found.end(group)])

    def _show_one(self, text: str, at: int) -> None:
        """Add to the line what stands for something else."""
        self._show(text, [at] * len(text))

    def _show(self, text: str, places: Sequence[int]) -> None:
        if self._between and text.strip():
            text, places = self._between + text, [places[0]] * len(self._between) + [*places]
            self._between = ""
        if text:
            self._shown.append(text)
            self._places += places

    def _end_callout(self) -> None:
        """End the title of a callout, which is its type where it has no other."""
        self._end_raw()
        if self._callout:
            kind, at = self._callout
            has_title = any(map(str.strip, self._shown))
            self._show_one(":" if has_title else f"{kind.replace('-', ' ').capitalize()}:", at)
            self._callout = None

    def _write_code(self, start: int, end: int) -> None:
        """Write lines of code, each between backticks."""
        at = max(start, 0)
        for line in self._source[at:end].split("\n"):
            if (inner := line.strip()) and not _FENCE.fullmatch(inner):
                first = at + line.index(inner)
                self._write("code", f"`{inner}`", [first, *range(first, first + len(inner)), first])
            at += len(line) + 1

    def _write(self, kind: LineKind, text: str, places: Sequence[int], level: int = 0) -> None:
        """Write a line without its outer spaces, and with single spaces inside."""
        begin = self._size + bool(self._lines)
        for found in re.finditer(r"\S+", text):
            first, last = found.span()
            if self._text:
                self._text.append(" " if self._size > begin else "\n")
                self._origin.append(places[max(first - 1, 0)])
            self._text.append(found[0])
            self._origin += places[first:last]
            self._size = len(self._origin)
        self._lines.append(Line(kind, begin, self._size, level))


def _as_link(found: re.Match[str]) -> str:
    in_code = found[0].count("`") % 2  # the other sign of the code is outside
    return found[0] if in_code else _LINK + _GONE * (len(found[0]) - 1)


def _as_tag(found: re.Match[str]) -> str:
    tag, size = _BREAK.match(found[0]), len(found[0])
    if tag and tag[1]:
        return _GONE * (size - 1) + " "
    return (_END if tag else _GONE) * size


def _sign(bullet: re.Match[str]) -> str:
    """What a list item begins with."""
    number, mark = bullet.groups()
    if mark is not None:
        return OPEN if mark == " " else DONE
    return f"{number} " if number else ITEM


def _wikilink_label(written: str, order: Order) -> str:
    """The label of a link; without one the note's name and heading, without its folder."""
    embedded = written.startswith("!")
    target, label = split_label(written.lstrip("!")[2:-2])
    if order == "label-first" and label:
        target, label = label, target
    if embedded:  # what follows the pipe is a size, and a picture has no text
        name = target.partition("#")[0].rpartition("/")[2]
        return "" if re.search(r"\.[a-z0-9]{2,5}$", name, re.I) else name
    if label.strip():
        return label.strip()
    note, _, heading = target.partition("#")
    name = note.rstrip("/").rpartition("/")[2].strip()
    under = " > ".join(part.strip() for part in heading.split("#") if part.strip())
    if under.startswith("^"):
        under = ""
    return " > ".join(part for part in (name, under) if part)


def _site(address: str) -> str:
    """The site of an address: its host without www."""
    if "@" in address and "//" not in address:
        return address.removeprefix("mailto:")
    if address.startswith(("file:", "obsidian:")):
        return ""
    found = _SITE.match(address)
    return found[1] if found else ""


# --- Properties ---

_FOR_OBSIDIAN = {"cssclass", "cssclasses", "publish", "permalink"}  # not for readers


def readable_properties(properties: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The properties that say something to a reader, each with its values as texts."""
    for name, value in properties.items():
        if str(name).casefold() not in _FOR_OBSIDIAN:
            yield str(name), list(_texts(value))


def property_line(name: str, values: Sequence[str]) -> str:
    return f"{name}: {', '.join(values)}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str | int | float | date) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
