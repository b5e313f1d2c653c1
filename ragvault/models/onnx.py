"""The ONNX engine: the default embedder and the cross-encoder.

Weights are loaded on first use, from verified bytes. A text longer than the model's limit is read
in windows. An embedder returns the mean of the windows, weighted by their tokens: on passages of
about 1,000 tokens that gave MRR 0.82, and truncating them at 512 gave 0.73
(`python -m benchmarks.windows`). A cross-encoder returns the score of the best window.

Each text is one run on one thread, with as many runs in parallel as there are threads. Batches
would pad, and their larger arrays cost more than they save (`python -m benchmarks.embed`). They
would also change the result: int8 quantisation scales over the whole batch, so a text's vector
would depend on its neighbours (cosine down to 0.993, `python -m benchmarks.windows`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragvault.models.registry import Build, loading, once, read_verified
from ragvault.ports import Role
from ragvault.text.printable import valid_unicode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Result = TypeVar("Result")

# Of a pair only the passage is truncated: a shortened question could mean something else.
_TRUNCATION = {"embedder": "longest_first", "reranker": "only_second"}


class _Network:
    """A tokenizer and a graph, loaded on first use. Safe to use from several threads."""

    def __init__(self, build: Build, models_dir: Path) -> None:
        self._build, self._models_dir = build, models_dir
        self._parts = once(self._load)

    def windows(self, *texts: str) -> list[Any]:
        """The tokens of a text, or of a pair of texts, in windows of at most max_tokens."""
        tokenizer, _, _ = self._parts()
        first = tokenizer.encode(*map(valid_unicode, texts))
        return [first, *first.overflowing]

    def run(self, encoding: Any) -> NDArray[np.float32]:
        """The first output of the graph for one window."""
        import numpy as np

        _, session, names = self._parts()
        inputs = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {name: np.array([inputs[name]], dtype=np.int64) for name in names}
        output: NDArray[np.float32] = session.run(None, feed)[0][0]
        return output

    def _load(self) -> tuple[Any, Any, list[str]]:
        weights = read_verified(self._build, "model.onnx", self._models_dir)
        definition = read_verified(self._build, "tokenizer.json", self._models_dir)
        model = self._build.model
        fix = "upgrade onnxruntime: pip install --upgrade onnxruntime"
        with loading(model.name, "onnxruntime cannot load it", fix):
            session = _session(weights)
            tokenizer = _tokenizer(definition, model.max_tokens, _TRUNCATION[model.role])
        return tokenizer, session, [each.name for each in session.get_inputs()]


class OnnxEmbedder:
    """An Embedder. `name` and `dim` are known before the weights are loaded."""

    def __init__(self, build: Build, models_dir: Path, *, threads: int = 0) -> None:
        self._model, self._threads = build.model, threads
        self._network = _Network(build, models_dir)
        self.name = build.full_name
        self.dim = build.model.dim
        self.max_tokens = build.model.max_tokens

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        import numpy as np

        prefix = self._model.query_prefix if kind == "query" else self._model.passage_prefix
        rows = _in_threads(lambda text: self._vector(prefix + text), texts, self._threads)
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dim)

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has for this model, without special tokens."""
        windows = self._network.windows(text)
        return sum(not special for each in windows for special in each.special_tokens_mask)

    def _vector(self, text: str) -> NDArray[np.float32]:
        windows = self._network.windows(text)
        total = sum(_unit(self._pooled(each)) * len(each.ids) for each in windows)
        return _unit(total)

    def _pooled(self, encoding: Any) -> NDArray[np.float32]:
        states = self._network.run(encoding)
        pooled: NDArray[np.float32] = states[0] if self._model.pooling == "cls" else states.mean(0)
        return pooled


class OnnxReranker:
    """A Reranker. Its scores are 0..1: the sigmoid of the model's logit."""

    def __init__(self, build: Build, models_dir: Path, *, threads: int = 0) -> None:
        self._build, self._models_dir, self._threads = build, models_dir, threads
        self._network = _Network(build, models_dir)
        self.name = build.full_name

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        short = self._shortened(valid_unicode(query))
        return _in_threads(lambda passage: self._score(short, passage), passages, self._threads)

    def _score(self, query: str, passage: str) -> float:
        windows = self._network.windows(query, passage)
        return max(_sigmoid(self._network.run(each)) for each in windows)

    def _shortened(self, query: str) -> str:
        """The query cut to half a window, which leaves the other half for the passage."""
        encoding = self._query_tokenizer.encode(query)
        return query[: max(end for _, end in encoding.offsets)]

    @cached_property
    def _query_tokenizer(self) -> Any:
        definition = read_verified(self._build, "tokenizer.json", self._models_dir)
        return _tokenizer(definition, self._build.model.max_tokens // 2)


def cpu_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_threads(work: Callable[[str], Result], texts: Sequence[str], threads: int) -> list[Result]:
    """`work` on every text; results in the order given.

    The longest text starts first: a long one at the end would keep one core busy and the others
    idle.
    """
    threads = min(threads or cpu_cores(), len(texts))
    if threads <= 1:
        return [work(text) for text in texts]
    pool = ThreadPoolExecutor(threads, thread_name_prefix="ragvault-model")
    try:
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        futures = {at: pool.submit(work, texts[at]) for at in order}
        return [futures[at].result() for at in range(len(texts))]
    finally:
        # After an interrupt or an error, texts that have not started are dropped.
        pool.shutdown(cancel_futures=True)


def _session(weights: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # see the header
    options.log_severity_level = 3  # its warnings are about the graph, which we cannot change
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])


def _tokenizer(definition: bytes, max_tokens: int, truncation: str = "longest_first") -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(definition)
    # The file may set padding to a fixed length; a single text needs none.
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens, strategy=truncation)
    return tokenizer


def _unit(vector: Any) -> NDArray[np.float32]:
    import numpy as np

    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), dtype=np.float32)


def _sigmoid(logits: NDArray[np.float32]) -> float:
    import math

    # Written so that neither end overflows.
    x = float(logits.reshape(-1)[0])
    return 1 / (1 + math.exp(-x)) if x >= 0 else 1 - 1 / (1 + math.exp(x))
