"""Markdown: the text of a .md file becomes a Note.

    frontmatter -> comments and drawing data are hidden -> the parser's events become blocks, end to
    end, headings, tasks, tables, code and math -> links, tags, block ids, fields

Code, math and comments are blanked out (same length, same lines) before anything is searched for in
the text, so no rule needs to know about them. Nothing here raises, whatever the text is.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Literal

from ragvault.config import settings as config
from ragvault.notes import frontmatter
from ragvault.notes.links import (
    NOTE_SUFFIX,
    find_wiki,
    from_markdown,
    in_properties,
    is_attachment,
    is_image,
)
from ragvault.text.markup import WIKILINK, events, label_wikilinks, page_name
from ragvault.text.spans import Lines, Span, merged
from ragvault.types import Block, Heading, Held, Layout, Link, Note

# One that opens on a line of its own and is never closed reaches to the end, as in Obsidian.
_COMMENT = re.compile(r"%%.*?%%|^[ \t]*(%%)[ \t]*\n.*\Z", re.S | re.M)
_NEVER_CLOSED = "the comment (%%) that opens in line {} is never closed and hides the rest"
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_BLOCK_ID = re.compile(r"(?:^|(?<=[ \t]))\^([A-Za-z0-9-]+)[ \t]*$", re.M)
_TEXT_ELEMENTS = re.compile(r"^#{1,2} Text Elements[ \t]*\n", re.M)
_DRAWING = re.compile(r"^(?:%%|#{1,2} (?:Drawing|Embedded Files|Element Links))[ \t]*$", re.M)
Mark = tuple[int, str]  # where, and one of Chunk.has

_IN_HTML = re.compile(r"<(img|table|tr)(?=[\s/>])", re.I)


def parse_markdown(
    path: str,
    text: str,
    settings: config.Parse,
    links: config.Links,
    *,
    encoding: str = "utf-8",
    warnings: Sequence[str] = (),
) -> Note:
    """Everything that is in one file, as a Note."""
    front = frontmatter.split(text)
    drawing = _drawing_data(text, front.body) if _is_drawing(path, front) else []
    hidden = [(0, front.body), *drawing]
    parsed, comments, unclosed = _read(text, hidden, front.body)
    seen = blank_out(text, [*hidden, *comments, *parsed.code, *parsed.math])
    lines = Lines(text)
    found = _links(text, seen, parsed, links)
    note = Note(
        path=path,
        text=text,
        body=front.body,
        encoding=encoding,
        headings=_headings(parsed, lines),
        properties=frontmatter.with_fields(dict(front.properties), seen),
        tags=_tags(front, seen),
        blocks=_block_ids(seen, parsed),
        links=_placed([*_in_front(text, front, links), *found], lines),
        excluded=tuple(merged(drawing if settings.comments else [*drawing, *comments])),
        warnings=(*warnings, *front.warnings, *unclosed),
        layout=Layout(
            tuple(parsed.blocks), tuple(sorted(parsed.held)), _marks(seen, parsed, found)
        ),
    )
    above = blank_out(text, [*hidden, *comments])[: note.headings[0].start] if note.headings else ""
    return _with_fields(note, front, opens=not above.strip())


def _read(text: str, hidden: list[Span], body: int) -> tuple[_Parsed, list[Span], list[str]]:
    """The parsed body, its comments, and a warning for one that hides the rest of the note."""
    parsed = _Parsed(blank_out(text, hidden), body)
    found: list[re.Match[str]] = []
    if "%%" in text:
        shown = blank_out(text, [*hidden, *parsed.code, *parsed.math])
        found = list(_COMMENT.finditer(shown))
    comments = [match.span() for match in found]
    if comments:
        # What is commented out must not become a heading. And not with spaces: four of them
        # would make code of what follows on the line.
        parsed = _Parsed(blank_out(blank_out(text, hidden), comments, "\x01"), body)
    unclosed = [_NEVER_CLOSED.format(Lines(text).of(m.start(1))) for m in found if m[1]]
    for start, end in merged(parsed.html):
        comments += (match.span() for match in _HTML_COMMENT.finditer(text, start, end))
    return parsed, sorted(comments), unclosed


def blank_out(text: str, spans: Iterable[Span], fill: str = " ") -> str:
    """The text with these stretches replaced by a filler; newlines stay, so lines stay."""
    ordered = list(merged(spans))
    if not ordered:
        return text
    parts, at = [], 0
    for start, end in ordered:
        hidden = text[start:end]
        if "\n" in hidden:
            hidden = "\n".join(fill * len(line) for line in hidden.split("\n"))
        else:
            hidden = fill * len(hidden)
        parts += [text[at:start], hidden]
        at = end
    return "".join([*parts, text[at:]])


def _is_drawing(path: str, front: frontmatter.Front) -> bool:
    return path.lower().endswith(".excalidraw.md") or "excalidraw-plugin" in front.properties


def _drawing_data(text: str, body: int) -> list[Span]:
    """All of a drawing's file but the text written in the drawing."""
    heading = _TEXT_ELEMENTS.search(text, body)
    if not heading:
        return [(body, len(text))]
    end = _DRAWING.search(text, heading.end())
    return [(body, heading.end()), (end.start() if end else len(text), len(text))]


