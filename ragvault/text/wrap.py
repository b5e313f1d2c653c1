"""Wrap: lines for people, cut between words where a terminal would cut within one."""

from __future__ import annotations

import re

NARROWEST = 20  # columns: nobody reads a narrower window
# What a line begins with, and its text hangs on: a label and a gap, or the head of an error.
_LABEL = re.compile(r"\s*(?:ragvault: |fix: |\S+(?: \S+)? {2,})?")


def wrapped(text: str, width: int) -> str:
    """The text with lines of at most `width` columns, as far as its words are not longer.

    The lines that one line becomes are indented as its text is. A width of 0 changes nothing.
    """
    if not width or all(len(line) <= width for line in text.split("\n")):
        return text
    return "\n".join(each for line in text.split("\n") for each in _lines(line, width))


def _lines(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    from textwrap import wrap

    label = _LABEL.match(line)
    head = label[0] if label else ""
    if len(head) > width // 3:
        head = line[: len(line) - len(line.lstrip())]
    hang = " " * len(head)
    # Only the text is wrapped: a long path stays behind its label.
    room = max(width - len(hang), NARROWEST)
    first, *rest = wrap(
        line[len(head) :],
        room,
        break_long_words=False,  # a path is copied as a whole
        break_on_hyphens=False,
    ) or [""]
    return [f"{head}{first}", *(f"{hang}{each}" for each in rest)]
