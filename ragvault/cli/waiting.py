"""Waiting: what a command that is usually quick shows on a terminal when it is not.

    with waiting("searching"):
        ...

Imports almost nothing, because every search comes here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds


@contextmanager
def waiting(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Show what is being waited for, from the first second until it ends."""
    if quiet or not sys.stderr or not sys.stderr.isatty():
        yield
        return
    from threading import Timer

    shown = []

    def show() -> None:
        shown.append(sys.stderr.write(f"{text} …"))
        sys.stderr.flush()

    timer = Timer(PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown:
            sys.stderr.write("\r\x1b[2K")  # the line is wiped
            sys.stderr.flush()
