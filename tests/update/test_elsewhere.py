"""Embedding in a process of its own: the same vectors, and nothing lost whatever becomes of it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from write_kit import Far, Mortal, Unusable, answers, models, note, notes, opened, write

from ragvault.update.workers import starting

pytestmark = pytest.mark.usefixtures("models", "few_are_many")
__all__ = ["models"]


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr("ragvault.update.vectors.MANY", 1)
    monkeypatch.setattr("ragvault.update.vectors.PAGE", 4)


@pytest.fixture
def vault(tmp_path):
    write(tmp_path / "vault", notes(8))
    return opened(tmp_path / "vault", tmp_path / "home")


def stored(vault):
    with closing(sqlite3.connect(vault.folder / "catalogue.sqlite")) as db:
        query = "SELECT name, text_hash, vector FROM vectors JOIN models ON models.id = model"
        return sorted(db.execute(query).fetchall())


@pytest.fixture
def expected(vault, tmp_path):
    """What one process alone stores and answers."""
    other = opened(vault.root, tmp_path / "other")
    other.index("static")
    return stored(other), answers(other)


def test_another_process_makes_the_same_vectors(vault, models, expected):
    models["rough"] = Far("rough")

    report = vault.index("static")

    assert (stored(vault), answers(vault)) == expected
    assert report.embedded == len(expected[0])
    assert not set(models["rough"].seen) - set(vocabulary(vault))


def vocabulary(vault):
    with vault.catalogue() as catalogue:
        return catalogue.terms()


def test_copies_of_a_text_are_embedded_once_there_too(vault, models):
    models["rough"] = Far("rough")
    write(vault.root, {f"copy{number}.md": "# Same\n\nThe very same words." for number in range(9)})
    told = []

    vault.index("static", tell=lambda what, done, total: told.append((what, done, total)))

    keys = [key for _, key, _ in stored(vault)]
    assert len(keys) == len(set(keys))
    assert [done for what, done, _ in told if what == "embedding (static)"][-1] == len(keys) + 8


@pytest.mark.parametrize("lives", [0, 1, 3])
def test_what_a_process_that_died_left_is_embedded_here(vault, models, expected, lives):
    models["rough"] = Mortal("rough", lives)

    vault.index("static")

    assert (stored(vault), answers(vault)) == expected
    here = [text for text in models["rough"].seen if text not in vocabulary(vault)]
    assert len(here) == len(expected[0]) - 4 * lives


@pytest.mark.parametrize("why", [OSError, AssertionError])
def test_where_no_process_can_be_started_all_is_embedded_here(
    vault, models, expected, monkeypatch, why
):
    def refuse(_):
        raise why

    models["rough"] = Far("rough")
    monkeypatch.setattr(BaseProcess, "start", refuse)

    vault.index("static")

    assert (stored(vault), answers(vault)) == expected


def test_a_model_that_cannot_be_run_there_is_told_of_as_one_that_cannot_be_run_here(vault, models):
    models["rough"] = Unusable("rough")

    report = vault.index("static")

    assert report.tier == "keyword"
    assert [line for line in report.warnings if "cannot be read" in line] == list(report.warnings)
    assert len(report.warnings) == 1


def test_a_run_that_is_stopped_keeps_what_was_embedded_and_leaves_no_process(vault, models):
    models["rough"] = Far("rough")

    def stop(what, done, total):
        if what == "embedding (static)" and done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vault.index("static", tell=stop)

    assert active_children() == []
    kept = stored(vault)
    assert len(kept) == 8
    vault.index("static")
    assert set(kept) <= set(stored(vault))


def test_a_run_that_is_left_while_words_are_indexed_leaves_no_process(vault, models):
    models["rough"] = Far("rough")

    def stop(what, done, total):
        if what == "indexing keyword":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vault.index("static", tell=stop)

    assert active_children() == []


def test_a_small_change_starts_no_process(vault, models, monkeypatch):
    models["rough"] = Far("rough")
    vault.index("static")
    monkeypatch.setattr("ragvault.update.vectors.MANY", 1000)
    monkeypatch.setattr(BaseProcess, "start", lambda _: pytest.fail("a process was started"))
    write(vault.root, {"new.md": note(99)})

    assert vault.index("static").embedded


EMBEDS_ELSEWHERE = """
import sys
from pathlib import Path
from write_kit import Far, opened
from ragvault.engines import Engines
from ragvault.update import vectors

def tell(what, done, total):
    if what == "embedding (static)" and done:
        print("embedding", flush=True)
        sys.stdin.read()

vectors.MANY, vectors.PAGE = 1, 4
Engines.embedder = lambda self, name, offline=False: Far("rough")
opened(Path(sys.argv[1]), Path(sys.argv[2])).index("static", tell=tell)
"""


def test_the_process_of_a_killed_run_ends_with_it_and_what_was_stored_is_kept(
    vault, tmp_path, models
):
    (tmp_path / "embeds.py").write_text(EMBEDS_ELSEWHERE)
    command = [sys.executable, str(tmp_path / "embeds.py"), str(vault.root), str(tmp_path / "home")]
    here = Path(__file__).parents[1]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    environ = {"PYTHONPATH": f"{here}:{here.parent}"}
    # The script has no guard: the process must not run it again.
    with subprocess.Popen(command, **pipes, env=environ) as embedding:
        assert embedding.stdout.readline() == b"embedding\n"
        embedding.kill()
        # The process holds the other end of the pipe: it ends when the last of them does.
        assert embedding.communicate(timeout=60) == (b"", None)
    kept = stored(vault)
    assert kept

    vault.index("static")

    seen = [text for text in models["rough"].seen if text not in vocabulary(vault)]
    assert len(seen) == len(stored(vault)) - len(kept)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="this system masks no signals")
def test_a_process_is_deaf_to_the_keyboard_from_its_first_instruction():
    heard = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with starting():
        started = subprocess.run([sys.executable, "-c", heard], capture_output=True, check=True)

    assert started.stdout.strip() == b"True"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.skipif(sys.platform != "linux", reason="looks for child processes in /proc")
def test_ctrl_c_while_processes_start_says_one_line_and_no_traceback(tmp_path):
    write(tmp_path / "vault", {f"{number}.md": f"# Note {number}" for number in range(500)})
    command = [sys.executable, "-m", "ragvault", "index", str(tmp_path / "vault"), "--no-vectors"]
    environ = {**os.environ, "RAGVAULT_HOME": str(tmp_path / "home")}
    began = subprocess.Popen(
        command, env=environ, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    children = Path(f"/proc/{began.pid}/task/{began.pid}/children")
    while began.poll() is None and len(children.read_text().split()) < 3:
        time.sleep(0.005)
    time.sleep(0.06)  # they import what they need
    os.killpg(began.pid, signal.SIGINT)
    _, said = began.communicate(timeout=60)

    assert began.returncode == 130
    assert said == "stopped; finished work is kept. Run the same command again to continue\n"
