"""Presence: whether the folder of a vault is there.

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
