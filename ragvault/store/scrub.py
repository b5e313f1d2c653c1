"""Scrub: overwrite what SQLite leaves behind in the unused middle of its pages.

With secure_delete SQLite zeroes what is deleted, but not what it moves: when a page is split or
joined with another, copies of cells stay in the gap between the pointers and the cells until
something is written over them. (Of 4,000 deleted rows 7 were still in the file.) A gap means
nothing to SQLite, so it is zeroed here in place, page by page: a reader that meets it half zeroed
sees the same rows. VACUUM would do as well, and write the whole file for one deleted note.

For the holder of a write transaction on a file whose journal is empty. Knows the layout of pages
(sqlite.org/fileformat2.html) and nothing of what is in them.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct

HEADER = 100  # bytes of the file before the first page's own header
# By the kind of a page that holds cells: how long its header is.
CELL_PAGES = {2: 12, 5: 12, 10: 8, 13: 8}
AT_A_TIME = 256  # pages read at once

_HEADER = Struct(">16xH34xI")  # the size of pages; not 0 where there are pages that map others
_CELLS = Struct(">3xHH")  # how many there are, and where the first byte of them is

# Closing a file drops every lock that this process has on it, SQLite's own as well, and then
# another process may delete the journal under us: what is opened here stays open while it exists.
_open: dict[tuple[int, int], int] = {}


def scrub(path: Path) -> int:
    """Zero every gap that is not zero already; how many pages had one."""
    file = _handle(path)
    try:
        return _scrub(file)
    finally:
        if os.name == "nt":  # where closing drops no lock, and an open file cannot be deleted
            os.close(file)


def _scrub(file: int) -> int:
    size, mapped = _HEADER.unpack(_read(file, _HEADER.size, 0))
    if mapped:  # they look like pages with cells; connect.py makes no such file
        return 0
    size = 65536 if size == 1 else size
    scrubbed = 0
    for first in range(0, os.fstat(file).st_size, size * AT_A_TIME):
        pages = memoryview(_read(file, size * AT_A_TIME, first))
        for at in range(0, len(pages) - size + 1, size):
            start, end = _gap(pages[at : at + size], HEADER if first + at == 0 else 0)
            if bytes(pages[at + start : at + end]).strip(b"\0"):
                _write(file, bytes(end - start), first + at + start)
                scrubbed += 1
    if scrubbed:
        os.fsync(file)
    return scrubbed


def _gap(page: memoryview, header: int) -> tuple[int, int]:
    """Where the unused middle of a page begins and ends; a page without cells has none.

    Nor has one that is free and only looks as if it had cells, or that is damaged: what it says
    may lie outside of it. (A page of overflow begins with the number of another: with these bytes
    from 128 GiB on.)
    """
    own = CELL_PAGES.get(page[header])
    if own is None:
        return 0, 0
    cells, first = _CELLS.unpack_from(page, header)
    start, end = header + own + 2 * cells, first or 65536
    return (start, end) if start <= end <= len(page) else (0, 0)


# Not pread and pwrite, which Windows has not; nobody else uses this handle.
def _read(file: int, size: int, at: int) -> bytes:
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, size)


def _write(file: int, contents: bytes, at: int) -> None:
    os.lseek(file, at, os.SEEK_SET)
    os.write(file, contents)


def _handle(path: Path) -> int:
    if os.name == "nt":
        return os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    for key, file in list(_open.items()):
        if not os.fstat(file).st_nlink:
            os.close(_open.pop(key))
    found = path.stat()
    key = (found.st_dev, found.st_ino)
    if key not in _open:
        _open[key] = os.open(path, os.O_RDWR)
    return _open[key]
