"""The fakes keep the promises of the ports, and know enough to be searched with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragvault.models.fake import FakeEmbedder, FakeReranker
from ragvault.ports import Embedder, Reranker

embedder: Embedder = FakeEmbedder()
reranker: Reranker = FakeReranker()


def near(one, other):
    a, b = embedder.embed([one, other], "passage")
    return float(a @ b)


@given(st.lists(st.text(max_size=40), max_size=8))
def test_every_text_has_a_vector_of_length_one(texts):
    rows = embedder.embed(texts, "passage")
    assert rows.shape == (len(texts), embedder.dim)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.randoms())
def test_a_vector_does_not_depend_on_its_neighbours(texts, random):
    order = random.sample(range(len(texts)), len(texts))
    rows = embedder.embed(texts, "passage")
    assert np.array_equal(embedder.embed([texts[at] for at in order], "passage"), rows[order])


@pytest.mark.parametrize(
    ("query", "answer", "other"),
    [
        ("how to repair a car", "mending an automobile", "baking a loaf"),
        ("quick bread", "a rapid sourdough", "a slow cat"),
        ("deleting pictures", "erase an image", "begin a meeting"),
        ("baking", "baked goods", "physicians"),
    ],
)
def test_words_that_mean_alike_are_near(query, answer, other):
    assert near(query, answer) > near(query, other) + 0.1
    first, second = reranker.score(query, [answer, other])
    assert first >= second


def test_the_reranker_scores_from_none_to_all_of_the_query():
    assert reranker.score("big dog", ["a huge hound", "a large cat", "nothing"]) == [1, 0.5, 0]
    assert reranker.score("the", ["the"]) == [0]
    assert reranker.score("dog", []) == []


def test_two_processes_agree():
    """The first numbers of a vector, written down: hash() would differ from run to run."""
    row = embedder.embed(["sourdough"], "passage")[0]
    assert sorted(np.flatnonzero(row).tolist()) == [5, 8, 35, 41, 52, 107, 115, 138, 195]
