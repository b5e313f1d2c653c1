"""Markdown: the text of a .md file becomes a Note.

    frontmatter -> comments and drawing data are hidden -> layout -> headings, links, tags, block
    ids, fields

Code, math and comments are blanked out (same length, same lines) before anything is searched for in
the text, so no rule needs to know about them. Nothing here raises, whatever the text is.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ragvault.config import settings as config
from ragvault.notes import frontmatter
from ragvault.notes.layout import Parsed, read_layout
from ragvault.notes.links import (
    NOTE_SUFFIX,
    find_wiki,
    from_markdown,
    in_properties,
    is_attachment,
    is_image,
)
from ragvault.text.markup import WIKILINK, page_name
from ragvault.text.spans import Lines, Span, joined
from ragvault.types import Heading, Layout, Link, Note

# One that opens on a line of its own and is never closed reaches to the end, as in Obsidian.
_COMMENT = re.compile(r"%%.*?%%|^[ \t]*(%%)[ \t]*\n.*\Z", re.S | re.M)
_NEVER_CLOSED = "the comment (%%) that opens in line {} is never closed and hides the rest"
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_BLOCK_ID = re.compile(r"(?:^|(?<=[ \t]))\^([A-Za-z0-9-]+)[ \t]*$", re.M)
_TEXT_ELEMENTS = re.compile(r"^#{1,2} Text Elements[ \t]*\n", re.M)
_DRAWING = re.compile(r"^(?:%%|#{1,2} (?:Drawing|Embedded Files|Element Links))[ \t]*$", re.M)
Mark = tuple[int, str]  # where, and one of Chunk.has

_TASK = re.compile(r"^[ \t>]*(?:[-*+]|\d+[.)])[ \t]+\[[^\]\n]\](?=[ \t])", re.M)
_BOX = re.compile(r"\[[^\]\n]\][ \t]")  # every task has one; looking at each line takes long
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
        excluded=tuple(joined(drawing if settings.comments else [*drawing, *comments])),
        warnings=(*warnings, *front.warnings, *unclosed),
        layout=Layout(
            tuple(parsed.blocks), tuple(sorted(parsed.held)), _marks(seen, parsed, found)
        ),
    )
    above = blank_out(text, [*hidden, *comments])[: note.headings[0].start] if note.headings else ""
    return _with_fields(note, front, opens=not above.strip())


def _read(text: str, hidden: list[Span], body: int) -> tuple[Parsed, list[Span], list[str]]:
    """The parsed body, its comments, and a warning for one that hides the rest of the note."""
    parsed = read_layout(blank_out(text, hidden), body)
    found: list[re.Match[str]] = []
    if "%%" in text:
        shown = blank_out(text, [*hidden, *parsed.code, *parsed.math])
        found = list(_COMMENT.finditer(shown))
    comments = [match.span() for match in found]
    if comments:
        # What is commented out must not become a heading. And not with spaces: four of them
        # would make code of what follows on the line.
        parsed = read_layout(blank_out(blank_out(text, hidden), comments, "\x01"), body)
    unclosed = [_NEVER_CLOSED.format(Lines(text).of(m.start(1))) for m in found if m[1]]
    return parsed, sorted([*comments, *_html_comments(text, parsed.html)]), unclosed


def _html_comments(text: str, html: Iterable[Span]) -> Iterator[Span]:
    for start, end in joined(html):
        for match in _HTML_COMMENT.finditer(text, start, end):
            yield match.span()


def blank_out(text: str, spans: Iterable[Span], fill: str = " ") -> str:
    """The text with these stretches replaced by a filler; newlines stay, so lines stay."""
    ordered = list(joined(spans))
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


def _links(text: str, seen: str, parsed: Parsed, settings: config.Links) -> list[Link]:
    """Every link of the body, attachments too, in the order of the text."""
    found = list(find_wiki(seen, settings.order, original=text))
    for md in parsed.links:
        if seen[md.start : md.end].strip() and not _in_brackets(seen, md.start, md.end):
            link = from_markdown(md.start, md.image, md.destination, md.text)
            found += [link] if link else []
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


def _headings(parsed: Parsed, lines: Lines) -> tuple[Heading, ...]:
    headings: list[Heading] = []
    above: list[tuple[int, str]] = []
    for start, level, text in parsed.headings:
        above = [(at, name) for at, name in above if at < level] + [(level, text)]
        path = tuple(name for _, name in above)
        headings.append(Heading(text, level, lines.of(start), start, path))
    return tuple(headings)


def _tags(front: frontmatter.Front, seen: str) -> tuple[str, ...]:
    listed = frontmatter.words_of(front.properties, "tags", "tag", split_on=", \t")
    return _merged_tags([*filter(None, map(clean_tag, listed)), *find_tags(seen)])


def _block_ids(seen: str, parsed: Parsed) -> dict[str, int]:
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


def stem(path: str) -> str:
    """The file's name without folder and suffix, as a person reads it."""
    name = NOTE_SUFFIX.sub("", path.rpartition("/")[2])
    return unicodedata.normalize("NFC", page_name(name))


# --- Marks: where tasks and pictures are, and tables written in HTML ---
# Of HTML only what people write for want of Markdown is known: <img> with a size, <table> with
# cells of several lines.


def _marks(seen: str, parsed: Parsed, found: Iterable[Link]) -> tuple[Mark, ...]:
    """All of them, in order."""
    shown = [link for link in found if link.kind == "embed" and is_image(link)]
    every = {(link.start, "image") for link in shown}
    if _BOX.search(seen):
        every |= {(match.start(), "task") for match in _TASK.finditer(seen)}
    every.update(parsed.marks, _in_html(seen, parsed.html))
    return tuple(sorted(every))


def _in_html(seen: str, html: Iterable[Span]) -> Iterator[Mark]:
    """Pictures and tables, these at every row: a long one is cut into several passages."""
    for start, end in joined(html):
        for match in _IN_HTML.finditer(seen, start, end):
            yield match.start(), "image" if match[1].lower() == "img" else "table"


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


def _merged_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags without repeats; `#Bread` and `#bread` are one, in its first spelling."""
    kept: dict[str, str] = {}
    for tag in tags:
        kept.setdefault(tag.casefold(), tag)
    return tuple(kept.values())
