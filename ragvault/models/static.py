"""The static engine: one vector per token, and a text is the mean of its tokens' vectors.

No network is run, so a whole vault takes seconds and no text is too long. The few lines below do
what the `model2vec` package does (a test compares with its numbers) on verified bytes, load faster
(0.35 s against 0.57 s) and need no further package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ragvault.errors import ModelUnusable
from ragvault.models.registry import Build, read_verified
from ragvault.ports import Role
from ragvault.text.printable import valid_unicode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # The tokenizer, the id it gives to unknown tokens, and the vector of each id.
    _Loaded = tuple[Any, int | None, NDArray[np.float32]]

_BATCH = 1024  # texts tokenized at once: enough to keep every core busy


class StaticEmbedder:
    """An Embedder. `name` and `dim` are known before the weights are loaded."""

    def __init__(self, build: Build, models_dir: Path) -> None:
        self._build, self._models_dir = build, models_dir
        self._lock = Lock()
        self._loaded: _Loaded | None = None
        self.name = build.full_name
        self.dim = build.model.dim
        self.max_tokens = 0

    def embed(self, texts: Sequence[str], kind: Role) -> NDArray[np.float32]:
        """Queries and passages are treated alike."""
        import numpy as np

        table = self._parts()[2]
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for at, ids in enumerate(self._token_ids(texts)):
            table.take(ids, axis=0).sum(axis=0, out=rows[at])
        length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
        # A text without a known token gets an arbitrary unit vector, far from everything.
        rows[length[:, 0] == 0, 0] = length[length == 0] = 1.0
        rows /= length
        return rows

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, including those without a vector."""
        tokenizer = self._parts()[0]
        return len(tokenizer.encode(valid_unicode(text), add_special_tokens=False).ids)

    def _token_ids(self, texts: Sequence[str]) -> Iterator[NDArray[np.int64]]:
        """The ids of the known tokens of each text."""
        import numpy as np

        tokenizer, unknown, _ = self._parts()
        for start in range(0, len(texts), _BATCH):
            batch = [valid_unicode(text) for text in texts[start : start + _BATCH]]
            for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                ids = np.array(encoding.ids, np.int64)
                yield ids if unknown is None else ids[ids != unknown]

    def _parts(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> _Loaded:
        definition = read_verified(self._build, "tokenizer.json", self._models_dir)
        weights = read_verified(self._build, "model.safetensors", self._models_dir)
        try:
            return _load_parts(definition, weights)
        except Exception as error:  # the errors of the two libraries have no common class
            raise ModelUnusable(self._build.model.name, f"it cannot be read ({error})") from error


def _load_parts(definition: bytes, weights: bytes) -> _Loaded:
    import numpy as np
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(definition)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    unknown = json.loads(definition)["model"].get("unk_token")
    table = load(weights)["embeddings"].astype(np.float32, copy=False)
    return tokenizer, None if unknown is None else tokenizer.token_to_id(unknown), table
