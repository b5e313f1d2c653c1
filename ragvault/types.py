"""The nouns of ragvault, frozen.

A note is a file. Its body is cut twice: into sections (what is shown) and each section into
passages (what is searched). Offsets count characters of the note's decoded text, in which every
line ends in one newline; lines and columns count from 1, as editors do.

    File      a note's file as the walk saw it, not yet read
    IndexedFile   the same as it was when it was indexed
    Skipped   a file that was not indexed, and why
    Note      a file that was read: its text, its fields, and everything found in it
    Heading   one heading of a note
    Link      one link of a note, as written
    Target    what a link turned out to mean
    Block     one block of a note's body; a Layout is all of them
    Section   a part of a note that is shown as one result
    Passage   a part of a section: the unit of retrieval
    Head, Said   a stored note without its text; a stored passage without its position
    SearchRequest   a search as the caller wants it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

# File types whose text is made from the file: its lines cannot be counted in the text.
DERIVED_TEXT = (".canvas",)
PLAIN_TEXT = (".txt",)  # file types that are not Markdown

Tier = Literal["keyword", "static", "full"]
TIERS: tuple[Tier, ...] = ("keyword", "static", "full")
# What most of a passage is. "properties": it stands for a note without text.
Kind = Literal["prose", "code", "table", "list", "callout", "properties"]
LinkKind = Literal["link", "embed", "property"]
LinkForm = Literal["wiki", "markdown"]
Status = Literal["resolved", "unresolved", "ambiguous"]
# The catalogue calls a link unresolved; users call it broken.
LINK_STATES = {"resolved": "resolved", "unresolved": "broken", "ambiguous": "ambiguous"}
Via = Literal["path", "folder", "name", "alias", "self"]


@dataclass(frozen=True, slots=True)
class File:
    """A note's file as the walk saw it.

    `path` is relative to the vault, with `/`, in NFC: the note's name everywhere. `disk` is the
    same path letter for letter as the file system spells it, which is what can be opened.
    `ctime_ns` and `inode` change with an edit that keeps size and time; 0 is not known.
    """

    path: str
    disk: str
    size: int  # bytes
    mtime_ns: int
    ctime_ns: int = 0
    inode: int = 0


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that was not indexed. `reason` is one of a few words, `detail` explains."""

    path: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading. `path` has the texts of the headings above it and its own, outermost first."""

    text: str
    level: int
    line: int
    start: int
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """One link as written in a note: nothing here has been looked up.

    `target` is the path or name before the first `#`, percent-decoded for Markdown links; empty
    when the link points into its own note. `anchor` is what follows: `("H1", "H2")` or `("^id",)`.
    """

    kind: LinkKind
    form: LinkForm
    target: str
    anchor: tuple[str, ...]
    text: str
    line: int
    start: int


@dataclass(frozen=True, slots=True)
class Target:
    """What a link means in this vault.

    `path` is the note; `start` the offset in that note that the anchor names, None for the whole
    note. `others` lists the notes an ambiguous name could also have meant.
    """

    status: Status
    path: str | None = None
    via: Via | None = None
    start: int | None = None
    anchor_found: bool = True
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Date:
    """When a note is from, in seconds since 1970 (UTC), and how we know."""

    at: float
    source: Literal["name", "frontmatter", "git", "mtime"]


class Dates(NamedTuple):
    """The dates of a note, in seconds since 1970; None where there is none."""

    date: Date | None
    created: float | None
    modified: float | None


class IndexedFile(NamedTuple):
    """A file as it was indexed. `indexed_ns` is the clock just before its bytes were read."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    indexed_ns: int
    digest: bytes
    recipe: str = ""  # how it was read and chunked


class Block(NamedTuple):
    """One block of a note's body, from its first line to the first line of the next block.

    `cuts` are the places inside where it may be cut with the least harm: the first characters of
    list items, table rows and quoted blocks.
    """

    kind: Literal["heading", "prose", "code", "table", "list", "callout"]
    start: int
    end: int
    level: int = 0  # of a heading
    cuts: tuple[int, ...] = ()


