"""Readable: Markdown as people read it, one line for each paragraph, item, row and line of code.

    link or wikilink   its label; an address becomes its site: example.org
    list item, task    • item, 1. item, ☐ open, ☑ done
    table row          a · b · c, and no rules
    code               each line between backticks, and no fences
    emphasis, HTML, comments, footnote marks, block ids    without their marks

The text may be any part of a note: it may begin inside a fence or a table. Every character knows
where in the Markdown it comes from, so a match in the readable text has a true line in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from html import unescape
from typing import Any, Literal, NamedTuple

from ragvault.text.wikilinks import WIKILINK, split_label

LineKind = Literal["prose", "item", "row", "code", "heading"]
Order = Literal["target-first", "label-first"]
ITEM, OPEN, DONE, CELL = "\u2022 ", "\u2610 ", "\u2611 ", " \u00b7 "
_PIPE = "\ue000"  # stands for an escaped `|` until a row is cut into cells

_URL = r"(?P<url>\b(?:https?|ftp|obsidian|file)://[^\s<>\[\]|`]+)"
# No two runs in a row match the same characters: the time is linear in the length of the line.
_FENCE = re.compile(
    r"^[ \t>]*(?:(?P<item>[-*+]|\d+[.)])[ \t]*)?(?:`{3,}|~{3,}(?!~))(?P<info>[^\n`]*)$", re.M
)
_INLINE = re.compile(
    r"(?P<escape>\\(?!\[\\?\[|\]\\?\])[!-/:-@\[-`{-~])"
    r"|(?P<code>(?<!`)(?P<ticks>`+)(?!`)(?:[^`\n]"
    r"|(?!(?P=ticks)(?!`))(?<!`)`+(?!`))+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<comment>%%.*?%%|<!--.*?(?:-->|\Z))"
    r"|(?P<math>\$\$.+?\$\$|\$(?=[^\s$])[^$\n]*?(?<=[^\s\\])\$(?!\d))"
    rf"|(?P<wiki>!?{WIKILINK})"
    r"|(?P<definition>^[ ]{0,3}\[[^\]\n^][^\]\n]*\]:[ \t]*\S[^\n]*$)"
    r"|(?P<link>!?\[(?P<label>(?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]"
    r"(?:\([ \t\n]*(?:<[^<>\n]*>|(?:[^()\s]|\([^()\s]*\))*)"
    r"(?:[ \t\n]+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?[ \t\n]*\)|\[[^\[\]\n]*\]))"
    r"|(?P<footnote>\[\^[^\]\s]+\]:?)"
    r"|(?P<field>[\[(](?P<key>[\w -]+)::[ \t]*(?P<value>[^\[\]()\n]*)[\])])"
    r"|(?P<auto><(?P<address>[a-zA-Z][a-zA-Z0-9+.-]*:[^<>\s]*|[^<>\s@]+@[^<>\s@]+)>)"
    r"|(?P<html></?[a-zA-Z][^<>]*>)"
    rf"|{_URL}"
    r"|(?P<entity>&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});)"
    r"|(?P<block>(?<=[ \t])\^[A-Za-z0-9-]+[ \t]*$)"
    r"|(?P<mark>\*{2,3}(?=\S)|(?<=\S)\*{2,3}|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])"
    r"|(?<!\w)_{1,3}(?=\S)|(?<=[^\s_])_{1,3}(?!\w)|~~|(?<![=\w])==(?=[^\s=])|(?<=[^\s=])==(?![=\w]))"
    r"|(?P<left>\\?\[\\?\[|\\?\]\\?\]|\]\((?:[^()\s]*\))?)",
    re.M | re.S,
)
_IN_PLAIN_TEXT = re.compile(rf"(?P<wiki>!?{WIKILINK})|{_URL}|(?P<left>\[\[|\]\])")
_SITE = re.compile(r"(?:\w+:)?(?://)?(?:www\.)?([^/?#\s]+)")
_TRAILING = ".,;:!?'\")*_"  # marks after a bare address that belong to the sentence
_BLOCK_TAG = re.compile(r"</?(?:br|p|div|li|tr|td|th|h[1-6])\b", re.I)
_QUOTE = re.compile(r"^(?:[ \t]*>)+[ \t]?")
_CALLOUT = re.compile(r"\[!([\w-]+)(?:\|[^\]]*)?\][+-]?[ \t]*")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}(?:[ \t]+|$)")
_CLOSING_MARKS = re.compile(r"(?<![ \t])[ \t]+#+[ \t]*$")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|(\d{1,9}[.)]))(?:[ \t]+|$)(?:\[([^\]\n])\](?:[ \t]+|$))?")
_RULE = re.compile(r"[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|=+|-+)$")
_TABLE_RULE = re.compile(r"[ \t]*(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?$")


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


# What is shown, where it comes from, and whether it stands there as it is shown.
Piece = tuple[str, int, bool]


def readable(text: str, *, code: bool = False, order: Order = "target-first") -> Readable:
    """A part of a note as plain lines. `code` says that most of it is code, with or without fences.

    `order` is how the vault's wikilinks are written, as in the setting links.order.
    """
    writer = _Writer()
    for inside, start, end in code_parts(text, code):
        if inside:
            writer.code(text, start, end)
        else:
            writer.prose(*_shown(text, start, end, order, _INLINE))
    return writer.finished()


def plain_lines(text: str, *, order: Order = "target-first", paragraphs: bool = True) -> Readable:
    """Text that is no Markdown, as lines: one for each paragraph and list item.

    Without `paragraphs` each line stays one.
    """
    writer = _Writer()
    writer.plain(*_shown(text, 0, len(text), order, _IN_PLAIN_TEXT), paragraphs)
    return writer.finished()


def code_parts(text: str, code: bool) -> Iterator[tuple[bool, int, int]]:
    """The text between fences: whether it is code, and its span.

    `code` says what the text is where no fence tells.
    """
    fences = list(_FENCE.finditer(text))
    inside = code and not fences
    if len(fences) % 2 and _may_close(fences[0]):
        # Odd: the part begins or ends inside a block.
        inside = code or len(fences) > 1
    at = 0
    for fence in fences:
        yield inside, at, fence.start()
        at, inside = min(fence.end() + 1, len(text)), not inside
    yield inside, at, len(text)


def _may_close(fence: re.Match[str]) -> bool:
    """Whether a fence may be the end of a block: it names no language and begins no item."""
    return not fence["item"] and not fence["info"].strip()


# --- Inside a line: links, emphasis, HTML ---


def _shown(
    text: str, start: int, end: int, order: Order, marks: re.Pattern[str]
) -> tuple[str, list[int]]:
    """The characters of a span that a reader sees, and where each comes from."""
    shown: list[str] = []
    origin: list[int] = []
    for piece, at, verbatim in _pieces(text, start, end, order, marks):
        shown.append(piece)
        origin.extend(range(at, at + len(piece)) if verbatim else [at] * len(piece))
    return "".join(shown), origin


def _pieces(
    text: str, start: int, end: int, order: Order, marks: re.Pattern[str]
) -> Iterator[Piece]:
    """Parts of a text as they are shown."""
    at = start
    for found in marks.finditer(text, start, end):
        yield text[at : found.start()], at, True
        at = found.end()
        yield from _token(text, found, order)
    yield text[at:end], at, True


def _token(text: str, found: re.Match[str], order: Order) -> Iterator[Piece]:
    kind, start = found.lastgroup, found.start()  # of nested groups, the outer one
    if kind == "escape":
        char = found[0][1]
        yield (_PIPE if char == "|" else char), start + 1, True
    elif kind == "code":
        yield found[0], start, True
    elif kind == "math":
        skipped = 2 if found[0].startswith("$$") else 0
        yield found[0][skipped : len(found[0]) - skipped], start + skipped, True
    elif kind == "wiki":
        yield _wikilink_label(found[0], order), start, False
    elif kind == "link":
        if not found[0].startswith("!") or found["label"]:
            yield from _pieces(text, found.start("label"), found.end("label"), order, _INLINE)
    elif kind == "field":
        yield f"{found['key'].strip()}: ", start, False
        yield from _pieces(text, found.start("value"), found.end("value"), order, _INLINE)
    elif kind == "auto":
        yield _site(found["address"]), start, False
    elif kind == "url":
        bare = found[0].rstrip(_TRAILING)
        yield _site(bare), start, False
        yield found[0][len(bare) :], start + len(bare), True
    elif kind == "html":
        yield (" " if _BLOCK_TAG.match(found[0]) else ""), start, False
    elif kind == "entity":
        yield unescape(found[0]), start, False


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


def property_values(properties: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
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


# --- Lines ---


class _Writer:
    """Collects lines. Lines of one paragraph are joined."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._origin: list[int] = []
        self._lines: list[Line] = []
        self._size = 0
        self._open = False  # whether the next line of prose continues the last line
        self._joined = False  # whether the last line of prose has several lines of the file
        self._in_table = False

    def code(self, text: str, start: int, end: int) -> None:
        """Lines of code, each between backticks; in a quotation every line begins with its mark."""
        quoted = all(_QUOTE.match(line) for line in text[start:end].split("\n") if line.strip())
        at = start
        for line in text[start:end].split("\n"):
            inner = (_QUOTE.sub("", line, count=1) if quoted else line).strip()
            if inner:
                first = at + line.rindex(inner)
                self._add("code", f"`{inner}`", [first, *range(first, first + len(inner)), first])
            at += len(line) + 1
        self._open = False

    def plain(self, text: str, origin: list[int], paragraphs: bool) -> None:
        """Paragraphs and list items, whose signs mean nothing else."""
        at = 0
        for line in text.split("\n"):
            places = origin[at : at + len(line)]
            self._open = self._open and paragraphs
            if not line.strip():
                self._open = False
            elif bullet := _BULLET.match(line):
                self._item(bullet, line, places)
            else:
                self._paragraph(line, places)
            at += len(line) + 1

    def prose(self, text: str, origin: list[int]) -> None:
        """Everything else: headings, rows, items and paragraphs."""
        whole = text.split("\n")
        lines = [_QUOTE.sub("", line, count=1) for line in whole]
        at = 0
        for number, (line, full) in enumerate(zip(lines, whole, strict=True)):
            row = line.lstrip().startswith("|") or self._is_row(lines, number)
            at += len(full)
            self._line(line, origin[at - len(line) : at], row)
            at += 1

    def _is_row(self, lines: list[str], number: int) -> bool:
        """Whether a line without a pipe at its start is a row: a rule is near, with pipes."""
        if "|" not in lines[number]:
            return False
        near = lines[max(0, number - 1) : number + 2]
        below_rows = bool(self._lines) and self._lines[-1].kind == "row" and self._in_table
        return below_rows or any("|" in line and _TABLE_RULE.match(line) for line in near)

    def _line(self, line: str, origin: list[int], row: bool) -> None:
        if callout := _CALLOUT.match(line):
            kind, rest = callout[1], line[callout.end() :]
            self._open = False
            title = rest.strip() or kind.replace("-", " ").capitalize()
            first = origin[:1] or [0]
            self._add("prose", f"{title}:", first * (len(title) + 1))
            self._open = True
            return
        blank = not line.strip()
        self._in_table = row or (self._in_table and not blank)
        if blank:
            self._open = False
        elif row:
            self._row(line, origin)
        elif _RULE.match(line):
            self._rule(line)
        elif heading := _HEADING.match(line):
            inner = _CLOSING_MARKS.sub("", line[heading.end() :])
            self._add("heading", inner, origin[heading.end() : heading.end() + len(inner)])
            if self._lines and self._lines[-1].kind == "heading":
                self._lines[-1] = self._lines[-1]._replace(level=heading[0].count("#"))
        elif bullet := _BULLET.match(line):
            self._item(bullet, line, origin)
        else:
            self._paragraph(line, origin)

    def _rule(self, line: str) -> None:
        """A thematic break, or the underline that makes a heading of the line above it."""
        last = self._lines[-1] if self._open and not self._joined else None
        if last and last.kind == "prose" and line.strip()[0] in "=-":
            self._lines[-1] = last._replace(kind="heading", level=1 if "=" in line else 2)
        self._open = False

    def _row(self, line: str, origin: list[int]) -> None:
        self._open = False
        if _TABLE_RULE.match(line):
            return
        text, places, at = "", list[int](), 0
        for cell in line.split("|"):
            inner = cell.strip()
            if inner:
                first = at + cell.index(inner)
                between = CELL if text else ""
                text += between + inner
                places += [origin[first]] * len(between) + origin[first : first + len(inner)]
            at += len(cell) + 1
        self._add("row", text, places)

    def _item(self, bullet: re.Match[str], line: str, origin: list[int]) -> None:
        number, mark = bullet[1], bullet[2]
        sign = f"{number} " if number else ITEM
        if mark is not None:
            sign = OPEN if mark == " " else DONE
        inner = line[bullet.end() :]
        if not inner.strip():
            self._open = False
            return
        first = origin[bullet.end()]
        self._add("item", sign + inner, [first] * len(sign) + origin[bullet.end() :])
        self._open, self._joined = True, True

    def _paragraph(self, line: str, origin: list[int]) -> None:
        if self._open and self._lines and self._lines[-1].kind in ("prose", "item"):
            last = self._lines.pop()
            self._text.append(" ")
            self._origin.append(origin[0])
            self._size += 1
            self._put(last.kind, line, origin, last.start)
            self._joined = True
        else:
            self._add("prose", line, origin)
            self._joined = False
        self._open = True

    def _add(self, kind: LineKind, text: str, origin: list[int]) -> None:
        if not text.strip():
            return
        if self._lines:
            self._text.append("\n")
            self._origin.append(origin[0])
            self._size += 1
        self._put(kind, text, origin, self._size)
        if kind in ("heading", "row", "code"):
            self._open = False

    def _put(self, kind: LineKind, text: str, origin: list[int], start: int) -> None:
        """Add text without its outer spaces, and with single spaces inside."""
        for found in re.finditer(r"\S+", text):
            if self._size > start and not (self._text and self._text[-1] in (" ", "\n")):
                self._text.append(" ")
                self._origin.append(origin[found.start() - 1] if found.start() else origin[0])
                self._size += 1
            word = found[0].replace(_PIPE, "|")
            self._text.append(word)
            self._origin += origin[found.start() : found.end()]
            self._size += len(word)
        self._lines.append(Line(kind, start, self._size))

    def finished(self) -> Readable:
        return Readable("".join(self._text), tuple(self._lines), tuple(self._origin))
