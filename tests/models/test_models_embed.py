"""Vectors are stored as they are made, so a run that is stopped loses nothing that was finished."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.models.embed import embed_new, text_key
from ragvault.models.fake import FakeEmbedder

texts = st.lists(st.text(max_size=20), max_size=30)


class Store:
    """A vector store in memory."""

    def __init__(self):
        self.rows = {}

    def put_vectors(self, model, dim, hashes, matrix):
        assert matrix.shape == (len(hashes), dim)
        self.rows |= {(model, key): row for key, row in zip(hashes, matrix, strict=True)}


def by_key(some):
    return {text_key(text): text for text in some}


@given(texts)
def test_every_text_gets_the_embedders_own_vector(some):
    store, embedder = Store(), FakeEmbedder()
    embed_new(store.put_vectors, embedder, by_key(some), slab=4)

    assert len(store.rows) == len(set(some))
    for text in some:
        (row,) = embedder.embed([text], "passage")
        assert np.array_equal(store.rows[embedder.name, text_key(text)], row)


def test_a_run_that_is_stopped_keeps_every_finished_slab():
    store = Store()

    def stop(done, total):
        assert total == 10
        if done == 4:
            raise KeyboardInterrupt

    some = by_key(f"text {number}" for number in range(10))
    with pytest.raises(KeyboardInterrupt):
        embed_new(store.put_vectors, FakeEmbedder(), some, slab=2, progress=stop)
    assert len(store.rows) == 4


def test_the_key_is_of_exactly_the_text():
    keys = {text_key(text) for text in ["a", "a ", "A", "a\n", "\ud800", ""]}
    assert len(keys) == 6
    assert all(len(key) == 16 for key in keys)
    assert text_key("bread").hex() == text_key("bread").hex()
