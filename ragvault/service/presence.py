"""Presence: whether the folder of a vault is there, and is the one it was."""

from __future__ import annotations

import os
from pathlib import Path


def why_away(root: Path) -> str:
    """Why the vault cannot be read now; nothing where it can."""
    try:
        with os.scandir(root):
            return ""
    except FileNotFoundError:
        return "the vault's folder is gone"
    except OSError as error:
        return f"the vault cannot be read ({error.strerror})"


def identity(root: Path) -> tuple[int, int] | None:
    """Another folder of the same name has another one: a disk was mounted, or a copy restored."""
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
