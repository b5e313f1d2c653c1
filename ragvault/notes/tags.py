"""Tags: `#word`, `#nested/word`, in any script, and never digits alone.

A tag ends at the first character it may not hold. Inside URLs, link destinations, wikilinks and
HTML attributes a `#` is something else, so those are stepped over; code and comments are blanked
out by the caller.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

# Letters, digits, `_ - /`, marks and emoji of every script: everything but space and punctuation.
_STOP = (
    r"\s!-,.:-@\[-^`{-~\u00a1\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf"
    r"\u2000-\u200c\u200e-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff3d\uff5b-\uff65"
)
_TAG = re.compile(
    r"\[\[[^\n]*?\]\]"  # a wikilink, whose `#` names a heading
    r"|\]\([^)\n]*\)"  # a link's destination
    r"|^ {0,3}\[[^\]\n]+\]:[ \t]*\S+"  # a reference's destination
    r"|</?[a-zA-Z][^>\n]*>"  # the attributes of HTML
    r"|:/\S+"  # the rest of a URL, whose `#` begins a fragment
    rf"|(?<![\w/#&\\-])#([^{_STOP}]+)",
    re.M,
)
# Where one could be: most notes have a `#` and no tag, and what is above takes long to say so.
_LIKELY = re.compile(rf"#(?<![\w/#&\\-]#)[^{_STOP}]")


def find(text: str) -> Iterator[str]:
    """Every tag in a text, as written, without its `#`."""
    if not _LIKELY.search(text):
        return
    for match in _TAG.finditer(text):
        tag = clean(match[1] or "")
        if tag:
            yield tag


def clean(written: str) -> str:
    """A tag as it is kept: no `#`, no stray slashes; empty when it is none (digits alone)."""
    tag = unicodedata.normalize("NFC", written.strip().lstrip("#").strip("/"))
    return "" if not tag or tag.isdigit() or re.search(r"\s", tag) else tag


def merge(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags without repeats; `#Bread` and `#bread` are one, in its first spelling."""
    kept: dict[str, str] = {}
    for tag in tags:
        kept.setdefault(tag.casefold(), tag)
    return tuple(kept.values())
