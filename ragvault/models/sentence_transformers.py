"""The sentence-transformers engine: any embedder or cross-encoder it can load, from a folder.

It is an extra, because it needs torch: seven seconds to import and hundreds of megabytes. Models
are folders (see install.py), safetensors only, loaded on first use without the network. A text
longer than the model's limit is read in windows, as in the ONNX engine: the library itself would
truncate it silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragvault.errors import ModelUnusable, install_command, with_extra
from ragvault.models.registry import loading, once
from ragvault.ports import Role
from ragvault.text.printable import valid_unicode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Locate = Callable[[], Path]
BATCH = 32  # texts given to the library at once
_MIN_TOKENS = 16  # left for the text, however long the prompt is


def _load(label: str, kind: str, locate: Locate, threads: int) -> Any:
    """A library object, from the folder that `locate` verifies."""
    library = _library(label, threads)
    folder = locate()
    fix = "check that the folder holds a complete model with safetensors weights"
    with loading(label, f"sentence-transformers cannot load {folder}", fix):
        return getattr(library, kind)(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )


class SentenceEmbedder:
    """An Embedder. Reading `dim` or `max_tokens` loads the model, which defines them."""

    def __init__(self, name: str, locate: Locate, *, label: str, threads: int = 0) -> None:
        self.name = name
        self._model = once(partial(_load, label, "SentenceTransformer", locate, threads))

    @property
    def dim(self) -> int:
        return int(self._model().get_embedding_dimension())

    @property
    def max_tokens(self) -> int:
        return _limit(self._model())

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        import numpy as np

        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        room = self._room(kind)
        tokenizer = self._model().tokenizer
        windows = [_windows(tokenizer, valid_unicode(text), room) for text in texts]
        rows = self._encode([window for each in windows for window, _ in each], kind)
        weights = np.array([tokens for each in windows for _, tokens in each], dtype=np.float32)
        starts = np.cumsum([0, *map(len, windows[:-1])])
        total = np.add.reduceat(_units(rows) * weights[:, None], starts, axis=0)
        return _units(total)

    def _encode(self, texts: list[str], kind: Role) -> NDArray[np.float32]:
        model = self._model()
        encode = model.encode_query if kind == "query" else model.encode_document
        rows: NDArray[np.float32] = encode(
            texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True
        )
        return rows

    def _room(self, kind: Role) -> int:
        """How many tokens of a text fit beside the prompt; 0 means no limit."""
        model = self._model()
        limit = _limit(model)
        prompt = (model.prompts or {}).get("query" if kind == "query" else "document") or ""
        return limit and max(
            limit - _specials(model.tokenizer, 1) - _count(model, prompt), _MIN_TOKENS
        )


class SentenceReranker:
    """A Reranker over a CrossEncoder with one label. Its scores are 0..1, by a sigmoid."""

    def __init__(self, name: str, locate: Locate, *, label: str, threads: int = 0) -> None:
        self.name = name
        self._label = label
        self._model = once(partial(_load, label, "CrossEncoder", locate, threads))

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        model = self._one_label()
        limit = _limit(model)
        short, used = _windows(model.tokenizer, valid_unicode(query), limit // 2)[0]
        room = limit and max(limit - used - _specials(model.tokenizer, 2), _MIN_TOKENS)
        windows = [_windows(model.tokenizer, valid_unicode(each), room) for each in passages]
        scores = iter(self._predict([(short, text) for each in windows for text, _ in each]))
        return [max(next(scores) for _ in each) for each in windows]

    def _predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        from torch.nn import Sigmoid

        scores = self._model().predict(
            pairs, batch_size=BATCH, show_progress_bar=False, activation_fn=Sigmoid()
        )
        return [float(score) for score in scores]

    def _one_label(self) -> Any:
        model = self._model()
        if model.num_labels != 1:
            raise ModelUnusable(
                self._label,
                f"it returns {model.num_labels} numbers per pair; a reranker returns one",
                fix="choose a cross-encoder for search, such as one trained on MS MARCO",
            )
        return model


def _library(label: str, threads: int) -> Any:
    install = install_command(with_extra("sentence-transformers"))
    fix = f"{install} (docs/models.md: torch for CPUs)"
    with loading(label, "sentence-transformers cannot be imported", fix):
        import sentence_transformers
        import torch
        from transformers.utils import logging
    # They would draw bars and print tables on stderr, between our own messages.
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    if threads:
        torch.set_num_threads(threads)
    return sentence_transformers


def _limit(model: Any) -> int:
    """How many tokens the model reads at once; 0 if it has no stated limit."""
    limit = model.max_seq_length
    # Some tokenizers use 10^30 for "unknown".
    return int(limit) if limit and limit < 1_000_000 else 0


def _windows(tokenizer: Any, text: str, room: int) -> list[tuple[str, int]]:
    """The text in windows of at most `room` tokens, each with its number of tokens."""
    spans = _spans(tokenizer, text) if room else None
    if not spans:
        return [(text, 1)]
    groups = [spans[at : at + room] for at in range(0, len(spans), room)]
    return [(text[group[0][0] : group[-1][1]], len(group)) for group in groups]


def _spans(tokenizer: Any, text: str) -> list[tuple[int, int]] | None:
    """The span of each token in the text; None if the tokenizer cannot give them."""
    # Only the Rust tokenizers can. With the others, the library truncates long texts.
    with suppress(NotImplementedError):
        read = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        spans: list[tuple[int, int]] = read["offset_mapping"]
        return spans
    return None


def _count(model: Any, text: str) -> int:
    return len(model.tokenizer(text, add_special_tokens=False)["input_ids"]) if text else 0


def _specials(tokenizer: Any, texts: int) -> int:
    return int(tokenizer.num_special_tokens_to_add(pair=texts == 2))


def _units(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray(rows / lengths, dtype=np.float32)
