"""A change to one note writes little, however large the vault: counted by the system."""

from __future__ import annotations

from pathlib import Path

import pytest
from write_kit import models, note, opened, prose, write

from tests.keyword_kit import ENGINES

pytestmark = [
    pytest.mark.usefixtures("models"),
    pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts them"),
]
__all__ = ["models"]

MOST = 5_000_000  # bytes


def written() -> int:
    """Bytes that this process has handed to the system for writing."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def edited(root):
    write(root, {"0007.md": note(7, version=1, sentences=40)})


def renamed(root):
    (root / "0008.md").rename(root / "another.md")


def added(root):
    write(root, {"new.md": f"# New\n\n{prose('new', 40)} [[0001]]"})


def deleted(root):
    (root / "0009.md").unlink()


def indexed(tmp_path, engine, count):
    """A vault of so many notes with an index, and the bytes of that."""
    root = tmp_path / "vault"
    write(root, {f"{number:04}.md": note(number, sentences=60) for number in range(count)})
    vault = opened(root, tmp_path / "home", f"keyword.engine={engine}")
    vault.index()
    sizes = [path.stat().st_size for path in vault.folder.rglob("*") if path.is_file()]
    return vault, sum(sizes)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_edit_writes_a_part_of_the_index_and_a_run_without_one_next_to_nothing(tmp_path, engine):
    vault, whole = indexed(tmp_path, engine, 40)
    for change, share in ((edited, 0.6), (renamed, 0.6), (added, 0.6), (None, 0.05)):
        if change:
            change(vault.root)
        before = written()
        vault.index()
        assert written() - before < share * whole, change


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_one_changed_note_of_a_large_vault_writes_less_than_five_megabytes(tmp_path, engine):
    vault, whole = indexed(tmp_path, engine, 1200)
    assert whole > 2 * MOST
    for change in (edited, renamed, added, deleted):
        change(vault.root)
        before = written()
        vault.index()
        assert written() - before < MOST, change
