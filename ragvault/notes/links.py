"""Links as they are written: wikilinks, embeds and Markdown links, wherever they are.

The caller has blanked out code, math and comments, and passes the Markdown links its parser found.
resolve.py finds the note that a link means.

    [[T]]  [[T.md]]  [[T|text]]  [[T#H]]  [[T#H1#H2]]  [[#H]]  [[T#^id]]  ![[T]]  [t](T.md#H)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Literal
from urllib.parse import unquote

from ragvault.text.markup import find_wikilinks, match_wikilink, split_label
from ragvault.types import Link, LinkKind

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

Order = Literal["target-first", "label-first"]


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
