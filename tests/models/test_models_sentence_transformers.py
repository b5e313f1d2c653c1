"""The sentence-transformers engine, for real: MiniLM from its wheel, a CrossEncoder made here."""

from __future__ import annotations

import socket

import numpy as np
import pytest
from weights import SHELF, opened_here, weights

from ragvault.errors import ModelUnusable
from ragvault.models import load
from ragvault.models.load import open_embedder, open_reranker

pytestmark = [
    pytest.mark.model,
    # The libraries warn about each other; what they say is not about our code.
    pytest.mark.filterwarnings("ignore"),
]

NAME = "all-MiniLM-L6-v2"
TEXTS = [
    "The hound barked at the postman all morning.",
    "A dog was barking loudly at the mail carrier.",
    "Interest rates rose by half a percent in March.",
    "",
]


@pytest.fixture(scope="module")
def library():
    return pytest.importorskip("sentence_transformers", reason="the extra is not installed")


@pytest.fixture(scope="module")
def minilm(library):
    weights(NAME)
    return open_embedder(NAME, opened_here())


@pytest.fixture(scope="module")
def cross_encoder(library, tmp_path_factory):
    """A CrossEncoder of one layer, whose weights are drawn from a fixed seed."""
    folder = tmp_path_factory.mktemp("cross")
    make_cross_encoder(folder, labels=1)
    return folder


def make_cross_encoder(folder, labels):
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "berlin", "people", "bread", "the", "in", "of"]
    tokenizer = Tokenizer(models.WordLevel({w: at for at, w in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=64, unk_token="[UNK]", pad_token="[PAD]",
        cls_token="[CLS]", sep_token="[SEP]",
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, num_labels=labels, pad_token_id=0,
        initializer_range=0.5,
    )  # fmt: skip
    BertForSequenceClassification(config).eval().save_pretrained(folder, safe_serialization=True)


def test_every_vector_has_length_one(minilm):
    for kind in ("query", "passage"):
        rows = minilm.embed(TEXTS, kind)
        assert rows.shape == (len(TEXTS), 384) == (len(TEXTS), minilm.dim)
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert minilm.embed([], "query").shape == (0, 384)


def test_a_vector_does_not_depend_on_its_neighbours(minilm):
    together = minilm.embed(TEXTS * 8, "passage")
    alone = np.vstack([minilm.embed([text], "passage") for text in TEXTS])
    assert np.allclose(together, np.vstack([alone] * 8), atol=1e-5)


def test_what_means_alike_is_nearer_by_a_margin(minilm):
    dog, hound, money, _ = minilm.embed(TEXTS, "passage")
    assert dog @ hound > dog @ money + 0.3


def test_it_agrees_with_the_library_on_a_text_that_fits(minilm, library):
    model = library.SentenceTransformer(str(SHELF / weights(NAME).folder), device="cpu")
    assert np.allclose(
        minilm.embed(TEXTS, "passage"), model.encode(TEXTS, normalize_embeddings=True), atol=1e-5
    )


def test_the_end_of_a_long_text_counts(minilm):
    """The library cuts off at 256 tokens; we do not."""
    assert minilm.max_tokens == 256
    filler = "The committee met on Tuesday and talked about the budget. " * 60
    plain, ended = minilm.embed([filler, filler + TEXTS[0] * 20], "passage")
    (question,) = minilm.embed(["why did the dog bark?"], "query")
    assert ended @ question > plain @ question + 0.05


def test_a_folder_is_opened_as_well_as_a_name(minilm):
    folder = str(SHELF / weights(NAME).folder)
    mine = open_embedder(folder, opened_here())
    assert mine.name.startswith(f"{folder}@")
    assert np.allclose(mine.embed(TEXTS, "query"), minilm.embed(TEXTS, "query"), atol=1e-6)


def test_a_folder_that_is_no_model_is_told(library, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"not tensors")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelUnusable, match="will not load"):
        open_embedder(str(tmp_path), opened_here()).embed(["text"], "query")


def test_a_cross_encoder_scores_from_0_to_1_as_the_library_does(cross_encoder, library):
    from torch.nn import Sigmoid

    passages = ["people in berlin", "bread", "the the the"]
    scores = open_reranker(str(cross_encoder), opened_here()).score("berlin people", passages)
    model = library.CrossEncoder(str(cross_encoder), device="cpu")
    pairs = [("berlin people", each) for each in passages]

    assert scores == pytest.approx(model.predict(pairs, activation_fn=Sigmoid()).tolist(), abs=1e-5)
    assert all(0 <= score <= 1 for score in scores)
    assert len(set(scores)) == 3


def test_the_best_window_of_a_long_passage_counts(cross_encoder):
    reranker = open_reranker(str(cross_encoder), opened_here())
    windows = ["bread " * 59, "berlin " * 59]  # 64 less the two of the query and three marks
    scores = [reranker.score("berlin people", [each])[0] for each in windows]
    (whole,) = reranker.score("berlin people", ["".join(windows)])
    assert whole == pytest.approx(max(scores), abs=1e-5)
    assert reranker.score("berlin " * 500, ["bread"])
    assert reranker.score("berlin", []) == []


def test_a_classifier_of_several_labels_is_no_reranker(library, tmp_path):
    make_cross_encoder(tmp_path, labels=3)
    with pytest.raises(ModelUnusable, match="3 numbers"):
        open_reranker(str(tmp_path), opened_here()).score("berlin", ["bread"])


def test_no_socket_is_opened_once_the_weights_are_here(library, cross_encoder, monkeypatch):
    weights(NAME)

    def refuse(*_args, **_kwargs):
        raise AssertionError("a socket was opened")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    assert open_embedder(NAME, opened_here()).embed(["text"], "query").any()
    assert open_reranker(str(cross_encoder), opened_here()).score("berlin", ["bread"])


def test_without_the_extra_the_cure_is_named(monkeypatch):
    import sys

    weights(NAME)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelUnusable) as caught:
        load.open_embedder(NAME, opened_here()).embed(["text"], "query")
    assert 'pip install "ragvault-search[sentence-transformers]"' in caught.value.fix
