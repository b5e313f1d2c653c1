"""Marks: where tasks and pictures stand in a note, and tables that are written in HTML.

They are looked for in the text as parsing sees it, in which code, math and comments are blank. Of
HTML only what people write for want of Markdown is known: `<img>` with a size, `<table>` with cells
that hold more than a line. What is code or a task in HTML is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ragvault.notes import links, markdown
from ragvault.spans import Span, joined
from ragvault.types import Link

Mark = tuple[int, str]  # where, and one of Chunk.has

_TASK = re.compile(r"^[ \t>]*(?:[-*+]|\d+[.)])[ \t]+\[[^\]\n]\](?=[ \t])", re.M)
_IN_HTML = re.compile(r"<(img|table|tr)(?=[\s/>])", re.I)


def marks(seen: str, parsed: markdown.Parsed, found: Iterable[Link]) -> tuple[Mark, ...]:
    """All of them, in order."""
    shown = [link for link in found if link.kind == "embed" and links.is_image(link)]
    every = {(link.start, "image") for link in shown}
    every |= {(match.start(), "task") for match in _TASK.finditer(seen)}
    every.update(parsed.marks, _in_html(seen, parsed.html))
    return tuple(sorted(every))


def _in_html(seen: str, html: Iterable[Span]) -> Iterator[Mark]:
    """Pictures and tables, these at every row: a long one is cut into several passages."""
    for start, end in joined(html):
        for match in _IN_HTML.finditer(seen, start, end):
            yield match.start(), "image" if match[1].lower() == "img" else "table"
