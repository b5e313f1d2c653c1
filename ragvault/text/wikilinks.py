"""How a wikilink is written: the one pattern for notes, queries and the graph.

    [[Target]]  [[Target|label]]  [[Target#Heading]]  ![[embedded]]

A single `]` does not end a link, and `[[` starts a new one. So a text full of unclosed `[[` is
scanned once, in time linear in its length.

Logseq links to pages whose names no file can have: [[a/b?]] is the file a___b%3F.md, and
[[Sep 14th, 2020]] is journals/2020_09_14.md. `page_names` are the names of the page in a file.
"""

from __future__ import annotations

import re

WIKILINK = r"\[\[(?:[^\[\]\n]|\](?!\])|\[(?!\[))+\]\]"  # to build larger expressions from
_PARTS = re.compile(r"(?P<embed>!?)\[\[(?P<inside>(?:[^\[\]\n]|\](?!\])|\[(?!\[))+)\]\]")
_PIPE = re.compile(r"\\?\|")  # in a table the pipe is escaped

# Both give matches with the groups `embed` and `inside`.
find_wikilinks = _PARTS.finditer
match_wikilink = _PARTS.match


def split_label(inside: str) -> tuple[str, str]:
    """The target and the label of `target|label`; the label is empty if there is none."""
    target, *labels = _PIPE.split(inside)
    return target, labels[-1] if labels else ""


def label_wikilinks(text: str) -> str:
    """The text with each wikilink replaced by what a reader sees: its label, else its target."""
    return _PARTS.sub(_shown, text) if "[[" in text else text


def _shown(link: re.Match[str]) -> str:
    target, label = split_label(link["inside"])
    return label or target


# --- Logseq's pages ---

_SLASH = "___"  # for the / of a page's name
# " # % * / : < > ? \\ | as hexadecimal numbers: no system lets a file have all of them.
_ENCODED = re.compile(r"%(2[235AF]|3[ACEF]|5C|7C)", re.IGNORECASE)
_JOURNAL = re.compile(r"(?:.*/)?journals/(\d{4})_(\d\d)_(\d\d)")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_ORDINALS = {"1": "st", "2": "nd", "3": "rd"}


def page_name(name: str) -> str:
    """What Logseq calls the page in a file of this name, which has no suffix."""
    return _ENCODED.sub(lambda code: chr(int(code[1], 16)), name.replace(_SLASH, "/"))


def page_names(path: str) -> tuple[str, ...]:
    """What the note at a path without suffix is called: its file's name, and that of its page."""
    name = path.rpartition("/")[2]
    names = [name, page_name(name)]
    if (day := _JOURNAL.fullmatch(path)) and 1 <= int(day[2]) <= len(_MONTHS):
        number = str(int(day[3]))
        ending = "th" if day[3][0] == "1" else _ORDINALS.get(number[-1], "th")
        names.append(f"{_MONTHS[int(day[2]) - 1]} {number}{ending}, {day[1]}")
    return tuple(dict.fromkeys(names))
