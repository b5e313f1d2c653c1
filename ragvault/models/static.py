"""The static engine: one vector per token, and a text is the mean of its tokens' vectors.

No network is run, so a whole vault takes seconds and no text is too long. The few lines below do
what the `model2vec` package does (a test compares with its numbers) on verified bytes, load faster
(0.35 s against 0.57 s) and need no further package.

Most of the time goes into tokenizing. A BERT tokenizer treats every word by itself, so each word is
tokenized once and then looked up: the same tokens for a quarter of the work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragvault.models.registry import Build, loading, once, read_verified
from ragvault.ports import Role
from ragvault.text.printable import valid_unicode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # The tokenizer, how it gets the ids of many texts, and the vector of each id.
    _Loaded = tuple[Any, "_TokenIds", NDArray[np.float32]]

_TokenIds = Callable[[Sequence[str]], Iterator[Sequence[int]]]
_BATCH = 1024  # texts tokenized at once: enough to keep every core busy


class StaticEmbedder:
    """An Embedder. `name` and `dim` are known before the weights are loaded."""

    def __init__(self, build: Build, models_dir: Path) -> None:
        self._build, self._models_dir = build, models_dir
        self._parts = once(self._load)
        self.name = build.full_name
        self.dim = build.model.dim
        self.max_tokens = 0

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        """Queries and passages are treated alike."""
        import numpy as np

        _, token_ids, table = self._parts()
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for at, ids in enumerate(token_ids([valid_unicode(text) for text in texts])):
            table.take(np.array(ids, np.int64), axis=0).sum(axis=0, out=rows[at])
        length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
        # A text without a known token gets an arbitrary unit vector, far from everything.
        rows[length[:, 0] == 0, 0] = length[length == 0] = 1.0
        rows /= length
        return rows

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, including those without a vector."""
        tokenizer = self._parts()[0]
        return len(tokenizer.encode(valid_unicode(text), add_special_tokens=False).ids)

    def _load(self) -> _Loaded:
        definition = read_verified(self._build, "tokenizer.json", self._models_dir)
        weights = read_verified(self._build, "model.safetensors", self._models_dir)
        with loading(self._build.model.name, "it cannot be read"):
            return _load_parts(definition, weights)


def _load_parts(definition: bytes, weights: bytes) -> _Loaded:
    import numpy as np
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(definition)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    kind = json.loads(definition)
    table = load(weights)["embeddings"].astype(np.float32)
    unknown = kind["model"].get("unk_token")
    if unknown is not None:
        table[tokenizer.token_to_id(unknown)] = 0.0  # says nothing about a text
    token_ids = bert_words(tokenizer) if _is_bert(kind) else _in_batches(tokenizer)
    return tokenizer, token_ids, table


def _in_batches(tokenizer: Any) -> _TokenIds:
    def token_ids(texts: Sequence[str]) -> Iterator[Sequence[int]]:
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                yield encoding.ids

    return token_ids


# --- Tokenizers that treat every word by itself ---

_BERT = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer", "model": "WordPiece"}
_MARKS = r"!-/:-@\[-`{-~"  # BERT takes every one of them for a word
_WORD = re.compile(rf"[^ \t\n\r{_MARKS}]+|[{_MARKS}]")
_WORDS = 1 << 17  # words remembered, about 40 MB


def _is_bert(definition: dict[str, Any]) -> bool:
    """Whether a tokenizer cuts texts as BERT does, without regard to case."""
    kinds = {part: (definition.get(part) or {}).get("type") for part in _BERT}
    return kinds == _BERT and bool(definition["normalizer"].get("lowercase"))


def bert_words(tokenizer: Any) -> _TokenIds:
    """The ids of texts by a BERT tokenizer, which is asked about each word once."""
    special = [token.content for token in tokenizer.get_added_tokens_decoder().values()]

    def encode(text: str) -> Sequence[int]:
        return tuple(tokenizer.encode(text, add_special_tokens=False).ids)

    word_ids = lru_cache(_WORDS)(encode)

    def token_ids(texts: Sequence[str]) -> Iterator[Sequence[int]]:
        for text in texts:
            if any(token in text for token in special):  # "[MASK]" is one token
                yield encode(text)
                continue
            words = _WORD.findall(text.lower() if text.isascii() else text)
            yield list(chain.from_iterable(map(word_ids, words)))

    return token_ids
