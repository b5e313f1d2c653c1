"""Transformers in ONNX: the embedder that is the default, and the cross-encoder.

Weights are loaded on first use, from verified bytes, and run one text at a time (see crew.py).
Texts longer than the model are read in windows of its size. An embedder takes the mean of the
windows, weighted by their tokens: on passages of about 1,000 tokens that found the answer at
MRR 0.82 where cutting them off at 512 found it at 0.73 (`python -m benchmarks.windows`). A
cross-encoder takes the best window.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ragvault.errors import ModelUnusable
from ragvault.models import crew
from ragvault.models import shelf as shelves
from ragvault.models.registry import Build
from ragvault.models.text import plain
from ragvault.ports import Role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Of a pair only the passage is cut: a question that lost its end would be another question.
_CUT = {"embedder": "longest_first", "reranker": "only_second"}


class Network:
    """A tokenizer and a graph. `run` may be called from several threads at once."""

    def __init__(self, build: Build, shelf: Path) -> None:
        self._build, self._shelf = build, shelf
        self._lock = Lock()
        self._loaded: tuple[Any, Any, list[str]] | None = None

    def windows(self, *texts: str) -> list[Any]:
        """The text, or the pair, as encodings of at most max_tokens each."""
        tokenizer, _, _ = self._parts()
        first = tokenizer.encode(*map(plain, texts))
        return [first, *first.overflowing]

    def run(self, encoding: Any) -> NDArray[np.float32]:
        """The first output of the graph for one window."""
        import numpy as np

        _, session, names = self._parts()
        given = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {name: np.array([given[name]], dtype=np.int64) for name in names}
        output: NDArray[np.float32] = session.run(None, feed)[0][0]
        return output

    def _parts(self) -> tuple[Any, Any, list[str]]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> tuple[Any, Any, list[str]]:
        weights = shelves.read(self._build, "model.onnx", self._shelf)
        words = shelves.read(self._build, "tokenizer.json", self._shelf)
        try:
            session = _session(weights)
            tokenizer = _tokenizer(
                words, self._build.model.max_tokens, _CUT[self._build.model.role]
            )
        except Exception as error:  # what the runtime raises has no common class
            raise ModelUnusable(
                self._build.model.name,
                f"onnxruntime will not load it ({error})",
                fix="upgrade onnxruntime: pip install --upgrade onnxruntime",
            ) from error
        return tokenizer, session, [each.name for each in session.get_inputs()]


class OnnxEmbedder:
    """An Embedder; knows its name and size before it has loaded anything."""

    def __init__(self, build: Build, shelf: Path, *, threads: int = 0) -> None:
        self._model, self._threads = build.model, threads
        self._network = Network(build, shelf)
        self.name = build.full_name
        self.dim = build.model.dim
        self.max_tokens = build.model.max_tokens

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        import numpy as np

        prefix = self._model.query_prefix if kind == "query" else self._model.passage_prefix
        rows = crew.each(
            lambda text: self._vector(prefix + text), texts, size=len, threads=self._threads
        )
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dim)

    def count_tokens(self, text: str) -> int:
        """How many tokens of a text the model reads, without those that frame it."""
        windows = self._network.windows(text)
        return sum(not frame for each in windows for frame in each.special_tokens_mask)

    def _vector(self, text: str) -> NDArray[np.float32]:
        windows = self._network.windows(text)
        total = sum(_unit(self._pooled(each)) * len(each.ids) for each in windows)
        return _unit(total)

    def _pooled(self, encoding: Any) -> NDArray[np.float32]:
        states = self._network.run(encoding)
        pooled: NDArray[np.float32] = states[0] if self._model.pooling == "cls" else states.mean(0)
        return pooled


class OnnxReranker:
    """A Reranker whose scores are 0..1: the sigmoid of the model's logit."""

    def __init__(self, build: Build, shelf: Path, *, threads: int = 0) -> None:
        self._build, self._shelf, self._threads = build, shelf, threads
        self._network = Network(build, shelf)
        self.name = build.full_name

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        short = self._shortened(plain(query))
        return crew.each(
            lambda passage: self._score(short, passage), passages, size=len, threads=self._threads
        )

    def _score(self, query: str, passage: str) -> float:
        windows = self._network.windows(query, passage)
        return max(_sigmoid(self._network.run(each)) for each in windows)

    def _shortened(self, query: str) -> str:
        """At most half of a window is for the query, or none would be left for the passage."""
        encoding = self._query_tokenizer.encode(query)
        return query[: max(end for _, end in encoding.offsets)]

    @cached_property
    def _query_tokenizer(self) -> Any:
        words = shelves.read(self._build, "tokenizer.json", self._shelf)
        return _tokenizer(words, self._build.model.max_tokens // 2)


def _session(weights: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # see crew.py
    options.log_severity_level = 3  # its warnings are about the graph, which we cannot mend
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])


def _tokenizer(words: bytes, max_tokens: int, cut: str = "longest_first") -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(words)
    # The file may ask for padding to a fixed length; a text run alone needs none.
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens, strategy=cut)
    return tokenizer


def _unit(vector: Any) -> NDArray[np.float32]:
    import numpy as np

    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), dtype=np.float32)


def _sigmoid(logits: NDArray[np.float32]) -> float:
    import math

    # Written so that neither end overflows.
    x = float(logits.reshape(-1)[0])
    return 1 / (1 + math.exp(-x)) if x >= 0 else 1 - 1 / (1 + math.exp(x))
