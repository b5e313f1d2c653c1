"""Scrubbing a catalogue in place: nothing but gaps is written, and what was in them stays away."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from store_builders import note, put

from ragvault.errors import IndexUnusable
from ragvault.store import door
from ragvault.store.catalogue import Catalogue
from ragvault.store.scrub import scrub

FILE = "catalogue.sqlite"
SIZE = 4096
SECRET = b"xylocanaryphone"

# Whether another process could take SQLite's whole lock on a file: then nobody has it open.
TAKES_THE_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except OSError:
        sys.exit("held")
"""


def is_held(path):
    done = subprocess.run([sys.executable, "-c", TAKES_THE_LOCK, path], capture_output=True)
    return b"held" in done.stderr


def plain(path, **pragmas):
    """A database of 40 rows, four on a page, with no journal."""
    db = sqlite3.connect(path, isolation_level=None)
    for name, value in {"page_size": SIZE, **pragmas}.items():
        db.execute(f"PRAGMA {name} = {value}")
    db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text)")
    db.executemany("INSERT INTO rows (text) VALUES (?)", [(f"{i}" * 900,) for i in range(10, 50)])
    return db


def is_in(folder, secret):
    return any(secret in path.read_bytes() for path in folder.glob(f"{FILE}*"))


@pytest.mark.skipif(os.name == "nt", reason="closing a file drops no lock there")
def test_opening_a_catalogue_again_keeps_the_locks_of_the_first(tmp_path):
    """Without them another process that closes the file deletes the journal under the first."""
    with Catalogue.open(tmp_path, write=True) as first:
        put(first, note("a.md"))
        assert is_held(tmp_path / FILE)
        Catalogue.open(tmp_path, write=True).close()
        assert is_held(tmp_path / FILE)


def test_what_was_scrubbed_does_not_come_back_with_the_next_change(tmp_path):
    """SQLite keeps pages in memory; one from before would bring its gap along."""
    chance = random.Random(1)
    with Catalogue.open(tmp_path, write=True) as catalogue:
        db = catalogue._db
        db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text)")
        text = SECRET.decode()
        keys = chance.sample(range(1 << 40), 3000)
        rows = [(key, text + "z" * chance.randrange(10, 900)) for key in keys]
        db.executemany("INSERT INTO rows VALUES (?, ?)", rows)
        db.execute("UPDATE rows SET text = 'kept' || substr(text, 16) WHERE id % 6 > 0")
        db.execute("DELETE FROM rows WHERE id % 6 = 0")
        assert is_in(tmp_path, SECRET)
        assert catalogue.compact()
        assert not is_in(tmp_path, SECRET)
        db.execute("UPDATE rows SET text = 'held' || substr(text, 5)")
        assert not is_in(tmp_path, SECRET)


def test_nothing_is_scrubbed_while_something_waits_in_the_journal(tmp_path, monkeypatch):
    """Whoever put it there may be copying it into the very pages that would be written to."""
    with Catalogue.open(tmp_path, write=True) as catalogue:
        put(catalogue, note("a.md"))
        monkeypatch.setattr(door, "scrub", lambda path: pytest.fail("scrubbed"))
        monkeypatch.setattr(door.connect, "has_wal", lambda folder: True)
        with pytest.raises(IndexUnusable, match="still reads"):
            catalogue.compact()


def test_a_page_that_only_looks_as_if_it_had_cells_is_left_alone(tmp_path):
    """A free page may hold anything: its `first cell` here would be 60 KB behind it."""
    path = tmp_path / "plain.sqlite"
    with closing(plain(path)) as db:
        db.execute("DELETE FROM rows WHERE id BETWEEN 5 AND 30")
        pages = db.execute("PRAGMA page_count").fetchone()[0]
    contents = bytearray(path.read_bytes())
    whole = contents[:]
    leaf = int.from_bytes(contents[32:36], "big")  # the first trunk of free pages …
    trunk = (leaf - 1) * SIZE
    free = int.from_bytes(contents[trunk + 8 : trunk + 12], "big")  # … and a page it lists
    at = (free - 1) * SIZE
    assert 0 < at < (pages - 2) * SIZE
    contents[at : at + 8] = bytes((13, 0, 0, 0, 0, 0, 0, 0))
    path.write_bytes(contents)
    scrub(path)
    assert path.read_bytes()[at + SIZE :] == whole[at + SIZE :]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_file_with_pages_that_map_others_is_left_alone(tmp_path):
    path = tmp_path / "plain.sqlite"
    plain(path, auto_vacuum="FULL").close()
    assert scrub(path) == 0
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_catalogue_has_no_pages_that_map_others(tmp_path):
    with Catalogue.open(tmp_path, write=True) as catalogue:
        assert catalogue._db.execute("PRAGMA auto_vacuum").fetchone() == (0,)
