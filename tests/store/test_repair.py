"""A damaged catalogue is made again whatever its columns hold by then."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from ragvault.store.catalogue import Catalogue
from ragvault.store.repair import (
    DAMAGED,
    is_repair_unfinished,
    repair,
    undo_unstarted_repair,
)

HASHES = [bytes((number,)) * 16 for number in range(3)]


@pytest.fixture
def folder(tmp_path):
    """Three vectors of one model, and one of another."""
    with Catalogue.open(tmp_path, write=True) as catalogue:
        for model, hashes in (("fine@1", HASHES), ("rough@1", HASHES[:1])):
            catalogue.put_vectors(model, 4, hashes, np.eye(4, dtype=np.float32)[: len(hashes)])
    return tmp_path


HARM = {
    "a vector is a number": ("UPDATE vectors SET vector = 7 WHERE id = 2", 3),
    "a hash is a text": ("UPDATE vectors SET text_hash = 'x' WHERE id = 2", 3),
    "a kind of numbers is none": ("UPDATE models SET dtype = 'float\x01' WHERE id = 2", 3),
    "a dimension is a text": ("UPDATE models SET dim = 'x' WHERE id = 2", 3),
    "an id is out of this world": ("UPDATE vectors SET id = 1 << 62 WHERE id = 2", 3),
}


@pytest.mark.parametrize(("harm", "saved"), HARM.values(), ids=HARM)
def test_what_can_be_read_is_saved_past_what_means_nothing(folder, monkeypatch, harm, saved):
    monkeypatch.setattr("ragvault.store.repair.MOST", 10_000, raising=False)
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as db, db:
        db.execute(harm)
    assert repair(folder) == saved
    assert not is_repair_unfinished(folder)
    with Catalogue.open(folder) as catalogue:
        assert catalogue.get_vectors("fine@1", HASHES[:1]).tolist() == [[1.0, 0.0, 0.0, 0.0]]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moves", [1, 2])
def test_a_run_killed_while_it_moved_the_damaged_files_loses_nothing(tmp_path, monkeypatch, moves):
    """The last change is in the journal alone, as after a writer that was killed too."""
    with Catalogue.open(tmp_path / "from", write=True) as catalogue:
        catalogue.put_vectors("fine@1", 4, HASHES, np.eye(4, dtype=np.float32)[:3])
        shutil.copytree(tmp_path / "from", tmp_path / "to")
    folder, done = tmp_path / "to", []

    def move(source, target):
        if len(done) == moves:
            raise Killed
        done.append(source)
        if source.exists():
            source.replace(target)

    monkeypatch.setattr("ragvault.store.repair._move", move)
    with pytest.raises(Killed):
        repair(folder)
    monkeypatch.undo()
    assert not is_repair_unfinished(folder)

    undo_unstarted_repair(folder)

    assert not list(folder.glob(f"{DAMAGED}*"))
    with Catalogue.open(folder) as catalogue:
        assert catalogue.have("fine@1", HASHES) == set(HASHES)


def test_what_was_moved_whole_is_left_to_be_saved(folder):
    (folder / "catalogue.sqlite").replace(folder / DAMAGED)
    undo_unstarted_repair(folder)
    assert is_repair_unfinished(folder)
    assert repair(folder) == 4
