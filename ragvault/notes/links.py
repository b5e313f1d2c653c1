"""Links: how wikilinks, embeds and Markdown links are written, and what each means in this vault.

The caller has blanked out code, math and comments, and passes the Markdown links its parser found.

    [[T]]  [[T.md]]  [[T|text]]  [[T#H]]  [[T#H1#H2]]  [[#H]]  [[T#^id]]  ![[T]]  [t](T.md#H)

A link means, in Obsidian's order, and nothing is guessed in silence:
    1  the exact path in the vault: `[[Note]]` is `Note.md` at the root
    2  a note in the folder of the one that links
    3  the shortest path of that name; two equally short ones are ambiguous
    4  an alias, which Obsidian does not follow and people mean: a weaker kind, labelled

Markdown links are looked up beside their note first, as every Markdown tool does. Names are
compared without case and in NFC.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ragvault.text.markup import Order, find_wikilinks, match_wikilink, page_names, split_label
from ragvault.types import Heading, Link, LinkKind, Note, Target, Via

if TYPE_CHECKING:
    from ragvault.types import Head

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]+:", re.I)
_ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]+://|(?:mailto|tel|data|file):)", re.I)
# `[[ -f x ]]` and `[[ $a == b ]]` are shell, even outside a code block.
_SHELL_TEST = re.compile(r"\s+(?:!\s*)?-\w+\s")
_SHELL_SIGN = re.compile(r"[$=]|&&|\s-(?:eq|ne|lt|gt|le|ge)\s")

_OTHER_VAULT = re.compile(r"^\s*dendron://[^/]+/")  # Dendron names the vault of a note this way

NOTE_SUFFIX = re.compile(r"\.(?:md|markdown)$", re.I)
_NOTE_FILE = re.compile(r"\.(?:md|markdown|canvas|txt)$", re.I)  # a link to one keeps its suffix
_IMAGES = "png|jpe?g|gif|bmp|svg|webp|avif|ico|tiff?|heic"
_FILES = (
    "mp3|wav|m4a|ogg|3gp|flac|webm|mp4|ogv|mov|mkv|pdf|base|zip|tar|gz|7z|docx?|"
    "xlsx?|pptx?|od[tsp]|epub|csv|tsv|rtf|html?|json|ya?ml|xml"
)
_IMAGE_SUFFIX = re.compile(rf"\.(?:{_IMAGES})$", re.I)
# `[[Node.js]]` is a note: only what applications treat as attachments is one.
_ATTACHMENT = re.compile(rf"\.(?:{_IMAGES}|{_FILES})$", re.I)
_ANY_SUFFIX = re.compile(r"\.[a-z][a-z0-9]{0,9}$", re.I)


def find_wiki(
    text: str, order: Order, kind: LinkKind = "link", *, original: str = ""
) -> Iterator[Link]:
    """Every wikilink of a text, attachments too; lines are for the caller to fill in.

    `original` is the text before anything was blanked out: a name may contain `code`.
    """
    if "[[" not in text:
        return
    for match in find_wikilinks(text):
        inner = (original or text)[match.start("inside") : match.end("inside")]
        if _escaped(text, match.start()) or _is_shell(inner):
            continue
        target, anchor, label = _take_apart(inner, order)
        if (target or anchor) and not _ADDRESS.match(target):
            as_kind: LinkKind = "embed" if match["embed"] else kind
            yield Link(as_kind, "wiki", target, anchor, label, 0, match.start())


def from_markdown(start: int, image: bool, destination: str, text: str) -> Link | None:
    """A Markdown link as a Link; None for one that leaves the vault."""
    # `((…))` is Logseq's name for a block by a number that is in no file.
    if not destination or _SCHEME.match(destination) or destination.startswith(("//", "((")):
        return None
    path, _, fragment = destination.partition("#")
    target = _normal(unquote(path.partition("?")[0]))
    anchor = tuple(part for part in unquote(fragment).split("#") if part)
    if not target and not anchor:
        return None
    return Link("embed" if image else "link", "markdown", target, anchor, text, 0, start)


def in_properties(front: str, properties: Iterable[Any], order: Order) -> Iterator[Link]:
    """The links in quoted property values, at the place of the frontmatter they were written."""
    at = 0
    for text in _strings(list(properties)):
        for link in find_wiki(text, order, "property"):
            written = match_wikilink(text, link.start)
            place = front.find(written[0], at) if written else -1
            at = place if place >= 0 else at
            yield Link("property", "wiki", link.target, link.anchor, link.text, 0, max(place, 0))


def is_attachment(link: Link) -> bool:
    """Whether a link means a file that is not a note: a picture, a sound, a document."""
    if not link.target or _NOTE_FILE.search(link.target):
        return False
    # A Markdown link names a file, suffix and all; a wikilink names a note, which may have dots.
    pattern = _ANY_SUFFIX if link.form == "markdown" else _ATTACHMENT
    return bool(pattern.search(link.target))


def is_image(link: Link) -> bool:
    """Whether a link shows a picture."""
    return bool(_IMAGE_SUFFIX.search(link.target))


def _take_apart(inner: str, order: Order) -> tuple[str, tuple[str, ...], str]:
    """The target, the anchor and the label of the text between the brackets."""
    first, label = split_label(inner)
    if order == "label-first":
        first, label = (label, first) if label else (first, "")
        first = _OTHER_VAULT.sub("", first)
    # Path and anchor part at the first `#`, as in Obsidian.
    path, _, fragment = first.partition("#")
    anchor = tuple(part.strip() for part in fragment.split("#") if part.strip())
    return _normal(path), anchor, label.strip()


def _is_shell(inner: str) -> bool:
    return inner[:1].isspace() and bool(_SHELL_TEST.match(inner) or _SHELL_SIGN.search(inner, 1))


def _normal(path: str) -> str:
    return unicodedata.normalize("NFC", path.replace("\\", "/").strip())


def _escaped(text: str, at: int) -> bool:
    slashes = 0
    while at > slashes and text[at - 1 - slashes] == "\\":
        slashes += 1
    return slashes % 2 == 1


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


# --- What a link means ---

Anchors = tuple[Sequence[Heading], Mapping[str, int]]
_FOLDER_NOTES = ("index", "readme", "_index")  # what a link to a folder opens, in this order
_MARKUP = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\_]+")
_NOT_SLUG = re.compile(r"[^\w\- ]")


class Resolver:
    """Knows the names of a vault; asks `anchors` for the headings and block ids of one note."""

    def __init__(self, notes: Iterable[Head | Note], anchors: Callable[[str], Anchors]) -> None:
        self._paths: dict[str, list[str]] = defaultdict(list)
        self._names: dict[str, list[str]] = defaultdict(list)
        self._aliases: dict[str, list[str]] = defaultdict(list)
        self._folders: set[str] = set()
        for note in sorted(notes, key=lambda note: note.path):
            self._add(note)
        self._places_in = lru_cache(maxsize=1000)(lambda path: Places(*anchors(path)))

    def _add(self, note: Head | Note) -> None:
        names = _bare(note.path)
        for bare in names:
            self._paths[bare].append(note.path)
            self._folders.add(bare.rpartition("/")[0])
        for last in {bare.rpartition("/")[2] for bare in names}:
            self._names[last].append(note.path)
        for alias in note.aliases:
            self._aliases[name_key(alias)].append(note.path)

    def resolve(self, source: str, link: Link) -> Target:
        """The note, and the place in it, that a link of `source` means."""
        if not link.target:
            return self._placed(Target("resolved", source, "self"), link)
        return self._placed(self._note(source, link), link)

    def _note(self, source: str, link: Link) -> Target:
        name = name_key(NOTE_SUFFIX.sub("", link.target))
        folder = name_key(source.rpartition("/")[0])
        for place, via in _places(name, folder, link.form == "markdown"):
            found = self._at(place, link.target)
            if found:
                return Target("resolved", found, via)
        found_by_name = _best(self._named(name.strip("/")), "name")
        if found_by_name or link.form == "markdown":
            return found_by_name or Target("unresolved")
        by_alias = sorted(set(self._aliases.get(name, ())))
        return _best(by_alias, "alias") or Target("unresolved")

    def _at(self, place: str, spelled: str) -> str | None:
        """The note at a path; if two differ only in case, the one spelled that way."""
        paths = self._paths.get(place)
        if paths:
            last = NOTE_SUFFIX.sub("", spelled).rpartition("/")[2]
            exact = [p for p in paths if NOTE_SUFFIX.sub("", p).rpartition("/")[2] == last]
            return (exact or paths)[0]
        if place in self._folders:
            inside = (f"{place}/{name}".lstrip("/") for name in _FOLDER_NOTES)
            return next((self._paths[path][0] for path in inside if path in self._paths), None)
        return None

    def _named(self, name: str) -> list[str]:
        """The notes of that name; `a/b` is any note `b` in a folder `a`."""
        paths = self._names.get(name.rpartition("/")[2], [])
        if "/" not in name:
            return paths
        return [p for p in paths if any(f"/{bare}".endswith("/" + name) for bare in _bare(p))]

    def _placed(self, target: Target, link: Link) -> Target:
        if not link.anchor or target.path is None:
            return target
        start = self._places_in(target.path).find(link.anchor)
        return Target(
            target.status, target.path, target.via, start, start is not None, target.others
        )


def _bare(path: str) -> list[str]:
    """The path of a note as links spell it."""
    folder, slash, _ = path.rpartition("/")
    return [name_key(folder + slash + name) for name in page_names(NOTE_SUFFIX.sub("", path))]


def name_key(name: str) -> str:
    """Names compare without case, in NFC."""
    return unicodedata.normalize("NFC", name).casefold()


class Places:
    """What anchors name in one note: looked up, as a note may have 10,000 links to its headings."""

    def __init__(self, headings: Sequence[Heading], blocks: Mapping[str, int]) -> None:
        self._headings, self._blocks = headings, blocks

    def find(self, anchor: Sequence[str]) -> int | None:
        """The offset an anchor names: a block id, a chain of headings, or a heading's slug."""
        last = anchor[-1]
        if last.startswith("^"):
            return self._blocks.get(last[1:].casefold())
        start = self._chains.get(tuple(map(heading_key, anchor)))
        return self._slugs.get(name_key(last)) if start is None and len(anchor) == 1 else start

    @cached_property
    def _chains(self) -> Mapping[tuple[str, ...], int]:
        """Every heading, after any of those above it in their order; the first of a name counts."""
        found: dict[tuple[str, ...], int] = {}
        for heading in self._headings:
            *above, last = map(heading_key, heading.path)
            for count in range(len(above) + 1):
                for names in combinations(above, count):
                    found.setdefault((*names, last), heading.start)
        return found

    @cached_property
    def _slugs(self) -> Mapping[str, int]:
        """GitHub's anchors: `## What's new?` is `#whats-new`, its second copy `#whats-new-1`."""
        seen: dict[str, int] = defaultdict(int)
        found: dict[str, int] = {}
        for heading in self._headings:
            slug = _NOT_SLUG.sub("", name_key(heading.text)).strip().replace(" ", "-")
            found.setdefault(f"{slug}-{seen[slug]}" if seen[slug] else slug, heading.start)
            seen[slug] += 1
        return found


def heading_key(text: str) -> str:
    """A heading as links spell it: no case, no markup, single spaces."""
    return " ".join(_MARKUP.sub(" ", name_key(text)).split())


def _places(name: str, folder: str, markdown: bool) -> list[tuple[str, Via]]:
    """The paths to try, in order, and what a hit there is called."""
    beside = posixpath.normpath(posixpath.join(folder, name)).lstrip("/")
    if name.startswith(("./", "../")):
        return [] if beside.startswith("..") else [(beside, "folder")]
    exact: tuple[str, Via] = (name.strip("/"), "path")
    if name.startswith("/"):
        return [exact]
    return [(beside, "folder"), exact] if markdown else [exact, (beside, "folder")]


def _best(paths: Sequence[str], via: Via) -> Target | None:
    """The shortest path; of two equally short ones the first, marked as ambiguous."""
    if not paths:
        return None
    ordered = sorted(paths, key=lambda path: (len(path), path))
    rivals = tuple(path for path in ordered[1:] if len(path) == len(ordered[0]))
    return Target("ambiguous" if rivals else "resolved", ordered[0], via, others=rivals)
