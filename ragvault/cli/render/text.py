"""Numbers in words, sizes and tables."""

from __future__ import annotations

from collections.abc import Sequence


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
