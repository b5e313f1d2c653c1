"""Presence: whether the folder of a vault is there, and is the one it was.

A folder that cannot be reached is not one that is gone: a mount may hang, a right be missing.
"""

from __future__ import annotations

import os
from pathlib import Path


def trouble(root: Path) -> OSError | None:
    """What keeps a vault's folder from being listed; None where nothing does."""
    try:
        with os.scandir(root):
            return None
    except OSError as error:
        return error


def is_gone(root: Path) -> bool:
    """Whether there is no such folder; no where that cannot be told."""
    return isinstance(trouble(root), FileNotFoundError | NotADirectoryError)


def why_away(root: Path) -> str:
    """Why the vault cannot be read now; nothing where it can."""
    error = trouble(root)
    if error is None:
        return ""
    if isinstance(error, FileNotFoundError):
        return "the vault's folder is gone"
    return f"the vault cannot be read ({error.strerror})"


def identity(root: Path) -> tuple[int, int] | None:
    """Another folder of the same name has another one: a disk was mounted, or a copy restored."""
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
