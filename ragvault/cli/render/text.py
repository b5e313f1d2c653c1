"""Text of unknown origin made safe to print, and numbers in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


def printable(text: str) -> str:
    """Text on one line, with every character escaped that a terminal would obey."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def printable_lines(text: str) -> str:
    """The same for text of several lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def harmless(text: str) -> str:
    """Text as it is, except for characters that steer a terminal or reverse its writing."""
    return _STEERING.sub(_escaped, text)


def one_line(text: str) -> str:
    """A name as it is, except for characters that would end its line."""
    return _BREAKING.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def counted(number: int, what: str) -> str:
    """1 file, 2 files."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """A number of bytes, with its unit."""
    for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= of:
            return f"{number / of:.1f} {unit}"
    return f"{number} bytes"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns: the first aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]
    return "\n".join(lines)
