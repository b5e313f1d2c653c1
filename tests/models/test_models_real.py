"""The real models: what the ports promise, held by real weights."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from weights import SHELF, opened_here, weights

from ragvault.errors import ModelUnusable
from ragvault.models.load import open_embedder, open_reranker
from ragvault.models.onnx import OnnxEmbedder, OnnxReranker

pytestmark = pytest.mark.model

EMBEDDERS = ["bge-small-en-v1.5", "potion-base-8M"]
RERANKER = "ms-marco-MiniLM-L-12-v2"
TEXTS = [
    "The hound barked at the postman all morning.",
    "A dog was barking loudly at the mail carrier.",
    "Interest rates rose by half a percent in March.",
    "Feed the sourdough starter with equal parts of flour and water.",
    "def cache_size(n): return n * 64",
    "",
    "日本語の文章もあります。",
    "A word. " * 40,
]


@pytest.fixture(scope="module", params=EMBEDDERS)
def embedder(request):
    weights(request.param)
    return open_embedder(request.param, opened_here())


@pytest.fixture(scope="module")
def bge():
    return OnnxEmbedder(weights("bge-small-en-v1.5"), SHELF)


@pytest.fixture(scope="module")
def reranker():
    weights(RERANKER)
    return open_reranker(RERANKER, opened_here())


def test_every_vector_has_length_one(embedder):
    for kind in ("query", "passage"):
        rows = embedder.embed(TEXTS, kind)
        assert rows.shape == (len(TEXTS), embedder.dim)
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_no_text_gives_no_row(embedder):
    assert embedder.embed([], "passage").shape == (0, embedder.dim)


def test_a_vector_depends_on_its_text_alone(embedder):
    """One by one, in a batch of 32, backwards, on one thread: the same bits."""
    together = embedder.embed(TEXTS * 4, "passage")
    alone = np.vstack([embedder.embed([text], "passage") for text in TEXTS])
    backwards = embedder.embed(TEXTS[::-1], "passage")[::-1]
    on_one = open_embedder(embedder.name, opened_here(threads=1)).embed(TEXTS, "passage")

    assert np.array_equal(together, np.vstack([alone] * 4))
    assert np.array_equal(backwards, alone)
    assert np.array_equal(on_one, alone)


def test_what_means_alike_is_nearer_by_a_margin(embedder):
    dog, hound, money, bread, *_ = embedder.embed(TEXTS, "passage")
    assert dog @ hound > max(dog @ money, dog @ bread, hound @ money) + 0.2


def test_a_question_is_nearest_to_its_answer(embedder):
    (question,) = embedder.embed(["how do I keep my bread starter alive?"], "query")
    assert int(np.argmax(embedder.embed(TEXTS, "passage") @ question)) == 3


def test_a_query_is_prefixed_and_a_passage_is_not(bge):
    prefix = "Represent this sentence for searching relevant passages: "
    text = "how to size a cache"
    assert np.array_equal(bge.embed([text], "query"), bge.embed([prefix + text], "passage"))
    assert not np.allclose(bge.embed([text], "query"), bge.embed([text], "passage"), atol=0.01)


def test_the_static_model_reads_queries_and_passages_alike():
    weights("potion-base-8M")
    static = open_embedder("potion-base-8M", opened_here())
    assert np.array_equal(static.embed(TEXTS, "query"), static.embed(TEXTS, "passage"))


def test_the_static_model_gives_what_model2vec_gives():
    """The first numbers of two vectors, from model2vec 0.10.0 with the same weights."""
    weights("potion-base-8M")
    texts = ["how did we size the cache?", "Sourdough bread needs a starter."]
    rows = open_embedder("potion-base-8M", opened_here()).embed(texts, "passage")
    assert np.allclose(
        rows[:, :6],
        [
            [-0.00969, 0.08058, -0.02602, -0.07237, 0.0466, 0.15385],
            [-0.04713, -0.07147, 0.06021, -0.07069, 0.0559, -0.03071],
        ],
        atol=2e-5,
    )


def test_the_end_of_a_long_text_counts(embedder):
    """3,000 tokens of one thing and then an answer: cutting off would not see it."""
    filler = "The committee met on Tuesday and talked about the budget. " * 300
    ending = "Feed the sourdough starter with equal parts of flour and water. " * 60
    plain, ended = embedder.embed([filler, filler + ending], "passage")
    (question,) = embedder.embed(["how do I feed a sourdough starter?"], "query")
    assert ended @ question > plain @ question + 0.05


def test_a_text_of_exactly_one_window_is_read_as_one(bge):
    fits = "word " * 510
    over = "word " * 511
    assert not np.array_equal(bge.embed([fits], "passage"), bge.embed([over], "passage"))
    assert float(bge.embed([fits], "passage")[0] @ bge.embed([over], "passage")[0]) > 0.95


def test_what_no_tokenizer_takes_is_embedded_all_the_same(embedder):
    rows = embedder.embed(["a lone \ud800 surrogate", "\x00", "🍞" * 50, " \n\t "], "passage")
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_an_int8_model_is_as_the_makers_meant_it(bge):
    """Known neighbours of known words, with room for another machine's rounding."""
    king, queen, cabbage = bge.embed(["king", "queen", "cabbage"], "passage")
    assert king @ queen > king @ cabbage + 0.05


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_changed_file_is_never_loaded(tmp_path, file):
    build = weights("bge-small-en-v1.5")
    shutil.copytree(SHELF / build.folder, tmp_path / build.folder)
    victim = tmp_path / build.folder / file
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)

    with pytest.raises(ModelUnusable, match="was changed"):
        OnnxEmbedder(build, tmp_path).embed(["anything"], "query")