def _links(text: str, seen: str, parsed: _Parsed, settings: config.Links) -> list[Link]:
    """Every link of the body, attachments too, in the order of the text."""
    found = list(find_wiki(seen, settings.order, original=text))
    for link, end in parsed.links:
        if seen[link.start : end].strip() and not _in_brackets(seen, link.start, end):
            found.append(link)
    return sorted(found, key=lambda link: link.start)


def _in_brackets(seen: str, start: int, end: int) -> bool:
    """Whether a Markdown link is really a wikilink whose word has a reference definition."""
    if seen.startswith(("[[", "![["), start):
        return True
    return start > 0 and seen.startswith("[[", start - 1) and seen.startswith("]]", end - 1)


def _in_front(text: str, front: frontmatter.Front, settings: config.Links) -> list[Link]:
    block = text[: front.body]
    if "[[" not in block:
        return []
    return list(in_properties(block, front.properties.values(), settings.order))


def _placed(found: Iterable[Link], lines: Lines) -> tuple[Link, ...]:
    """The links to notes, each with its line."""
    notes = (link for link in found if not is_attachment(link))
    return tuple(replace(link, line=lines.of(link.start)) for link in notes)


def _headings(parsed: _Parsed, lines: Lines) -> tuple[Heading, ...]:
    headings: list[Heading] = []
    above: list[tuple[int, str]] = []
    for start, level, text in parsed.headings:
        above = [(at, name) for at, name in above if at < level] + [(level, text)]
        path = tuple(name for _, name in above)
        headings.append(Heading(text, level, lines.of(start), start, path))
    return tuple(headings)


def _tags(front: frontmatter.Front, seen: str) -> tuple[str, ...]:
    """Tags without repeats; `#Bread` and `#bread` are one, in its first spelling."""
    listed = frontmatter.words_of(front.properties, "tags", "tag", split_on=", \t")
    kept: dict[str, str] = {}
    for tag in (*filter(None, map(clean_tag, listed)), *find_tags(seen)):
        kept.setdefault(tag.casefold(), tag)
    return tuple(kept.values())


def _block_ids(seen: str, parsed: _Parsed) -> dict[str, int]:
    """Block ids and where their block begins; one on a line of its own names the block before."""
    ids: dict[str, int] = {}
    if "^" not in seen:
        return ids
    tops = [block.start for block in parsed.blocks]
    starts = sorted({start for block in parsed.blocks for start in (block.start, *block.cuts)})
    for match in _BLOCK_ID.finditer(seen):
        line = seen.rfind("\n", 0, match.start()) + 1
        alone = not seen[line : match.start()].strip()
        start = _block_before(tops, line) if alone else starts[bisect_right(starts, line) - 1]
        ids.setdefault(match[1].casefold(), start)
    return ids


def _block_before(starts: Sequence[int], line: int) -> int:
    """Where the block begins that a lone id at `line` names."""
    here = bisect_right(starts, line) - 1
    return starts[here - 1] if starts[here] == line and here > 0 else starts[here]


def _with_fields(note: Note, front: frontmatter.Front, *, opens: bool) -> Note:
    """The note with the fields of its frontmatter that searching and ranking use.

    `opens`: nothing but comments is above its first heading, which is the title then, if a first
    level one.
    """
    known = {name.lower(): value for name, value in front.properties.items()}
    text = {name: frontmatter.text_of(known.get(name)) for name in _TEXT_FIELDS}
    return replace(
        note,
        title=text["title"] or (_heading_1(note) if opens else "") or stem(note.path),
        aliases=frontmatter.words_of(known, "aliases", "alias"),
        description=text["description"],
        keywords=frontmatter.words_of(known, "keywords", "keyword"),
        author=", ".join(frontmatter.words_of(known, "author", "authors", split_on="\0")),
        importance=text["importance"].lower(),
        supersedes=frontmatter.words_of(known, "supersedes", split_on="\0"),
    )


_TEXT_FIELDS = ("title", "description", "importance")


def _heading_1(note: Note) -> str:
    first = note.headings[:1]
    return first[0].text if first and first[0].level == 1 else ""


