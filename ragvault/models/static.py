"""Static embeddings: one vector a token, and a text is their mean.

No network is run, so a whole vault takes seconds and no text is too long. A few lines over the
tokenizer and one array do what the `model2vec` package does (a test has its numbers), are ready
in 0.35 s where it takes 0.57, verify what they load, and bring no further packages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ragvault.errors import ModelUnusable
from ragvault.models import shelf as shelves
from ragvault.models.registry import Build
from ragvault.models.text import plain
from ragvault.ports import Role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PIECE = 1024  # texts tokenised at once: enough to keep every core busy, little to hold


class StaticEmbedder:
    """An Embedder; knows its name and size before it has loaded anything."""

    def __init__(self, build: Build, shelf: Path) -> None:
        self._build, self._shelf = build, shelf
        self._lock = Lock()
        self._loaded: tuple[Any, NDArray[np.float32], int | None] | None = None
        self.name = build.full_name
        self.dim = build.model.dim
        self.max_tokens = 0

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        """Queries and passages are read alike."""
        import numpy as np

        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for start in range(0, len(texts), _PIECE):
            for at, ids in enumerate(self._tokens(texts[start : start + _PIECE]), start):
                rows[at] = self._mean(ids)
        return rows

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, also those that have no vector."""
        tokenizer, _, _ = self._parts()
        return len(tokenizer.encode(plain(text), add_special_tokens=False).ids)

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        tokenizer, _, unknown = self._parts()
        read = tokenizer.encode_batch_fast(
            [plain(text) for text in texts], add_special_tokens=False
        )
        return [[id_ for id_ in each.ids if id_ != unknown] for each in read]

    def _mean(self, ids: list[int]) -> NDArray[np.float32]:
        import numpy as np

        _, table, _ = self._parts()
        total = table[ids].sum(axis=0)
        length = float(np.linalg.norm(total))
        if length == 0:
            # Nothing in it is known, and any unit vector is as far from everything as another.
            total, length = np.eye(1, self.dim)[0], 1.0
        return np.asarray(total / length, dtype=np.float32)

    def _parts(self) -> tuple[Any, NDArray[np.float32], int | None]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> tuple[Any, NDArray[np.float32], int | None]:
        words = shelves.read(self._build, "tokenizer.json", self._shelf)
        weights = shelves.read(self._build, "model.safetensors", self._shelf)
        try:
            return _opened(words, weights)
        except Exception as error:  # what the two libraries raise has no common class
            raise ModelUnusable(self._build.model.name, f"it cannot be read ({error})") from error


def _opened(words: bytes, weights: bytes) -> tuple[Any, NDArray[np.float32], int | None]:
    import json

    import numpy as np
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(words)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    table = load(weights)["embeddings"].astype(np.float32, copy=False)
    unknown = json.loads(words)["model"].get("unk_token")
    return tokenizer, table, None if unknown is None else tokenizer.token_to_id(unknown)