def test_a_reranker_puts_the_answer_first_and_scores_from_0_to_1(reranker):
    passages = ["Berlin is known for its museums.", "Berlin has 3.7 million inhabitants.", "Bread."]
    scores = reranker.score("how many people live in Berlin?", passages)
    assert int(np.argmax(scores)) == 1
    assert scores[1] > 0.9
    assert scores[2] < 0.01
    assert all(0 <= score <= 1 for score in scores)


def test_a_reranker_scores_each_pair_by_itself(reranker):
    passages = ["Bread.", "Berlin has 3.7 million inhabitants.", "x " * 300, ""]
    together = reranker.score("people in Berlin", passages)
    assert together == [reranker.score("people in Berlin", [each])[0] for each in passages]
    assert reranker.score("people in Berlin", []) == []


def test_an_answer_at_the_end_of_a_long_passage_is_found(reranker):
    answer = "Berlin has 3.7 million inhabitants."
    long = "The committee met and talked about the budget. " * 150 + answer
    wanted, other = reranker.score("how many people live in Berlin?", [long, long[: -len(answer)]])
    assert wanted > 10 * other


def test_a_long_query_leaves_room_for_the_passage(reranker):
    query = "how many people live in Berlin? " * 200
    wanted, other = reranker.score(query, ["Berlin has 3.7 million inhabitants.", "Bread."])
    assert wanted > other


def test_a_reranker_loads_nothing_until_it_is_asked():
    build = weights(RERANKER)
    lazy = OnnxReranker(build, SHELF / "nowhere")
    assert lazy.score("query", []) == []
    with pytest.raises(ModelUnusable):
        lazy.score("query", ["passage"])


def test_no_socket_is_opened_once_the_weights_are_here(monkeypatch):
    for name in (*EMBEDDERS, RERANKER):
        weights(name)

    def refuse(*_args, **_kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    for name in EMBEDDERS:
        assert open_embedder(name, opened_here()).embed(["a text"], "query").any()
    assert open_reranker(RERANKER, opened_here()).score("a", ["b"])


def test_no_system_call_reaches_for_the_network():
    """The same from outside: a process that may not open one, whatever library would."""
    weights("bge-small-en-v1.5")
    script = f"""
import sys
seen = []
sys.addaudithook(lambda event, args: seen.append(event) if event.startswith("socket.") else None)
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from weights import opened_here
from ragvault.models.load import open_embedder
open_embedder("bge-small-en-v1.5", opened_here()).embed(["text"], "query")
print(seen)
"""
    environment = {"RAGVAULT_TEST_MODELS": str(SHELF), "PATH": ""}
    run = [sys.executable, "-c", script]
    said = subprocess.run(run, capture_output=True, text=True, env=environment, check=True)
    assert said.stdout.strip() == "[]"
