"""Failures: what SQLite says, in the user's words and with the cure.

Python 3.10 gives no error codes, so the message decides; SQLite has kept these for many years. A
failed write has changed nothing: the transaction it was in is undone, and the state before it can
still be read. Mistakes of our own (a wrong statement, a broken constraint) pass through untold.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path

from ragvault.errors import IndexUnusable, disk_full

OURS = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.InterfaceError)
AGAIN = "make it again with: ragvault index --rebuild"

# (what the message holds, what is wrong, what mends it)
CURES = (
    ("is not a database", "catalogue.sqlite is not a database", AGAIN),
    ("malformed", "catalogue.sqlite is damaged", AGAIN),
    (
        "readonly",
        "it may only be read",
        "make {folder} and the files in it writable for you, then run: ragvault index",
    ),
    (
        "is locked",
        "another program holds catalogue.sqlite",
        "close programs that have {folder}/catalogue.sqlite open, then try again",
    ),
    (
        "unable to open",
        "catalogue.sqlite cannot be opened",
        "check the rights of {folder} and the files in it",
    ),
    ("I/O error", "the disk reports an error", "check the disk that holds {folder}; then " + AGAIN),
)


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Turn whatever SQLite raises inside into IndexUnusable."""
    try:
        yield
    except OURS:
        raise
    except sqlite3.Error as error:
        raise explained(folder, error) from error
    except (zlib.error, JSONDecodeError) as error:
        raise IndexUnusable(folder, f"catalogue.sqlite is damaged ({error})", fix=AGAIN) from error


def explained(folder: Path, error: sqlite3.Error) -> IndexUnusable:
    """One SQLite error as ours; an unknown one keeps its own words."""
    if "disk is full" in str(error):
        return disk_full(folder)
    for words, why, fix in CURES:
        if words in str(error):
            return IndexUnusable(folder, why, fix=fix.format(folder=folder))
    return IndexUnusable(folder, str(error), fix=AGAIN)
