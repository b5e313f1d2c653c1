"""Paint: colour and links for a terminal, and nothing at all for a pipe.

Escape codes are written here and nowhere else. Rich could do it, and takes longer to import than a
search that another process answers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from ragvault.cli.around import Surroundings

BOLD, FAINT, GREEN, YELLOW, CYAN = "1", "2", "32", "33", "36"
MATCH = "1;33"
BANDS = {"excellent": GREEN, "good": GREEN, "moderate": YELLOW}


class Paint(NamedTuple):
    """What may be used; `width` is 0 where lines are as long as they are."""

    colour: bool = False
    links: bool = False
    width: int = 0

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and text else text

    def linked(self, text: str, uri: str) -> str:
        return f"\x1b]8;;{uri}\x1b\\{text}\x1b]8;;\x1b\\" if self.links and uri else text

    def marked(self, text: str, marks: Sequence[tuple[int, int]], indent: str) -> list[str]:
        """Text with its marks, on as many lines as it needs."""
        at, lines = 0, []
        for line in self._wrapped(text, len(indent)):
            at = text.index(line, at)
            lines.append(indent + self._marked(line, at, marks))
            at += len(line)
        return lines

    def _wrapped(self, text: str, indent: int) -> list[str]:
        if not self.width:
            return [text]
        # Not below 20: a window that narrow is being dragged, not read.
        room = max(self.width - indent, 20)
        return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]

    def _marked(self, line: str, at: int, marks: Sequence[tuple[int, int]]) -> str:
        done, pieces = 0, []
        for start, end in marks:
            first, last = max(start - at, 0), min(end - at, len(line))
            if first < last:
                pieces += [line[done:first], self.styled(line[first:last], MATCH)]
                done = last
        return "".join([*pieces, line[done:]])


def paint_for(around: Surroundings, links: bool) -> Paint:
    if not around.terminal:
        return Paint()
    dumb = around.environ.get("TERM") == "dumb"
    return Paint(around.colour, links and not dumb, around.columns)
