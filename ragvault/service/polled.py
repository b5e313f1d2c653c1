"""Polled: whether a vault is another than at the last look, by the sizes and times of its notes.

Used where no events are to be had, and now and then where they are, since events can be lost.
"""

from __future__ import annotations

import time
from hashlib import blake2b
from pathlib import Path

from ragvault.config import settings as config
from ragvault.errors import RagvaultError
from ragvault.notes.walk import walk

SHARE = 100  # a look may take one part in so many of the time between two


class Polled:
    """Looks through a vault, and remembers what it saw as one number."""

    def __init__(self, root: Path, settings: config.Walk) -> None:
        self._root, self._settings = root, settings
        self._seen = b""
        self._took = 0.0  # seconds

    def look(self) -> bool:
        """Whether the notes are others than at the last look; True at the first one."""
        began = time.perf_counter()
        try:
            seen = self._sum()
        except RagvaultError:
            return False  # the vault is away, which is noticed elsewhere
        self._took = time.perf_counter() - began
        before, self._seen = self._seen, seen
        return seen != before

    def pause(self, least: float) -> float:
        """Seconds until the next look: `least`, or more where looking takes long."""
        return max(least, self._took * SHARE)

    def _sum(self) -> bytes:
        total = blake2b(digest_size=16)
        walked = walk(self._root, self._settings)
        for file in walked.files:
            total.update(f"{file.disk}\0{file.size}\0{file.mtime_ns}\n".encode(errors="replace"))
        for path in sorted(walked.unreadable):
            total.update(f"{path}\0".encode(errors="replace"))
        return total.digest()
