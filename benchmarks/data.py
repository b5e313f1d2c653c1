"""Where the benchmarks find real data: the folder that RAGVAULT_BENCH_DATA names.

    vaults/      real vaults                      questions/   judged questions about two of them
    ir/          classic judged collections       scale/       14,593 notes, packed

Nothing of it is part of ragvault. A benchmark whose data is missing says so and ends.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from ragvault.config.settings import Config
from ragvault.notes.chunk import chunk
from ragvault.notes.parse import parse


def folder(*parts: str) -> Path:
    """A part of the data; ends the benchmark with a clear line where it is not there."""
    named = os.environ.get("RAGVAULT_BENCH_DATA", "")
    path = Path(named, *parts).expanduser()
    if not named or not path.exists():
        where = path if named else "RAGVAULT_BENCH_DATA, which is not set"
        print(f"skipped: no data at {where}", file=sys.stderr)
        raise SystemExit(0)
    return path


def scale() -> Path:
    """The large corpus, unpacked once into the temporary folder of this machine."""
    packed = folder("scale", "mdn-content.tar.xz")
    target = Path(tempfile.gettempdir(), "ragvault-bench", "mdn-content")
    if not target.exists():
        partial = target.with_suffix(f".{os.getpid()}")
        with tarfile.open(packed) as archive:
            archive.extractall(partial, filter="data")
        partial.rename(target)
    return next(target.rglob("files"))


def part(notes: int, target: Path) -> Path:
    """So many notes of the large corpus, spread over all of it, as a vault; 0 is all of them."""
    corpus = scale()
    files = sorted(corpus.rglob("*.md"))
    if not notes or notes >= len(files):
        return corpus
    if not target.exists():
        for file in files[:: len(files) // notes][:notes]:
            copy = target / file.relative_to(corpus)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)
    return target


def passages(count: int, seed: int = 0) -> list[str]:
    """Passages of real notes, as ragvault cuts them, in a fixed random order."""
    found: list[str] = []
    config = Config()
    for path in sorted(folder("vaults").rglob("*.md")):
        text = path.read_text("utf-8", "replace")
        note = parse(path.name, text, config.parse, config.links)
        found += [passage.text.strip() for passage in chunk(note, config.chunk)[1]]
    random.Random(seed).shuffle(found)
    return found[:count]
