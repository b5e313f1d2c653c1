"""A damaged catalogue is made again whatever its columns hold by then."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from ragvault.store.catalogue import Catalogue
from ragvault.store.remake import is_unfinished, remake

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
    monkeypatch.setattr("ragvault.store.remake.MOST", 10_000, raising=False)
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as db, db:
        db.execute(harm)
    assert remake(folder) == saved
    assert not is_unfinished(folder)
    with Catalogue.open(folder) as catalogue:
        assert catalogue.get_vectors("fine@1", HASHES[:1]).tolist() == [[1.0, 0.0, 0.0, 0.0]]
