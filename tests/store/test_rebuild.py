"""One way to rebuild: what is damaged or old is set aside, and its vectors are taken over."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from store_builders import note, put

from ragvault.errors import IndexTooNew, IndexUnusable
from ragvault.ports import Progress
from ragvault.store.catalogue import OLD, Catalogue, is_rebuilding
from ragvault.store.database import RebuildNeeded
from ragvault.store.schema import FORMAT
from ragvault.update.upkeep import rebuild_catalogue

FILE = "catalogue.sqlite"
HASHES = [bytes((number,)) * 16 for number in range(3)]


class Killed(BaseException):
    pass


class Heard(Progress):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def folder(tmp_path):
    """Three vectors of one model, and one of another."""
    fill(tmp_path)
    return tmp_path


def fill(folder):
    with Catalogue.open(folder, write=True) as catalogue:
        put(catalogue, note("a.md"))
        catalogue.set_facts(models={"full": "fine@1"}, git_head="x")
        for model, hashes in (("fine@1", HASHES), ("rough@1", HASHES[:1])):
            catalogue.put_vectors(model, 4, hashes, np.eye(4, dtype=np.float32)[: len(hashes)])


def execute(folder, statement):
    with closing(sqlite3.connect(folder / FILE)) as db, db:
        db.execute(statement)


def rebuild(folder, *, check=True):
    heard = Heard()
    rebuild_catalogue(folder, heard, check=check)
    return heard.lines


def vectors(folder):
    with Catalogue.open(folder) as catalogue:
        return dict(catalogue.counts().vectors)


# --- Formats ---


@pytest.mark.parametrize("write", [True, False])
def test_a_newer_index_is_refused_and_left_alone(folder, write):
    execute(folder, f"PRAGMA user_version = {FORMAT + 6}")
    before = (folder / FILE).read_bytes()

    with pytest.raises(IndexTooNew, match=f"has format {FORMAT + 6}; this ragvault reads") as said:
        Catalogue.open(folder, write=write)
    assert "upgrade ragvault" in said.value.fix
    with pytest.raises(IndexTooNew):
        rebuild(folder)
    assert (folder / FILE).read_bytes() == before
    assert not is_rebuilding(folder)


@pytest.mark.parametrize("write", [True, False])
def test_an_older_index_is_named_with_what_updates_it(folder, write):
    execute(folder, "PRAGMA user_version = 1")

    with pytest.raises(RebuildNeeded, match=f"older release made it \\(format 1, now {FORMAT}\\)"):
        Catalogue.open(folder, write=write)


def test_an_older_index_is_rebuilt_with_one_line_and_its_vectors(folder):
    execute(folder, "PRAGMA user_version = 1")

    assert rebuild(folder, check=False) == [
        f"rebuilding the index from the vault, because an older release made it (format 1, now"
        f" {FORMAT}); 4 vectors are kept"
    ]

    assert vectors(folder) == {"fine@1": 3, "rough@1": 1}
    with Catalogue.open(folder) as catalogue:
        assert (catalogue.files(), catalogue.revision) == ({}, 0)
        assert catalogue.facts.models == {"full": "fine@1"}
        assert catalogue.facts.git_head == ""  # what is of the notes is read again
    assert not list(folder.glob(f"{OLD}*"))


def test_vectors_of_other_tables_than_ours_are_taken_over_too(folder):
    """As every format had them; the rest may be anything."""
    for statement in (
        "DROP TABLE notes",
        "DROP TABLE meta",
        "ALTER TABLE models ADD COLUMN dtype",
        "PRAGMA user_version = 1",
    ):
        execute(folder, statement)
    rebuild(folder)
    assert vectors(folder) == {"fine@1": 3, "rough@1": 1}


def test_a_sound_index_is_left_alone(folder):
    before = (folder / FILE).read_bytes()
    assert rebuild(folder) == []
    assert (folder / FILE).read_bytes() == before


# --- Damage ---

HARM = {
    "a vector is a number": ("UPDATE vectors SET vector = 7 WHERE id = 2", 3),
    "a vector has another length": ("UPDATE vectors SET vector = zeroblob(8) WHERE id = 2", 3),
    "a hash is a text": ("UPDATE vectors SET text_hash = 'x' WHERE id = 2", 3),
    "a dimension is a text": ("UPDATE models SET dim = 'x' WHERE id = 2", 3),
    "an id is out of this world": ("UPDATE vectors SET id = 1 << 62 WHERE id = 2", 4),
    "the facts are no facts": ("UPDATE meta SET facts = '[1'", 4),
}


@pytest.mark.parametrize(("harm", "saved"), HARM.values(), ids=HARM)
def test_what_can_be_read_is_saved_past_what_means_nothing(folder, harm, saved):
    execute(folder, harm)
    execute(folder, "PRAGMA user_version = 1")
    rebuild(folder)
    assert sum(vectors(folder).values()) == saved


def test_one_damaged_page_costs_the_vectors_around_it(tmp_path):
    hashes = [number.to_bytes(16, "big") for number in range(5000)]
    with Catalogue.open(tmp_path, write=True) as catalogue:
        matrix = np.zeros((5000, 256), np.float32)
        matrix[:, 0] = 1
        catalogue.put_vectors("m", 256, hashes, matrix)
    whole = bytearray((tmp_path / FILE).read_bytes())
    at = whole.index(hashes[2500]) // 4096 * 4096
    whole[at : at + 4096] = b"\xa5" * 4096
    (tmp_path / FILE).write_bytes(whole)

    (line,) = rebuild(tmp_path)

    with Catalogue.open(tmp_path) as catalogue:
        saved = catalogue.have("m", hashes)
    assert 4500 < len(saved) < 5000
    assert {*hashes[:2000], *hashes[3000:]} <= saved
    assert "vectors are kept" in line


@pytest.mark.parametrize("content", [b"", b"my diary " * 500])
def test_what_is_no_database_is_replaced(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    lines = rebuild(tmp_path)
    assert [line.partition("because ")[2] for line in lines] == (
        ["catalogue.sqlite is not a database; 0 vectors are kept"] if content else []
    )
    fill(tmp_path)


def test_a_database_of_another_program_is_left_alone(tmp_path):
    execute(tmp_path, "CREATE TABLE theirs (a)")
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(IndexUnusable, match="another program"):
        rebuild(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


# --- Killed in the middle ---


def unfinished(folder, tmp_path):
    """An index whose last change is in the journal alone, as a killed writer leaves it."""
    fill(tmp_path / "from")
    with Catalogue.open(tmp_path / "from", write=True) as catalogue:
        catalogue.put_vectors("late@1", 4, HASHES[:1], np.eye(4, dtype=np.float32)[:1])
        shutil.copytree(tmp_path / "from", folder)
    assert (folder / f"{FILE}-wal").stat().st_size


STEPS = ("replace", "unlink")


@pytest.mark.parametrize("nth", range(1, 8))
def test_a_rebuild_killed_at_any_file_is_finished_by_the_next_and_loses_nothing(
    tmp_path, monkeypatch, nth
):
    folder, done = tmp_path / "to", []
    unfinished(folder, tmp_path)
    for place in ("database", "schema"):
        monkeypatch.setattr(f"ragvault.store.{place}.FORMAT", FORMAT + 1)

    def counted(step):
        def act(*args, **kwargs):
            if len(done) == nth:
                raise Killed
            done.append(step)
            return step(*args, **kwargs)

        return act

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(Path, name, counted(getattr(Path, name)))
        try:
            rebuild(folder, check=False)
        except Killed:
            assert is_rebuilding(folder)
    rebuild(folder, check=False)

    assert vectors(folder) == {"fine@1": 3, "late@1": 1, "rough@1": 1}
    assert not list(folder.glob(f"{OLD}*"))


def test_a_new_catalogue_that_is_damaged_before_the_old_one_is_gone_costs_nothing(folder):
    (folder / FILE).replace(folder / OLD)
    (folder / FILE).write_bytes(b"my diary " * 500)

    rebuild(folder, check=False)

    assert vectors(folder) == {"fine@1": 3, "rough@1": 1}
    assert not is_rebuilding(folder)
