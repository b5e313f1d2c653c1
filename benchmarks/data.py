"""Where the measured data is: the folder that RAGVAULT_BENCH_DATA names. Nothing of it is ours."""

from __future__ import annotations

import os
import random
import re
import sys
from pathlib import Path


def folder(*parts: str) -> Path:
    """A part of the data; ends the program with a clear line where it is not there."""
    named = os.environ.get("RAGVAULT_BENCH_DATA", "")
    path = Path(named, *parts)
    if not named or not path.exists():
        where = path if named else "RAGVAULT_BENCH_DATA, which is not set"
        print(f"skipped: no data at {where}", file=sys.stderr)
        raise SystemExit(0)
    return path


def passages(count: int, seed: int = 0) -> list[str]:
    """Passages of real notes: paragraphs joined up to about 500 characters, at most 1,500."""
    found: list[str] = []
    for path in sorted(folder("vaults").rglob("*.md")):
        found += _cut(path.read_text("utf-8", "replace"))
    random.Random(seed).shuffle(found)
    return found[:count]


def _cut(text: str) -> list[str]:
    pieces, held = [], ""
    for paragraph in re.split(r"\n\s*\n", text):
        if len(held) >= 200 and len(held) + len(paragraph) > 500:
            pieces.append(held[:1500])
            held = ""
        held = f"{held}\n\n{paragraph}".strip()
    return [*pieces, held[:1500]] if held else pieces