class Held(NamedTuple):
    """Code or a table, wherever it is: by itself, in a list, in a quote or in a callout.

    `lang` is the language a fence names, in small letters, by whichever of its names was written.
    """

    start: int
    end: int
    part: Literal["code", "table"]
    lang: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a body is built: its blocks, end to end, and their content, in order.

    No two of `held` share a character; `marks` are places only. A text that is not the file's own
    has `places`: where parts of it begin, and the line of the file that each comes from.
    """

    blocks: tuple[Block, ...] = ()
    held: tuple[Held, ...] = ()
    marks: tuple[tuple[int, str], ...] = ()  # (offset, one of Passage.has)
    places: tuple[tuple[int, int], ...] = ()  # (offset, line)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of one note, [start, end), that is shown as one result."""

    ordinal: int
    headings: tuple[str, ...]
    start: int
    end: int
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of one section, [start, end), that is embedded and searched.

    `headings` is the path of the heading that all of it is under. Short sections share a passage:
    `subheadings` are the headings below that path that parts of it are under, in order.

    `text` is that part of the note without what is not indexed (comments, drawing data), preceded
    by `overlap` characters of the passage before it. `columns` are the column of the first
    character in `lines[0]` and of the last one in `lines[1]`. `lang` has every language that a
    fence in it names, as written and in lower case; a fence that two passages share counts in both.

    A note without text has one passage, of the kind "properties": the note's names and properties
    as people read them. It is in no section, and its lines are those of the frontmatter.
    """

    ordinal: int
    section: int
    headings: tuple[str, ...]
    kind: Kind
    lang: frozenset[str]  # none has a space in it
    has: frozenset[str]  # of: code, table, task, image
    start: int
    end: int
    lines: tuple[int, int]
    columns: tuple[int, int]
    text: str
    overlap: int = 0
    subheadings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """A file that was read, and everything found in it.

    `excluded` are the spans of `text` that are not indexed, in order and apart; `body` is
    where the text after the frontmatter begins. `warnings` are sentences for `status`.
    """

    path: str
    text: str
    body: int = 0
    encoding: str = "utf-8"
    title: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    description: str = ""
    keywords: tuple[str, ...] = ()
    author: str = ""
    importance: str = ""
    supersedes: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    headings: tuple[Heading, ...] = ()
    blocks: Mapping[str, int] = field(default_factory=dict)  # ^block-id -> offset
    links: tuple[Link, ...] = ()
    excluded: tuple[tuple[int, int], ...] = ()
    warnings: tuple[str, ...] = ()
    # For the chunker alone: it is derived from `text`, and the catalogue does not keep it.
    layout: Layout = field(default_factory=Layout, compare=False, repr=False)


# --- Stored notes and passages, as the keyword index takes them ---


class Head(NamedTuple):
    """What a stored note is called and what it is about, without its text.

    What only looks for names leaves the rest out.
    """

    id: int
    path: str
    title: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    description: str = ""
    author: str = ""
    properties: Mapping[str, Any] = {}


class PassageText(NamedTuple):
    """The text of a stored passage, without its place. `hash` is that of the text to embed."""

    id: int
    note_id: int
    hash: bytes
    headings: tuple[str, ...]
    lang: tuple[str, ...]
    has: tuple[str, ...]
    text: str
    subheadings: tuple[str, ...] = ()
    kind: Kind = "prose"


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search as the caller wants it. `now` is the clock, for recency and for human dates.

    `also` are more queries, which are answered with the first one as one list; `hypothesis` belongs
    to the first. With `widen`, a caller who asks for more results than usual gets more candidates
    of each leg; without it, the first results are the same for every `limit`. With `verify`,
    results are compared with their files before they are returned. With `all_matches`, an answer in
    which nothing is likely is not cut to the closest few.

    `vaults` are paths or names; without any, the folder of the caller decides. `settings` are
    `key=value`, above those of all files. `compare` is whether to compare the files of a vault with
    its index: "small" only for a small vault. With `require_fresh` an index that is behind is an
    error. With `explain` every result has the steps of its score.
    """

    query: str
    now: datetime
    limit: int | None = None
    hypothesis: str | None = None
    widen: bool = True
    verify: bool = True
    all_matches: bool = False
    also: tuple[str, ...] = ()
    vaults: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    compare: Literal["always", "small", "never"] = "small"
    require_fresh: bool = False
    explain: bool = False
