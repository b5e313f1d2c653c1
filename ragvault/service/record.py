"""Names and numbers that a watcher and its clients share; imports nothing heavy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ragvault.errors import RagvaultError

if TYPE_CHECKING:
    from pathlib import Path

LOCK = "watch.lock"
RECORD = "watch.json"
SOCKET = "watch.sock"
PROTOCOL = 1  # of the frames and what they hold; another number is not talked to


class NotOurs(RagvaultError):
    """The runtime folder belongs to somebody else, or lets others in."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(
            f"the runtime folder {folder} {why}, so nothing in it can be trusted",
            fix="set RAGVAULT_HOME, or XDG_RUNTIME_DIR, to a folder of your own",
        )


def own_folder(folder: Path) -> None:
    """Raises NotOurs unless the folder is ours and closed to others."""
    if not hasattr(os, "getuid"):
        return  # Windows: the folder lies in the user's profile, which others cannot enter
    status = folder.stat()
    if status.st_uid != os.getuid():
        raise NotOurs(folder, "belongs to another user")
    if status.st_mode & 0o077:
        raise NotOurs(folder, "can be entered by others")
