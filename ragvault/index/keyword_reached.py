"""Reached: how far a word index follows the catalogue, read from its manifest alone.

For whoever wants to know that and asks it nothing: opening an index imports its engine.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

MANIFEST = "manifest"  # of both engines (keyword_shelf.py)


class _Reached(msgspec.Struct):
    revision: int


def reached(folder: Path) -> int:
    """The revision that the index of an engine's folder reflects; 0 for none that can be read."""
    try:
        body = (folder / MANIFEST).read_bytes().partition(b"\n")[2]
        return msgspec.json.decode(body, type=_Reached).revision
    except (OSError, ValueError, msgspec.MsgspecError):
        return 0
