"""Vectors for searches that run in threads of their own."""

import threading

import numpy as np
import pytest

from ragvault.ports import CacheBroken
from ragvault.store.catalogue import Catalogue
from ragvault.store.fetch import Fetch

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
    fetch = Fetch(catalogue, "m@1")

    rows = [fetch(IDS), *(elsewhere(lambda: fetch(IDS)) for _ in range(3))]

    assert all(isinstance(row, np.ndarray) and row.shape == (1, 2) for row in rows)
    assert len(opened) == 1
    fetch.close()


def test_what_it_opened_is_closed_with_it_and_a_late_leg_reads_nothing(catalogue):
    fetch = Fetch(catalogue, "m@1")
    elsewhere(lambda: fetch(IDS))
    shared = fetch._others

    fetch.close()

    assert "closed" in str(elsewhere(lambda: shared.revision))
    assert isinstance(elsewhere(lambda: fetch(IDS)), CacheBroken)
    assert fetch(IDS).shape == (1, 2)  # the catalogue it was given is not its own to close
