"""The static engine looks words up instead of tokenizing them, and gets the same tokens."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save
from tokenizers import Tokenizer

from ragvault.models import static

PIECES = ["a", "b", "c", "1", "##a", "##b", "##c", "##1", "-", ".", "'", "[", "]", "é", "黑", "#"]
VOCABULARY = {piece: at for at, piece in enumerate(["[PAD]", "[UNK]", "[MASK]", *PIECES])}
SPECIAL = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
DEFINITION = {
    "added_tokens": [
        {"id": VOCABULARY[name], "content": name, "special": True, **SPECIAL}
        for name in ("[PAD]", "[UNK]", "[MASK]")
    ],
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 10,
        "vocab": VOCABULARY,
    },
}
TOKENIZER = Tokenizer.from_str(json.dumps(DEFINITION))
BY_WORDS = static.bert_words(TOKENIZER)

words = st.text(alphabet="aBc1é黑İ\u0301", max_size=12)
signs = st.sampled_from(
    [" ", "\n", "\t", "-", ".", "'", "[MASK]", "#", "\u00a0", "\x00", "\x0b", "„"]
)
texts = st.lists(words | signs, max_size=12).map("".join)


@given(st.lists(texts, max_size=3))
def test_words_that_are_looked_up_give_the_tokens_of_the_whole_text(several):
    expected = [TOKENIZER.encode(text, add_special_tokens=False).ids for text in several]
    assert [list(ids) for ids in BY_WORDS(several)] == expected
    assert [list(ids) for ids in BY_WORDS(several)] == expected  # now that they are known


def test_only_so_many_words_are_remembered(monkeypatch):
    monkeypatch.setattr(static, "_WORDS", 3)
    by_words = static.bert_words(TOKENIZER)
    several = ["a b c 1 ab ac", "a" * 80, "abc abc"]
    expected = [TOKENIZER.encode(text, add_special_tokens=False).ids for text in several]
    assert [list(ids) for ids in by_words(several)] == expected


@pytest.mark.parametrize("change", [{}, {"pre_tokenizer": {"type": "Whitespace"}}])
def test_unknown_tokens_say_nothing_whichever_the_tokenizer(change):
    table = np.arange(len(VOCABULARY) * 2, dtype=np.float32).reshape(-1, 2)
    definition = json.dumps(DEFINITION | change).encode()
    _, token_ids, vectors = static._load_parts(definition, save({"embeddings": table}))
    (ids,) = token_ids(["ab zz c"])
    known = [VOCABULARY[name] for name in ("a", "##b", "c")]
    assert vectors.take(np.array(ids), axis=0).sum(axis=0).tolist() == table[known].sum(0).tolist()
