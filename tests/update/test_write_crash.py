"""Killed at any moment, the next run ends where a clean one ends, and embeds nothing twice."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys

import pytest
from crash_kit import Indexer
from write_kit import answers, note, notes, opened, stored_vectors, write

from ragvault.update.prepare import text_key
from tests.keyword_kit import ENGINES

COUNT = 24
# How many moments, by engine: a few in every run of the tests, many in the slow ones.
TURNS = [
    *(pytest.param(engine, 2, id=engine) for engine in ENGINES),
    *(pytest.param(engine, 35, marks=pytest.mark.slow, id=f"{engine}-often") for engine in ENGINES),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with Indexer(tmp_path_factory.mktemp("indexer") / "log") as indexer:
        yield indexer


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "vault", notes(COUNT))
    return tmp_path / "vault"


def change(root):
    """Everything that can happen to a vault between two runs."""
    for number in range(0, COUNT, 3):
        write(root, {f"{number:04}.md": note(number, version=1)})
    (root / "0001.md").rename(root / "renamed.md")
    (root / "0002.md").unlink()
    (root / "0004.md").unlink()
    write(root, {f"new{number}.md": note(100 + number) for number in range(8)})


def moments(count, seconds, seed):
    """Spread over the whole of a run, and a little beyond."""
    chance = random.Random(seed)
    return [(at + chance.random()) / count * 1.1 * seconds for at in range(count)]


class Scene:
    """One vault, one engine, and where its indexes are."""

    def __init__(self, run, root, engine):
        self.run, self.root, self.engine = run, root, engine
        self.flag = f"keyword.engine={engine}"

    def index(self, home, dies_after=None):
        return self.run(self.root, home, self.flag, dies_after=dies_after)

    def answers(self, home):
        # The scores of tantivy count what was removed until it is compacted.
        return answers(opened(self.root, home, self.flag), exact=self.engine == "whoosh")

    def clean(self, home):
        """How long a clean index takes, and what it answers."""
        ended, seconds = self.index(home)
        assert ended == "done"
        return seconds, self.answers(home)

    def is_made_whole(self, home, clean):
        """The next run makes up for what was lost, and only for that."""
        before = stored_vectors(opened(self.root, home, self.flag))
        self.run.embedded()

        assert self.index(home)[0] == "done"

        again = {(model, text_key(text)) for model, text in self.run.embedded()}
        assert not again & before
        assert self.answers(home) == clean


@pytest.mark.parametrize(("engine", "turns"), TURNS)
def test_a_killed_first_index_is_finished_by_the_next_run(tmp_path, run, root, engine, turns):
    scene, killed = Scene(run, root, engine), 0
    seconds, clean = scene.clean(tmp_path / "clean")
    for turn, moment in enumerate(moments(turns, seconds, seed=1)):
        home = tmp_path / f"home{turn}"
        killed += scene.index(home, dies_after=moment)[0] == "killed"
        scene.is_made_whole(home, clean)
    assert killed


@pytest.mark.parametrize(("engine", "turns"), TURNS)
def test_a_killed_update_is_finished_by_the_next_run(tmp_path, run, root, engine, turns):
    scene, killed = Scene(run, root, engine), 0
    scene.clean(tmp_path / "before")
    change(root)
    seconds, clean = scene.clean(tmp_path / "clean")
    for turn, moment in enumerate(moments(turns, seconds, seed=2)):
        home = tmp_path / f"home{turn}"
        shutil.copytree(tmp_path / "before", home)
        killed += scene.index(home, dies_after=moment)[0] == "killed"
        scene.is_made_whole(home, clean)
    assert killed


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_still_ends(tmp_path, run, root):
    scene = Scene(run, root, "whoosh")
    seconds, clean = scene.clean(tmp_path / "clean")
    for moment in moments(30, seconds, seed=3):
        scene.index(tmp_path / "home", dies_after=moment)
    scene.is_made_whole(tmp_path / "home", clean)


READS_IN_PROCESSES = """
import sys
from pathlib import Path
from ragvault.config.settings import Config
from ragvault.notes.walk import walk
from ragvault.update import prepare, workers

workers.MANY = workers.BATCH = 2
root = Path(sys.argv[1])
files = walk(root, Config().walk).files
for _ in prepare.prepare_all(root, files, Config()):
    print("reading", flush=True)
    sys.stdin.read()
"""


def test_the_processes_of_a_killed_run_end_with_it(tmp_path, root):
    (tmp_path / "reads.py").write_text(READS_IN_PROCESSES)
    command = [sys.executable, str(tmp_path / "reads.py"), str(root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    # The script has no guard: the processes must not run it again.
    with subprocess.Popen(command, **pipes) as reading:
        assert reading.stdout.readline() == b"reading\n"
        reading.kill()
        # They hold the other end of the pipe: it ends when the last of them does.
        assert reading.communicate(timeout=60) == (b"", None)
