"""Pieces: the numbers that a tokenizer gives a text, with each word read once.

A tokenizer of BERT's kind cuts at white space and at punctuation before it looks at a word, so what
it makes of a text is what it makes of its words, one after the other; and the words of a vault
repeat. Looking them up takes a tenth of the time. Any other tokenizer reads its texts whole.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ragvault.models.text import plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT = 1 << 17  # words; about 30 MB when full
BATCH = 1024  # texts read whole at once: enough to keep every core busy, little to hold
# What stands between ASCII's white space and punctuation; each mark of it is a word of its own.
_MARKS = r"!-/:-@\[-`{-~"
_WORD = re.compile(rf"[^ \t\n\r{_MARKS}]+|[{_MARKS}]")


class _Words(dict[str, bytes]):
    """What was read, until it is too much; as bytes, which are joined in no time."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._reader = read

    def __missing__(self, word: str) -> bytes:
        if len(self) >= KEPT:
            self.clear()
        ids = self[word] = self._reader(word)
        return ids


class Pieces:
    """One tokenizer's, without the number of what it does not know."""

    def __init__(self, tokenizer: Any, definition: bytes) -> None:
        known = json.loads(definition)
        unknown = known["model"].get("unk_token")
        self._tokenizer = tokenizer
        self._unknown = None if unknown is None else tokenizer.token_to_id(unknown)
        self._by_word = all(
            (known.get(part) or {}).get("type") == kind
            for part, kind in (
                ("normalizer", "BertNormalizer"),
                ("pre_tokenizer", "BertPreTokenizer"),
            )
        )
        # Tokens that are met before a text is cut, such as [CLS].
        added = [re.escape(token["content"]) for token in known.get("added_tokens") or ()]
        self._whole = re.compile("|".join(added) or r"(?!)")
        self._words = _Words(self._encoded)

    def of(self, texts: Sequence[str]) -> Iterator[NDArray[np.int64]]:
        """The numbers of each text."""
        import numpy as np

        for ids in map(self._read, texts) if self._by_word else self._read_whole(texts):
            yield np.frombuffer(ids, np.int64)

    def _read(self, text: str) -> bytes:
        if self._whole.search(text):
            return self._encoded(text)
        return b"".join(map(self._words.__getitem__, _WORD.findall(text)))

    def _read_whole(self, texts: Sequence[str]) -> Iterator[bytes]:
        for start in range(0, len(texts), BATCH):
            batch = [plain(text) for text in texts[start : start + BATCH]]
            read = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            yield from (self._known(each.ids) for each in read)

    def _encoded(self, text: str) -> bytes:
        return self._known(self._tokenizer.encode(plain(text), add_special_tokens=False).ids)

    def _known(self, ids: list[int]) -> bytes:
        return array("q", (id_ for id_ in ids if id_ != self._unknown)).tobytes()
