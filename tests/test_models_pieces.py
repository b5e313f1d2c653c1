"""A text read word by word gives what the tokenizer gives for the whole of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from ragvault.models.pieces import Pieces

SIGNS = "abcxyzßéñ日本語กขअ̀́'’.,!-_[]#`~ \t\n\r\x00\x01\x1c\x85\xa0\u2028\u3000\ufffd"
VOCABULARY = ["[UNK]", "[CLS]", *SIGNS, *(f"##{sign}" for sign in SIGNS), "ab", "##yz", "e", "##e"]


def bert(**how):
    numbers = {token: at for at, token in enumerate(dict.fromkeys(VOCABULARY))}
    made = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=20))
    made.normalizer = how.get("normalizer", normalizers.BertNormalizer())
    made.pre_tokenizer = how.get("pre_tokenizer", pre_tokenizers.BertPreTokenizer())
    made.add_special_tokens([AddedToken("[CLS]", normalized=False)])
    return made


def whole(tokenizer, text):
    unknown = tokenizer.token_to_id("[UNK]")
    return [i for i in tokenizer.encode(text, add_special_tokens=False).ids if i != unknown]


def read(pieces, *texts):
    return [ids.tolist() for ids in pieces.of(texts)]


TOKENIZER = bert()
PIECES = Pieces(TOKENIZER, TOKENIZER.to_str().encode())
texts = st.text(st.sampled_from(SIGNS), max_size=40) | st.text(max_size=40)


@given(texts)
def test_word_by_word_is_as_whole(text):
    text = text.encode("utf-8", "replace").decode()
    assert read(PIECES, text, text) == [whole(TOKENIZER, text)] * 2


def test_a_token_with_punctuation_in_it_is_met_as_one():
    assert read(PIECES, "ab[CLS]yz") == [whole(TOKENIZER, "ab[CLS]yz")]
    assert TOKENIZER.token_to_id("[CLS]") in next(PIECES.of(["ab[CLS]yz"]))


def test_a_tokenizer_that_cuts_otherwise_reads_texts_whole():
    joined = bert(pre_tokenizer=pre_tokenizers.Split("x", "removed"))
    pieces = Pieces(joined, joined.to_str().encode())

    assert read(pieces, "a.bxyz", "ab") == [whole(joined, "a.bxyz"), whole(joined, "ab")]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ragvault.models.pieces.KEPT", 3)
    pieces = Pieces(TOKENIZER, TOKENIZER.to_str().encode())

    assert read(pieces, "a b c x y z ab") == [whole(TOKENIZER, "a b c x y z ab")]
    assert len(pieces._words) <= 3
