"""Static embeddings: one vector a token, and a text is their mean.

No network is run, so a whole vault takes seconds and no text is too long. A few lines over the
tokenizer and one array do what the `model2vec` package does (a test has its numbers), are ready
in 0.35 s where it takes 0.57, verify what they load, and bring no further packages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ragvault.errors import ModelUnusable
from ragvault.models import shelf as shelves
from ragvault.models.pieces import Pieces
from ragvault.models.registry import Build
from ragvault.models.text import plain
from ragvault.ports import Embedder, Role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Loaded = tuple[Any, Pieces, NDArray[np.float32]]  # tokenizer, its numbers, their vectors


class StaticEmbedder:
    """An Embedder; knows its name and size before it has loaded anything."""

    def __init__(self, build: Build, shelf: Path) -> None:
        self._build, self._shelf = build, shelf
        self._lock = Lock()
        self._loaded: _Loaded | None = None
        self.name = build.full_name
        self.dim = build.model.dim
        self.max_tokens = 0

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        """Queries and passages are read alike."""
        import numpy as np

        _, pieces, table = self._parts()
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for at, ids in enumerate(pieces.of(texts)):
            table.take(ids, axis=0).sum(axis=0, out=rows[at])
        length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
        # Nothing in it is known, and any unit vector is as far from everything as another.
        rows[length[:, 0] == 0, 0] = length[length == 0] = 1.0
        rows /= length
        return rows

    def opening(self) -> Callable[[], Embedder]:
        """The same embedder for another process, which loads the weights by itself."""
        return partial(StaticEmbedder, self._build, self._shelf)

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, also those that have no vector."""
        tokenizer = self._parts()[0]
        return len(tokenizer.encode(plain(text), add_special_tokens=False).ids)

    def _parts(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> _Loaded:
        words = shelves.read(self._build, "tokenizer.json", self._shelf)
        weights = shelves.read(self._build, "model.safetensors", self._shelf)
        try:
            return _opened(words, weights)
        except Exception as error:  # what the two libraries raise has no common class
            raise ModelUnusable(self._build.model.name, f"it cannot be read ({error})") from error


def _opened(words: bytes, weights: bytes) -> _Loaded:
    import numpy as np
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(words)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    table = load(weights)["embeddings"].astype(np.float32, copy=False)
    return tokenizer, Pieces(tokenizer, words), table
