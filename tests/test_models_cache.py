"""Nothing is embedded twice, and nothing that was finished is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.models.cache import embed_missing, text_key, vectors_of
from ragvault.models.fake import FakeEmbedder

texts = st.lists(st.text(max_size=20), max_size=30)


class Shelf:
    """A vector store in memory, which refuses what a store may refuse."""

    def __init__(self):
        self.rows = {}

    def have(self, model, hashes):
        return {key for key in hashes if (model, key) in self.rows}

    def put_vectors(self, model, dim, hashes, matrix):
        assert matrix.shape == (len(hashes), dim)
        self.rows |= {(model, key): row for key, row in zip(hashes, matrix, strict=True)}

    def get_vectors(self, model, hashes):
        return np.array([self.rows[model, key] for key in hashes], dtype=np.float32)


class Counting(FakeEmbedder):
    def __init__(self, name="counting@1"):
        self.name = name
        self.seen = []

    def embed(self, texts, kind):
        assert kind == "passage"
        self.seen += texts
        return super().embed(texts, kind)


@given(texts, texts)
def test_no_text_is_embedded_twice(first, second):
    store, embedder = Shelf(), Counting()
    embed_missing(store, embedder, first)
    count = embed_missing(store, embedder, second)
    assert sorted(embedder.seen) == sorted(set(first) | set(second))
    assert count == len(set(second) - set(first))


@given(texts.filter(bool))
def test_a_kept_vector_is_the_embedders_own(each):
    kept = vectors_of(Shelf(), FakeEmbedder(), each)
    assert np.array_equal(kept, FakeEmbedder().embed(each, "passage"))


def test_another_model_has_vectors_of_its_own_and_the_old_ones_stay():
    store, old, new = Shelf(), Counting("old@1"), Counting("new@1")
    embed_missing(store, old, ["bread"])
    embed_missing(store, new, ["bread"])
    assert new.seen == ["bread"]
    assert store.have("old@1", [text_key("bread")])


def test_a_run_that_is_stopped_keeps_every_finished_slab():
    store, embedder = Shelf(), Counting()
    texts = [f"text {number}" for number in range(10)]

    def stop(done, total):
        assert total == 10
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_missing(store, embedder, texts, slab=2, progress=stop)
    assert len(store.rows) == 4

    again = Counting()
    assert embed_missing(store, again, texts, slab=2) == 6
    assert not set(again.seen) & set(embedder.seen)


def test_the_key_is_of_exactly_the_text():
    keys = {text_key(text) for text in ["a", "a ", "A", "a\n", "\ud800", ""]}
    assert len(keys) == 6
    assert all(len(key) == 16 for key in keys)
    assert text_key("bread").hex() == text_key("bread").hex()
