"""Vectors for searches that run in threads of their own."""

import threading
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragvault.store.vectors
from ragvault.ports import CacheBroken
from ragvault.store.catalogue import Catalogue
from ragvault.store.vectors import ModelVectors

IDS = np.array([1], np.int64)


@pytest.fixture
def catalogue(tmp_path):
    with Catalogue.open(tmp_path / "index", write=True) as found:
        found.put_vectors("m@1", 2, [b"k" * 16], np.array([[1, 0]], np.float32))
        yield found


def elsewhere(work):
    """What a thread of its own gets or raises."""
    got = []

    def run():
        try:
            got.append(work())
        except Exception as error:
            got.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return got[0]


def test_every_thread_reads_and_all_others_share_one_connection(catalogue, monkeypatch):
    opened = []
    real = Catalogue.open.__func__
    monkeypatch.setattr(
        Catalogue,
        "open",
        classmethod(lambda cls, *a, **k: opened.append(real(cls, *a, **k)) or opened[-1]),
    )
    source = ModelVectors(catalogue, "m@1", 2)
    fetch = source.fetch

    rows = [fetch(IDS), *(elsewhere(lambda: fetch(IDS)) for _ in range(3))]

    assert all(isinstance(row, np.ndarray) and row.shape == (1, 2) for row in rows)
    assert len(opened) == 1
    source.close()


def test_what_it_opened_is_closed_with_it_and_a_late_leg_reads_nothing(catalogue):
    source = ModelVectors(catalogue, "m@1", 2)
    fetch = source.fetch
    elsewhere(lambda: fetch(IDS))
    shared = source._others

    source.close()

    assert "closed" in str(elsewhere(lambda: shared.revision))
    assert isinstance(elsewhere(lambda: fetch(IDS)), CacheBroken)
    assert fetch(IDS).shape == (1, 2)  # the catalogue it was given is not its own to close


class Counting:
    """A catalogue of vectors by id; an id above 1,000,000 has none. Remembers what was read."""

    def __init__(self):
        self.read = []

    def passage_vectors(self, _, ids):
        self.read.append(ids.tolist())
        found = [[np.nan if i > 1_000_000 else i, -i] for i in ids]
        return np.array(found, np.float32).reshape(-1, 2)


def rows(fetch, *ids):
    return fetch(np.array(ids, np.int64))[:, 0].tolist()


def test_what_has_no_vector_yet_is_looked_for_each_time():
    catalogue = Counting()
    source = ModelVectors(catalogue, "m@1", 2)
    fetch = source.fetch
    late = 1_000_001

    for _ in range(2):
        first, absent = rows(fetch, 1, late)
        assert first == 1
        assert np.isnan(absent)
    assert catalogue.read == [[1, late], [late]]


@given(st.lists(st.lists(st.integers(1, 40), max_size=9), max_size=30))
def test_whatever_is_kept_the_rows_are_those_of_the_catalogue(asked):
    with mock.patch.object(ragvault.store.vectors, "KEPT", 16):
        source = ModelVectors(Counting(), "m@1", 2)
        fetch = source.fetch
        for ids in asked:
            assert rows(fetch, *ids) == ids
            assert len(source._kept) <= 16


def test_vectors_of_a_model_that_is_dropped_meanwhile_are_told_as_gone():
    """The catalogue has no row of it then, and knows no longer how many numbers one has."""
    catalogue = Counting()
    source = ModelVectors(catalogue, "m@1", 2)
    fetch = source.fetch
    rows(fetch, 1)
    catalogue.passage_vectors = lambda _, ids: np.full((len(ids), 1), np.nan, np.float32)

    with pytest.raises(CacheBroken, match="deleted"):
        rows(fetch, 1, 2)
