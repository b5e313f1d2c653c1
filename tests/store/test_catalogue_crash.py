"""A killed writer: the catalogue opens, is sound, and holds every note wholly old or wholly new."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from store_builders import link, look_up, note, passages, put

from ragvault.store.catalogue import Catalogue

NOTES = 12
WRITE = """
import sys
from contextlib import nullcontext
from itertools import count
from pathlib import Path
sys.path[:0] = sys.argv[2].split(":")
from test_catalogue_crash import version
from store_builders import look_up, put
from ragvault.store.catalogue import Catalogue
with Catalogue.open(Path(sys.argv[1]), write=True) as catalogue:
    print("ready", flush=True)
    for number in count(int(sys.argv[3])):
        with catalogue.batch() if sys.argv[4] == "batch" else nullcontext():
            for n in range(12):
                put(catalogue, version(n, number))
                if number % 5 == n % 5:
                    catalogue.remove(f"{n}.md")
        look_up(catalogue)
"""


def version(n: int, number: int):
    """Note n, saying its version in every part of it."""
    said = f"version {number}"
    text = "\n".join(f"#{said} line {i} " + "x" * (50 * n) for i in range(1 + (n + number) % 9))
    links = [link(str(i), said) for i in range(n % 4)]
    return note(f"{n}.md", text, *links, title=said, tags=(said,), properties={"k": said})


def killed_writer(folder, number, how, wait):
    command = [
        sys.executable,
        "-c",
        WRITE,
        str(folder),
        f"{Path(__file__).parent}:{Path(__file__).parents[1]}",
        str(number),
        how,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(wait)
        process.kill()
    assert process.returncode == -9


@pytest.mark.parametrize("turns", [3, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", ["single", "batch"])
def test_a_killed_writer_leaves_every_note_wholly_old_or_wholly_new(tmp_path, how, turns):
    chance = random.Random(how)
    highest = 0
    for turn in range(turns):
        killed_writer(tmp_path, turn * 10_000, how, chance.uniform(0.0, 0.12))
        with Catalogue.open(tmp_path, write=turn % 2 == 1) as catalogue:
            assert catalogue._db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            for path in catalogue.files():
                found = catalogue.note(path)
                wanted = version(int(path.removesuffix(".md")), int(found.title.split()[1]))
                assert found == wanted
                assert [c.text for c in passages(catalogue, path)] == wanted.text.split("\n")
                assert catalogue.anchors(path)[0] == wanted.headings
            assert catalogue.revision >= highest
            highest = catalogue.revision
    assert highest > 0


def test_links_a_killed_run_did_not_look_up_are_found_by_the_next(tmp_path):
    with Catalogue.open(tmp_path, write=True) as catalogue:
        put(catalogue, note("a.md", "one", link("b")))
        put(catalogue, note("b.md"))
    with Catalogue.open(tmp_path, write=True) as catalogue:
        assert look_up(catalogue) == 1
        assert catalogue.outgoing("a.md")[0][1].path == "b.md"
