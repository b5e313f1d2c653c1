"""How a wikilink is written: the one pattern for notes, queries and the graph.

    [[Target]]  [[Target|label]]  [[Target#Heading]]  ![[embedded]]

A single `]` does not end a link, and `[[` starts a new one. So a text full of unclosed `[[` is
scanned once, in time linear in its length.
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
