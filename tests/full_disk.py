"""Run by test_write_damage.py on a small file system of its own: VAULT HOME OTHER_HOME.

The disk is filled up to a rest that differs from turn to turn, so that it runs full under another
writer each time: the catalogue, the words, the vectors. Prints what was said each time.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from write_kit import Models, answers, note, notes, opened, write

from ragvault.engines import Engines
from ragvault.errors import IndexUnusable

RESTS = (0, 20_000, 50_000, 500_000)  # bytes left on the disk; tantivy needs little


def fill(home: Path, rest: int) -> Path:
    filler = home / "filler"
    free = shutil.disk_usage(home).free - rest
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free))
    return filler


def main(root: Path, home: Path, other: Path, engine: str) -> None:
    known = Models()
    Engines.embedder = lambda self, name, offline=False: known.open(self, name)  # type: ignore[method-assign]
    flag = f"keyword.engine={engine}"
    said = []
    for turn, rest in enumerate(RESTS):
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(home / "vaults", ignore_errors=True)
        write(root, notes(4))
        vault = opened(root, home, flag)
        vault.index()
        old = [result.note for result in vault.search("bread and flour").results]
        write(root, {f"new{number}.md": note(number, version=turn + 1) for number in range(60)})
        filler = fill(home, rest)
        try:
            vault.index()
            said.append("")
        except IndexUnusable as error:
            said.append(f"{error} (fix: {error.fix})")
        results = vault.search("bread and flour", limit=999).results
        found = [result.note for result in results]
        assert found, "the index answers no more"
        assert said[-1] == "" or set(found) >= set(old)
        filler.unlink()
        known.forget()
        vault.index()
        clean = opened(root, other / str(turn), flag)
        clean.index()
        exact = engine == "whoosh"
        assert answers(vault, exact) == answers(clean, exact), rest
    print(json.dumps(said))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), sys.argv[4])  # type: ignore[call-arg]
