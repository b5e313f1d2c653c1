"""The sentence-transformers engine: any embedder or cross-encoder it can load, from a folder.

It is an extra, because it brings torch: seven seconds to import and hundreds of megabytes. Models
come as folders (see folder.py), safetensors only, and are loaded on first use without asking the
network. A text longer than the model is read in windows here too: the library itself would cut it
off and say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ragvault.errors import ModelUnusable, RagvaultError
from ragvault.models.text import plain
from ragvault.ports import Role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Locate = Callable[[], Path]
_LEAST = 16  # tokens left for the text, whatever the prompt takes


class Lazy:
    """A library object made from a folder on first use. `locate` verifies the folder first."""

    def __init__(self, label: str, kind: str, locate: Locate, threads: int) -> None:
        self._label, self._kind, self._locate, self._threads = label, kind, locate, threads
        self._lock = Lock()
        self._loaded: Any = None

    def get(self) -> Any:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> Any:
        library = _library(self._label, self._threads)
        folder = self._locate()
        try:
            return getattr(library, self._kind)(
                str(folder),
                device="cpu",
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except RagvaultError:
            raise
        except Exception as error:  # what the library raises has no common class
            why = f"sentence-transformers will not load {folder} ({error})"
            fix = "check that the folder holds a whole model, with its weights as safetensors"
            raise ModelUnusable(self._label, why, fix=fix) from error


class SentenceEmbedder:
    """An Embedder. Its `dim` and `max_tokens` are the model's own, so asking for them loads it."""

    def __init__(
        self, name: str, locate: Locate, *, label: str, threads: int = 0, batch: int = 32
    ) -> None:
        self.name = name
        self._model = Lazy(label, "SentenceTransformer", locate, threads)
        self._batch = batch

    @property
    def dim(self) -> int:
        return int(self._model.get().get_embedding_dimension())

    @property
    def max_tokens(self) -> int:
        return _limit(self._model.get())

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        import numpy as np

        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        room = self._room(kind)
        pieces = [_pieces(self._model.get().tokenizer, plain(text), room) for text in texts]
        rows = self._encode([piece for each in pieces for piece, _ in each], kind)
        weights = np.array([tokens for each in pieces for _, tokens in each], dtype=np.float32)
        starts = np.cumsum([0, *map(len, pieces[:-1])])
        total = np.add.reduceat(_units(rows) * weights[:, None], starts, axis=0)
        return _units(total)

    def _encode(self, texts: list[str], kind: Role) -> NDArray[np.float32]:
        model = self._model.get()
        encode = model.encode_query if kind == "query" else model.encode_document
        rows: NDArray[np.float32] = encode(
            texts, batch_size=self._batch, show_progress_bar=False, convert_to_numpy=True
        )
        return rows

    def _room(self, kind: Role) -> int:
        """How many tokens of a text fit beside the prompt; 0 means any number."""
        model = self._model.get()
        limit = _limit(model)
        prompt = (model.prompts or {}).get("query" if kind == "query" else "document") or ""
        return limit and max(limit - _specials(model.tokenizer, 1) - _count(model, prompt), _LEAST)


class SentenceReranker:
    """A Reranker over a CrossEncoder of one label, whose scores are 0..1 by a sigmoid."""

    def __init__(
        self, name: str, locate: Locate, *, label: str, threads: int = 0, batch: int = 32
    ) -> None:
        self.name = name
        self._label = label
        self._model = Lazy(label, "CrossEncoder", locate, threads)
        self._batch = batch

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        model = self._one_label()
        limit = _limit(model)
        short, used = _pieces(model.tokenizer, plain(query), limit // 2)[0]
        room = limit and max(limit - used - _specials(model.tokenizer, 2), _LEAST)
        pieces = [_pieces(model.tokenizer, plain(each), room) for each in passages]
        scores = iter(self._predict([(short, text) for each in pieces for text, _ in each]))
        return [max(next(scores) for _ in each) for each in pieces]

    def _predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        from torch.nn import Sigmoid

        scores = self._model.get().predict(
            pairs, batch_size=self._batch, show_progress_bar=False, activation_fn=Sigmoid()
        )
        return [float(score) for score in scores]

    def _one_label(self) -> Any:
        model = self._model.get()
        if model.num_labels != 1:
            raise ModelUnusable(
                self._label,
                f"it gives {model.num_labels} numbers a pair, where a reranker gives one",
                fix="choose a cross-encoder for search, such as one trained on MS MARCO",
            )
        return model


def _library(label: str, threads: int) -> Any:
    try:
        import sentence_transformers
        import torch
        from transformers.utils import logging
    except ImportError as error:
        raise ModelUnusable(
            label,
            f"sentence-transformers cannot be imported ({error})",
            fix="pip install 'ragvault[sentence-transformers]' (docs/models.md: torch for CPUs)",
        ) from error
    # stderr is ours to talk on, and these would draw bars and print tables.
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    if threads:
        torch.set_num_threads(threads)
    return sentence_transformers


def _limit(model: Any) -> int:
    """How many tokens the model reads at once; 0 where it does not say."""
    limit = model.max_seq_length
    # Some tokenizers say 10 to the 30 when they mean "ask somebody else".
    return int(limit) if limit and limit < 1_000_000 else 0


def _pieces(tokenizer: Any, text: str, room: int) -> list[tuple[str, int]]:
    """The text in stretches of at most `room` tokens, each with how many it has."""
    spans = _spans(tokenizer, text) if room else None
    if not spans:
        return [(text, 1)]
    groups = [spans[at : at + room] for at in range(0, len(spans), room)]
    return [(text[group[0][0] : group[-1][1]], len(group)) for group in groups]


def _spans(tokenizer: Any, text: str) -> list[tuple[int, int]] | None:
    """Where each token stands in the text; None from a tokenizer that cannot say."""
    # Only the Rust tokenizers can. Of the others the library cuts off what is too long.
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
