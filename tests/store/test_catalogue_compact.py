"""Compacting a catalogue: what was deleted is in none of its files, and stays away."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest
from store_builders import note, put

from ragvault.store.catalogue import Catalogue

FILE = "catalogue.sqlite"
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


def test_what_was_deleted_does_not_come_back_with_the_next_change(tmp_path):
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
        catalogue.vacuum()
        assert not is_in(tmp_path, SECRET)
        db.execute("UPDATE rows SET text = 'held' || substr(text, 5)")
        assert not is_in(tmp_path, SECRET)