def file_title(path: str) -> str:
    """The file's name without folder and suffix, as a person reads it."""
    return unicodedata.normalize("NFC", PurePosixPath(path).stem)


def stem(path: str) -> str:
    """The file's name without folder and suffix, as a person reads it."""
    name = NOTE_SUFFIX.sub("", path.rpartition("/")[2])
    return unicodedata.normalize("NFC", page_name(name))


# --- What the parser reads: blocks end to end, and what the rules for inline marks must skip ---

_CALLOUT = re.compile(r"(?:[ \t]*>)+[ \t]*\[![\w-]+(?:\|[^\]\n]*)?\]")
_BLOCK_ID_AT_END = re.compile(r"[ \t]+\^[A-Za-z0-9-]+[ \t]*$")
_LANGUAGE = re.compile(r"[\s{.]*([^\s,{}]+)")
_LINE_LEAD = re.compile(r"\n[ \t>]*")  # what may be on a line before a nested block
# The parser knows `[ ]` and `[x]` alone. Indented by tabs, an item may begin on the line before.
_TASK = re.compile(r"\s*(?:[-*+]|\d+[.)])[ \t]+(?=\[[^\]\n]\][ \t])")

BlockKind = Literal["heading", "prose", "code", "table", "list", "callout"]
_TOP: Mapping[str, BlockKind] = {
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


class _Parsed:
    """A text whose blocks begin at `body`, parsed. Never raises, whatever the text."""

    def __init__(self, text: str, body: int) -> None:
        self.headings: list[tuple[int, int, str]] = []  # start, level, text
        self.links: list[tuple[Link, int]] = []  # each with its end
        self.code: list[Span] = []
        self.math: list[Span] = []
        self.html: list[Span] = []
        self.held: list[Held] = []
        self.marks: list[Mark] = []
        self._text = text
        self._found: list[Block] = []
        self._cuts: list[int] = []  # of the last one
        self._depth = 0
        self._words: list[str] | None = None  # of the heading or link being read
        self._outer: list[tuple[str, list[str] | None]] = []  # the links around it
        self._read()
        self.blocks = list(_end_to_end(text, self._found, body))

    def _read(self) -> None:
        for kind, name, value, start, end in events(self._text):
            if kind == "Text":
                self._add(value)
            elif name == "Paragraph":  # the commonest, and there is no block inside
                if kind == "Start" and self._depth == 0:
                    self._found.append(Block("prose", start, end))
            elif name in ("Link", "Image"):
                self._link(kind, name, value, start, end)
            elif name in _BLOCKS:
                if kind == "Start":
                    self._open(name, value, start, end)
                else:
                    self._close(name, value, start)
            elif kind in ("SoftBreak", "HardBreak"):
                self._add(" ")
            elif kind == "Code":
                self.code.append((start, end))
                self._add(value)
            elif kind in ("InlineMath", "DisplayMath"):
                self.math.append((start, end))
                self._add(value)
            elif kind in ("Html", "InlineHtml"):
                self.html.append((start, end))
            elif kind == "Rule" and self._depth == 0:
                self._found.append(Block("prose", start, end))

    def _add(self, text: str) -> None:
        if self._words is not None:
            self._words.append(text)

    def _link(self, kind: str, name: str, value: Any, start: int, end: int) -> None:
        if kind == "Start":
            is_address = value["link_type"] in ("Autolink", "Email")
            self._outer.append(("" if is_address else value["dest_url"], self._words))
            self._words = []
            if name == "Image":
                self.marks.append((start, "image"))
        else:
            text = "".join(self._words or ())
            destination, self._words = self._outer.pop()
            if link := from_markdown(start, name == "Image", destination, text):
                self.links.append((link, end))
            self._add(text)

    def _open(self, name: str, value: Any, start: int, end: int) -> None:
        if name == "CodeBlock":
            lang = fence_language(value.get("Fenced", "")) if isinstance(value, dict) else ""
            self.code.append((start, end))
            self.held.append(Held(start, end, "code", lang))
        elif name == "Table":
            self.held.append(Held(start, end, "table"))
        elif name == "Item" and (task := _TASK.match(self._text, start)):
            self.marks.append((task.end(), "task"))
        elif name == "Heading":
            self._words = []
        if self._depth == 0:
            level = int(value["level"][1]) if name == "Heading" else 0
            self._found.append(Block(_TOP.get(name, "prose"), start, end, level))
        elif name in _NESTED_CUTS:
            self._cuts.append(start)
        self._depth += 1

    def _close(self, name: str, value: Any, start: int) -> None:
        self._depth -= 1
        if name == "Heading":
            text, self._words = "".join(self._words or ())[:_HEADING], None
            self.headings.append((start, int(value[1]) if value else 1, heading_text(text)))
        if self._depth == 0:
            self._found[-1] = self._found[-1]._replace(cuts=tuple(self._cuts))
            self._cuts = []


def fence_language(info: str) -> str:
    """The language an info string names: ```` ```py title="x" ````, `py{1,3}`, `{.py}` are py."""
    named = _LANGUAGE.match(info)
    return named[1].lower() if named else ""


def heading_text(text: str) -> str:
    """A heading as people read it: wikilinks as their label, no block id, single spaces."""
    return " ".join(_BLOCK_ID_AT_END.sub("", label_wikilinks(text)).split())


def _end_to_end(text: str, blocks: list[Block], body: int) -> Iterator[Block]:
    """The blocks without gaps: each reaches to the first line of the next.

    Text that is in no block (reference definitions) belongs to the block before it, or, at the
    very beginning, to the first.
    """
    line_start = _line_starts(text)
    starts = [line_start(block.start) for block in blocks]
    if starts:
        starts[0] = body
    elif body < len(text):
        yield Block("prose", body, len(text))
    starts.append(len(text))
    for start, end, block in zip(starts, starts[1:], blocks, strict=False):
        kind = block.kind
        if kind == "callout" and not _CALLOUT.match(text, line_start(block.start)):
            kind = "prose"
        cuts = sorted(set(map(line_start, block.cuts)))
        inner = tuple(at for at in cuts if start < at < end and text[at - 1] == "\n")
        yield Block(kind, start, end, block.level, inner)


def _line_starts(text: str) -> Callable[[int], int]:
    """Finds the beginning of an offset's line if only indentation is before it, else the offset
    itself, in a time that no long line can raise."""
    leads = [(lead.start(), lead.end() - 1) for lead in _LINE_LEAD.finditer(f"\n{text}")]
    starts = [start for start, _ in leads]

    def line_start(offset: int) -> int:
        start, end = leads[bisect_right(starts, offset) - 1]
        return start if offset <= end else offset

    return line_start


# --- Pictures, and tables written in HTML ---
# Of HTML only what people write for want of Markdown is known: <img> with a size, <table> with
# cells of several lines.


def _marks(seen: str, parsed: _Parsed, found: Iterable[Link]) -> tuple[Mark, ...]:
    """Where tasks, pictures and rows of HTML are, in order: a long table is several passages."""
    every = {(link.start, "image") for link in found if link.kind == "embed" and is_image(link)}
    every.update(parsed.marks)
    for start, end in merged(parsed.html):
        for match in _IN_HTML.finditer(seen, start, end):
            every.add((match.start(), "image" if match[1].lower() == "img" else "table"))
    return tuple(sorted(every))


# --- Tags: `#word`, `#nested/word`, in any script, and never digits alone ---
# A tag ends at the first character it cannot contain. Inside URLs, link destinations, wikilinks and
# HTML attributes a `#` is something else, so those are skipped.

# Letters, digits, `_ - /`, marks and emoji of every script: everything but space and punctuation.
_STOP = (
    r"\s!-,.:-@\[-^`{-~\u00a1\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf"
    r"\u2000-\u200c\u200e-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff3d\uff5b-\uff65"
)
_LINE_START = "|".join(rf"(?<=^{' ' * spaces}\[)" for spaces in range(4))  # of the `[` before it
# Every alternative begins with a character of its own: six times as fast as without.
_TAG = re.compile(
    rf"{WIKILINK}"  # its `#` names a heading
    r"|\]\([^)\]\n]*\)"  # a link's destination
    rf"|\[(?:{_LINE_START})[^\]\n]+\]:[ \t]*\S+"  # a reference's destination
    r"|</?[a-zA-Z][^<>\n]*>"  # the attributes of HTML
    r"|:/\S+"  # the rest of a URL, whose `#` begins a fragment
    rf"|#(?<![\w/#&\\-]#)([^{_STOP}]+)",
    re.M,
)
# Where one could be: most notes have a `#` and no tag, and what is above takes long to say so.
_LIKELY = re.compile(rf"#(?<![\w/#&\\-]#)[^{_STOP}]")


def find_tags(text: str) -> Iterator[str]:
    """Every tag in a text, as written, without its `#`."""
    if not _LIKELY.search(text):
        return
    for match in _TAG.finditer(text):
        tag = clean_tag(match[1] or "")
        if tag:
            yield tag


def clean_tag(written: str) -> str:
    """A tag as it is stored: no `#`, no stray slashes; empty if it is no tag (only digits)."""
    tag = unicodedata.normalize("NFC", written.strip().lstrip("#").strip("/"))
    return "" if not tag or tag.isdigit() or re.search(r"\s", tag) else tag
