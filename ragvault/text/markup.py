"""Markup: how Markdown is written, for notes, snippets, queries and the graph.

    events       what pyromark (pulldown-cmark) reads in a text: CommonMark with tables, tasks,
                 footnotes and math, at about 40 MB/s; it knows no wikilinks
    wikilinks    [[Target]]  [[Target|label]]  [[Target#Heading]]  ![[embedded]]
    page_names   Logseq links to pages whose names no file can have: [[a/b?]] is the file
                 a___b%3F.md, and [[Sep 14th, 2020]] is journals/2020_09_14.md

A single `]` does not end a wikilink, and `[[` starts a new one. So a text full of unclosed `[[` is
scanned once, in time linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal, NamedTuple


class Event(NamedTuple):
    """One event of the parser, at [start, end) of the text.

    `kind` is Start, End, Text, Code, InlineMath, Rule …; `name` the tag of a Start or End. `value`
    is the text, or what a tag says besides its name.
    """

    kind: str
    name: str
    value: Any
    start: int
    end: int


def events(text: str) -> Iterator[Event]:
    """What the parser reads in a text, in order. Never raises, whatever the text."""
    import pyromark

    raw = text.encode("utf-8", "replace")  # a lone surrogate becomes one character
    found: Any = pyromark.events_with_range(raw.decode(), options=_options())
    at = _characters(raw) if len(raw) > len(text) else int
    for event, span in found:
        start, end = at(span["start"]), at(span["end"])
        if type(event) is str:
            yield Event(event, "", None, start, end)
            continue
        ((kind, value),) = event.items()
        if kind not in ("Start", "End"):
            yield Event(kind, "", value, start, end)
        elif type(value) is str:
            yield Event(kind, value, None, start, end)
        else:
            ((name, details),) = value.items()
            yield Event(kind, name, details, start, end)


@cache
def _options() -> Any:
    from pyromark import Options

    plain = Options.ENABLE_TABLES | Options.ENABLE_FOOTNOTES | Options.ENABLE_TASKLISTS
    return plain | Options.ENABLE_STRIKETHROUGH | Options.ENABLE_MATH


def _characters(raw: bytes) -> Callable[[int], int]:
    """A map from offsets in UTF-8, which the parser counts, to offsets in characters."""
    import numpy as np

    begins = (np.frombuffer(raw + b" ", np.uint8) & 0xC0) != 0x80  # not within a character
    at: Callable[[int], int] = (np.cumsum(begins, dtype=np.int64) - 1).data.__getitem__
    return at


# --- Wikilinks ---

Order = Literal["target-first", "label-first"]  # the setting links.order

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
